//! Every case of the contracts, on a simulated disk.

use super::{Machine, wait};
use std::future::Future;
use tollgate_core::Timestamp;

fn run<F: Future>(case: impl FnOnce(Machine) -> F) {
    // Cases begin in 1970: limit time does not go back to it if the writer looks at the clock before.
    wait(case(Machine::at(1, Timestamp::default())));
}

tollgate_core::lanes_conformance!(run);
