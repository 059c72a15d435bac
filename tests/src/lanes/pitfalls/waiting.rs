//! Waiting: what it costs, how long it lasts, and what survives it.

use super::seconds;
use crate::lanes::world::{Owing, World, call, parallel};
use tollgate_core::lanes::{Effect, End, Scheduler, Scope, Settlement};
use tollgate_core::{Limit, Span, Timestamp};

/// 20 tenants at one call in five seconds: 59,367 messages were read to let 120 through.
#[test]
fn nothing_is_looked_at_before_its_time_comes() {
    let mut world = World::new().limit("api", Limit::per(1, seconds(5)));
    for tenant in 0..20 {
        let tenant = format!("tenant {tenant}");
        world.enqueue_many(6, &call(&tenant).owes("api", &tenant, 1));
    }
    let mut instants = 0;
    while world.starts.len() < 120 {
        let started = world.claim(100);
        assert!(!started.is_empty(), "someone was woken for nothing at {:?}", world.now.at);
        for started in started {
            world.settle(started.lease, Settlement::Done);
        }
        instants += 1;
        // Who has just been settled has its next call to show: nothing of it may start yet.
        assert!(world.claim(100).is_empty());
        let Some(next) = world.scheduler.next_due(world.now) else { break };
        world.now = world.now.moved_to(next);
    }
    assert_eq!((world.starts.len(), instants), (120, 6));
}

/// Being denied was written down, each time, for each of those who were.
#[test]
fn asking_in_vain_writes_nothing() {
    let mut world = World::with(parallel(10)).limit("api", Limit::per_hour(1));
    world.enqueue_many(100, &call("a").owes("api", "", 1));
    assert_eq!(world.claim(10).len(), 1);
    world.scheduler.take_effects();
    for _ in 0..1_000 {
        world.advance(Span::from_millis(1));
        assert!(world.claim(10).is_empty());
    }
    assert_eq!(world.scheduler.take_effects(), []);
}

/// What had waited for an hour was deleted, as if it had been delivered.
#[test]
fn what_waits_is_not_thrown_away_for_its_age() {
    let mut world = World::new().limit("api", Limit::per(1, Span::from_days(7)));
    let ids = [0, 1, 2].map(|_| world.enqueue(call("a").owes("api", "", 1)));
    world.scheduler.pause(&Scope::Queue(call("a").queue), world.now);
    world.advance(Span::from_days(3_650));
    assert!(world.claim(10).is_empty());
    assert!(ids.iter().all(|id| world.scheduler.is_waiting(*id)));
    world.scheduler.resume(&Scope::Queue(call("a").queue), world.now);
    world.drain(10, Span::from_days(3_700));
    assert_eq!(world.starts.iter().map(|start| start.call).collect::<Vec<_>>(), ids);
}

/// The same for a call that is to end when it is too old: it says so when it does.
#[test]
fn what_is_to_be_thrown_away_ends_with_an_outcome() {
    let mut world = World::new();
    let mut old = call("a");
    old.expires = Some(Timestamp::default().plus(seconds(5)));
    let id = world.enqueue(old);
    world.advance(seconds(5));
    assert!(world.claim(10).is_empty());
    let effects = world.scheduler.take_effects();
    assert!(effects.contains(&Effect::Ended { id, end: End::Expired }), "{effects:?}");
}

/// One consumer served all timers, a thousand at most: with as many sleepers nothing else woke.
#[test]
fn ten_thousand_sleepers_do_not_delay_one_who_wakes() {
    let mut world = World::new().limit("spent", Limit::per_hour(1));
    let hour = Timestamp::default().plus(Span::from_hours(1));
    for lane in 0..5_000 {
        let mut sleeper = call(&format!("sleeper {lane}"));
        sleeper.not_before = Some(hour);
        world.enqueue(sleeper);
        world.enqueue(call(&format!("denied {lane}")).owes("spent", "", 1));
    }
    assert_eq!(world.claim(10).len(), 1);
    let mut early = call("early");
    early.not_before = Some(Timestamp::default().plus(Span::from_millis(10)));
    let id = world.enqueue(early);
    let due = world.scheduler.next_due(world.now);
    assert_eq!(due, Some(Timestamp::default().plus(Span::from_millis(10))));
    world.advance(Span::from_millis(10));
    assert_eq!(world.claim(10)[0].lease.call, id);
}

/// Whoever waited did so in its process: gone with it, while what it had reserved stayed taken.
#[test]
fn a_restart_changes_no_start() {
    let run = |restarts: bool| {
        let mut world = World::with(parallel(5)).limit("api", Limit::per_second(3).burst(2));
        world.enqueue_many(20, &call("a").owes("api", "", 1));
        let mut effects = vec![];
        loop {
            for started in world.claim(10) {
                world.settle(started.lease, Settlement::Done);
            }
            effects.extend(world.scheduler.take_effects());
            if restarts {
                world.scheduler = Scheduler::recovered(&effects);
            }
            assert!(world.claim(10).is_empty(), "all that could start has started");
            let Some(next) = world.scheduler.next_due(world.now) else { return world.starts };
            world.now = world.now.moved_to(next);
        }
    };
    assert_eq!(run(true), run(false));
    assert_eq!(run(true).len(), 20);
}
