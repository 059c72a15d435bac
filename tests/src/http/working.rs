//! Working over HTTP: claim, settle, renew.

use super::started::Started;
use serde_json::{Value, json};
use tollgate::Span;

fn lease(call: &Value) -> Value {
    call["lease"].clone()
}

#[tokio::test]
async fn a_call_is_claimed_and_settled_and_told() {
    let server = Started::with_queue(10).await;
    let id = server.enqueue(&json!({"lane": "a", "body": {"n": 1}})).await.remove(0);
    let claimed = server.claim(&json!({"max": 5, "worker": "w1", "lease": "10s"})).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!((&claimed[0]["id"], &claimed[0]["attempt"]), (&json!(id), &json!(1)));
    assert_eq!(claimed[0]["lease_ms"], 10_000);
    let call = server.get(&format!("/v1/calls/{id}")).await.success();
    assert_eq!((&call["state"], &call["body"]), (&json!("in_flight"), &json!({"n": 1})));
    let settled = server.settle(&json!({"lease": lease(&claimed[0]), "outcome": "done"})).await;
    assert_eq!(settled, json!({"settled": true}));
    let call = server.get(&format!("/v1/calls/{id}")).await.success();
    assert_eq!(call["state"], "done");
    assert_eq!(call["history"][0]["outcome"], "done");
}

/// The long poll answers at the instant the limit opens, and not before.
#[tokio::test]
async fn a_claim_waits_until_a_call_may_start() {
    let server = Started::with_queue(1).await;
    let call = json!({"lane": "a", "tolls": [{"limit": "l"}]});
    let ids = server.enqueue(&json!([call, call])).await;
    let first = server.claim(&json!({})).await.remove(0);
    let asked =
        json!({"max": 5, "wait": "20s", "settle": [{"lease": lease(&first), "outcome": "done"}]});
    let mut waiting = server.begin("/v1/queues/q/claim", &asked).await;
    server.until_reason(&ids[1], "meter").await;
    let call = server.get(&format!("/v1/calls/{}", ids[1])).await.success();
    let reason = &call["waiting"]["reasons"][0];
    assert_eq!((&reason["limit"], &reason["cause"]), (&json!("l"), &json!("spent")));
    assert_eq!(call["waiting"]["not_before"], reason["opens_at"]);
    server.clock.advance(Span::from_secs(1));
    let answer = waiting.answer().await.unwrap().success();
    assert_eq!(answer["calls"][0]["id"], json!(ids[1]));
    assert!(answer["waited_ms"].is_u64(), "{answer}");
    assert_eq!(answer["settled"], json!([{"settled": true}]));
}

#[tokio::test]
async fn a_claim_that_gets_nothing_is_answered_in_time() {
    let server = Started::with_queue(1).await;
    let mut waiting = server.begin("/v1/queues/q/claim", &json!({"wait": "20s"})).await;
    server.until_asking(1).await;
    server.clock.advance(Span::from_secs(20));
    assert_eq!(waiting.answer().await.unwrap().success()["calls"], json!([]));
    server.post("/v1/queues/x/claim", &json!({})).await.problem(404, "unknown_queue");
}

#[tokio::test]
async fn a_server_that_goes_answers_those_who_wait() {
    let mut server = Started::with_queue(1).await;
    let mut waiting = server.begin("/v1/queues/q/claim", &json!({"wait": "20s"})).await;
    server.until_asking(1).await;
    server.begin_stop();
    assert_eq!(waiting.answer().await.unwrap().success()["calls"], json!([]));
    server.ended().await;
}

#[tokio::test]
async fn a_failed_call_is_tried_again_and_a_released_one_was_never_tried() {
    let server = Started::with_queue(1).await;
    server.enqueue(&json!({"lane": "a", "tolls": [{"limit": "l"}]})).await;
    let claimed = server.claim(&json!({})).await.remove(0);
    let settled = server.settle(&json!({"lease": lease(&claimed), "outcome": "release"})).await;
    assert_eq!(settled["settled"], true);
    // What it paid was handed back.
    let again = server.claim(&json!({})).await.remove(0);
    assert_eq!(again["attempt"], 1);
    let retry = json!({"lease": lease(&again), "outcome": "retry", "after": "3s"});
    server.settle(&retry).await;
    server.clock.advance(Span::from_millis(2_999));
    assert!(server.claim(&json!({})).await.is_empty());
    server.clock.advance(Span::from_millis(1));
    let third = server.claim(&json!({})).await.remove(0);
    assert_eq!(third["attempt"], 2);
    assert_eq!(third["attempts"], json!({"failures": 1, "crashes": 0, "limited": 0}));
}

#[tokio::test]
async fn an_upstream_that_asks_for_a_pause_closes_its_meter() {
    let server = Started::with_queue(10).await;
    let call = json!({"lane": "a", "tolls": [{"limit": "l", "partition": "p"}]});
    server.enqueue(&call).await;
    let claimed = server.claim(&json!({})).await.remove(0);
    let limited = json!({"lease": lease(&claimed), "outcome": "limited"});
    let refused = server.settle(&limited).await;
    assert_eq!(refused["problem"]["field"], "after");
    let limited = json!({"lease": lease(&claimed), "outcome": "limited", "after": "7s"});
    assert_eq!(server.settle(&limited).await["settled"], true);
    let meter = server.get("/v1/meters/l/p").await.success();
    assert_eq!(meter["closed_for_ms"], 7_000);
}

/// Promise 19: what follows from a call is enqueued with its end, or neither happens.
#[tokio::test]
async fn what_follows_is_enqueued_in_the_same_act() {
    let server = Started::with_queue(10).await;
    server.enqueue(&json!({"lane": "a"})).await;
    let claimed = server.claim(&json!({})).await.remove(0);
    let settle = |queue: &str| json!({"lease": lease(&claimed), "outcome": "done", "enqueue": [{"queue": queue, "lane": "b"}]});
    let refused = server.settle(&settle("nowhere")).await;
    assert_eq!(refused["problem"]["code"], "unknown_queue");
    let settled = server.settle(&settle("q")).await;
    let id = settled["enqueued"][0].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/calls/{id}")).await.success()["lane"], "b");
}

#[tokio::test]
async fn one_settlement_that_is_refused_does_not_hold_up_the_others() {
    let server = Started::with_queue(10).await;
    server.enqueue(&json!([{"lane": "a"}, {"lane": "b"}])).await;
    let claimed = server.claim(&json!({"max": 2})).await;
    let done = |lease: Value| json!({"lease": lease, "outcome": "done"});
    let (first, second) = (lease(&claimed[0]), lease(&claimed[1]));
    let all = json!([done(first.clone()), done(first), done(json!("none")), done(second)]);
    let settled = server.post("/v1/settle", &all).await.success()["settled"].clone();
    assert_eq!(settled[0], json!({"settled": true}));
    assert_eq!(settled[1]["problem"]["code"], "lease_lost");
    assert_eq!(settled[2]["problem"]["code"], "lease_unknown");
    assert_eq!(settled[3], json!({"settled": true}));
}

/// Promise 17: a dead worker's call returns to the head of its lane, and its late settle changes
/// nothing.
#[tokio::test]
async fn a_lease_is_held_while_it_is_renewed_and_lost_after() {
    let server = Started::with_queue(10).await;
    server.enqueue(&json!({"lane": "a"})).await;
    let claimed = server.claim(&json!({"lease": "10s"})).await.remove(0);
    server.clock.advance(Span::from_secs(9));
    let renew = json!({"leases": [lease(&claimed), "none"], "for": "10s"});
    let renewed = server.post("/v1/leases/renew", &renew).await.success();
    assert_eq!(renewed["renewed"], json!([true, false]));
    server.clock.advance(Span::from_secs(9));
    assert!(server.claim(&json!({})).await.is_empty());
    server.clock.advance(Span::from_secs(1));
    let again = server.claim(&json!({})).await.remove(0);
    assert_eq!(again["id"], claimed["id"]);
    assert_eq!(again["attempts"]["crashes"], 1);
    let late = server.settle(&json!({"lease": lease(&claimed), "outcome": "done"})).await;
    assert_eq!(late["problem"]["code"], "lease_lost");
    let renewed = server.post("/v1/leases/renew", &renew).await.success();
    assert_eq!(renewed["renewed"], json!([false, false]));
    assert_eq!(
        server.settle(&json!({"lease": lease(&again), "outcome": "done"})).await["settled"],
        true
    );
}

/// A worker that goes while it waits takes no call with it.
#[tokio::test]
async fn a_worker_that_goes_leaves_its_place() {
    let server = Started::with_queue(10).await;
    let waiting = server.begin("/v1/queues/q/claim", &json!({"wait": "20s"})).await;
    server.until_asking(1).await;
    drop(waiting);
    server.until_asking(0).await;
    server.enqueue(&json!({"lane": "a"})).await;
    assert_eq!(server.claim(&json!({})).await.len(), 1);
}

#[tokio::test]
async fn claims_are_bounded() {
    let server = Started::with_queue(10).await;
    for claim in [
        json!({"max": 10_001}),
        json!({"wait": "11m"}),
        json!({"lease": "0s"}),
        json!({"lease": "2d"}),
        json!({"settle": [{"lease": "x"}]}),
        json!({"hurry": true}),
    ] {
        server.post("/v1/queues/q/claim", &claim).await.problem(400, "invalid_body");
    }
    let renew = json!({"leases": [], "for": "2d"});
    server.post("/v1/leases/renew", &renew).await.problem(400, "invalid_body");
}

/// A typing error is said at once, not after the long poll.
#[tokio::test]
async fn a_claim_of_no_queue_does_not_wait() {
    let server = Started::with_queue(10).await;
    let answer = server.post("/v1/queues/typo/claim", &json!({"wait": "10m"})).await;
    answer.problem(404, "unknown_queue");
}

#[tokio::test]
async fn a_true_cost_beyond_counting_is_refused_for_itself() {
    let server = Started::with_queue(10).await;
    server.enqueue(&json!({"lane": "a", "tolls": [{"limit": "l"}]})).await;
    let claimed = server.claim(&json!({})).await.remove(0);
    let settle =
        |units: u64| json!({"lease": lease(&claimed), "outcome": "done", "actual": {"l": units}});
    let refused = server.settle(&settle(u64::MAX)).await;
    assert_eq!(refused["problem"]["code"], "actual_too_large");
    assert_eq!(server.settle(&settle(5)).await["settled"], true);
    assert_eq!(server.get("/v1/meters/l").await.success()["global"]["available"], 5);
}

/// What was settled with a claim is told even if nothing can be claimed.
#[tokio::test]
async fn a_claim_that_fails_tells_what_it_settled() {
    let server = Started::with_queue(10).await;
    server.enqueue(&json!({"lane": "a"})).await;
    let claimed = server.claim(&json!({})).await.remove(0);
    let settle = json!([{"lease": lease(&claimed), "outcome": "done"}]);
    let answer = server.post("/v1/queues/typo/claim", &json!({"settle": settle})).await.success();
    assert_eq!(answer["settled"], json!([{"settled": true}]));
    assert_eq!(answer["problem"]["code"], "unknown_queue");
}

#[tokio::test]
async fn lists_have_an_end() {
    let server = Started::with_queue(10).await;
    let many = vec![json!({"lane": "a"}); 10_001];
    server.post("/v1/queues/q/calls", &json!(many)).await.problem(400, "invalid_body");
    let many = vec![json!({"lease": "x", "outcome": "done"}); 10_001];
    server.post("/v1/settle", &json!(many)).await.problem(400, "invalid_body");
    server.enqueue(&json!({"lane": "a"})).await;
    server.post("/v1/queues/q/claim", &json!({"settle": many})).await.problem(400, "invalid_body");
    assert_eq!(server.get("/v1/queues/q").await.success()["in_flight"], 0);
}

/// What a worker gets at once is bounded by its size, too; the rest waits in its order.
#[tokio::test]
async fn a_claim_of_large_calls_hands_out_what_fits() {
    let server = Started::with_queue(10).await;
    let body = "x".repeat(15 << 20);
    for lane in ["a", "b", "c", "d", "e", "f"] {
        server.enqueue(&json!({"lane": lane, "body": body})).await;
    }
    let claimed = server.claim(&json!({"max": 10})).await;
    assert_eq!(claimed.len(), 5);
    server.until_waiting_calls(1).await;
    let rest = server.claim(&json!({"max": 10})).await;
    assert_eq!((&rest[0]["lane"], &rest[0]["attempt"]), (&json!("f"), &json!(1)));
}
