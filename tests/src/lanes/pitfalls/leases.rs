//! Leases, slots and attempts: what a start holds, and what is left when its worker is gone.

use super::seconds;
use crate::lanes::world::{Owing, World, call, parallel};
use tollgate_core::lanes::{Act, ActError, QueueSpec, Settle, Settlement};
use tollgate_core::{Limit, Span};

/// Denials burned retries, and crashes were not counted at all.
#[test]
fn waiting_is_no_attempt_and_crashes_are_counted_apart() {
    let mut world = World::new().limit("api", Limit::per_minute(1));
    let calls = [0, 1].map(|_| world.enqueue(call("a").owes("api", "", 1)));
    let first = world.claim(1).remove(0);
    world.settle(first.lease, Settlement::Done);
    for _ in 0..1_000 {
        assert!(world.claim(1).is_empty());
    }
    for crashes in 0..3 {
        world.advance(seconds(60));
        let started = world.claim(1).remove(0);
        assert_eq!((started.lease.call, started.attempts.crashes), (calls[1], crashes));
        assert_eq!(started.attempts.failures, 0);
    }
    world.advance(seconds(60));
    assert!(world.claim(1).is_empty());
    assert!(!world.scheduler.is_waiting(calls[1]));
}

/// The answer of a worker that had lost its call changed what another did.
#[test]
fn a_late_settle_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let id = world.enqueue(call("a"));
    let lost = world.claim(1).remove(0);
    world.advance(seconds(31));
    let held = world.claim(1).remove(0);
    assert!(held.lease.token > lost.lease.token);
    let settle = vec![Settle::new(lost.lease, Settlement::Done)];
    let late = world.scheduler.act(Act { settle, ..Act::default() }, world.now);
    assert_eq!(late.unwrap_err(), ActError::LeaseLost { at: 0 });
    assert!(world.scheduler.is_in_flight(id));
}

/// A slot counter leaked when a worker died.
#[test]
fn slots_are_live_leases() {
    let mut world = World::with(parallel(10)).limit("slots", Limit::concurrency(2));
    world.enqueue_many(5, &call("a").owes("slots", "", 1));
    assert_eq!(world.claim(10).len(), 2);
    world.advance(seconds(29));
    assert!(world.claim(10).is_empty());
    world.advance(seconds(1));
    assert_eq!(world.claim(10).len(), 2);
}

/// Calls were leased together and paid for one after the other: the last leases ran out before
/// their turn, the work was done twice, and nothing was spent for it. A start is lease and payment
/// in one, and a slow worker keeps what it renews.
#[test]
fn a_slow_worker_that_renews_does_nothing_twice_and_pays_for_everything_once() {
    let spec = QueueSpec { lease: seconds(1), ..QueueSpec::default() };
    let mut world = World::with(spec).limit("api", Limit::per_hour(100));
    for lane in 0..100 {
        world.enqueue(call(&format!("lane {lane}")).owes("api", "", 1));
    }
    let mut held = world.claim(100);
    assert_eq!(held.len(), 100);
    assert!(held.iter().all(|started| started.expires == world.now.at.plus(seconds(1))));
    // A tenth of a second for each call: ten leases long.
    while let Some(started) = held.pop() {
        world.advance(Span::from_millis(100));
        let leases: Vec<_> = held.iter().map(|started| started.lease).collect();
        assert!(world.scheduler.renew(&leases, seconds(1), world.now).iter().all(|held| *held));
        world.settle(started.lease, Settlement::Done);
        assert!(world.claim(100).is_empty());
    }
    // Of a hundred an hour, what flowed in during ten seconds is there.
    let id = world.enqueue(call("next").owes("api", "", 1));
    let told = world.scheduler.explain(id, world.now).unwrap().not_before.unwrap();
    assert_eq!(told.since(world.now.at), seconds(26));
}

/// The same without renewing: who lost its lease has lost it, and each start was paid.
#[test]
fn a_lease_that_runs_out_is_paid_and_its_next_start_pays_again() {
    let spec = QueueSpec { lease: seconds(1), ..QueueSpec::default() };
    let mut world = World::with(spec).limit("api", Limit::per_hour(2));
    world.enqueue(call("a").owes("api", "", 1));
    let lost = world.claim(1).remove(0);
    world.advance(seconds(2));
    let held = world.claim(1).remove(0);
    world.settle(held.lease, Settlement::Release);
    let settle = vec![Settle::new(lost.lease, Settlement::Done)];
    let late = world.scheduler.act(Act { settle, ..Act::default() }, world.now);
    assert_eq!(late.unwrap_err(), ActError::LeaseLost { at: 0 });
    // One was spent on the start that was lost; the one that was handed back is there.
    assert_eq!(world.claim(1).len(), 1);
    world.advance(seconds(1));
    assert!(world.claim(1).is_empty());
}

/// Tokens went with the claim: a worker that drained before it began had spent them.
#[test]
fn a_call_that_is_handed_back_unstarted_cost_nothing() {
    let mut world = World::new().limit("api", Limit::per_hour(1));
    let id = world.enqueue(call("a").owes("api", "", 1));
    for _ in 0..10 {
        let started = world.claim(1).remove(0);
        assert_eq!((started.lease.call, started.attempts.failures), (id, 0));
        world.settle(started.lease, Settlement::Release);
    }
    assert_eq!(world.claim(1).len(), 1);
}

/// A retry was sent without taking a slot, and freed one when it was done: the counter drifted and
/// more and more were let in.
#[test]
fn a_call_that_comes_back_takes_its_slot_again() {
    let spec = QueueSpec { failures_max: 100, ..parallel(10) };
    let mut world = World::with(spec).limit("slots", Limit::concurrency(1));
    world.enqueue_many(2, &call("a").owes("slots", "", 1));
    for round in 0..10 {
        let first = world.claim(10);
        assert_eq!(first.len(), 1, "{round}");
        world.settle(first[0].lease, Settlement::Retry(Some(Span::from_millis(10))));
        let second = world.claim(10);
        assert_eq!(second.len(), 1, "{round}");
        world.advance(Span::from_millis(10));
        assert!(world.claim(10).is_empty(), "{round}");
        world.settle(second[0].lease, Settlement::Retry(Some(Span::ZERO)));
    }
}

/// A gate that was added or taken away while calls ran let one more in than it should.
#[test]
fn slots_stay_taken_while_their_limit_is_gone_and_back() {
    let mut world = World::with(parallel(10)).limit("slots", Limit::concurrency(2));
    world.enqueue_many(4, &call("a").owes("slots", "", 1));
    let running = world.claim(10);
    assert_eq!(running.len(), 2);
    world.define("slots", None);
    assert!(world.claim(10).is_empty());
    world.define("slots", Some(Limit::concurrency(3)));
    assert_eq!(world.claim(10).len(), 1);
    world.settle(running[0].lease, Settlement::Done);
    assert_eq!(world.claim(10).len(), 1);
}
