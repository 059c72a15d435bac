//! What whoever drives a store is told: when something is due, and whom to ask for again.

use super::*;
use crate::contract::Woken;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

impl<S: Stage> World<S> {
    /// What there is to do, or nothing if it would have to wait.
    fn wakes(&self) -> Woken {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.store().woken()).poll(&mut context) {
            Poll::Ready(woken) => woken.unwrap(),
            Poll::Pending => Woken::default(),
        }
    }

    fn woken(&self) -> Vec<QueueName> {
        self.wakes().queues
    }

    async fn next_due(&self) -> Option<Timestamp> {
        self.store().next_due().await.unwrap()
    }

    /// Lets as much time pass as it takes until something is due, again and again, until calls of a
    /// queue start; says when.
    async fn drive(&mut self, name: &str) -> Timestamp {
        loop {
            if !self.claim(name, 10).await.is_empty() {
                return self.now.at;
            }
            let due = self.next_due().await.expect("something is due");
            self.wait_for(due.since(self.now.at));
            self.store().advance().await.unwrap();
        }
    }
}

pub async fn what_is_blocked_is_due_when_it_opens(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per(3, Span::from_secs(10))).await;
    world.spend("a", "l").await;
    world.spend("a", "l").await;
    world.spend("a", "l").await;
    let opens = world.now.at.plus(Span::from_nanos(3_333_333_334));
    world.enqueue(paying("strict", "a", [("l", 1)])).await;
    assert_eq!(world.drive("strict").await, opens);
}

pub async fn what_is_delayed_rests_or_is_leased_is_due_in_time(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let wall = world.after(5);
    let id = world.enqueue(NewCall { not_before: Some(wall), ..call("strict", "a") }).await;
    assert_eq!(world.drive("strict").await, wall);
    world.settle(id, Settlement::Retry(Some(Span::from_secs(7)))).await;
    assert_eq!(world.drive("strict").await, wall.plus(Span::from_secs(7)));
    assert_eq!(world.drive("strict").await, wall.plus(Span::from_secs(37)), "its lease ended");
}

pub async fn it_is_told_when_something_is_due_sooner_and_again_after_an_advance(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.wakes();
    let [sooner, later] = [5, 8].map(|seconds| world.after(seconds));
    let due_at = |at| NewCall { not_before: Some(at), ..call("strict", "a") };
    world.enqueue(due_at(later)).await;
    assert_eq!(world.wakes().due, Some(later));
    world.enqueue(due_at(sooner)).await;
    assert_eq!(world.wakes().due, Some(sooner));
    world.enqueue(due_at(world.after(6))).await;
    assert_eq!(world.wakes().due, None, "nothing is due any sooner");
    world.wait(5);
    world.store().advance().await.unwrap();
    assert_eq!(world.wakes().due, Some(world.after(1)));
}

pub async fn a_new_call_wakes_its_queue(stage: impl Stage) {
    let mut world = World::new(stage).await;
    assert_eq!(world.woken(), []);
    world.enqueue(call("strict", "a")).await;
    assert_eq!(world.woken(), [queue("strict")]);
}

pub async fn a_slot_that_is_let_go_wakes_who_waits_for_it(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let first = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let second = world.enqueue(paying("parallel", "a", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [first]);
    assert_eq!(world.claim("parallel", 10).await, []);
    world.woken();
    world.settle(first, Settlement::Done).await;
    assert!(world.woken().contains(&queue("parallel")));
    assert_eq!(world.claim("parallel", 10).await, [second]);
}

pub async fn a_queue_that_stops_asking_lets_the_others_go(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    world.spend("a", "l").await;
    world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let other = world.enqueue(paying("parallel", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, []);
    world.wait(1);
    assert_eq!(world.claim("parallel", 1).await, []);
    world.woken();
    world.store().ask(queue("strict"), world.now.at).await.unwrap();
    assert!(world.woken().contains(&queue("parallel")));
    assert_eq!(world.claim("parallel", 1).await, [other]);
}
