//! Four processes share one quota in Redis: together they make no call too many, and none is left unused.
//!
//! `redis-server --port 6379` in one terminal, and in another
//! `cargo run --example four_processes --features redis -- redis://127.0.0.1:6379`

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use anyhow::Context as _;
use std::process::{Command, Stdio};
use tollgate::{Error, Limit, Tollgate, toll};

/// What the upstream allows in an hour, over all of us.
const QUOTA: u64 = 1_000;
/// Says to a process that it is one of the four, and where the limit is.
const WORKER: &str = "FOUR_PROCESSES_URL";

/// Makes calls until the quota is used up; says how many that were.
async fn work(url: &str) -> anyhow::Result<u64> {
    // Each process says what the limit is: they agree, and if one did not, the newest would win.
    let gate = Tollgate::connect(url).await?;
    gate.limit("partner-api", Limit::fixed_window(QUOTA, tollgate::Span::from_hours(1))).await?;
    let mut calls = 0;
    loop {
        match gate.consume(toll("partner-api", "all-of-us")).await {
            // Here the call would be made.
            Ok(_pass) => calls += 1,
            Err(Error::Refused(_)) => return Ok(calls),
            Err(other) => return Err(other.into()),
        }
    }
}

/// Starts four processes of this very program, with these arguments; says what each of them did.
pub(crate) fn share(url: &str, arguments: &[&str]) -> anyhow::Result<Vec<u64>> {
    let mut processes = Vec::new();
    for _ in 0..4 {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).env(WORKER, url).stdout(Stdio::piped());
        processes.push(command.spawn()?);
    }
    let mut calls = Vec::new();
    for process in processes {
        let said = String::from_utf8(process.wait_with_output()?.stdout)?;
        let count = said.lines().find_map(|line| line.strip_prefix("calls: "));
        calls.push(count.context("a process ended without a word")?.parse()?);
    }
    Ok(calls)
}

/// What one of the four does; nothing in any other process.
pub(crate) fn work_if_told() -> anyhow::Result<bool> {
    let Ok(url) = std::env::var(WORKER) else { return Ok(false) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // On a line of its own, whatever was said before.
    println!("\ncalls: {}", runtime.block_on(work(&url))?);
    Ok(true)
}

// `pub(crate)` for the test that runs it.
pub(crate) fn main() -> anyhow::Result<()> {
    if work_if_told()? {
        return Ok(());
    }
    let url =
        std::env::args().nth(1).context("give the url of a Redis, as in redis://127.0.0.1:6379")?;
    let calls = share(&url, &[])?;
    println!("four processes made {calls:?} calls: {} of {QUOTA}", calls.iter().sum::<u64>());
    Ok(())
}
