//! Every example of the façade, run to its end.

#[path = "../../crates/tollgate/examples/fail_fast.rs"]
mod fail_fast;
#[path = "../../crates/tollgate/examples/llm_requests_and_tokens.rs"]
mod llm_requests_and_tokens;
#[path = "../../crates/tollgate/examples/tenants.rs"]
mod tenants;
#[path = "../../crates/tollgate/examples/throttle_a_future.rs"]
mod throttle_a_future;

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
fn every_example_is_run_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/tollgate/examples");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names: BTreeSet<_> = names.map(|name| name.into_string().unwrap()).collect();
    let this = include_str!("examples.rs");
    for name in names {
        assert!(this.contains(&format!("examples/{name}\"]")), "{name} is not run");
    }
}
