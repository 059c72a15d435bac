//! So many messages a second, one a call: each phone number has its own limit and its own order. An
//! upstream that takes one operation a call is used in the same way.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tollgate::lanes::{Order, QueueSpec};
use tollgate::{Call, Job, Limit, Outcome, Span, Tollgate, toll};

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    gate.limit("messages", Limit::per_second(100).burst(20)).await?;
    // Order does not matter between messages of one number: up to fifty of it are on their way.
    let parallel = QueueSpec { order: Order::Parallel(50), ..QueueSpec::default() };
    gate.queue("messages", parallel).await?;

    for number in ["+43 1 000", "+43 1 001", "+43 1 002"] {
        let messages = (0..40)
            .map(|n| Call::new(number).pays(toll("messages", number)).body(format!("message {n}")));
        gate.enqueue_all("messages", messages).await?;
    }

    let refused = Arc::new(AtomicU32::new(0));
    let counted = refused.clone();
    let worked = gate
        .worker("messages")
        .concurrency(32)
        .until_drained()
        .run(move |job: Job| {
            let refused = counted.clone();
            async move {
                // An upstream that answers 429 closes the meter of that number for as long as it asks
                // for, and of no other. The call keeps its place, and no attempt is lost.
                let is_unlucky = job.attempt == 1 && &*job.body == b"message 25";
                if is_unlucky {
                    refused.fetch_add(1, Ordering::Relaxed);
                    return Outcome::limited(Span::from_millis(200));
                }
                Outcome::done()
            }
        })
        .await?;

    println!(
        "{} starts, {} of them refused by the upstream",
        worked.started,
        refused.load(Ordering::Relaxed)
    );
    anyhow::ensure!(worked.started == 123, "each message once, and three of them twice");
    Ok(())
}
