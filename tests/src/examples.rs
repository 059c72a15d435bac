//! Every example of the façade and of the client, run to its end.

#[path = "../../crates/tollgate/examples/approval.rs"]
#[expect(dead_code, reason = "its `main` takes a folder from its arguments")]
mod approval;
#[path = "../../crates/tollgate/examples/checkout.rs"]
mod checkout;
#[path = "../../crates/tollgate/examples/fail_fast.rs"]
mod fail_fast;
#[path = "../../crates/tollgate/examples/fan_out.rs"]
mod fan_out;
#[path = "../../crates/tollgate/examples/four_processes.rs"]
#[expect(dead_code, reason = "its `main` takes the store from its arguments")]
mod four_processes;
#[path = "../../crates/tollgate/examples/llm_pipeline.rs"]
mod llm_pipeline;
#[path = "../../crates/tollgate/examples/llm_requests_and_tokens.rs"]
mod llm_requests_and_tokens;
#[path = "../../crates/tollgate/examples/tenants.rs"]
mod tenants;
#[path = "../../crates/tollgate/examples/throttle_a_future.rs"]
mod throttle_a_future;

#[path = "../../crates/tollgate/examples/messages_per_second.rs"]
mod messages_per_second;
#[path = "../../crates/tollgate/examples/named_limits.rs"]
mod named_limits;
#[path = "../../crates/client/examples/quick_start.rs"]
#[expect(dead_code, reason = "its `main` takes the server from the environment")]
mod quick_start;
#[path = "../../crates/tollgate/examples/requests_per_second.rs"]
mod requests_per_second;
#[path = "../../crates/tollgate/examples/rolling_quota.rs"]
mod rolling_quota;
#[path = "../../crates/tollgate/examples/two_limits_at_once.rs"]
mod two_limits_at_once;
#[path = "../../crates/tollgate/examples/weighted_calls.rs"]
mod weighted_calls;

use crate::client::served::Served;
use crate::servers::redis::RedisServer;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tollgate_client::HistoryQuery;

#[tokio::test]
async fn a_refund_waits_for_a_person_over_restarts() {
    approval::ask_and_go_on().await.unwrap();
}

#[test]
fn a_checkout_charges_and_mails_within_both_limits() {
    checkout::main().unwrap();
}

#[test]
fn ten_thousand_children_go_through_one_limit_each_once() {
    fan_out::main().unwrap();
}

#[test]
fn each_provider_of_a_pipeline_has_its_own_limit() {
    llm_pipeline::main().unwrap();
}

#[test]
fn a_future_is_throttled() {
    throttle_a_future::main().unwrap();
}

/// One of the four, when it is started as that.
#[test]
fn one_of_four_processes() {
    four_processes::work_if_told().unwrap();
}

#[test]
fn four_processes_share_one_limit_and_make_no_call_too_many() {
    let server = RedisServer::start();
    let arguments = ["--exact", "examples::one_of_four_processes", "--nocapture"];
    let calls = four_processes::share(&server.url(), &arguments).unwrap();
    assert_eq!(calls.iter().sum::<u64>(), 1_000, "{calls:?}");
}

#[test]
fn requests_and_tokens_are_paid_together_and_settled() {
    llm_requests_and_tokens::main().unwrap();
}

#[test]
fn tenants_have_limits_of_their_own() {
    tenants::main().unwrap();
}

#[test]
fn a_handler_fails_fast() {
    fail_fast::main().unwrap();
}

#[test]
fn messages_go_out_at_their_rate_through_refusals() {
    messages_per_second::main().unwrap();
}

#[test]
fn named_limits_are_paid_from_anywhere() {
    named_limits::main().unwrap();
}

#[test]
fn requests_go_out_at_their_rate_in_order() {
    requests_per_second::main().unwrap();
}

#[test]
fn a_quota_holds_in_every_window() {
    rolling_quota::main().unwrap();
}

#[test]
fn two_limits_are_paid_at_once() {
    two_limits_at_once::main().unwrap();
}

#[test]
fn calls_pay_what_they_weigh() {
    weighted_calls::main().unwrap();
}

#[tokio::test]
async fn the_quick_start_makes_thirty_calls_in_order_at_their_rate() {
    let served = Served::in_real_time().await;
    let worked = quick_start::run(&served.client()).await.unwrap();
    assert_eq!((worked.started, worked.lost, worked.late), (30, 0, 0));
    let query = HistoryQuery { queue: Some("bookings"), most: 100, ..HistoryQuery::default() };
    let events = served.client().history(query).await.unwrap().items;
    let settled: Vec<_> = events.iter().rev().filter(|event| event.event == "settled").collect();
    let names: Vec<u64> = settled.iter().map(|it| it.call.as_str().parse().unwrap()).collect();
    assert!(names.is_sorted() && names.len() == 30, "{names:?}");
    let started = |nth: usize| settled[nth].more["started"].as_str().unwrap().parse().unwrap();
    let (first, last): (jiff::Timestamp, jiff::Timestamp) = (started(0), started(29));
    // Ten at once, and twenty at five a second.
    assert!(last.duration_since(first).as_millis() >= 3_999, "{first} {last}");
}

#[test]
fn every_example_is_run_here() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let folders = ["tollgate", "client"].map(|name| crates.join(name).join("examples"));
    let entries = folders.into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let names = entries.map(|entry| entry.unwrap().file_name());
    let names: BTreeSet<_> = names.map(|name| name.into_string().unwrap()).collect();
    let this = include_str!("examples.rs");
    for name in names {
        assert!(this.contains(&format!("examples/{name}\"]")), "{name} is not run");
    }
}
