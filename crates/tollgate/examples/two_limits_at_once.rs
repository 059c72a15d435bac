//! Requests a second and operations a second at once: a call pays at both, in one decision, and the
//! tighter of the two is the rate. No second queue, and no burst behind it.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use tollgate::lanes::QueueSpec;
use tollgate::{Call, Job, Limit, Tollgate, toll};

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    gate.limit("requests", Limit::per_second(100).burst(10)).await?;
    gate.limit("operations", Limit::per_second(300).burst(30)).await?;
    gate.queue("rates", QueueSpec::default()).await?;

    // Five operations a request: sixty requests a second, though a hundred would be allowed.
    let requests = (0..30).map(|n| {
        Call::new("hotel")
            .pays(toll("requests", "hotel"))
            .pays(toll("operations", "hotel").weight(5))
            .body(format!("request {n}"))
    });
    let ids = gate.enqueue_all("rates", requests).await?;

    let worker = gate.worker("rates").concurrency(4).until_drained();
    let running = tokio::spawn(worker.run(async |job: Job| {
        println!("{}", String::from_utf8_lossy(&job.body));
    }));
    // Every call says why it waits, and until when.
    if let Some(last) = ids.last()
        && let Some(explained) = gate.explain(*last).await?
    {
        println!("the last one waits for {:?}, until {:?}", explained.reasons, explained.expected);
    }
    let worked = running.await??;
    anyhow::ensure!(worked.started == 30, "each request once");
    Ok(())
}
