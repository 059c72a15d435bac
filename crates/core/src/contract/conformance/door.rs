//! What is refused at the door: unknown names, impossible weights, full queues.

use super::*;
use crate::lanes::act::{ACT_CHANGES_MAX, BODY_BYTES_MAX, REPORT_BYTES_MAX};
use crate::lanes::{Count, Door, NewCall};

pub async fn an_unknown_queue_is_refused(stage: impl Stage) {
    let refused = World::new(stage).await.try_enqueue(call("none", "a")).await;
    assert_eq!(refused, Err(ActError::UnknownQueue { at: 0, queue: queue("none") }));
}

pub async fn an_unknown_limit_is_refused(stage: impl Stage) {
    let refused = World::new(stage).await.try_enqueue(paying("strict", "a", [("none", 1)])).await;
    assert_eq!(refused, Err(unpayable(TollError::UnknownLimit { limit: limit_name("none") })));
}

pub async fn a_removed_limit_is_unknown(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    world.remove_limit("l").await;
    let refused = world.try_enqueue(paying("strict", "a", [("l", 1)])).await;
    assert_eq!(refused, Err(unpayable(TollError::UnknownLimit { limit: limit_name("l") })));
}

pub async fn a_weight_over_capacity_is_refused(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(5)).await;
    let refused = world.try_enqueue(paying("strict", "a", [("l", 3), ("l", 3)])).await;
    let (limit, weight, capacity) = (limit_name("l"), 6, 5);
    assert_eq!(refused, Err(unpayable(TollError::WeightOverCapacity { limit, weight, capacity })));
}

pub async fn a_toll_of_nothing_is_refused(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(5)).await;
    let refused = world.try_enqueue(paying("strict", "a", [("l", 0)])).await;
    assert_eq!(refused, Err(unpayable(TollError::WeightZero { limit: limit_name("l") })));
}

pub async fn more_tolls_than_a_call_may_owe_are_refused(stage: impl Stage) {
    let refused = World::new(stage).await.try_enqueue(paying("strict", "a", [("l", 1); 9])).await;
    assert_eq!(refused, Err(unpayable(TollError::TooMany { count: 9 })));
}

/// Hands in a call that may wait for its limits to be defined.
async fn park<S: Stage>(world: &mut World<S>, call: NewCall) -> Result<CallId, ActError> {
    let act = Act { enqueue: vec![call], door: Door::Parks, ..Act::default() };
    Ok(world.act(act).await?.enqueued[0])
}

pub async fn a_call_that_may_park_waits_for_its_limit_to_be_defined(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let parked = park(&mut world, paying("strict", "a", [("l", 2)])).await.unwrap();
    let other = world.enqueue(call("strict", "b")).await;
    assert_eq!(world.claim("strict", 10).await, [other], "it holds nobody's turn");
    world.limit("l", Limit::per_second(1)).await;
    assert_eq!(world.claim("strict", 10).await, [], "it can never pass this one");
    world.limit("l", Limit::per_second(2)).await;
    assert_eq!(world.claim("strict", 10).await, [parked]);
}

pub async fn a_call_that_may_park_waits_for_a_limit_that_lets_it_pass(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(5)).await;
    let parked = park(&mut world, paying("strict", "a", [("l", 6)])).await.unwrap();
    let light = world.enqueue(paying("strict", "b", [("l", 5)])).await;
    assert_eq!(world.claim("strict", 10).await, [light]);
    world.limit("l", Limit::per_second(6)).await;
    world.wait(10);
    assert_eq!(world.claim("strict", 10).await, [parked]);
}

pub async fn a_toll_of_nothing_is_refused_though_its_call_may_park(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let refused = park(&mut world, paying("strict", "a", [("unknown", 1), ("l", 0)])).await;
    assert_eq!(refused, Err(unpayable(TollError::WeightZero { limit: limit_name("l") })));
}

pub async fn more_changes_than_an_act_may_hold_are_refused(stage: impl Stage) {
    let given = ACT_CHANGES_MAX + 1;
    let act = Act { cancel: vec![CallId(0); given], ..Act::default() };
    assert_eq!(World::new(stage).await.act(act).await, Err(ActError::TooManyChanges { given }));
}

pub async fn the_call_of_a_join_is_checked_at_every_count(stage: impl Stage) {
    let count = Count { key: key("join"), from: 2, then: call("none", "a") };
    let refused =
        World::new(stage).await.act(Act { count_down: vec![count], ..Act::default() }).await;
    assert_eq!(refused, Err(ActError::UnknownQueue { at: 0, queue: queue("none") }));
}

/// A queue `shallow` that holds two calls and has room for one more.
async fn shallow<S: Stage>(stage: S) -> (World<S>, [CallId; 2]) {
    let mut world = World::new(stage).await;
    world.queue("shallow", QueueSpec { depth_max: 3, ..QueueSpec::default() }).await;
    let named = |name| {
        let (dedupe, supersedes) = (Some(key(name)), Some(key(name)));
        NewCall { dedupe, supersedes, ..call("shallow", "a") }
    };
    let first = world.enqueue(named("first")).await;
    let second = world.enqueue(named("second")).await;
    (world, [first, second])
}

fn unpayable(error: TollError) -> ActError {
    ActError::Toll { at: 0, error }
}

fn full() -> ActError {
    ActError::QueueFull { queue: queue("shallow"), depth: 3 }
}

pub async fn a_queue_takes_all_calls_of_an_act_or_none(stage: impl Stage) {
    let (mut world, _) = shallow(stage).await;
    let enqueue = vec![call("shallow", "b"), call("shallow", "c")];
    assert_eq!(world.act(Act { enqueue, ..Act::default() }).await, Err(full()));
    assert!(world.try_enqueue(call("shallow", "b")).await.is_ok());
    assert_eq!(world.try_enqueue(call("shallow", "c")).await, Err(full()));
}

pub async fn duplicates_and_superseding_calls_need_no_room(stage: impl Stage) {
    let (mut world, [first, second]) = shallow(stage).await;
    world.enqueue(call("shallow", "b")).await;
    let duplicate = NewCall { dedupe: Some(key("first")), ..call("shallow", "a") };
    let superseding = NewCall { supersedes: Some(key("second")), ..call("shallow", "a") };
    let enqueue = vec![duplicate.clone(), superseding.clone()];
    let enqueued = world.act(Act { enqueue, ..Act::default() }).await.unwrap().enqueued;
    assert_eq!(enqueued[0], first);
    assert!(world.is_waiting(enqueued[1]).await && !world.is_waiting(second).await);
    // Each by itself, too.
    assert_eq!(world.try_enqueue(duplicate).await, Ok(first));
    let newest = world.enqueue(superseding).await;
    assert!(world.is_waiting(newest).await && !world.is_waiting(enqueued[1]).await);
}

pub async fn a_call_that_ends_in_the_act_makes_no_room_in_it(stage: impl Stage) {
    let (mut world, [first, _]) = shallow(stage).await;
    world.enqueue(call("shallow", "b")).await;
    let act = Act { cancel: vec![first], enqueue: vec![call("shallow", "c")], ..Act::default() };
    assert_eq!(world.act(act).await, Err(full()));
    assert!(world.is_waiting(first).await);
}

pub async fn the_call_of_a_join_needs_room_only_when_it_is_enqueued(stage: impl Stage) {
    let (mut world, _) = shallow(stage).await;
    world.enqueue(call("shallow", "b")).await;
    let count = Count { key: key("join"), from: 2, then: call("shallow", "a") };
    let act = Act { count_down: vec![count], ..Act::default() };
    assert_eq!(world.act(act.clone()).await.unwrap().counted, [(1, None)]);
    assert_eq!(world.act(act).await, Err(full()));
}

pub async fn a_body_that_is_too_long_is_refused(stage: impl Stage) {
    let bytes = BODY_BYTES_MAX + 1;
    let long = NewCall { payload: vec![0; bytes].into(), ..call("strict", "a") };
    let refused = World::new(stage).await.try_enqueue(long).await;
    assert_eq!(refused, Err(ActError::BodyTooLong { at: 0, bytes }));
}

pub async fn a_report_that_is_too_long_is_refused(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    let settle = |bytes| Settle {
        report: vec![7; bytes].into(),
        ..Settle::new(world.leases[&id], Settlement::Done)
    };
    let bytes = REPORT_BYTES_MAX + 1;
    let [long, longest] =
        [bytes, bytes - 1].map(|it| Act { settle: vec![settle(it)], ..Act::default() });
    assert_eq!(world.act(long).await, Err(ActError::ReportTooLong { at: 0, bytes }));
    assert!(world.act(longest).await.is_ok());
}

pub async fn more_bytes_than_an_act_may_hold_are_refused(stage: impl Stage) {
    let new = NewCall { payload: vec![0; BODY_BYTES_MAX].into(), ..call("strict", "a") };
    let act = Act { enqueue: vec![new; 5], ..Act::default() };
    let bytes = 5 * BODY_BYTES_MAX;
    let refused = World::new(stage).await.act(act).await;
    assert_eq!(refused, Err(ActError::TooManyBytes { bytes }));
}
