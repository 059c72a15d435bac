//! What passes hold, and how limits that change elsewhere are followed.

use super::*;
use crate::pass::Receipt;
use crate::{AskError, Clock};
use tollgate_core::contract::{Configure, Meters, RECEIPT_LIFE_MAX};
use tollgate_core::{Definition, LimitName, Partition};

impl World {
    async fn in_flight(&self) -> u64 {
        self.engine.meter("l", None).await.unwrap().in_flight
    }

    async fn remaining(&self) -> i64 {
        self.engine.meter("l", None).await.unwrap().standing.remaining
    }
}

#[tokio::test]
async fn a_slot_that_a_pass_lets_go_is_for_the_next_at_once() {
    let world = World::limited(Limit::concurrency(1)).await;
    let held = world.engine.acquire(global("l")).await.unwrap();
    let (mut first, mut second) = (world.comes(), world.comes());
    drop(held);
    world.engine.quiet().await;
    assert!(is_waiting(&mut second));
    let Poll::Ready(Ok(pass)) = polled(&mut first) else { panic!("it was not woken") };
    assert!(is_waiting(&mut second));
    drop(pass);
    world.engine.quiet().await;
    assert!(is_granted(&mut second));
}

#[tokio::test]
async fn who_is_dropped_while_the_store_is_asked_hands_back_what_it_grants() {
    let world = World::limited(Limit::per_hour(3).and(Limit::concurrency(3))).await;
    world.store.shared.answers.forget_permits(tokio::sync::Semaphore::MAX_PERMITS);
    let asking = world.comes();
    assert_eq!(world.store.asks(), 1);
    drop(asking);
    world.store.shared.answers.add_permits(1);
    world.engine.quiet().await;
    assert_eq!((world.in_flight().await, world.remaining().await), (0, 3));
}

#[tokio::test]
async fn a_slot_that_is_let_go_while_the_store_is_asked_is_for_who_asks() {
    let world = World::limited(Limit::concurrency(1)).await;
    let held = world.engine.acquire(global("l")).await.unwrap();
    world.store.shared.answers.forget_permits(tokio::sync::Semaphore::MAX_PERMITS);
    let mut asking = world.comes();
    drop(held);
    world.engine.quiet().await;
    world.store.shared.answers.add_permits(2);
    assert!(is_granted(&mut asking), "it was refused, and asks once more");
}

#[tokio::test]
async fn slots_are_held_as_long_as_a_pass_lives() {
    let world = World::limited(Limit::concurrency(1)).await;
    let held = world.engine.consume(global("l")).await.unwrap();
    for _ in 0..6 {
        world.wait(10_000);
        world.store.shared.renewed.notified().await;
        assert!(world.engine.consume(global("l")).await.is_err());
    }
    drop(held);
    world.engine.quiet().await;
    assert_eq!(world.in_flight().await, 0);
}

#[tokio::test]
async fn a_receipt_goes_on_without_its_pass_and_is_settled_once() {
    let world = World::limited(Limit::per_hour(10)).await;
    let pass = world.engine.acquire(global("l").weight(5)).await.unwrap();
    let receipt = pass.into_receipt(Span::from_secs(60)).await.unwrap();
    assert_eq!(receipt.expires, world.clock.now().plus(Span::from_secs(60)));
    world.engine.settle_receipt(&receipt, &[("l", 2)]).await.unwrap();
    assert_eq!(world.remaining().await, 8);
    let spent = Err(AskError::ReceiptSpent.into());
    assert_eq!(world.engine.settle_receipt(&receipt, &[("l", 0)]).await, spent);
    assert_eq!(world.engine.hand_back(&receipt).await, spent);
    let lease = tollgate_core::lanes::Lease { call: tollgate_core::lanes::CallId(1), token: 1 };
    let foreign = Receipt { lease: Some(lease), lines: vec![], ..receipt };
    assert_eq!(world.engine.hand_back(&foreign).await, spent, "of a store with lanes");
    assert!(world.engine.renew(&foreign, Span::from_secs(1)).await.is_err());
}

#[tokio::test]
async fn spans_are_told_by_the_stores_clock() {
    let world = World::limited(Limit::per_second(1)).await;
    *world.store.shared.ahead.lock() = Span::from_hours(1);
    let later = async || world.engine.consume_delayed(global("l"), Span::from_secs(1)).await;
    assert_eq!(later().await.unwrap().delay(), Span::ZERO);
    assert_eq!(later().await.unwrap().delay(), Span::from_secs(1));
    assert_eq!(world.refusal().await.retry_after, Some(Span::from_secs(2)));
    let meter = world.engine.meter("l", None).await.unwrap();
    assert_eq!(meter.next_admission_after, Some(Span::from_secs(2)));
    world.engine.close("l", None, Span::from_secs(60), "why").await.unwrap();
    let closed = world.engine.meter("l", None).await.unwrap().closed;
    assert_eq!(closed, Some((Span::from_secs(60), "why".to_owned())));
}

#[tokio::test]
async fn limits_are_pinned_overridden_listed_and_remember_who_changed_them() {
    let world = World::limited(Limit::per_hour(5)).await;
    let engine = &world.engine;
    engine.define_as("ann", "l", Limit::per_hour(6)).await.unwrap();
    engine.pin("bob", "l", Some(Limit::per_hour(7))).await.unwrap();
    engine.override_partition_as("cem", "l", "big", Some(Limit::per_hour(9))).await.unwrap();
    let state = engine.limit("l").await.unwrap().unwrap();
    let who: Vec<&str> = state.history.iter().map(|change| change.who.as_str()).collect();
    assert_eq!(who, ["library", "ann", "bob"]);
    assert_eq!(engine.limits().await.unwrap().len(), 1);
    assert_eq!(engine.meter("l", Some("big")).await.unwrap().standing.limit, 9);
    assert_eq!(engine.meter("l", None).await.unwrap().standing.limit, 7);
    engine.remove("dan", "l").await.unwrap();
    assert_eq!(engine.limit("l").await.unwrap(), None);
    assert!(engine.meter("l", None).await.is_err());
}

#[tokio::test]
async fn two_engines_that_share_a_store_change_a_limit_one_after_the_other() {
    let world = World::limited(Limit::per_hour(5)).await;
    let other = &world.other;
    other.define_as("other", "l", Limit::per_hour(6)).await.unwrap();
    world.engine.define_as("one", "l", Limit::per_hour(7)).await.unwrap();
    let history = other.limit("l").await.unwrap().unwrap().history;
    let who: Vec<&str> = history.iter().map(|change| change.who.as_str()).collect();
    assert_eq!(who, ["library", "other", "one"]);
}

#[tokio::test]
async fn a_limit_that_comes_along_is_defined_again_if_it_was_removed_elsewhere() {
    let world = World::new();
    let limit = Limit::per_hour(2);
    let ask = || global("l").limited_to(&limit);
    let _ = world.engine.consume(ask()).await.unwrap();
    world.define_elsewhere(None).await;
    assert!(world.engine.consume(ask()).await.is_ok());
    world.define_elsewhere(None).await;
    assert!(world.engine.acquire(ask()).max_wait(Span::ZERO).await.is_err(), "both are spent");
}

#[tokio::test]
async fn a_limit_that_gets_slots_elsewhere_holds_them_no_longer_than_a_sign_of_life() {
    let world = World::limited(Limit::per_hour(9)).await;
    let mut pass = world.engine.consume(global("l").estimate(1)).await.unwrap();
    assert_eq!(*world.store.shared.life.lock(), RECEIPT_LIFE_MAX);
    pass.settle("l", 1).await.unwrap();
    world.define_elsewhere(Some(Limit::per_hour(9).and(Limit::concurrency(2)))).await;
    let held = world.engine.consume(global("l")).await.unwrap();
    assert!(held.holds_slots());
    assert_eq!(*world.store.shared.life.lock(), Span::from_secs(30));
    assert_eq!((world.in_flight().await, world.remaining().await), (1, 1));
    world.engine.quiet().await;
    let before = world.store.asks();
    let _second = world.engine.consume(global("l")).await.unwrap();
    assert_eq!(world.store.asks(), before + 1, "it is known by now");
}

impl World {
    /// The rules in force at the partition `p`.
    async fn rules(&self) -> Limit {
        self.engine.meter("l", Some("p")).await.unwrap().definition
    }

    /// Has rules be in force that are written down nowhere.
    async fn put_in_force(&self, limit: u64, own: Option<u64>) {
        let definition = |units| Definition::new(Limit::per_hour(units)).unwrap();
        let (name, partition) = (LimitName::new("l").unwrap(), Partition::new("p").unwrap());
        let limits = vec![(name.clone(), Some(definition(limit)))];
        let overrides = vec![(name, partition, own.map(definition))];
        let change = Configure { limits, overrides, ..Configure::default() };
        self.store.configure(change).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_was_written_down_and_cut_short_is_in_force_when_it_is_said_again() {
    let world = World::limited(Limit::per_hour(3)).await;
    world.put_in_force(9, None).await;
    world.other.define("l", Limit::per_hour(3)).await.unwrap();
    assert_eq!(world.rules().await, Limit::per_hour(3));
    let own =
        |units: Option<u64>| world.other.override_partition("l", "p", units.map(Limit::per_hour));
    own(Some(5)).await.unwrap();
    world.put_in_force(3, None).await;
    own(Some(5)).await.unwrap();
    assert_eq!(world.rules().await, Limit::per_hour(5));
    own(None).await.unwrap();
    world.put_in_force(3, Some(5)).await;
    own(None).await.unwrap();
    assert_eq!(world.rules().await, Limit::per_hour(3));
    let history = world.other.limit("l").await.unwrap().unwrap().history;
    assert_eq!(history.len(), 1, "it was said once what it is to be");
}

#[tokio::test]
async fn definitions_that_come_along_and_differ_do_not_take_turns() {
    let world = World::new();
    let (old, new) = (Limit::per_hour(100), Limit::per_hour(100).and(Limit::concurrency(5)));
    for _ in 0..5 {
        for (engine, limit) in [(&world.engine, &old), (&world.other, &new)] {
            drop(engine.consume(global("l").limited_to(limit)).await.unwrap());
            // What it found out of the limit by that is known.
            engine.quiet().await;
        }
    }
    let state = world.engine.limit("l").await.unwrap().unwrap();
    assert_eq!((state.defined, state.history.len()), (new, 2));
}

#[tokio::test]
async fn what_was_changed_elsewhere_is_looked_up_when_the_store_finds_out() {
    let world = World::limited(Limit::per_hour(3)).await;
    let (slots, name) = (Limit::concurrency(1), LimitName::new("l").unwrap());
    world.define_elsewhere(Some(slots.clone())).await;
    let (told, heard) = tokio::sync::oneshot::channel();
    let (mut news, mut told) = (vec![name], Some(told));
    world.engine.heed(move || {
        let next = news.pop();
        // Asked for the next, it has seen to the one before.
        if let (None, Some(told)) = (&next, told.take_if(|_| next.is_none())) {
            told.send(()).unwrap();
        }
        async move {
            match next {
                Some(name) => name,
                None => std::future::pending().await,
            }
        }
    });
    heard.await.unwrap();
    assert!(world.engine.is_defined_as("l", &slots));
}
