//! Calls that cost more or less: each pays what it weighs, and is settled at what it cost in truth.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use tollgate::lanes::QueueSpec;
use tollgate::{Call, Job, Limit, Outcome, Tollgate, toll};

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    gate.limit("tokens", Limit::per_second(1_000).burst(300)).await?;
    gate.queue("completions", QueueSpec::default()).await?;

    let prompts = (0..20).map(|n| {
        let estimate = 10 + 10 * (n % 5);
        Call::new("acme").pays(toll("tokens", "acme").weight(estimate)).body(format!("prompt {n}"))
    });
    gate.enqueue_all("completions", prompts).await?;

    // What can never pass is refused at the door, with the cure.
    let too_much = Call::new("acme").pays(toll("tokens", "acme").weight(301));
    if let Err(error) = gate.enqueue("completions", too_much).await {
        println!("{error}");
    }

    let worked = gate
        .worker("completions")
        .until_drained()
        .run(async |job: Job| {
            // The answer says what it cost. Less is given back; more is paid by those who come after.
            let used = 20 + u64::from(job.attempt);
            println!("{} used {used}", String::from_utf8_lossy(&job.body));
            Outcome::done().actual("tokens", used)
        })
        .await?;
    anyhow::ensure!(worked.started == 20, "each prompt once");
    Ok(())
}
