//! The worker in Rust: the same loop as `tests/workers/worker.py` and `worker.mjs`.

use crate::peer::Peer;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tollgate::{Clock, Span, SystemClock};

/// As many calls at a time as it makes within `start_within_ms` of the claim.
const HANDS: u64 = 5;

/// Claims calls, makes each at the upstream, and settles, until the queue is empty. How many of its
/// settlements were accepted, and how many refused.
pub(crate) fn work(tollgate: SocketAddr, upstream: SocketAddr, queue: &str) -> [u64; 2] {
    let (mut tollgate, mut upstream) = (Peer::connect(tollgate), Peer::connect(upstream));
    let (clock, path) = (SystemClock::new(), format!("/v1/queues/{queue}"));
    let (mut settle, mut settled) = (Vec::new(), [0; 2]);
    loop {
        let claim = json!({"max": HANDS, "wait": "1s", "worker": "rust", "settle": settle});
        let answer = tollgate.succeed("POST", &format!("{path}/claim"), &claim);
        let claimed = clock.now();
        for line in answer["settled"].as_array().into_iter().flatten() {
            settled[usize::from(line["settled"] != true)] += 1;
        }
        let calls = answer["calls"].as_array().unwrap();
        let start_within = Span::from_millis(answer["start_within_ms"].as_u64().unwrap());
        settle = calls
            .iter()
            .map(|call| {
                let is_late = clock.now().since(claimed) > start_within;
                let outcome = if is_late { "release" } else { make(&mut upstream, call) };
                json!({"lease": call["lease"], "outcome": outcome})
            })
            .collect();
        if calls.is_empty() {
            let state = tollgate.succeed("GET", &path, &Value::Null);
            if state["waiting"] == 0 && state["in_flight"] == 0 {
                return settled;
            }
        }
    }
}

/// Makes one call at the upstream; what came of it.
fn make(upstream: &mut Peer, call: &Value) -> &'static str {
    let told = json!({
        "worker": "rust", "id": call["id"], "lane": call["lane"], "sequence": call["body"]["sequence"],
        "attempt": call["attempt"], "lease": call["lease"],
    });
    if upstream.ask("POST", "/", &told).0 == 200 { "done" } else { "retry" }
}
