//! The cases that every store must pass: one function a case, over the contracts alone.
//!
//! A store supplies a [`MetersStage`]: itself, empty, under a clock that the case sets. With
//! [`meters_conformance!`](crate::meters_conformance) each case that needs no lanes becomes a test, with
//! [`lanes_conformance!`](crate::lanes_conformance) each case there is.

#![allow(missing_docs, reason = "the name of a case says what it shows")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a case that fails panics, as a test does"
)]

pub mod acts;
pub mod asks;
pub mod browsing;
pub mod busiest;
mod cases;
pub mod closed;
pub mod coming;
pub mod configured;
pub mod dead;
pub mod declared;
pub mod door;
pub mod driving;
pub mod explained;
pub mod operated;
pub mod order;
pub mod overridden;
pub mod paying;
pub mod receipts;
pub mod scopes;
pub mod settling;
#[cfg(test)]
mod tests;
pub mod told;
pub mod totals;
pub mod turns;

use super::{
    Ask, AskError, Configure, ConfigureError, Cost, Lanes, MeterState, Meters, Paid, Receipt,
    ReceiptError, Refusal,
};
use crate::lanes::{
    Act, ActError, Acted, CallId, Claim, End, Explanation, Lease, NewCall, Order, Payload,
    QueueError, QueueSpec, QueueToll, Reason, Record, Revive, Scope, Settle, Settlement, Started,
};
use crate::limit::{Definition, Limit};
use crate::meter::Cause;
use crate::name::{Key, LaneName, LimitName, Partition, QueueName};
use crate::rule::Opening;
use crate::time::{Now, Span, Timestamp};
use crate::toll::{Toll, TollError};
use crate::turn::Priority;
use std::collections::BTreeMap;

/// A store that is empty, under a clock that does what it is told.
pub trait MetersStage {
    /// What is tried.
    type Store: Meters;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// Sets the store's clock.
    fn set_now(&mut self, now: Now);
}

/// A stage whose store has lanes.
pub trait Stage: MetersStage<Store: Lanes> {}

impl<T: MetersStage<Store: Lanes>> Stage for T {}

/// A stage and a clock; where there are lanes, with two queues, `strict` and `parallel`.
struct World<S> {
    stage: S,
    now: Now,
    /// The latest lease of each call.
    leases: BTreeMap<CallId, Lease>,
}

impl<S: MetersStage> World<S> {
    fn of_limits(mut stage: S) -> Self {
        let now = Now::both(Timestamp::from_nanos(0).plus(Span::from_secs(1_000)));
        stage.set_now(now);
        Self { stage, now, leases: BTreeMap::new() }
    }

    fn store(&self) -> &S::Store {
        self.stage.store()
    }

    fn wait(&mut self, seconds: u64) {
        self.wait_for(Span::from_secs(seconds));
    }

    fn wait_for(&mut self, span: Span) {
        self.now = self.now.moved_to(self.now.at.plus(span));
        self.stage.set_now(self.now);
    }

    fn set_wall(&mut self, wall: Timestamp) {
        self.now.wall = wall;
        self.stage.set_now(self.now);
    }

    /// This many seconds from now, on either clock.
    fn after(&self, seconds: u64) -> Timestamp {
        self.now.at.plus(Span::from_secs(seconds))
    }

    async fn configure(&mut self, change: Configure) -> Result<(), ConfigureError> {
        self.store().configure(change).await.unwrap()
    }

    async fn limit(&mut self, name: &str, limit: Limit) {
        let definition = Definition::new(limit).unwrap();
        self.configure(Configure::limit(limit_name(name), Some(definition))).await.unwrap();
    }

    async fn remove_limit(&mut self, name: &str) {
        self.configure(Configure::limit(limit_name(name), None)).await.unwrap();
    }

    async fn reopen(&mut self, limit: &str) {
        self.store().reopen((limit_name(limit), None)).await.unwrap();
    }

    async fn consume(&mut self, ask: Ask) -> Result<Paid, AskError> {
        self.store().consume(vec![ask]).await.unwrap().remove(0)
    }

    async fn refused(&mut self, ask: Ask) -> Refusal {
        match self.consume(ask).await {
            Err(AskError::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }

    async fn settle_receipt(&mut self, receipt: &Receipt, cost: Cost) -> Result<(), ReceiptError> {
        self.store().settle(vec![(receipt.clone(), cost)]).await.unwrap().remove(0)
    }

    async fn renew_receipt(&mut self, receipt: &Receipt) -> Result<Receipt, ReceiptError> {
        let life = Span::from_secs(30);
        self.store().renew(vec![receipt.clone()], life).await.unwrap().remove(0)
    }

    async fn inspect(&self, limit: &str) -> MeterState {
        let states = self.store().inspect(vec![(limit_name(limit), None)]).await.unwrap();
        states[0].clone().unwrap()
    }

    async fn record(&self, key: Key) -> Option<Record> {
        self.store().records(vec![key]).await.unwrap().remove(0)
    }
}

impl<S: Stage> World<S> {
    async fn new(stage: S) -> Self {
        let mut world = Self::of_limits(stage);
        world.queue("strict", QueueSpec::default()).await;
        let order = Order::Parallel(10);
        world.queue("parallel", QueueSpec { order, ..QueueSpec::default() }).await;
        world
    }

    async fn queue(&mut self, name: &str, spec: QueueSpec) {
        self.define_queue(name, spec).await.unwrap();
    }

    async fn define_queue(&mut self, name: &str, spec: QueueSpec) -> Result<(), QueueError> {
        self.store().define_queue(queue(name), spec).await.unwrap()
    }

    async fn remove_queue(&mut self, name: &str) -> Result<bool, QueueError> {
        self.store().remove_queue(queue(name)).await.unwrap()
    }

    async fn make(&mut self, acts: &mut [Act]) -> Vec<Result<Acted, ActError>> {
        self.store().make(acts).await.unwrap()
    }

    async fn act(&mut self, act: Act) -> Result<Acted, ActError> {
        self.store().act(vec![act]).await.unwrap().remove(0)
    }

    async fn enqueue(&mut self, new: NewCall) -> CallId {
        self.try_enqueue(new).await.unwrap()
    }

    /// Enqueues as many alike.
    async fn several<const N: usize>(&mut self, new: NewCall) -> [CallId; N] {
        let act = Act { enqueue: vec![new; N], ..Act::default() };
        self.act(act).await.unwrap().enqueued[..].try_into().unwrap()
    }

    async fn try_enqueue(&mut self, new: NewCall) -> Result<CallId, ActError> {
        let act = Act { enqueue: vec![new], ..Act::default() };
        self.act(act).await.map(|acted| acted.enqueued[0])
    }

    async fn start(&mut self, name: &str, most: usize) -> Vec<Started> {
        self.start_asking(name, most, Span::from_hours(1)).await
    }

    async fn start_asking(&mut self, name: &str, most: usize, asks: Span) -> Vec<Started> {
        let claim = Claim { queue: queue(name), most, lease: None, asks };
        let claimed = self.store().claim(claim).await.unwrap();
        let started: Vec<_> = claimed.into_iter().map(|claimed| claimed.started).collect();
        self.leases.extend(started.iter().map(|started| (started.lease.call, started.lease)));
        started
    }

    async fn claim(&mut self, name: &str, most: usize) -> Vec<CallId> {
        self.claim_asking(name, most, Span::from_hours(1)).await
    }

    async fn claim_asking(&mut self, name: &str, most: usize, asks: Span) -> Vec<CallId> {
        let started = self.start_asking(name, most, asks).await;
        started.iter().map(|started| started.lease.call).collect()
    }

    /// Starts and ends a call of its own lane that pays one unit at a limit.
    async fn spend(&mut self, lane: &str, limit: &str) {
        let id = self.enqueue(paying("strict", lane, [(limit, 1)])).await;
        assert_eq!(self.claim("strict", 10).await, [id]);
        self.settle(id, Settlement::Done).await;
    }

    async fn settle(&mut self, id: CallId, settlement: Settlement) {
        self.try_settle(id, settlement).await.unwrap();
    }

    async fn try_settle(&mut self, id: CallId, settlement: Settlement) -> Result<(), ActError> {
        let settle = vec![Settle::new(self.leases[&id], settlement)];
        self.act(Act { settle, ..Act::default() }).await.map(|_| ())
    }

    async fn cancel(&mut self, id: CallId) -> bool {
        self.act(Act { cancel: vec![id], ..Act::default() }).await.unwrap().cancelled[0]
    }

    /// Starts the first call of a queue and gives it up.
    async fn kill(&mut self, name: &str) -> CallId {
        let started = self.claim(name, 1).await;
        self.settle(started[0], Settlement::Dead).await;
        started[0]
    }

    async fn revive(&mut self, id: CallId) -> bool {
        self.revive_at(id, None).await
    }

    async fn revive_at(&mut self, call: CallId, not_before: Option<Timestamp>) -> bool {
        let revive = vec![Revive { call, not_before }];
        self.act(Act { revive, ..Act::default() }).await.unwrap().revived[0]
    }

    async fn renew(&mut self, leases: Vec<Lease>, lease: Span) -> Vec<bool> {
        self.store().renew_leases(leases, lease).await.unwrap()
    }

    async fn pause(&mut self, scope: Scope) {
        self.store().pause(scope).await.unwrap();
    }

    async fn resume(&mut self, scope: Scope) {
        self.store().resume(scope).await.unwrap();
    }

    async fn explain(&self, id: CallId) -> Option<Explanation> {
        self.store().explain(vec![id]).await.unwrap().remove(0)
    }

    async fn end(&self, id: CallId) -> Option<End> {
        self.store().ends(vec![id]).await.unwrap()[0]
    }

    async fn is_in_flight(&self, id: CallId) -> bool {
        let is_flight = |reason: &Reason| matches!(reason, Reason::InFlight { .. });
        self.explain(id).await.is_some_and(|told| told.reasons.iter().any(is_flight))
    }

    async fn is_waiting(&self, id: CallId) -> bool {
        self.explain(id).await.is_some() && !self.is_in_flight(id).await
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn lane_name(name: &str) -> LaneName {
    LaneName::new(name).unwrap()
}

fn limit_name(name: &str) -> LimitName {
    LimitName::new(name).unwrap()
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn priority(level: u64) -> Priority {
    Priority::new(level).unwrap()
}

/// A call without tolls.
fn call(queue_name: &str, lane: &str) -> NewCall {
    NewCall::new(queue(queue_name), lane_name(lane))
}

/// A call that pays at these limits.
fn paying<const N: usize>(queue_name: &str, lane: &str, tolls: [(&str, u64); N]) -> NewCall {
    let tolls = tolls.map(|(limit, weight)| toll(limit, weight)).into();
    NewCall { tolls, ..call(queue_name, lane) }
}

fn toll(limit: &str, weight: u64) -> Toll {
    Toll { limit: limit_name(limit), partition: None, weight, hears_feedback: false }
}

/// An ask that pays at these limits now, or not at all.
fn asking<const N: usize>(tolls: [(&str, u64); N]) -> Ask {
    let tolls = tolls.map(|(limit, weight)| toll(limit, weight)).into();
    let life = Span::from_secs(30);
    Ask { tolls, priority: Priority::default(), delay_max: None, life }
}
