//! The door: what comes in whole, what is refused with a reason, and what a name is.

use super::seconds;
use crate::lanes::world::{Owing, World, call, parallel};
use tollgate_core::TollError;
use tollgate_core::lanes::{Act, ActError, QueueSpec, Settle, Settlement};
use tollgate_core::{Limit, Span};

/// A fat call froze its bucket.
#[test]
fn what_can_never_pass_is_refused_at_the_door() {
    let mut world = World::new().limit("api", Limit::per_second(10));
    let act = Act { enqueue: vec![call("a").owes("api", "", 11)], ..Act::default() };
    let error = world.scheduler.act(act, world.now).unwrap_err();
    assert!(matches!(
        error,
        ActError::Toll {
            error: TollError::WeightOverCapacity { weight: 11, capacity: 10, .. },
            ..
        }
    ));
    assert!(error.to_string().contains("split the call, or raise the limit"));
}

/// An unknown limit stalled its row for ever, in silence.
#[test]
fn an_unknown_limit_is_refused_at_the_door() {
    let mut world = World::new();
    let act = Act { enqueue: vec![call("a").owes("mistyped", "", 1)], ..Act::default() };
    let error = world.scheduler.act(act, world.now).unwrap_err();
    assert!(matches!(error, ActError::Toll { at: 0, error: TollError::UnknownLimit { .. } }));
}

/// A limit that is removed parks those who owe there, and holds nobody else.
#[test]
fn a_removed_limit_holds_only_those_who_owe_there() {
    let mut world =
        World::new().limit("gone", Limit::per_second(10)).limit("stays", Limit::per_second(10));
    world.enqueue(call("a").owes("stays", "", 1).owes("gone", "", 1));
    world.enqueue(call("b").owes("stays", "", 1));
    world.define("gone", None);
    assert_eq!(world.claim(10).len(), 1);
    world.define("gone", Some(Limit::per_second(1)));
    assert_eq!(world.claim(10)[0].lane.as_str(), "a");
}

/// A request that was sent again doubled its calls.
#[test]
fn a_duplicate_is_the_first_call() {
    let mut world = World::new();
    let first = world.enqueue(call("a").dedupe("order-7"));
    assert_eq!(world.enqueue(call("b").dedupe("order-7")), first);
    world.advance(seconds(600));
    assert_ne!(world.enqueue(call("b").dedupe("order-7")), first);
}

/// A message that became several was acknowledged when the limit had let half of them through, and
/// the other half was gone: 50 of 200.
#[test]
fn a_call_that_becomes_several_loses_none_of_them() {
    let mut world = World::with(parallel(100)).limit("api", Limit::per_second(3));
    for _ in 0..10 {
        world.enqueue(call("source"));
    }
    for started in world.claim(10) {
        let settle = Settle::new(started.lease, Settlement::Done);
        let enqueue = vec![call("items").owes("api", "", 1); 20];
        let act = Act { settle: vec![settle], enqueue, ..Act::default() };
        assert_eq!(world.scheduler.act(act, world.now).unwrap().enqueued.len(), 20);
    }
    world.drain(7, seconds(100));
    let mut items: Vec<_> = world.starts[10..].iter().map(|start| start.call.0).collect();
    items.sort_unstable();
    assert_eq!(items, (10..210).collect::<Vec<_>>());
}

/// The same where there is no room for all of them: the source is not acknowledged, and none comes.
#[test]
fn a_call_that_becomes_more_than_fit_is_not_settled() {
    let mut world = World::with(QueueSpec { depth_max: 5, ..QueueSpec::default() });
    let id = world.enqueue(call("source"));
    let lease = world.claim(1).remove(0).lease;
    let settle = vec![Settle::new(lease, Settlement::Done)];
    let act = |count| Act {
        settle: settle.clone(),
        enqueue: vec![call("items"); count],
        ..Act::default()
    };
    let refused = world.scheduler.act(act(5), world.now).unwrap_err();
    assert!(matches!(refused, ActError::QueueFull { depth: 5, .. }));
    assert!(world.scheduler.is_in_flight(id));
    assert!(world.claim(10).is_empty());
    assert_eq!(world.scheduler.act(act(4), world.now).unwrap().enqueued.len(), 4);
}

/// Keys were glued together from parts, cut at the first colon and refused if they were an e-mail
/// address: limits shared a bucket, or none could be had.
#[test]
fn no_two_names_are_one_meter_and_any_text_is_a_name() {
    let pairs = [
        ("a", "b.c"),
        ("a.b", "c"),
        ("a", ""),
        ("a", "_global"),
        ("a", ":"),
        ("a:b", ""),
        ("a", "b"),
        ("a", "<nil>"),
        ("a", "someone@example.com"),
        ("a", "1.234567e+06"),
        ("a", "acme corp"),
        ("a", " "),
    ];
    let mut world = World::new();
    for (at, (limit, partition)) in pairs.iter().enumerate() {
        world.define(limit, Some(Limit::per_hour(1)));
        world.enqueue_many(2, &call(&format!("lane {at}")).owes(limit, partition, 1));
    }
    world.drain(100, Span::from_minutes(1));
    assert_eq!(world.starts.len(), pairs.len());
}
