//! Every case of the contracts, on a simulated disk.

use super::{Machine, wait};
use std::future::Future;

fn run<F: Future>(case: impl FnOnce(Machine) -> F) {
    wait(case(Machine::new(1)));
}

tollgate_core::lanes_conformance!(run);
