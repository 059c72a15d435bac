//! Fail fast: a handler that answers 429 and says when to come back.

#![allow(clippy::print_stdout, reason = "an example tells what happens")]

use tollgate::{Error, Limit, Tollgate, toll};

/// What a web framework would send.
struct Response {
    status: u16,
    headers: Vec<(&'static str, u64)>,
}

async fn handle(gate: &Tollgate, user: &str) -> Response {
    match gate.consume(toll("per-user", user)).await {
        Ok(pass) => {
            // A pass may hold slots: keep it until the work is done.
            let left = u64::try_from(pass.remaining()).unwrap_or(0);
            Response { status: 200, headers: vec![("X-RateLimit-Remaining", left)] }
        }
        Err(Error::Refused(refusal)) => {
            let after = refusal.retry_after.map(|span| ("Retry-After", span.as_secs_ceil()));
            Response { status: 429, headers: after.into_iter().collect() }
        }
        // The ask itself is wrong: a name that is too long, a weight that can never pass.
        Err(Error::Invalid(_)) => Response { status: 400, headers: Vec::new() },
        // The limiter cannot say. Whether to let the call through is for you to decide.
        Err(_) => Response { status: 503, headers: Vec::new() },
    }
}

// `pub(crate)` for the test that runs it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let gate = Tollgate::memory();
    gate.limit("per-user", Limit::per_minute(3)).await?;

    let mut answers = Vec::new();
    for user in ["ann", "ann", "ann", "ann", "bob"] {
        let Response { status, headers } = handle(&gate, user).await;
        println!("{user}: {status} {headers:?}");
        answers.push(status);
    }
    anyhow::ensure!(answers == [200, 200, 200, 429, 200], "ann had three, bob has his own");
    Ok(())
}
