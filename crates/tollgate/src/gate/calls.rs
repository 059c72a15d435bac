//! Calls that wait in lanes: handed in, claimed, settled, looked at, and held back.

use super::{Backend, Tollgate};
use crate::store::Store;
use std::future::Future;
use tollgate_core::contract::StoreError as KeptError;
use tollgate_core::contract::{
    CallView, CallsQuery, Configure, LaneState, Meters, QueueState, Totals,
};
use tollgate_core::lanes::{
    Act, Acted, CallId, Claimed, Explanation, Lease, NewCall, Payload, QueueSpec, Record, Write,
};
use tollgate_core::{Key, Limit, Now, Span};
use tollgate_engine::{Call, Engine, Error, Job, Outcome, Schedule, StoreError, When, Worked};

/// A record that is asked for to see whether the store answers.
const ASKED: &str = "tollgate/seal";

impl Tollgate {
    /// Whether it keeps calls: in memory, and in a store that others share, there are limits alone.
    pub fn keeps_calls(&self) -> bool {
        self.engine().is_ok()
    }

    pub(super) fn engine(&self) -> Result<&Engine<Store>, Error> {
        match &self.backend {
            Backend::Memory(_) | Backend::Shared(_) => Err(StoreError::LimitsOnly.into()),
            Backend::Kept(engine) => Ok(engine),
        }
    }

    /// Defines a queue, or changes it: at once, for waiting calls, too.
    pub async fn queue(&self, name: &str, spec: QueueSpec) -> Result<(), Error> {
        self.engine()?.define_queue(name, spec).await
    }

    /// Removes a queue that has no calls, with all that is known of its lanes; says whether there was
    /// one. Refused while calls of it wait, are in flight or dead. Schedules that hand in to it say so
    /// as their problem.
    pub async fn remove_queue(&self, queue: &str) -> Result<bool, Error> {
        self.engine()?.remove_queue(queue).await
    }

    /// Removes a queue and writes into the audit log who did.
    pub async fn remove_queue_as(&self, who: &str, queue: &str) -> Result<bool, Error> {
        self.engine()?.remove_queue_as(who, queue).await
    }

    /// Defines a queue and writes into the audit log who did.
    pub async fn queue_as(&self, who: &str, name: &str, spec: QueueSpec) -> Result<(), Error> {
        self.engine()?.define_queue_as(who, name, spec).await
    }

    /// Hands in a call. The answer to a duplicate is the first call's name. Once answered, it lasts.
    pub async fn enqueue(&self, queue: &str, call: Call) -> Result<CallId, Error> {
        let ids = self.engine()?.enqueue(queue, [call]).await?;
        let unnamed = || KeptError::Failed { reason: "it gave the call no name".to_owned() };
        ids.first().copied().ok_or_else(|| unnamed().into())
    }

    /// Hands in calls of a queue, all or none; their names in order.
    pub async fn enqueue_all(
        &self,
        queue: &str,
        calls: impl IntoIterator<Item = Call>,
    ) -> Result<Vec<CallId>, Error> {
        self.engine()?.enqueue(queue, calls).await
    }

    /// Starts up to `most` calls of a queue, as soon as one may, within `wait`. They start now: whoever
    /// claims has so many free hands.
    pub async fn claim(
        &self,
        queue: &str,
        most: usize,
        wait: impl Into<Span>,
    ) -> Result<Vec<Claimed>, Error> {
        self.engine()?.claim(queue, most, wait).await
    }

    /// Like [`Self::claim`], with leases of this length instead of the queue's.
    pub async fn claim_for(
        &self,
        queue: &str,
        most: usize,
        wait: impl Into<Span>,
        lease: impl Into<Span>,
    ) -> Result<Vec<Claimed>, Error> {
        self.engine()?.claim_for(queue, most, wait, lease).await
    }

    /// Whether Tollgate delivers the calls of a queue itself, and no worker is to claim them; `None` if there
    /// is no such queue.
    pub async fn is_pushed(&self, queue: &str) -> Result<Option<bool>, Error> {
        self.engine()?.is_pushed(queue).await
    }

    /// Settles a start, and makes what follows from it, in one act.
    pub async fn settle(&self, lease: Lease, outcome: Outcome) -> Result<Acted, Error> {
        self.engine()?.settle(lease, outcome).await
    }

    /// Makes one atomic change: settles, cancels, enqueues, writes records, counts joins down.
    pub async fn act(&self, act: Act) -> Result<Acted, Error> {
        self.engine()?.act(act).await
    }

    /// Makes changes, each whole or not at all, in order; says what came of each. Cheaper than one by
    /// one.
    pub async fn act_all(&self, acts: Vec<Act>) -> Result<Vec<Result<Acted, Error>>, Error> {
        self.engine()?.act_all(acts).await
    }

    /// Polls several of this gate's futures: what they tell the store reaches it together, in this order, and is done
    /// in one go. They are to be polled and not waited for: the store hears of them when this returns. A settlement that makes room for the claim behind it costs one commit then, and nobody is woken in
    /// between.
    pub fn together<T>(&self, poll: impl FnOnce() -> T) -> T {
        match &self.backend {
            Backend::Kept(engine) => engine.store().together(poll),
            Backend::Memory(_) | Backend::Shared(_) => poll(),
        }
    }

    /// The present, as the store counts it.
    pub async fn now(&self) -> Result<Now, Error> {
        match &self.backend {
            Backend::Shared(engine) => engine.now().await,
            Backend::Memory(_) | Backend::Kept(_) => self.engine()?.now().await,
        }
    }

    /// Writes a record of Tollgate's own, which [`Self::act`] does not: for servers and the like. A store
    /// that processes share does not tell its new revision.
    pub async fn keep(&self, write: Write) -> Result<Acted, Error> {
        if let Backend::Shared(engine) = &self.backend {
            let change = Configure { write: vec![write], ..Configure::default() };
            engine.store().configure(change).await??;
            return Ok(Acted::default());
        }
        self.engine()?.keep(write).await
    }

    /// Whether what is accepted now would be kept, as far as the last write found: no, if the disk is full
    /// or the store has failed or is out of reach. Costs no write; always so in memory.
    pub fn takes_writes(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Memory(_) => Ok(()),
            Backend::Kept(engine) => Ok(engine.store().takes_writes()?),
            Backend::Shared(engine) => Ok(engine.store().takes_writes()?),
        }
    }

    /// Asks a store that others share whether it is there, after which [`Self::takes_writes`] tells how it
    /// is. Costs a trip there and no write; nothing, where nobody shares it.
    pub async fn ask_store(&self) -> Result<(), Error> {
        match &self.backend {
            Backend::Shared(engine) => engine.now().await.map(drop),
            Backend::Kept(engine) if self.has_nodes => engine.record(ASKED).await.map(drop),
            Backend::Memory(_) | Backend::Kept(_) => Ok(()),
        }
    }

    /// Whether other processes may have the same calls: those of a database.
    pub fn has_nodes(&self) -> bool {
        self.has_nodes
    }

    /// Ready when another process changed a record whose key begins so, after this was first polled; never,
    /// where no other has the same calls.
    pub async fn changed_elsewhere(&self, prefix: &str) {
        match &self.backend {
            Backend::Kept(engine) if self.has_nodes => engine.changed_elsewhere(prefix).await,
            _ => std::future::pending().await,
        }
    }

    /// How often this process asked a store that others share, and it was not done; `None` if nobody shares
    /// it.
    pub fn store_failures(&self) -> Option<u64> {
        match &self.backend {
            Backend::Memory(_) | Backend::Kept(_) => None,
            Backend::Shared(engine) => Some(engine.store().failures()),
        }
    }

    /// For how long the oldest transaction has been open, by anybody, that holds back what the database of
    /// the store clears away, as it was seen some seconds ago; zero if there is none. `None`: the store
    /// is in no database, or has limits alone.
    pub fn oldest_transaction(&self) -> Option<Span> {
        match &self.backend {
            Backend::Memory(_) | Backend::Shared(_) => None,
            Backend::Kept(engine) => engine.store().oldest_transaction(),
        }
    }

    /// Ready when the store has failed for good; never, for a gate in memory.
    pub async fn ended(&self) {
        match &self.backend {
            Backend::Memory(_) | Backend::Shared(_) => std::future::pending().await,
            Backend::Kept(engine) => engine.ended().await,
        }
    }

    /// Holds leases for so long from now; says of each whether it was still held.
    pub async fn renew(
        &self,
        leases: Vec<Lease>,
        lease: impl Into<Span>,
    ) -> Result<Vec<bool>, Error> {
        self.engine()?.renew_leases(leases, lease.into()).await
    }

    /// Hands back starts that nobody will make: their calls wait again at once, as if they had never
    /// started. Returns at once; [`Self::shut_down`] waits until it is done. If the store has no room,
    /// their leases end by themselves.
    pub fn release(&self, leases: Vec<Lease>) {
        if let Ok(engine) = self.engine() {
            engine.release(leases);
        }
    }

    /// Takes a call back: one that waits ends, one in flight is not tried again. Says whether it was
    /// there.
    pub async fn cancel(&self, call: CallId) -> Result<bool, Error> {
        self.engine()?.cancel(call).await
    }

    /// Why a call waits, and until when; `None` if it ended or never was.
    pub async fn explain(&self, call: CallId) -> Result<Option<Explanation>, Error> {
        self.engine()?.explain(call).await
    }

    /// Serves a lane so many times as much as others at meters where both wait.
    pub async fn weigh(&self, queue: &str, lane: &str, weight: u32) -> Result<(), Error> {
        self.engine()?.weigh(queue, lane, weight).await
    }

    /// The bytes that are kept under a key, with their revision.
    pub async fn record(&self, key: &str) -> Result<Option<Record>, Error> {
        match &self.backend {
            Backend::Shared(engine) => engine.record(key).await,
            Backend::Memory(_) | Backend::Kept(_) => self.engine()?.record(key).await,
        }
    }

    /// Records whose keys begin so, by key, after one, up to 1,000. May cost a look at every record.
    pub async fn records_of(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(Key, Record)>, Error> {
        self.engine()?.records_of(prefix, after, most).await
    }

    /// Queues by name, after one, up to 1,000.
    pub async fn queues(&self, after: Option<&str>, most: usize) -> Result<Vec<QueueState>, Error> {
        self.engine()?.queues(after, most).await
    }

    /// A queue, and how much is in it; `None` if there is none of that name.
    pub async fn queue_state(&self, queue: &str) -> Result<Option<QueueState>, Error> {
        self.engine()?.queue_state(queue).await
    }

    /// How many claims wait for calls of a queue, in this process: if none does, nothing starts.
    pub fn asking(&self, queue: &str) -> usize {
        self.engine().map_or(0, |engine| engine.asking(queue))
    }

    /// What was counted since the folder was opened, for each queue and each limit there is: how often
    /// calls were handed in, started, settled and ended, what was admitted and refused, and how long
    /// things took. None of it is kept.
    pub async fn totals(&self) -> Result<Totals, Error> {
        self.engine()?.totals().await
    }

    /// Lanes of a queue by name, after one, up to 1,000; `None` if there is no such queue.
    pub async fn lanes(
        &self,
        queue: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Option<Vec<LaneState>>, Error> {
        self.engine()?.lanes(queue, after, most).await
    }

    /// One lane of a queue, at the cost of one look; `None` if there is no such queue, or nothing is
    /// known of the lane.
    pub async fn lane(&self, queue: &str, lane: &str) -> Result<Option<LaneState>, Error> {
        self.engine()?.lane(queue, lane).await
    }

    /// Calls of a queue in the order in which they were accepted, up to 1,000.
    pub async fn calls(&self, query: CallsQuery) -> Result<Vec<CallView>, Error> {
        self.engine()?.calls(query).await
    }

    /// A call as it is; `None` if it ended for good or never was.
    pub async fn call(&self, call: CallId) -> Result<Option<CallView>, Error> {
        self.engine()?.call(call).await
    }

    /// What was handed in with a call; `None` if it ended for good or never was, or if that is damaged.
    pub async fn payload(&self, call: CallId) -> Result<Option<Payload>, Error> {
        self.engine()?.payload(call).await
    }

    /// The same of each of these, on one way to the store: all of them are in memory at once.
    pub async fn payloads(&self, calls: Vec<CallId>) -> Result<Vec<Option<Payload>>, Error> {
        self.engine()?.payloads(calls).await
    }

    /// The dead calls of a queue, or of one of its lanes, after one, up to 1,000.
    pub async fn dead(
        &self,
        queue: &str,
        lane: Option<&str>,
        after: Option<CallId>,
        most: usize,
    ) -> Result<Vec<CallView>, Error> {
        self.engine()?.dead(queue, lane, after, most).await
    }

    /// Lets dead calls wait again, as if they were new; says of each whether it was dead.
    pub async fn revive(&self, calls: Vec<CallId>) -> Result<Vec<bool>, Error> {
        self.engine()?.revive(calls).await
    }

    /// Lets all dead calls of a queue, or of one of its lanes, wait again, one every so often; says how
    /// many.
    pub async fn revive_all(
        &self,
        queue: &str,
        lane: Option<&str>,
        every: impl Into<Span>,
    ) -> Result<u64, Error> {
        self.engine()?.revive_all(queue, lane, every).await
    }

    /// Deletes all dead calls of a queue, or of one of its lanes; says how many.
    pub async fn delete_dead(&self, queue: &str, lane: Option<&str>) -> Result<u64, Error> {
        self.engine()?.delete_dead(queue, lane).await
    }

    /// Hands in a call at each tick of a schedule. One of that name is replaced.
    pub async fn schedule(
        &self,
        name: &str,
        queue: &str,
        when: When,
        call: Call,
    ) -> Result<Schedule, Error> {
        self.engine()?.schedule(name, queue, when, call).await
    }

    /// Like [`Self::schedule`], with a call whose times are written as from the epoch, and with limits that
    /// come along with it.
    pub async fn schedule_new(
        &self,
        name: &str,
        when: When,
        call: NewCall,
        limits: Vec<(String, Limit)>,
    ) -> Result<Schedule, Error> {
        self.engine()?.schedule_new(name, when, call, limits).await
    }

    /// Removes a schedule; says whether there was one.
    pub async fn unschedule(&self, name: &str) -> Result<bool, Error> {
        self.engine()?.unschedule(name).await
    }

    /// Hands in nothing more until the schedule is resumed; says whether there is one.
    pub async fn pause_schedule(&self, name: &str) -> Result<bool, Error> {
        self.engine()?.pause_schedule(name).await
    }

    /// Goes on with a schedule's next tick from now; says whether there is one.
    pub async fn resume_schedule(&self, name: &str) -> Result<bool, Error> {
        self.engine()?.resume_schedule(name).await
    }

    /// Schedules by name, after one, up to 1,000.
    pub async fn schedules(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Schedule>, Error> {
        self.engine()?.schedules(after, most).await
    }

    /// The calls of a schedule's last tick, if that was since this process opened the folder.
    pub fn schedule_calls(&self, name: &str) -> Result<Vec<CallId>, Error> {
        Ok(self.engine()?.schedule_calls(name))
    }

    /// A schedule; `None` if there is none of that name.
    pub async fn schedule_state(&self, name: &str) -> Result<Option<Schedule>, Error> {
        self.engine()?.schedule_state(name).await
    }

    /// A worker of a queue.
    pub fn worker(&self, queue: &str) -> Worker {
        Worker { inner: self.engine().map(|engine| engine.worker(queue)) }
    }
}

/// A worker of a queue, to be set up and run.
#[derive(Debug)]
#[must_use = "nothing is claimed until it runs"]
pub struct Worker {
    inner: Result<tollgate_engine::Worker<Store>, Error>,
}

impl Worker {
    /// How many calls it makes at a time; 1 by default.
    pub fn concurrency(self, calls: usize) -> Self {
        Self { inner: self.inner.map(|worker| worker.concurrency(calls)) }
    }

    /// How long a call is leased; 30 s by default. It is renewed for as long as the handler runs, so
    /// this is how long a call of a worker that died waits for another. If it cannot be renewed in time, the handler is
    /// dropped where it waits, for another worker may have the call.
    pub fn lease(self, lease: impl Into<Span>) -> Self {
        Self { inner: self.inner.map(|worker| worker.lease(lease)) }
    }

    /// A call that reaches the handler later than this after it was let go is handed back. 1 s by
    /// default.
    pub fn start_by(self, span: impl Into<Span>) -> Self {
        Self { inner: self.inner.map(|worker| worker.start_by(span)) }
    }

    /// When this is ready, nothing more is claimed; those it has are finished and settled.
    pub fn until(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { inner: self.inner.map(|worker| worker.until(stop)) }
    }

    /// Ends when no call of the queue is left that waits or is in flight.
    pub fn until_drained(self) -> Self {
        Self { inner: self.inner.map(tollgate_engine::Worker::until_drained) }
    }

    /// Runs the handler for each call, until it is told to stop or the store fails. A handler that
    /// panics has failed: its call is tried again, and the worker goes on. Needs a tokio runtime.
    pub async fn run<H, F>(self, handler: H) -> Result<Worked, Error>
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output: Into<Outcome>> + Send + 'static,
    {
        self.inner?.run(handler).await
    }
}
