//! A quota over a rolling window: never more than so many in any interval of that length, however the
//! calls come, exactly.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::sync::{Arc, Mutex};
use tollgate::lanes::QueueSpec;
use tollgate::{Call, Job, Limit, Span, Timestamp, Tollgate, toll};

const QUOTA: usize = 20;
const WINDOW: Span = Span::from_millis(500);

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    gate.limit("emails", Limit::sliding_window(QUOTA as u64, WINDOW)).await?;
    gate.queue("emails", QueueSpec::default()).await?;
    let emails =
        (0..50).map(|n| Call::new("news").pays(toll("emails", "news")).body(format!("{n}")));
    gate.enqueue_all("emails", emails).await?;

    let starts: Arc<Mutex<Vec<Timestamp>>> = Arc::default();
    let noted = starts.clone();
    gate.worker("emails")
        .concurrency(8)
        .until_drained()
        .run(move |job: Job| {
            noted.lock().unwrap_or_else(|broken| broken.into_inner()).push(job.started);
            async {}
        })
        .await?;

    let starts = starts.lock().unwrap_or_else(|broken| broken.into_inner());
    let within = |from: &Timestamp| {
        starts.iter().filter(|at| *at >= from && at.since(*from) < WINDOW).count()
    };
    let most = starts.iter().map(within).max().unwrap_or(0);
    println!("{} sent, at most {most} in any half second", starts.len());
    anyhow::ensure!(starts.len() == 50 && most <= QUOTA, "the quota holds in every window");
    Ok(())
}
