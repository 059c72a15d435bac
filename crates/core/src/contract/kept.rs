//! A state machine of lanes behind the contracts, in memory and under a clock that is set by hand:
//! for the naive reference and the scheduler, to be compared with stores.

use super::{
    Among, Answer, Ask, AskError, BusyLanes, BusyMeters, CallView, CallsQuery, Configure,
    ConfigureError, Cost, EventCursor, EventPage, EventRing, HistoryCursor, HistoryPage,
    HistoryQuery, LaneState, Lanes, LimitView, MeterError, MeterName, MeterPage, MeterState,
    Meters, Onward, Paid, QueueState, Receipt, ReceiptError, Totals, Woken,
};
use crate::lanes::naive::Naive;
use crate::lanes::{
    Act, ActError, Acted, CallId, Claim, Claimed, Effect, End, Event, Explanation, Lease, Payload,
    QueueError, QueueSpec, Record, Scheduler, Scope, Started, Watch,
};
use crate::meter::Standing;
use crate::name::{Key, LaneName, LimitName, Partition, QueueName};
use crate::time::{Now, Span, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

macro_rules! machine {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        /// The commands of the contracts, synchronous and with the present given.
        #[allow(missing_docs, reason = "each is described where it is implemented, and by the contract")]
        pub trait Machine: Send {
            $(fn $name(&mut self, $($argument: $type),*) $(-> $answer)?;)*

            /// Takes the calls that ended since this was asked last.
            fn take_ended(&mut self) -> Vec<(CallId, End)>;

            /// Makes events from now on.
            fn watch(&mut self);

            /// Takes the events since this was asked last.
            fn take_events(&mut self) -> Vec<Event>;
        }

        impl Machine for Naive {
            $(fn $name(&mut self, $($argument: $type),*) $(-> $answer)? {
                Naive::$name(self, $($argument),*)
            })*

            fn take_ended(&mut self) -> Vec<(CallId, End)> {
                Naive::take_ended(self)
            }

            fn watch(&mut self) {}

            fn take_events(&mut self) -> Vec<Event> {
                Naive::take_events(self)
            }
        }

        impl Machine for Scheduler {
            $(fn $name(&mut self, $($argument: $type),*) $(-> $answer)? {
                Scheduler::$name(self, $($argument),*)
            })*

            fn take_ended(&mut self) -> Vec<(CallId, End)> {
                let ended = |effect| match effect {
                    Effect::Ended { id, end } => Some((id, end)),
                    _ => None,
                };
                self.take_effects().into_iter().filter_map(ended).collect()
            }

            fn watch(&mut self) {
                Scheduler::watch(self, Watch::Everything);
            }

            fn take_events(&mut self) -> Vec<Event> {
                Scheduler::take_events(self)
            }
        }
    };
}

machine! {
    configure(change: Configure, now: Now) -> Result<(), ConfigureError>;
    define_queue(name: &QueueName, spec: QueueSpec, now: Now) -> Result<(), QueueError>;
    remove_queue(name: &QueueName, now: Now) -> Result<bool, QueueError>;
    consume(ask: &Ask, now: Now) -> Result<Paid, AskError>;
    peek(ask: &Ask, now: Now) -> Result<Standing, AskError>;
    settle_receipt(receipt: &Receipt, cost: &Cost, now: Now) -> Result<(), ReceiptError>;
    renew_receipt(receipt: &Receipt, life: Span, now: Now) -> Result<Receipt, ReceiptError>;
    inspect(meter: &MeterName, now: Now) -> Option<MeterState>;
    reopen(limit: &LimitName, partition: Option<&Partition>, now: Now);
    close(meter: &MeterName, span: Span, reason: &str, now: Now) -> Result<(), MeterError>;
    reset(meter: &MeterName, now: Now) -> Result<(), MeterError>;
    act(act: Act, now: Now) -> Result<Acted, ActError>;
    claim(claim: &Claim, now: Now) -> Vec<Started>;
    ask(queue: &QueueName, until: Timestamp, now: Now);
    renew(leases: &[Lease], lease: Span, now: Now) -> Vec<bool>;
    pause(scope: &Scope, now: Now);
    resume(scope: &Scope, now: Now);
    weigh(queue: &QueueName, lane: &LaneName, weight: u32, now: Now);
    advance(now: Now);
    next_due(now: Now) -> Option<Timestamp>;
    take_woken() -> Vec<QueueName>;
    explain(id: CallId, now: Now) -> Option<Explanation>;
    record(key: &Key) -> Option<&Record>;
    queues(after: Option<&QueueName>, most: usize) -> Vec<QueueState>;
    lanes(queue: &QueueName, after: Option<&LaneName>, most: usize) -> Option<Vec<LaneState>>;
    lane(queue: &QueueName, lane: &LaneName) -> Option<LaneState>;
    calls(query: &CallsQuery, now: Now) -> Vec<CallView>;
    look(ids: &[CallId], now: Now) -> Vec<Option<CallView>>;
    limits(after: Option<&LimitName>, most: usize, now: Now) -> Vec<LimitView>;
    meters(limit: &LimitName, after: Option<&Partition>, most: usize, now: Now)
        -> Option<MeterPage>;
    busiest_lanes(among: &Among, most: usize, from: Onward) -> BusyLanes;
    busiest_meters(among: &Among, most: usize, from: Onward, now: Now) -> BusyMeters;
    totals() -> Totals;
    records_of(prefix: &str, after: Option<&Key>, most: usize) -> Vec<(Key, Record)>;
}

/// A machine behind the contracts.
#[derive(Debug)]
pub struct Kept<M> {
    inner: Mutex<Inner<M>>,
}

#[derive(Debug)]
struct Inner<M> {
    machine: M,
    now: Now,
    ends: BTreeMap<CallId, End>,
    payloads: BTreeMap<CallId, Payload>,
    woken: BTreeSet<QueueName>,
    /// When something is due, if nobody was told yet.
    due: Option<Timestamp>,
    /// When something is due, as it was told last.
    due_told: Option<Timestamp>,
    wakers: Vec<Waker>,
    ring: EventRing,
    /// All events that history keeps, oldest first.
    history: Vec<Event>,
}

impl Kept<Naive> {
    /// As if it was closed and opened again: what no store writes down is forgotten.
    pub fn begin_again(&self) {
        let mut inner = self.lock();
        let now = inner.now;
        inner.machine.begin_again(now);
    }
}

/// The payloads of an act's calls, in the order of its parts.
struct Payloads {
    enqueued: Vec<Payload>,
    counted: Vec<Payload>,
}

impl Payloads {
    fn of(act: &Act) -> Self {
        Self {
            enqueued: act.enqueue.iter().map(|call| call.payload.clone()).collect(),
            counted: act.count_down.iter().map(|count| count.then.payload.clone()).collect(),
        }
    }

    /// With the calls that they became.
    fn named(self, acted: &Acted) -> impl Iterator<Item = (CallId, Payload)> {
        let enqueued = acted.enqueued.iter().copied().zip(self.enqueued);
        let counted = acted.counted.iter().map(|(_, then)| *then).zip(self.counted);
        let counted = counted.filter_map(|(then, payload)| Some((then?, payload)));
        enqueued.chain(counted).collect::<Vec<_>>().into_iter()
    }
}

impl<M: Machine> Kept<M> {
    /// A machine whose clock stands at `now`.
    pub fn new(mut machine: M, now: Now) -> Self {
        machine.watch();
        Self {
            inner: Mutex::new(Inner {
                machine,
                now,
                ends: BTreeMap::new(),
                payloads: BTreeMap::new(),
                woken: BTreeSet::new(),
                due: None,
                due_told: None,
                wakers: Vec::new(),
                ring: EventRing::new(now.at),
                history: Vec::new(),
            }),
        }
    }

    /// Sets the clock.
    pub fn set_now(&self, now: Now) {
        self.lock().now = now;
    }

    fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a command, then tells whoever waits for queues that were woken.
    fn tell<T>(&self, command: impl FnOnce(&mut M, Now) -> T) -> Answer<T> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Inner { machine, now, ends, woken, due, due_told, .. } = inner;
        let answer = command(machine, *now);
        ends.extend(machine.take_ended());
        woken.extend(machine.take_woken());
        let next = machine.next_due(*now);
        if next.is_some_and(|next| due_told.is_none_or(|told| next < told)) {
            (*due, *due_told) = (next, next);
        }
        let (has_woken, events) = (!woken.is_empty() || due.is_some(), machine.take_events());
        let Inner { wakers, ring, history, .. } = inner;
        history.extend(events.iter().filter(|event| event.is_history()).cloned());
        let has_happened = !events.is_empty();
        ring.extend(events);
        if has_woken || has_happened {
            wakers.drain(..).for_each(Waker::wake);
        }
        Ok(answer)
    }
}

impl<M: Machine> Meters for Kept<M> {
    async fn now(&self) -> Answer<Now> {
        Ok(self.lock().now)
    }

    async fn configure(&self, change: Configure) -> Answer<Result<(), ConfigureError>> {
        self.tell(|machine, now| machine.configure(change, now))
    }

    async fn consume(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Paid, AskError>>> {
        self.tell(|machine, now| asks.iter().map(|ask| machine.consume(ask, now)).collect())
    }

    async fn peek(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Standing, AskError>>> {
        self.tell(|machine, now| asks.iter().map(|ask| machine.peek(ask, now)).collect())
    }

    async fn settle(
        &self,
        receipts: Vec<(Receipt, Cost)>,
    ) -> Answer<Vec<Result<(), ReceiptError>>> {
        self.tell(|machine, now| {
            let each = receipts.iter();
            each.map(|(receipt, cost)| machine.settle_receipt(receipt, cost, now)).collect()
        })
    }

    async fn renew(
        &self,
        receipts: Vec<Receipt>,
        life: Span,
    ) -> Answer<Vec<Result<Receipt, ReceiptError>>> {
        self.tell(|machine, now| {
            receipts.iter().map(|receipt| machine.renew_receipt(receipt, life, now)).collect()
        })
    }

    async fn inspect(&self, meters: Vec<MeterName>) -> Answer<Vec<Option<MeterState>>> {
        self.tell(|machine, now| meters.iter().map(|meter| machine.inspect(meter, now)).collect())
    }

    async fn reopen(&self, (limit, partition): MeterName) -> Answer<()> {
        self.tell(|machine, now| machine.reopen(&limit, partition.as_ref(), now))
    }

    async fn close(
        &self,
        meter: MeterName,
        span: Span,
        reason: String,
    ) -> Answer<Result<(), MeterError>> {
        self.tell(|machine, now| machine.close(&meter, span, &reason, now))
    }

    async fn reset(&self, meter: MeterName) -> Answer<Result<(), MeterError>> {
        self.tell(|machine, now| machine.reset(&meter, now))
    }

    async fn records(&self, keys: Vec<Key>) -> Answer<Vec<Option<Record>>> {
        self.tell(|machine, _| keys.iter().map(|key| machine.record(key).cloned()).collect())
    }

    async fn limits(&self, after: Option<LimitName>, most: usize) -> Answer<Vec<LimitView>> {
        self.tell(|machine, now| machine.limits(after.as_ref(), most, now))
    }
}

impl<M: Machine> Lanes for Kept<M> {
    async fn define_queue(
        &self,
        queue: QueueName,
        spec: QueueSpec,
    ) -> Answer<Result<(), QueueError>> {
        self.tell(|machine, now| machine.define_queue(&queue, spec, now))
    }

    async fn remove_queue(&self, queue: QueueName) -> Answer<Result<bool, QueueError>> {
        self.tell(|machine, now| machine.remove_queue(&queue, now))
    }

    async fn make(&self, acts: &mut [Act]) -> Answer<Vec<Result<Acted, ActError>>> {
        let payloads: Vec<Payloads> = acts.iter().map(Payloads::of).collect();
        let revives: Vec<_> = acts.iter().map(|act| act.revive.clone()).collect();
        let answers = self.tell(|machine, now| {
            acts.iter().map(|act| machine.act(act.clone(), now)).collect::<Vec<_>>()
        })?;
        Act::clear_made(acts, &answers);
        let mut inner = self.lock();
        for (revives, acted) in revives.into_iter().zip(&answers) {
            let revived = acted.iter().flat_map(|acted| acted.revived.clone());
            for (revive, _) in revives.into_iter().zip(revived).filter(|(_, was_dead)| *was_dead) {
                inner.ends.remove(&revive.call);
            }
        }
        for (payloads, acted) in payloads.into_iter().zip(&answers) {
            let named = acted.as_ref().map(|acted| payloads.named(acted));
            for (id, payload) in named.into_iter().flatten() {
                // A duplicate is the first call, with the first payload.
                inner.payloads.entry(id).or_insert(payload);
            }
        }
        Ok(answers)
    }

    async fn claim(&self, claim: Claim) -> Answer<Vec<Claimed>> {
        let starts = self.tell(|machine, now| machine.claim(&claim, now))?;
        let inner = self.lock();
        let claimed = starts.into_iter().map(|started| {
            let payload = inner.payloads.get(&started.lease.call).cloned().unwrap_or_default();
            Claimed { started, payload }
        });
        Ok(claimed.collect())
    }

    async fn ask(&self, queue: QueueName, until: Timestamp) -> Answer<()> {
        self.tell(|machine, now| machine.ask(&queue, until, now))
    }

    async fn renew_leases(&self, leases: Vec<Lease>, lease: Span) -> Answer<Vec<bool>> {
        self.tell(|machine, now| machine.renew(&leases, lease, now))
    }

    async fn pause(&self, scope: Scope) -> Answer<()> {
        self.tell(|machine, now| machine.pause(&scope, now))
    }

    async fn resume(&self, scope: Scope) -> Answer<()> {
        self.tell(|machine, now| machine.resume(&scope, now))
    }

    async fn weigh(&self, queue: QueueName, lane: LaneName, weight: u32) -> Answer<()> {
        self.tell(|machine, now| machine.weigh(&queue, &lane, weight, now))
    }

    async fn advance(&self) -> Answer<()> {
        self.lock().due_told = None;
        self.tell(|machine, now| machine.advance(now))
    }

    async fn next_due(&self) -> Answer<Option<Timestamp>> {
        self.tell(|machine, now| machine.next_due(now))
    }

    async fn woken(&self) -> Answer<Woken> {
        poll_fn(|context| {
            let mut inner = self.lock();
            if inner.woken.is_empty() && inner.due.is_none() {
                inner.wakers.push(context.waker().clone());
                return Poll::Pending;
            }
            let queues = std::mem::take(&mut inner.woken).into_iter().collect();
            Poll::Ready(Ok(Woken { queues, due: inner.due.take() }))
        })
        .await
    }

    async fn explain(&self, calls: Vec<CallId>) -> Answer<Vec<Option<Explanation>>> {
        self.tell(|machine, now| {
            machine.advance(now);
            calls.into_iter().map(|id| machine.explain(id, now)).collect()
        })
    }

    async fn ends(&self, calls: Vec<CallId>) -> Answer<Vec<Option<End>>> {
        self.tell(|machine, now| machine.advance(now))?;
        let inner = self.lock();
        Ok(calls.iter().map(|id| inner.ends.get(id).copied()).collect())
    }

    async fn events(&self, after: Option<EventCursor>, most: usize) -> Answer<EventPage> {
        let after = after.unwrap_or_else(|| self.lock().ring.end());
        poll_fn(|context| {
            let mut inner = self.lock();
            if let Some(page) = inner.ring.page(after, most) {
                return Poll::Ready(Ok(page));
            }
            inner.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    async fn histories(&self, calls: Vec<CallId>) -> Answer<Vec<Vec<Event>>> {
        let inner = self.lock();
        let of = |call| inner.history.iter().filter(move |event| event.call == call).cloned();
        Ok(calls.into_iter().map(|call| of(call).collect()).collect())
    }

    async fn history(&self, query: HistoryQuery) -> Answer<HistoryPage> {
        let inner = self.lock();
        let places = (0_u64..).map(HistoryCursor).zip(&inner.history);
        let places: Vec<_> = places.filter(|(_, event)| query.wants(event)).collect();
        let is_older = |place: HistoryCursor| query.after.is_none_or(|after| place < after);
        let mut older = places.into_iter().rev().filter(|(place, _)| is_older(*place));
        let page: Vec<_> = older.by_ref().take(query.most).collect();
        let last = page.last().map(|(place, _)| *place);
        let next = last.filter(|_| older.next().is_some());
        let (places, events) = page.into_iter().map(|(place, it)| (place, it.clone())).unzip();
        Ok(HistoryPage { events, places, next })
    }

    async fn queues(&self, after: Option<QueueName>, most: usize) -> Answer<Vec<QueueState>> {
        self.tell(|machine, _| machine.queues(after.as_ref(), most))
    }

    async fn lanes(
        &self,
        queue: QueueName,
        after: Option<LaneName>,
        most: usize,
    ) -> Answer<Option<Vec<LaneState>>> {
        self.tell(|machine, now| {
            machine.advance(now);
            machine.lanes(&queue, after.as_ref(), most)
        })
    }

    async fn lane(&self, queue: QueueName, lane: LaneName) -> Answer<Option<LaneState>> {
        self.tell(|machine, now| {
            machine.advance(now);
            machine.lane(&queue, &lane)
        })
    }

    async fn calls(&self, query: CallsQuery) -> Answer<Vec<CallView>> {
        self.tell(|machine, now| {
            machine.advance(now);
            machine.calls(&query, now)
        })
    }

    async fn look(&self, calls: Vec<CallId>) -> Answer<Vec<Option<CallView>>> {
        self.tell(|machine, now| {
            machine.advance(now);
            machine.look(&calls, now)
        })
    }

    async fn payloads(&self, calls: Vec<CallId>) -> Answer<Vec<Option<Payload>>> {
        let views = self.look(calls).await?;
        let inner = self.lock();
        let payload = |view: Option<CallView>| inner.payloads.get(&view?.id).cloned();
        Ok(views.into_iter().map(payload).collect())
    }

    async fn meters(
        &self,
        limit: LimitName,
        after: Option<Partition>,
        most: usize,
    ) -> Answer<Option<MeterPage>> {
        self.tell(|machine, now| machine.meters(&limit, after.as_ref(), most, now))
    }

    async fn busiest_lanes(&self, among: Among, most: usize, from: Onward) -> Answer<BusyLanes> {
        self.tell(|machine, _| machine.busiest_lanes(&among, most, from))
    }

    async fn busiest_meters(&self, among: Among, most: usize, from: Onward) -> Answer<BusyMeters> {
        self.tell(|machine, now| machine.busiest_meters(&among, most, from, now))
    }

    async fn totals(&self) -> Answer<Totals> {
        self.tell(|machine, _| machine.totals())
    }

    async fn records_of(
        &self,
        prefix: String,
        after: Option<Key>,
        most: usize,
    ) -> Answer<Vec<(Key, Record)>> {
        self.tell(|machine, _| machine.records_of(&prefix, after.as_ref(), most))
    }
}
