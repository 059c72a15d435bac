//! Requests and tokens per minute together: pay an estimate before the call, the true cost after.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use tollgate::{Limit, Tollgate, toll};

/// What a prompt is expected to cost, and what it turns out to cost.
const PROMPTS: [(&str, u64, u64); 5] = [
    ("name a cat", 400, 120),
    ("translate a page", 900, 1_100),
    ("summarise a book", 1_000, 650),
    ("fix a bug", 700, 700),
    ("write a haiku", 300, 90),
];

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let gate = Tollgate::memory();
    gate.limit("requests", Limit::per_minute(500).burst(10)).await?;
    gate.limit("tokens", Limit::per_minute(90_000).burst(1_500)).await?;

    for (prompt, estimate, used) in PROMPTS {
        // Waits its turn until both limits admit it, and pays both or none.
        let mut pass = gate
            .acquire(toll("requests", "acme"))
            .and(toll("tokens", "acme").estimate(estimate))
            .await?;

        // The call is made here, and says in its answer how many tokens it used. Less than expected
        // is given back; more is owed, and the next call waits for it.
        pass.settle("tokens", used).await?;

        let left = gate.meter("tokens", Some("acme")).await?.standing.remaining;
        println!("{prompt:<17} expected {estimate:>5}, used {used:>5}, left now {left:>5}");
    }
    Ok(())
}
