//! Thirty calls of one tenant at once, through a bucket of ten that refills five a second: ten go at once,
//! the others every 200 ms, in order. Start a server first: `tollgate serve`, or name one with TOLLGATE_URL.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use tollgate_client::{Call, Client, ClientError, Job, Limit, QueueSpec, Worked, toll};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClientError> {
    let worked = run(&Client::from_environment()?.build()?).await?;
    println!("{} calls were made", worked.started);
    Ok(())
}

// `pub(crate)` for the test that runs it.
pub(crate) async fn run(client: &Client) -> Result<Worked, ClientError> {
    client.limit("ota", Limit::per_second(5).burst(10)).await?;
    client.queue("bookings", QueueSpec::default()).await?;
    let call = |n: u32| Call::new("hotel").pays(toll("ota", "hotel")).body(n.to_string());
    client.enqueue_all("bookings", (0..30).map(call)).await?;

    let worker = client.worker("bookings").concurrency(8).until_drained();
    worker.run(async |job: Job| println!("{} {:?}", job.lane, job.body)).await
}
