//! Random sequences on a store and on the naive reference: the same answers, decision by decision.

use proptest::prelude::*;
use proptest::sample::Index;
use tollgate::lanes::{
    Ask, AskError, Configure, Definition, LimitName, MeterState, Meters, Paid, Partition, Receipt,
    Toll,
};
use tollgate::{Limit, Now, Priority, Span, Standing, Timestamp};
use tollgate_core::contract::kept::Kept;
use tollgate_core::contract::{Cost, MeterName};
use tollgate_core::lanes::naive::Naive;

/// One thing that happens.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Several asks that come together: tolls at limits (partition or not, weight), a delay, a life.
    Consume(Vec<Asking>),
    Peek(Asking),
    /// A receipt at its true cost at a limit, or handed back.
    Settle(Index, Option<(usize, u64)>),
    Renew(Index, u64),
    /// Nanoseconds.
    Wait(u64),
    /// Sets the wall clock on by so many seconds, or back.
    SetWall(i64),
    Define(usize, Option<usize>),
    Override(usize, Option<usize>),
    Close(usize, bool, u64),
    Reopen(usize, bool),
    Reset(usize, bool),
}

/// An ask to be.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    tolls: Vec<(usize, bool, u64)>,
    delay: Option<u64>,
    life: u64,
}

const LIMITS: usize = 4;

/// Rules that differ in everything that matters.
fn rules() -> Vec<Limit> {
    let second = Span::from_secs(1);
    vec![
        Limit::per_second(5),
        Limit::per(3, second).burst(7),
        Limit::per(7, Span::from_nanos(1_234_567)).burst(3),
        Limit::fixed_window(4, Span::from_secs(2)),
        Limit::fixed_window(6, Span::from_secs(60)).on_calendar("UTC"),
        Limit::sliding_window(5, second),
        Limit::sliding_window(1_000, second).guard(Span::from_millis(10)),
        Limit::concurrency(3),
        Limit::per_second(4).and(Limit::concurrency(2)),
        Limit::per(2, second).and(Limit::fixed_window(5, Span::from_secs(5))),
        Limit::per_minute(600_000).burst(100_000),
    ]
}

fn asking() -> impl Strategy<Value = Asking> {
    let weight = prop_oneof![8 => 1..=3_u64, 1 => 0..=8_u64, 1 => 1..=2_000_u64];
    let toll = (0..LIMITS, any::<bool>(), weight);
    let tolls = prop_oneof![
        6 => prop::collection::vec(toll.clone(), 1..=1),
        3 => prop::collection::vec(toll.clone(), 2..=3),
        1 => prop::collection::vec(toll, 0..=9),
    ];
    (tolls, prop::option::weighted(0.15, 0..4_000_u64), 1..40_u64)
        .prop_map(|(tolls, delay, life)| Asking { tolls, delay, life })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let cost = prop::option::weighted(0.7, (0..LIMITS, 0..12_u64));
    let wait = prop_oneof![0..=2_u64, 0..2_000_000_u64, 0..700_000_000_u64, 0..9_000_000_000_u64];
    prop_oneof![
        10 => prop::collection::vec(asking(), 1..=4).prop_map(Step::Consume),
        2 => asking().prop_map(Step::Peek),
        4 => (any::<Index>(), cost).prop_map(|(receipt, cost)| Step::Settle(receipt, cost)),
        2 => (any::<Index>(), 1..60_u64).prop_map(|(receipt, life)| Step::Renew(receipt, life)),
        6 => wait.prop_map(Step::Wait),
        1 => (-90..90_i64).prop_map(Step::SetWall),
        2 => (0..LIMITS, prop::option::weighted(0.9, 0..rules().len()))
            .prop_map(|(limit, rule)| Step::Define(limit, rule)),
        1 => (0..LIMITS, prop::option::weighted(0.7, 0..rules().len()))
            .prop_map(|(limit, rule)| Step::Override(limit, rule)),
        1 => (0..LIMITS, any::<bool>(), 0..5_u64)
            .prop_map(|(limit, has_part, seconds)| Step::Close(limit, has_part, seconds)),
        1 => (0..LIMITS, any::<bool>()).prop_map(|(limit, part)| Step::Reopen(limit, part)),
        1 => (0..LIMITS, any::<bool>()).prop_map(|(limit, part)| Step::Reset(limit, part)),
    ]
}

/// A store and the reference, under one clock.
pub(super) struct Pair<'a, S> {
    store: &'a S,
    set_now: &'a (dyn Fn(Now) + Sync),
    reference: Kept<Naive>,
    now: Now,
    receipts: Vec<(Receipt, Receipt)>,
}

impl<'a, S: Meters> Pair<'a, S> {
    pub(super) async fn new(
        store: &'a S,
        set_now: &'a (dyn Fn(Now) + Sync),
        since: Timestamp,
    ) -> Self {
        let now = Now::both(since);
        set_now(now);
        let reference = Kept::new(Naive::default(), now);
        let mut pair = Self { store, set_now, reference, now, receipts: Vec::new() };
        for limit in 0..LIMITS {
            pair.step(&Step::Define(limit, Some(limit * 3 % rules().len()))).await;
        }
        pair
    }

    fn name(&self, limit: usize) -> LimitName {
        LimitName::new(&format!("l{limit}")).unwrap()
    }

    fn meter(&self, limit: usize, has_part: bool) -> MeterName {
        (self.name(limit), has_part.then(|| Partition::new("acme/\u{0}.é").unwrap()))
    }

    fn ask(&self, asking: &Asking) -> Ask {
        let toll = |(limit, has_part, weight): &(usize, bool, u64)| {
            let (limit, partition) = self.meter(*limit, *has_part);
            Toll { limit, partition, weight: *weight, hears_feedback: false }
        };
        Ask {
            tolls: asking.tolls.iter().map(toll).collect(),
            priority: Priority::default(),
            delay_max: asking.delay.map(Span::from_millis),
            life: Span::from_secs(asking.life),
        }
    }

    fn moved(&mut self, now: Now) {
        self.now = now;
        self.reference.set_now(now);
        (self.set_now)(now);
    }

    /// Does it on both, and compares.
    pub(super) async fn step(&mut self, step: &Step) {
        match step {
            Step::Consume(asks) => self.consume(asks).await,
            Step::Peek(asking) => {
                let ask = self.ask(asking);
                let ours = self.store.peek(vec![ask.clone()]).await.unwrap();
                assert_eq!(ours, self.reference.peek(vec![ask]).await.unwrap());
            }
            Step::Settle(index, cost) => self.settle(*index, *cost).await,
            Step::Renew(index, life) => self.renew(*index, Span::from_secs(*life)).await,
            Step::Wait(nanos) => {
                let span = Span::from_nanos(*nanos);
                self.moved(Now { at: self.now.at.plus(span), wall: self.now.wall.plus(span) });
            }
            Step::SetWall(seconds) => {
                let span = Span::from_secs(seconds.unsigned_abs());
                let wall = self.now.wall;
                let wall = if *seconds > 0 { wall.plus(span) } else { wall.minus(span) };
                self.moved(Now { wall, ..self.now });
            }
            Step::Define(limit, rule) => {
                let change = Configure::limit(self.name(*limit), rule.map(definition));
                self.configure(change).await;
            }
            Step::Override(limit, rule) => {
                let (name, partition) = self.meter(*limit, true);
                let change = Configure::partition(name, partition.unwrap(), rule.map(definition));
                self.configure(change).await;
            }
            Step::Close(limit, has_part, seconds) => {
                let (meter, span) = (self.meter(*limit, *has_part), Span::from_secs(*seconds));
                let ours = self.store.close(meter.clone(), span, "busy".into()).await.unwrap();
                let theirs = self.reference.close(meter, span, "busy".into()).await.unwrap();
                assert_eq!(ours, theirs);
            }
            Step::Reopen(limit, has_part) => {
                let meter = self.meter(*limit, *has_part);
                self.store.reopen(meter.clone()).await.unwrap();
                self.reference.reopen(meter).await.unwrap();
            }
            Step::Reset(limit, has_part) => {
                let meter = self.meter(*limit, *has_part);
                let ours = self.store.reset(meter.clone()).await.unwrap();
                assert_eq!(ours, self.reference.reset(meter).await.unwrap());
            }
        }
    }

    async fn configure(&mut self, change: Configure) {
        let ours = self.store.configure(change.clone()).await.unwrap();
        assert_eq!(ours, self.reference.configure(change).await.unwrap());
    }

    async fn consume(&mut self, asks: &[Asking]) {
        let asks: Vec<Ask> = asks.iter().map(|asking| self.ask(asking)).collect();
        let ours = self.store.consume(asks.clone()).await.unwrap();
        let theirs = self.reference.consume(asks).await.unwrap();
        let seen = |answers: &[Result<Paid, AskError>]| -> Vec<_> {
            answers.iter().map(|answer| answer.clone().map(without_id)).collect()
        };
        assert_eq!(seen(&ours), seen(&theirs));
        let granted = ours.into_iter().flatten().zip(theirs.into_iter().flatten());
        self.receipts.extend(granted.map(|(ours, theirs)| (ours.receipt, theirs.receipt)));
    }

    async fn settle(&mut self, index: Index, cost: Option<(usize, u64)>) {
        if self.receipts.is_empty() {
            return;
        }
        let (ours, theirs) = index.get(&self.receipts).clone();
        let cost = match cost {
            Some((limit, units)) => Cost::Told(vec![(self.name(limit), units)]),
            None => Cost::Nothing,
        };
        let ours = self.store.settle(vec![(ours, cost.clone())]).await.unwrap();
        assert_eq!(ours, self.reference.settle(vec![(theirs, cost)]).await.unwrap());
    }

    async fn renew(&mut self, index: Index, life: Span) {
        if self.receipts.is_empty() {
            return;
        }
        let place = index.index(self.receipts.len());
        let (ours, theirs) = self.receipts[place].clone();
        let ours = self.store.renew(vec![ours], life).await.unwrap().remove(0);
        let theirs = self.reference.renew(vec![theirs], life).await.unwrap().remove(0);
        let expires = |it: &Result<Receipt, _>| it.clone().map(|receipt| receipt.expires);
        assert_eq!(expires(&ours), expires(&theirs));
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            self.receipts[place] = (ours, theirs);
        }
    }

    /// Compares how all meters stand.
    pub(super) async fn compare(&self) {
        let meters =
            (0..LIMITS).flat_map(|limit| [false, true].map(|part| self.meter(limit, part)));
        let meters: Vec<MeterName> = meters.collect();
        let ours = self.store.inspect(meters.clone()).await.unwrap();
        let theirs = self.reference.inspect(meters.clone()).await.unwrap();
        let seen = |states: Vec<Option<MeterState>>| -> Vec<_> {
            let seen = |it: MeterState| {
                let limit = it.definition.limit().clone();
                (limit, it.standing, it.rules, it.in_flight, it.closed)
            };
            states.into_iter().map(|state| state.map(seen)).collect()
        };
        for ((meter, ours), theirs) in meters.iter().zip(seen(ours)).zip(seen(theirs)) {
            assert_eq!(ours, theirs, "{meter:?}");
        }
    }
}

fn definition(rule: usize) -> Definition {
    Definition::new(rules()[rule].clone()).unwrap()
}

/// All that must be the same whatever a store calls a receipt.
fn without_id(paid: Paid) -> impl std::fmt::Debug + PartialEq {
    let Paid { receipt, starts, tightest, standing } = paid;
    let lines = receipt.lines.into_iter().map(|line| {
        let payment = line.payment;
        let paid = (payment.weight, payment.paid_at, payment.starts, payment.promised);
        (line.limit, line.partition, paid, payment.hold.is_some())
    });
    let standing: Standing = standing;
    (receipt.expires, lines.collect::<Vec<_>>(), starts, tightest, standing)
}
