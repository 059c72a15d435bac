//! The naive reference and the scheduler pass every case.

use super::MetersStage;
use crate::contract::kept::{Kept, Machine};
use crate::lanes::Scheduler;
use crate::lanes::naive::Naive;
use crate::time::Now;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

impl<M: Machine> MetersStage for Kept<M> {
    type Store = Self;

    fn store(&self) -> &Self {
        self
    }

    fn set_now(&mut self, now: Now) {
        Kept::set_now(self, now);
    }
}

/// What is kept in memory answers at once.
fn at_once(case: impl Future) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(case).poll(&mut context), Poll::Ready(_)), "an answer was missing");
}

mod naive {
    use super::*;

    fn run<F: Future>(case: impl FnOnce(Kept<Naive>) -> F) {
        at_once(case(Kept::new(Naive::new(), Now::default())));
    }

    crate::lanes_conformance!(run);
}

mod scheduler {
    use super::*;

    fn run<F: Future>(case: impl FnOnce(Kept<Scheduler>) -> F) {
        at_once(case(Kept::new(Scheduler::new(), Now::default())));
    }

    crate::lanes_conformance!(run);
}
