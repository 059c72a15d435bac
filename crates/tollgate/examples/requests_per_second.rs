//! So many requests a second for each tenant, whatever is inside: each request is one call that carries
//! a batch, in the tenant's lane, and pays one unit.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use std::time::Instant;
use tollgate::lanes::QueueSpec;
use tollgate::{Call, Job, Limit, Tollgate, toll};

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let gate = Tollgate::open(folder.path()).await?;
    gate.limit("calendar-api", Limit::per_second(50).burst(10)).await?;
    gate.queue("calendars", QueueSpec::default()).await?;

    for tenant in ["airport-hotel", "beach-hotel"] {
        let requests = (0..30).map(|n| {
            let request = format!("{{\"number\":{n},\"items\":[1,2,3,4,5]}}");
            Call::new(tenant).pays(toll("calendar-api", tenant)).body(request)
        });
        gate.enqueue_all("calendars", requests).await?;
    }

    let started = now();
    let worked = gate
        .worker("calendars")
        .concurrency(8)
        .until_drained()
        .run(async |job: Job| {
            // The request is made here. What fails is tried again, before all that come after it.
            println!("{} #{} {}", job.lane, job.attempt, String::from_utf8_lossy(&job.body));
        })
        .await?;

    // Ten go at once and twenty at fifty a second, for both tenants at the same time.
    println!("{} requests in {:?}; no less than 400 ms", worked.started, started.elapsed());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "it measures what a user would")]
fn now() -> Instant {
    Instant::now()
}
