//! Every example of the façade, run to its end.

#[path = "../../crates/tollgate/examples/fail_fast.rs"]
mod fail_fast;
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
#[path = "../../crates/tollgate/examples/requests_per_second.rs"]
mod requests_per_second;
#[path = "../../crates/tollgate/examples/rolling_quota.rs"]
mod rolling_quota;
#[path = "../../crates/tollgate/examples/two_limits_at_once.rs"]
mod two_limits_at_once;
#[path = "../../crates/tollgate/examples/weighted_calls.rs"]
mod weighted_calls;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn a_future_is_throttled() {
    throttle_a_future::main().unwrap();
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

#[test]
fn every_example_is_run_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tollgate/examples");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names: BTreeSet<_> = names.map(|name| name.into_string().unwrap()).collect();
    let this = include_str!("examples.rs");
    for name in names {
        assert!(this.contains(&format!("examples/{name}\"]")), "{name} is not run");
    }
}
