//! Limits with names, defined once and paid from anywhere: one global meter, or one for each tenant;
//! one unit, or as many as a call does at once.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use tollgate::lanes::QueueSpec;
use tollgate::{Call, Job, Limit, Span, Tollgate, global, toll};

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    gate.limit("stripe", Limit::per_minute(600).burst(100)).await?;
    gate.limit("emails", Limit::per(5, Span::from_secs(60)).burst(10)).await?;
    gate.queue("steps", QueueSpec::default()).await?;

    // At the global meter; at the tenant's own; and fifty units at once.
    gate.enqueue("steps", Call::new("run 1").pays(global("stripe")).body("charge")).await?;
    gate.enqueue("steps", Call::new("run 2").pays(toll("stripe", "acme")).body("charge")).await?;
    let bulk = Call::new("run 3").pays(global("stripe").weight(50)).body("charge in bulk");
    gate.enqueue("steps", bulk).await?;
    // A limit that is not there stops nobody for ever: it is refused when it is named.
    let unknown = Call::new("run 4").pays(global("strype"));
    if let Err(error) = gate.enqueue("steps", unknown).await {
        println!("{error}");
    }

    gate.worker("steps")
        .until_drained()
        .run(async |job: Job| {
            println!("{}: {}", job.lane, String::from_utf8_lossy(&job.body));
        })
        .await?;
    for partition in [None, Some("acme")] {
        let meter = gate.meter("stripe", partition).await?;
        println!("{partition:?} has {} of {} left", meter.standing.remaining, meter.standing.limit);
    }
    Ok(())
}
