//! Both state machines side by side, under the same clock.

use crate::contract::histories::catalog::{
    definition, key, lane_name, limit_name, part, partition, queue_name, spec,
};
use crate::contract::histories::made::{call, scope, settlement};
use crate::contract::histories::steps::{Fresh, Step};
use crate::contract::histories::{beginning, compared_meter, compared_totals, queries};
use crate::contract::{Ask, Configure, Cost, MeterName, MeterState, Paid, QueueState, Receipt};
use crate::lanes::naive::Naive;
use crate::lanes::{
    Act, CallId, Claim, Count, Door, Effect, End, Event, Explanation, Lease, NewCall, Revision,
    Revive, Scheduler, Watch, What, Write,
};
use crate::name::Key;
use crate::time::{Now, Span, Timestamp};
use proptest::sample::Index;

pub(super) struct World {
    naive: Naive,
    pub(super) scheduler: Scheduler,
    pub(super) now: Now,
    leases: Vec<Lease>,
    /// Of both, the naive reference's first.
    receipts: Vec<[Receipt; 2]>,
    /// How many calls there were so far.
    pub(super) calls: u64,
    pub(super) effects: Vec<Effect>,
    /// Of the scheduler.
    pub(super) events: Vec<Event>,
}

/// Runs one command on both, and writes down what each answered.
macro_rules! both {
    ($world:ident, $machine:ident => $command:expr) => {{
        let $machine = &mut $world.naive;
        let naive = $command;
        let $machine = &mut $world.scheduler;
        let scheduler = $command;
        (naive, scheduler)
    }};
}

impl World {
    pub(super) fn new() -> Self {
        let now = Now::both(Timestamp::from_nanos(1_790_000_000_000_000_000));
        let (naive, mut scheduler) = (Naive::new(), Scheduler::new());
        scheduler.watch(Watch::Everything);
        let (leases, receipts) = (vec![], vec![]);
        let (effects, events) = (vec![], vec![]);
        let mut world = Self { naive, scheduler, now, leases, receipts, calls: 0, effects, events };
        for step in beginning() {
            let _ = world.take(&step);
        }
        world
    }

    /// What both answer and tell, the naive reference first.
    pub(super) fn step(&mut self, step: &Step) -> [String; 2] {
        let told = self.events.len();
        let answers = self.take(step);
        let [naive, scheduler] = self.compared(answers);
        let events = [self.naive.take_events(), self.events[told..].to_vec()];
        let [ones, others] = events.map(compared_events);
        [format!("{naive} {ones:?}"), format!("{scheduler} {others:?}")]
    }

    /// Closes both and opens them again: the scheduler from all that lasts of it.
    pub(super) fn reopen(&mut self) {
        let mut facts = Vec::new();
        self.scheduler.snapshot(self.now, |fact| facts.push(fact));
        self.scheduler = Scheduler::recovered(&facts);
        self.scheduler.watch(Watch::Everything);
        self.naive.begin_again(self.now);
        let _ = self.naive.take_events();
    }

    /// What both answer, the naive reference first.
    pub(super) fn take(&mut self, step: &Step) -> [String; 2] {
        let now = self.now;
        let answers = match step {
            Step::Enqueue(calls) => {
                let enqueue = calls.iter().map(|call| self.call(call)).collect();
                self.act(&Act { enqueue, ..Act::default() })
            }
            Step::Park(calls, needs) => self.park(calls, needs),
            Step::Come(limits, calls) => {
                let limits = limits.iter().map(|(limit, rule)| (*limit, definition(*rule)));
                let define = limits.map(|(limit, rules)| (limit_name(limit), rules)).collect();
                let enqueue = calls.iter().map(|call| self.call(call)).collect();
                self.act(&Act { define, enqueue, ..Act::default() })
            }
            Step::Claim { queue, most, asks } => self.claim(*queue, *most, *asks),
            Step::Settle { starts, follow, cancel } => {
                let settle = starts
                    .iter()
                    .filter_map(|(lease, outcome)| Some(settlement(*self.lease(lease)?, outcome)));
                let settle = settle.collect();
                let enqueue = follow.iter().map(|call| self.call(call)).collect();
                let cancel = cancel.iter().map(|call| self.known(call)).collect();
                self.act(&Act { settle, enqueue, cancel, ..Act::default() })
            }
            Step::Renew(lease, span) => {
                let leases: Vec<_> = self.lease(lease).copied().into_iter().collect();
                let span = Span::from_secs(*span);
                written(both!(self, machine => machine.renew(&leases, span, now)))
            }
            Step::Cancel(call) => {
                let cancel = vec![self.known(call)];
                self.act(&Act { cancel, ..Act::default() })
            }
            Step::Revive { calls, gone, follow } => self.revive(calls, gone, follow),
            Step::Wait(millis) => {
                self.now = now.moved_to(now.at.plus(Span::from_millis(*millis)));
                let now = self.now;
                written(both!(self, machine => machine.advance(now)))
            }
            Step::SetWall { ahead, back } => {
                let wall = now.wall.plus(Span::from_secs(*ahead));
                self.now.wall = wall.minus(Span::from_secs(*back));
                let now = self.now;
                written(both!(self, machine => machine.advance(now)))
            }
            Step::Pause(_)
            | Step::Resume(_)
            | Step::Limit(..)
            | Step::Queue(..)
            | Step::RemoveQueue(..)
            | Step::Reopen(..)
            | Step::Override(..)
            | Step::Configure(..)
            | Step::Close(..)
            | Step::Reset(..)
            | Step::Weigh(..) => self.operate(step),
            Step::Consume { call, delay, life } => self.consume(call, *delay, *life),
            Step::SettleReceipt(receipt, cost) => self.settle_receipt(receipt, *cost),
            Step::RenewReceipt(receipt, life) => self.renew_receipt(receipt, *life),
            Step::Ask(queue, seconds) => self.ask(*queue, *seconds),
            Step::Write { key, is_right, removes } => self.write(*key, *is_right, *removes),
            Step::Count { key, from, then } => {
                let then = self.call(then);
                let count_down = vec![Count { key: self::key(*key), from: *from, then }];
                self.act(&Act { count_down, ..Act::default() })
            }
            Step::Forget(key) => self.act(&Act { forget: vec![self::key(*key)], ..Act::default() }),
        };
        self.keep_effects();
        answers
    }

    /// Keeps what lasts of what the scheduler did, and what it told of that.
    fn keep_effects(&mut self) {
        self.effects.extend(self.scheduler.take_effects());
        // What claims left waiting is told as it happens, and not when effects are applied again.
        let is_effect = |event: &Event| !matches!(event.what, What::Throttled { .. });
        self.events.extend(self.scheduler.take_events().into_iter().filter(is_effect));
    }

    /// What an operator does.
    fn operate(&mut self, step: &Step) -> [String; 2] {
        let now = self.now;
        match step {
            Step::Pause(held) => written(both!(self, machine => machine.pause(&scope(held), now))),
            Step::Resume(held) => {
                written(both!(self, machine => machine.resume(&scope(held), now)))
            }
            Step::Limit(limit, rule) => {
                let definition = rule.map(definition);
                written(both!(self, machine => {
                    machine.define_limit(&limit_name(*limit), definition.clone(), now)
                }))
            }
            Step::Queue(queue, which) => written(both!(self, machine => {
                machine.define_queue(&queue_name(*queue), spec(*which), now)
            })),
            Step::RemoveQueue(queue, again) => written(both!(self, machine => {
                let name = queue_name(*queue);
                let removed = machine.remove_queue(&name, now);
                let again = again.filter(|_| removed == Ok(true)).map(spec);
                (removed, again.map(|spec| machine.define_queue(&name, spec, now)))
            })),
            Step::Reopen(limit, part) => written(both!(self, machine => {
                machine.reopen(&limit_name(*limit), partition(*part).as_ref(), now)
            })),
            Step::Override(limit, rule) => {
                let own = rule.map(definition);
                let change = Configure::partition(limit_name(*limit), part(), own);
                written(both!(self, machine => machine.configure(change.clone(), now)))
            }
            Step::Configure(limit, rule, own, expected) => {
                let (name, expected) = (limit_name(*limit), Revision(*expected));
                let key = Key::new("configured").unwrap();
                let change = Configure {
                    write: vec![Write { key, expected, bytes: Some([].into()) }],
                    limits: vec![(name.clone(), rule.map(definition))],
                    overrides: vec![(name, part(), own.map(definition))],
                };
                written(both!(self, machine => machine.configure(change.clone(), now)))
            }
            Step::Close(limit, part, seconds) => {
                let meter = (limit_name(*limit), partition(*part));
                let span = Span::from_secs(*seconds);
                written(both!(self, machine => machine.close(&meter, span, "closed", now)))
            }
            Step::Reset(limit, part) => {
                let meter = (limit_name(*limit), partition(*part));
                written(both!(self, machine => machine.reset(&meter, now)))
            }
            Step::Weigh(queue, lane, weight) => self.weigh(*queue, *lane, *weight),
            _ => nothing(),
        }
    }

    /// The answers, with what is told of every call and every meter.
    fn compared(&self, [naive, scheduler]: [String; 2]) -> [String; 2] {
        let now = self.now;
        let told = |explain: &dyn Fn(CallId) -> Option<Explanation>| {
            (0..self.calls).map(|id| explain(CallId(id))).collect::<Vec<_>>()
        };
        let meters: Vec<MeterName> = (0..5)
            .flat_map(|limit| {
                [false, true].map(|is_given| (limit_name(limit), partition(is_given)))
            })
            .collect();
        let states = |inspect: &dyn Fn(&MeterName) -> Option<MeterState>| {
            meters.iter().map(|meter| inspect(meter).map(compared_meter)).collect::<Vec<_>>()
        };
        let ones = told(&|id| self.naive.explain(id, now));
        let others = told(&|id| self.scheduler.explain(id, now));
        let meters = states(&|meter| self.naive.inspect(meter, now));
        let others_meters = states(&|meter| self.scheduler.inspect(meter, now));
        let [ones_seen, others_seen] = self.browsed();
        [
            format!("{naive} {ones:?} {meters:?} {ones_seen}"),
            format!("{scheduler} {others:?} {others_meters:?} {others_seen}"),
        ]
    }

    /// A part of what can be browsed, and pages, that differ from step to step: all of it each time
    /// would take longer than all else.
    fn browsed(&self) -> [String; 2] {
        let which = self.effects.len();
        let (now, most) = (self.now, 1 + which % 7);
        let after = Some(CallId(which as u64 % 5)).filter(|id| id.0 > 0);
        macro_rules! seen {
            ($machine:expr) => {{
                let machine = &$machine;
                let mut seen = String::new();
                let (queue, limit) = (queue_name(which % 2), limit_name(which % 5));
                seen += &format!("{:?}", machine.lanes(&queue, None, most));
                seen += &format!("{:?}", machine.lanes(&queue, Some(&lane_name(0)), 9));
                seen += &format!("{:?}", machine.lane(&queue, &lane_name(which % 3)));
                for query in queries(&queue, after, most).into_iter().skip(which % 3).step_by(3) {
                    seen += &format!("{:?}", machine.calls(&query, now));
                }
                let meters = machine.meters(&limit, None, most, now).into_iter().flatten();
                let meters = meters.map(|(partition, state)| (partition, compared_meter(state)));
                seen += &format!("{:?}", meters.collect::<Vec<_>>());
                // How many lanes are known and empty is not for both to say alike.
                let queues = machine.queues(None, 9).into_iter();
                let queues = queues.map(|queue| QueueState { lanes: 0, ..queue });
                let records = machine.records_of("", Some(&key(0)), most);
                let limits = machine.limits(None, most, now).into_iter();
                let limits = limits.map(|limit| (limit.name, limit.definition, limit.is_paused));
                let limits: Vec<_> = limits.collect();
                let totals = machine.totals().queues.into_iter().map(compared_totals);
                seen += &format!("{:?}", totals.collect::<Vec<_>>());
                seen + &format!("{:?} {records:?} {limits:?}", queues.collect::<Vec<_>>())
            }};
        }
        [seen!(self.naive), seen!(self.scheduler)]
    }

    fn act(&mut self, act: &Act) -> [String; 2] {
        let now = self.now;
        let (mut given, before) = (act.clone(), self.scheduler.clone());
        let answers = (self.naive.act(act.clone(), now), self.scheduler.make(&mut given, now));
        let as_any = |mut scheduler: Scheduler| {
            scheduler.advance(now);
            let answer = scheduler.make_any(&mut act.clone(), now);
            (answer, scheduler.take_effects(), scheduler.take_events())
        };
        let mut made = self.scheduler.clone();
        let made = (answers.1.clone(), made.take_effects(), made.take_events());
        assert_eq!(made, as_any(before), "an act of one is made as any other");
        if answers.1.is_err() {
            assert_eq!(given, *act, "what is refused is as it was");
        }
        if let Ok(acted) = &answers.0 {
            let counted = acted.counted.iter().filter_map(|(_, id)| *id);
            let newest = acted.enqueued.iter().copied().chain(counted).map(|id| id.0 + 1).max();
            self.calls = self.calls.max(newest.unwrap_or(0));
        }
        written(answers)
    }

    fn park(&mut self, calls: &[Fresh], needs: &Option<usize>) -> [String; 2] {
        let enqueue = calls.iter().map(|call| self.call(call)).collect();
        let needs = needs.iter().map(|which| key(*which)).collect();
        self.act(&Act { enqueue, needs, door: Door::Parks, ..Act::default() })
    }

    /// Now and then a call that was never dead, but most of the time one that is.
    fn revive(
        &mut self,
        calls: &[(Index, Option<u64>)],
        gone: &[Option<Index>; 2],
        follow: &Option<Fresh>,
    ) -> [String; 2] {
        let dead = (0..self.calls).map(CallId).filter(|id| self.naive.end(*id) == Some(End::Dead));
        let dead: Vec<CallId> = dead.collect();
        let chosen = |index: &Index| match dead.len() {
            0 => self.known(index),
            _ => *index.get(&dead),
        };
        let revive = calls.iter().map(|(call, delay)| Revive {
            call: chosen(call),
            not_before: delay.map(|seconds| self.now.wall.plus(Span::from_secs(seconds))),
        });
        let revive = revive.collect();
        let [cancel, delete] = gone.each_ref().map(|it| it.iter().map(chosen).collect());
        let enqueue = follow.iter().map(|call| self.call(call)).collect();
        self.act(&Act { revive, cancel, delete, enqueue, ..Act::default() })
    }

    fn claim(&mut self, queue: usize, most: usize, asks: u64) -> [String; 2] {
        let now = self.now;
        let claim =
            Claim { queue: queue_name(queue), most, lease: None, asks: Span::from_secs(asks) };
        let answers = both!(self, machine => machine.claim(&claim, now));
        self.leases.extend(answers.0.iter().map(|started| started.lease));
        written(answers)
    }

    /// What both start of a queue if there are hands enough.
    pub(super) fn starts(&mut self, queue: usize) -> Vec<CallId> {
        let before = self.leases.len();
        let _ = self.claim(queue, 1_000, 0);
        self.leases[before..].iter().map(|lease| lease.call).collect()
    }

    /// Before when a call is told not to start.
    pub(super) fn not_before(&self, id: CallId) -> Option<Timestamp> {
        self.scheduler.explain(id, self.now)?.not_before
    }

    fn weigh(&mut self, queue: usize, lane: usize, weight: u32) -> [String; 2] {
        let (now, queue, lane) = (self.now, queue_name(queue), lane_name(lane));
        written(both!(self, machine => machine.weigh(&queue, &lane, weight, now)))
    }

    fn ask(&mut self, queue: usize, seconds: u64) -> [String; 2] {
        let (now, queue) = (self.now, queue_name(queue));
        let until = now.at.plus(Span::from_secs(seconds));
        written(both!(self, machine => machine.ask(&queue, until, now)))
    }

    fn consume(&mut self, call: &Fresh, delay: Option<u64>, life: u64) -> [String; 2] {
        let (now, NewCall { tolls, priority, .. }) = (self.now, self.call(call));
        let (delay_max, life) = (delay.map(Span::from_secs), Span::from_secs(life));
        let ask = Ask { tolls, priority, delay_max, life };
        let (naive, scheduler) = both!(self, machine => machine.consume(&ask, now));
        if let (Ok(one), Ok(other)) = (&naive, &scheduler) {
            self.receipts.push([one.receipt.clone(), other.receipt.clone()]);
        }
        // A meter that was forgotten counts its payments anew.
        let told = |paid: Paid| (paid.receipt.id, paid.receipt.expires, paid.starts, paid.standing);
        written((naive.map(told), scheduler.map(told)))
    }

    fn settle_receipt(&mut self, which: &Index, cost: Option<(usize, u64)>) -> [String; 2] {
        let (now, Some([one, other])) = (self.now, self.receipt(which)) else { return nothing() };
        let cost = match cost {
            Some((limit, cost)) => Cost::Told(vec![(limit_name(limit), cost)]),
            None => Cost::Nothing,
        };
        let naive = self.naive.settle_receipt(&one, &cost, now);
        written((naive, self.scheduler.settle_receipt(&other, &cost, now)))
    }

    fn renew_receipt(&mut self, which: &Index, life: u64) -> [String; 2] {
        let (now, Some([one, other])) = (self.now, self.receipt(which)) else { return nothing() };
        let life = Span::from_secs(life);
        let naive = self.naive.renew_receipt(&one, life, now);
        let scheduler = self.scheduler.renew_receipt(&other, life, now);
        if let (Ok(one), Ok(other)) = (&naive, &scheduler) {
            self.receipts.push([one.clone(), other.clone()]);
        }
        let told = |receipt: Receipt| receipt.expires;
        written((naive.map(told), scheduler.map(told)))
    }

    /// One of the newest receipts: some are settled already.
    fn receipt(&self, index: &Index) -> Option<[Receipt; 2]> {
        let recent = &self.receipts[self.receipts.len().saturating_sub(6)..];
        (!recent.is_empty()).then(|| index.get(recent).clone())
    }

    fn write(&mut self, which: usize, is_right: bool, removes: bool) -> [String; 2] {
        let found = self.naive.record(&key(which)).map_or(Revision(0), |record| record.revision);
        let expected = if is_right { found } else { Revision(found.0 + 1) };
        let bytes = (!removes).then(|| Box::from(*b"bytes"));
        let write = vec![Write { key: key(which), expected, bytes }];
        self.act(&Act { write, ..Act::default() })
    }

    /// One of the newest leases: some are settled already.
    fn lease(&self, index: &Index) -> Option<&Lease> {
        let recent = &self.leases[self.leases.len().saturating_sub(6)..];
        (!recent.is_empty()).then(|| index.get(recent))
    }

    fn known(&self, index: &Index) -> CallId {
        CallId(index.index(usize::try_from(self.calls).unwrap() + 1) as u64)
    }

    fn call(&self, fresh: &Fresh) -> NewCall {
        call(fresh, self.now)
    }
}

/// Without the waits, which the reference does not tell, in one order of the calls: what is due at
/// once has none.
fn compared_events(mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        if let What::Started { waits, .. } | What::Settled { waits, .. } = &mut event.what {
            *waits = [].into();
        }
    }
    events.sort_by_key(|event| event.call);
    events
}

fn nothing() -> [String; 2] {
    [String::new(), String::new()]
}

fn written<T: std::fmt::Debug, U: std::fmt::Debug>((naive, scheduler): (T, U)) -> [String; 2] {
    [format!("{naive:?}"), format!("{scheduler:?}")]
}
