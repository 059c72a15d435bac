//! Throttle a future: ten pages are wanted at once, and the website takes ten a second.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use tollgate::{Clock, Limit, SystemClock, Tollgate, global};

/// What is to be throttled: any future.
async fn fetch(page: u32) -> String {
    format!("the text of page {page}")
}

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let clock = SystemClock::new();
    let gate = Tollgate::builder().clock(clock.clone()).memory();
    gate.limit("website", Limit::per_second(10).burst(3)).await?;

    let began = clock.now();
    let tasks = (1..=10).map(|page| {
        let (gate, clock) = (gate.clone(), clock.clone());
        tokio::spawn(async move {
            let fetched = gate.throttle(global("website"), async {
                let waited = clock.now().since(began);
                println!("{:>4} ms: fetching page {page}", waited.as_millis_ceil());
                fetch(page).await
            });
            fetched.await
        })
    });

    // Three start at once, as the burst allows; then one every 100 ms, first come, first served.
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        let text = task.await??;
        anyhow::ensure!(text.starts_with("the text"), "a page came back wrong");
    }
    Ok(())
}
