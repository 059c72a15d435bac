//! Slices: consumed ahead of the disk, never over, and at most one slice lost.

use super::{Machine, wait};
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::{Definition, Limit, LimitName, Span};

/// A sixteenth of a hundred.
const SLICE: i64 = 6;

impl Machine {
    fn with_limit(seed: u64) -> Self {
        let machine = Self::new(seed);
        let definition = Definition::new(Limit::per_hour(100)).unwrap();
        let change = Configure::limit(LimitName::new("l").unwrap(), Some(definition));
        wait(machine.store().configure(change)).unwrap().unwrap();
        machine
    }

    fn spent(&self) -> i64 {
        let meter = (LimitName::new("l").unwrap(), None);
        let state = wait(self.store().inspect(vec![meter])).unwrap().remove(0).unwrap();
        100 - state.standing.remaining
    }
}

#[test]
fn what_was_consumed_ahead_is_spent_after_a_crash_and_one_slice_more_at_most() {
    for seed in 0..60 {
        let mut machine = Machine::with_limit(seed);
        let consumed = i64::try_from(seed).unwrap();
        for _ in 0..consumed {
            machine.consume().unwrap();
        }
        machine.crash();
        machine.start();
        let spent = machine.spent();
        let range = consumed..=consumed + SLICE;
        assert!(range.contains(&spent), "{consumed} consumed, {spent} spent");
        machine.crash();
        machine.start();
        assert!(machine.spent() <= consumed + SLICE, "it is charged once");
    }
}

#[test]
fn a_close_in_good_order_loses_nothing() {
    let mut machine = Machine::with_limit(1);
    for _ in 0..20 {
        machine.consume().unwrap();
    }
    machine.store = None;
    machine.start();
    assert_eq!(machine.spent(), 20);
}

#[test]
fn a_meter_that_is_idle_has_no_slice() {
    let mut machine = Machine::with_limit(1);
    for _ in 0..20 {
        machine.consume().unwrap();
    }
    // Answered when all that came before lasts.
    wait(machine.store().advance()).unwrap();
    let later = wait(machine.store().now()).unwrap();
    machine.set_now(later.moved_to(later.at.plus(Span::from_secs(11))));
    wait(machine.store().advance()).unwrap();
    machine.crash();
    machine.start();
    assert_eq!(machine.spent(), 20);
}

#[test]
fn a_limit_that_is_lowered_has_no_slice_of_what_it_was() {
    let mut machine = Machine::with_limit(1);
    let define = |machine: &Machine, units| {
        let definition = Definition::new(Limit::per_hour(units)).unwrap();
        let change = Configure::limit(LimitName::new("l").unwrap(), Some(definition));
        wait(machine.store().configure(change)).unwrap().unwrap();
    };
    define(&machine, 100_000);
    for _ in 0..20 {
        machine.consume().unwrap();
    }
    define(&machine, 100);
    machine.crash();
    machine.start();
    assert!(machine.spent() <= 20 + SLICE, "{} spent", machine.spent());
}
