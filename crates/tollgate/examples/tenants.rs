//! Tenants with limits of their own, one of them on a larger plan, all of them behind one upstream.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use tollgate::{Error, Limit, Tollgate, global, toll};

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let gate = Tollgate::memory();
    gate.limit("tenant", Limit::per_hour(3)).await?;
    gate.limit("upstream", Limit::per_hour(14)).await?;
    // Big Corp bought the larger plan. What it spent so far stays spent.
    gate.override_partition("tenant", "big corp", Some(Limit::per_hour(10))).await?;

    for tenant in ["ann", "big corp", "bob"] {
        let mut sent = 0;
        let why = loop {
            // Both meters are paid, or none: a tenant that is refused costs the upstream nothing.
            match gate.consume(toll("tenant", tenant).and(global("upstream"))).await {
                Ok(_) => sent += 1,
                Err(Error::Refused(refusal)) => break refusal,
                Err(error) => return Err(error.into()),
            }
        };
        println!("{tenant:<8} sent {sent:>2}, then: {why}");
    }
    // Ann sends 3 and Big Corp 10; of the upstream's 14 that leaves one for Bob.
    anyhow::ensure!(gate.consume(global("upstream")).await.is_err(), "the upstream is used up");
    Ok(())
}
