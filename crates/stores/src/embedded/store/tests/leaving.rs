//! For how long a worker is taken to ask: one that leaves with calls is expected back, and others let the calls of its
//! queue go first until then.

use super::claiming::{a_moment_before_a_limit_opens, waiting as asking};
use super::{Machine, enqueue, wait};
use std::sync::atomic::Ordering;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::Claim;
use tollgate_core::lanes::claim::BACK_WITHIN;
use tollgate_core::{Definition, LaneName, Limit, LimitName, Now, Span, Timestamp, Toll};

const ALMOST_NOTHING: Span = Span::from_nanos(1);

/// A store with two calls that wait at a limit with room for one, and when that is.
fn two_at(limit: Limit) -> (Machine, Timestamp) {
    let machine = Machine::new(1);
    machine.define();
    let definition = Some(Definition::new(limit).unwrap());
    wait(machine.store().configure(Configure::limit(name(), definition))).unwrap().unwrap();
    for _ in 0..2 {
        enqueue_at_the_limit(&machine);
    }
    let now = machine.clock.lock().unwrap().at;
    (machine, now)
}

fn name() -> LimitName {
    LimitName::new("l").unwrap()
}

fn enqueue_at_the_limit(machine: &Machine) {
    let mut act = enqueue(1);
    let toll = Toll { limit: name(), partition: None, weight: 1, hears_feedback: false };
    act.enqueue[0].tolls = [toll].into();
    assert!(wait(machine.store().act(vec![act])).unwrap()[0].is_ok());
}

/// Someone who asks for any number, for a second.
fn many() -> Claim {
    Claim { most: 9, ..asking() }
}

/// How many calls someone leaves with, and whether it is taken to go on asking.
fn left(machine: &Machine) -> (usize, bool) {
    let (claimed, goes_on) = wait(machine.store().claim_and_leave(many())).unwrap();
    (claimed.len(), goes_on)
}

/// Whether one who makes its call itself passes at that instant, and not the one before.
fn passes_from(machine: &mut Machine, at: Timestamp) -> bool {
    machine.set_now(Now::both(at.minus(ALMOST_NOTHING)));
    let before = machine.consume();
    machine.set_now(Now::both(at));
    before.is_err() && machine.consume().is_ok()
}

#[test]
fn who_leaves_with_calls_is_expected_back_for_a_moment() {
    let (mut machine, now) = two_at(Limit::per_second(2_000).burst(1));
    assert_eq!(left(&machine), (1, false));
    assert!(passes_from(&mut machine, now.plus(BACK_WITHIN)));
}

#[test]
fn who_does_not_leave_is_taken_to_ask_for_as_long_as_it_says() {
    let (mut machine, now) = two_at(Limit::per_second(2_000).burst(1));
    assert_eq!(wait(machine.store().claim(many())).unwrap().len(), 1);
    assert!(passes_from(&mut machine, now.plus(many().asks)));
}

#[test]
fn who_leaves_does_not_take_along_who_asks_for_longer() {
    let (mut machine, now) = two_at(Limit::per_second(2_000).burst(1));
    enqueue_at_the_limit(&machine);
    assert_eq!(wait(machine.store().claim(many())).unwrap().len(), 1);
    machine.set_now(Now::both(now.plus(BACK_WITHIN)));
    assert_eq!(left(&machine), (1, false));
    assert!(passes_from(&mut machine, now.plus(many().asks)));
}

#[test]
fn who_is_sent_away_without_calls_is_taken_to_ask_for_as_long_as_it_says() {
    let (mut machine, now) = two_at(Limit::per_second(2).burst(1));
    assert!(machine.consume().is_ok(), "nobody asks yet");
    assert_eq!(left(&machine), (0, true));
    assert!(passes_from(&mut machine, now.plus(many().asks)));
}

#[test]
fn who_lingered_for_its_calls_is_expected_back_for_a_moment() {
    let (mut machine, _, step) = a_moment_before_a_limit_opens();
    enqueue_at_the_limit(&machine);
    step.store(400_000, Ordering::Relaxed);
    let (claimed, goes_on) = wait(machine.store().claim_and_leave(many())).unwrap();
    assert_eq!((claimed.len(), goes_on), (1, false));
    step.store(0, Ordering::Relaxed);
    // It asked until others were gathered that open then, and for a moment more.
    let latest = claimed[0].started.at.plus(Span::from_millis(1)).plus(BACK_WITHIN);
    machine.set_now(Now::both(latest));
    assert!(machine.consume().is_ok());
}

#[test]
fn who_is_answered_late_is_expected_from_then_on() {
    let (mut machine, before, step) = a_moment_before_a_limit_opens();
    enqueue_at_the_limit(&machine);
    let later = before.at.plus(Span::from_secs(1));
    machine.set_now(Now::both(later));
    // Between two readings of the clock, as to write it takes.
    step.store(5_000_000, Ordering::Relaxed);
    let mut free = enqueue(1);
    free.enqueue[0].lane = LaneName::new("b").unwrap();
    assert!(wait(machine.store().act(vec![free])).unwrap()[0].is_ok());
    // The writer knows how long it took by the time that it has answered.
    wait(machine.store().advance()).unwrap();
    step.store(0, Ordering::Relaxed);
    let (claimed, goes_on) = wait(machine.store().claim_and_leave(many())).unwrap();
    assert_eq!((claimed.len(), goes_on), (2, false));
    let left = claimed[0].started.at;
    machine.set_now(Now::both(left.plus(Span::from_millis(5))));
    assert!(machine.consume().is_err());
    machine.set_now(Now::both(left.plus(Span::from_millis(200))));
    assert!(machine.consume().is_ok());
}
