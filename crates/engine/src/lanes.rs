//! Limits and lanes that a store keeps, and the thread that drives it.
//!
//! A store is passive. The driver sleeps until something is due there, lets it happen, and wakes who
//! asks for calls that may start. Whatever waits here waits by the clock that it was given.

mod acquire;
mod alone;
mod audience;
mod audit;
mod browse;
mod busiest;
mod call;
mod claims;
mod consume;
mod crowds;
mod dead;
mod door;
mod driver;
mod events;
mod holds;
mod in_turn;
mod limits;
mod line;
mod nodes;
mod operate;
mod operation;
mod out_of_reach;
mod outcome;
mod pulse;
mod pushed;
mod schedules;
mod ways;
mod worker;

pub use audit::{Altered, Audited};
pub use call::{Call, CallParts, Due, Owed};
pub use events::{Events, Told};
pub use nodes::Elsewhere;
pub use operation::Operation;
pub use out_of_reach::{LimitsSettings, OutOfReach};
pub use outcome::{Outcome, OutcomeParts};
pub use schedules::{Schedule, When};
pub use worker::{Job, Worked, Worker};

pub(crate) use acquire::Acquires;
pub(crate) use holds::{Doing, Held};
#[cfg(feature = "test-kit")]
pub(crate) use worker::settle_all;
pub(crate) use worker::{Following, Next};

use crate::clock::Clock;
use crate::error::Error;
use crate::flows::{AtHand, Sweeps};
use crate::limits::UNSAID;
use acquire::Waiting;
use audience::Audience;
use audit::Numbers;
use claims::Claims;
use crowds::Crowds;
use door::{open_queue_name, queue_name};
use driver::Driver;
use holds::Holds;
use limits::Known;
use out_of_reach::Reach;
use pulse::Pulse;
use pushed::Pushed;
use schedules::Ticks;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Notify;
use tollgate_core::contract::{Lanes, Meters};
use tollgate_core::lanes::{
    Act, Acted, CallId, Claimed, Explanation, Lease, QueueSpec, Record, Settle, Settlement, Write,
};
use tollgate_core::{Key, LaneName, Now, QueueName, Span, Timestamp};
use ways::{ByLanes, ByTurns, Ways};

/// A store and the thread that drives it. Clones share both; when the last one is dropped, the thread
/// ends.
pub struct Engine<S> {
    parts: Arc<Parts<S>>,
    driver: Arc<Driver>,
}

impl<S> Clone for Engine<S> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone(), driver: self.driver.clone() }
    }
}

impl<S> std::fmt::Debug for Engine<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

/// What the driver's chores may share: all but the driver.
struct Parts<S> {
    store: S,
    ways: Box<dyn Ways<S>>,
    /// Who waits where the store has no lanes.
    crowds: Arc<Crowds>,
    /// Whether the store is in reach.
    reach: Reach,
    pulse: Arc<Pulse>,
    claims: Arc<Claims>,
    holds: Holds,
    known: Known,
    pushed: Pushed,
    /// Of the audit log.
    numbers: Numbers,
    waiting: Waiting,
    ticks: Ticks,
    /// Told when a queue was defined or removed.
    queues: Notify,
    /// Who waits for runs.
    runs: Audience,
    /// When runs that ended go.
    sweeps: Sweeps,
    /// Workflows that were read.
    at_hand: AtHand,
    /// Who waits for records that other nodes change.
    elsewhere: Audience,
}

impl<S: Lanes + Clone + 'static> Engine<S> {
    /// Drives a store by a clock, which is the store's own.
    pub async fn start(store: S, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let settings = LimitsSettings { waiting_max: 0, ..LimitsSettings::default() };
        let parts = Arc::new(Parts::new(store.clone(), clock, Box::new(ByLanes), settings));
        let driver = Arc::new(Driver::start(store, &parts.pulse, &parts.claims)?);
        parts.load_audit().await?;
        parts.load_limits().await?;
        parts.load_schedules().await?;
        parts.forget_who_waited(acquire::QUEUE).await?;
        Ok(Self { parts, driver })
    }
}

impl<S: Meters + 'static> Engine<S> {
    /// Keeps limits in a store that has no lanes, or whose lanes are not used, and that other processes
    /// may share. Spans are measured by this clock, and instants are the store's own. What passes let go
    /// outside of a runtime is settled within the one where this is called.
    pub fn of_limits(store: S, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::of_limits_with(store, clock, LimitsSettings::default())
    }

    /// As [`Self::of_limits`], where the defaults do not do.
    pub fn of_limits_with(
        store: S,
        clock: Arc<dyn Clock>,
        settings: LimitsSettings,
    ) -> Result<Self, Error> {
        let parts = Arc::new(Parts::new(store, clock, Box::new(ByTurns), settings));
        let driver = Arc::new(Driver::of_chores(&parts.pulse, &parts.claims)?);
        Ok(Self { parts, driver })
    }

    /// The store underneath.
    pub fn store(&self) -> &S {
        &self.parts.store
    }

    /// The present, as the store counts it.
    pub async fn now(&self) -> Result<Now, Error> {
        Ok(self.parts.store.now().await?)
    }

    /// Waits until all is settled that passes have let go of. The store is closed with the last handle.
    pub async fn quiet(&self) {
        self.parts.pulse.until_quiet().await;
    }

    /// Ready when the store has failed, or the engine is closed.
    pub async fn ended(&self) {
        self.parts.pulse.until_ended().await;
    }

    /// The bytes that are kept under a key, with their revision.
    pub async fn record(&self, key: &str) -> Result<Option<Record>, Error> {
        Ok(self.parts.store.records(vec![Key::new(key)?]).await?.pop().flatten())
    }
}

impl<S: Lanes + 'static> Engine<S> {
    /// Ready once a queue was defined or removed, of those who ask for one.
    #[cfg(feature = "push")]
    pub(crate) async fn queues_changed(&self) {
        self.parts.queues.notified().await;
    }

    /// Ready after so long.
    pub(crate) async fn rest(&self, span: Span) {
        self.parts.pulse.sleep(span).await;
    }

    /// Whether the store has failed, or is closed.
    #[cfg(feature = "push")]
    pub(crate) fn has_ended(&self) -> bool {
        self.parts.pulse.has_ended()
    }

    /// Limit time, as the engine's clock tells it.
    pub(crate) fn clock_now(&self) -> Timestamp {
        self.parts.pulse.clock.now()
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> Timestamp {
        self.parts.pulse.clock.wall()
    }

    /// Defines a queue, or changes it: at once, for waiting calls, too.
    pub async fn define_queue(&self, queue: &str, spec: QueueSpec) -> Result<(), Error> {
        self.define_queue_as(UNSAID, queue, spec).await
    }

    /// Defines a queue and writes down who did.
    pub async fn define_queue_as(
        &self,
        who: &str,
        queue: &str,
        spec: QueueSpec,
    ) -> Result<(), Error> {
        let name = open_queue_name(queue)?;
        #[cfg(feature = "push")]
        let spec = self.capped(queue, spec).await?;
        self.parts.define_queue_as(who, name, spec).await?;
        self.parts.queues.notify_one();
        Ok(())
    }

    /// Defines a queue of runs, unless it is there.
    pub(crate) async fn define_own_queue(
        &self,
        queue: &QueueName,
        spec: QueueSpec,
    ) -> Result<(), Error> {
        if self.parts.queue_named(queue).await?.is_some() {
            return Ok(());
        }
        // The log is for what people change.
        let defined = self.parts.store.define_queue(queue.clone(), spec).await;
        self.parts.pushed.forget(queue);
        Ok(defined??)
    }

    /// Removes a queue that has no calls; says whether there was one. Schedules that hand in to it say
    /// so as their problem.
    pub async fn remove_queue(&self, queue: &str) -> Result<bool, Error> {
        self.remove_queue_as(UNSAID, queue).await
    }

    /// Removes a queue and writes down who did.
    pub async fn remove_queue_as(&self, who: &str, queue: &str) -> Result<bool, Error> {
        let is_removed = self.parts.remove_queue_as(who, open_queue_name(queue)?).await?;
        self.parts.queues.notify_one();
        Ok(is_removed)
    }

    /// Hands in calls of a queue, all or none; their names in order. The answer to a duplicate is the
    /// first call's name.
    pub async fn enqueue(
        &self,
        queue: &str,
        calls: impl IntoIterator<Item = Call>,
    ) -> Result<Vec<CallId>, Error> {
        let (queue, now) = (open_queue_name(queue)?, self.now().await?);
        let mut enqueue = Vec::new();
        for call in calls {
            enqueue.push(call.into_new(queue.clone(), now)?);
        }
        Ok(self.act(Act { enqueue, ..Act::default() }).await?.enqueued.into())
    }

    /// Makes one atomic change.
    pub async fn act(&self, act: Act) -> Result<Acted, Error> {
        self.parts.check(&act).await?;
        self.parts.act(act).await
    }

    /// Makes changes, each whole or not at all, in order; says what came of each.
    pub async fn act_all(&self, acts: Vec<Act>) -> Result<Vec<Result<Acted, Error>>, Error> {
        let mut checked = Vec::with_capacity(acts.len());
        for act in &acts {
            checked.push(self.parts.check(act).await.err());
        }
        let mut refused = checked.iter().map(Option::is_some);
        let acts = acts.into_iter().filter(|_| !refused.next().unwrap_or(false)).collect();
        let mut answers = self.parts.store.act(acts).await?.into_iter();
        let answer = |refused: &mut Option<Error>| match refused.take() {
            Some(error) => Err(error),
            None => Ok(answers.next().unwrap_or_else(|| Ok(Acted::default()))?),
        };
        Ok(checked.iter_mut().map(answer).collect())
    }

    /// Makes one atomic change, also of what is Tollgate's own.
    pub(crate) async fn act_own(&self, act: Act) -> Result<Acted, Error> {
        self.parts.act(act).await
    }

    /// As [`Self::act_own`], of an act that is there as it was if it is not made.
    pub(crate) async fn make_own(&self, act: &mut Act) -> Result<Acted, Error> {
        self.parts.make(act).await
    }

    /// Makes changes as [`Self::act_all`] does, also of what is Tollgate's own.
    pub(crate) async fn act_all_own(
        &self,
        acts: Vec<Act>,
    ) -> Result<Vec<Result<Acted, Error>>, Error> {
        let answers = self.parts.store.act(acts).await?.into_iter();
        Ok(answers.map(|answer| answer.map_err(Error::from)).collect())
    }

    /// When it is looked for runs that go.
    pub(crate) fn sweeps(&self) -> &Sweeps {
        &self.parts.sweeps
    }

    /// Workflows that were read.
    pub(crate) fn at_hand(&self) -> &AtHand {
        &self.parts.at_hand
    }

    /// Sees to something that nobody waits for.
    pub(crate) fn see_through(&self, chore: impl Future<Output = ()> + Send + 'static) {
        self.parts.pulse.see_through(chore);
    }

    /// A run ended: who waits for it is told.
    pub(crate) fn run_changed(&self, run: &str) {
        self.parts.runs.told(run);
    }

    /// Ready when a run ended here after this was first polled.
    pub(crate) async fn until_run_changed(&self, run: &str) {
        self.parts.runs.until_told(run).await;
    }

    /// Writes a record of Tollgate's own, if it is still as expected.
    pub async fn keep(&self, write: Write) -> Result<Acted, Error> {
        self.parts.act(Act { write: vec![write], ..Act::default() }).await
    }

    /// Settles a start, and makes what follows from it, in one act.
    pub async fn settle(&self, lease: Lease, outcome: Outcome) -> Result<Acted, Error> {
        let now = self.now().await?;
        self.act(outcome.into_act(lease, now)?).await
    }

    /// Hands back starts that nobody will make: their calls wait again at once, as if they had never
    /// started. Seen through without anyone who waits; a lease that is lost already changes nothing.
    pub fn release(&self, leases: Vec<Lease>) {
        let release = |lease| {
            let settle = vec![Settle::new(lease, Settlement::Release)];
            Act { settle, ..Act::default() }
        };
        let acts = leases.into_iter().map(release).collect();
        // The driver stays until it is on its way.
        let engine = self.clone();
        self.parts.pulse.see_through(async move {
            if let Err(error) = engine.parts.store.act(acts).await {
                tracing::warn!(%error, "calls could not be handed back, and wait until their leases end");
            }
        });
    }

    /// Holds leases for so long from now; says of each whether it was still held.
    pub async fn renew_leases(&self, leases: Vec<Lease>, lease: Span) -> Result<Vec<bool>, Error> {
        Ok(self.parts.store.renew_leases(leases, lease).await?)
    }

    /// Takes a call back: one that waits ends, one in flight is not tried again. Says whether it was
    /// there.
    pub async fn cancel(&self, call: CallId) -> Result<bool, Error> {
        let acted = self.act(Act { cancel: vec![call], ..Act::default() }).await?;
        Ok(acted.cancelled == [true])
    }

    /// Serves a lane so many times as much as others.
    pub async fn weigh(&self, queue: &str, lane: &str, weight: u32) -> Result<(), Error> {
        let (queue, lane) = (queue_name(queue)?, LaneName::new(lane)?);
        Ok(self.parts.store.weigh(queue, lane, weight).await?)
    }

    /// Why a call waits, and until when; `None` if it ended or never was.
    pub async fn explain(&self, call: CallId) -> Result<Option<Explanation>, Error> {
        Ok(self.parts.store.explain(vec![call]).await?.pop().flatten())
    }

    /// Starts up to `most` calls of a queue, as soon as one may, within `wait`. They start now: whoever
    /// claims has so many free hands.
    pub async fn claim(
        &self,
        queue: &str,
        most: usize,
        wait: impl Into<Span>,
    ) -> Result<Vec<Claimed>, Error> {
        let wait: Span = wait.into();
        self.parts.claim(&open_queue_name(queue)?, most, wait, None).await
    }

    /// Like [`Self::claim`], with leases of this length instead of the queue's.
    pub async fn claim_for(
        &self,
        queue: &str,
        most: usize,
        wait: impl Into<Span>,
        lease: impl Into<Span>,
    ) -> Result<Vec<Claimed>, Error> {
        let wait: Span = wait.into();
        self.parts.claim(&open_queue_name(queue)?, most, wait, Some(lease.into())).await
    }

    /// Starts calls of a queue of runs.
    pub(crate) async fn claim_own(
        &self,
        queue: &QueueName,
        most: usize,
        wait: Span,
        lease: Option<Span>,
    ) -> Result<Vec<Claimed>, Error> {
        self.parts.claim(queue, most, wait, lease).await
    }

    /// A worker of a queue.
    pub fn worker(&self, queue: &str) -> Worker<S> {
        Worker::new(self.clone(), queue)
    }

    /// A worker of a queue of runs.
    pub(crate) fn own_worker(&self, queue: &str) -> Worker<S> {
        Worker::own(self.clone(), queue)
    }

    /// Records whose keys begin so, by key, after one. May cost a look at every record.
    pub async fn records_of(
        &self,
        prefix: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<(Key, Record)>, Error> {
        let after = after.map(Key::new).transpose()?;
        Ok(self.parts.store.records_of(prefix.to_owned(), after, most).await?)
    }
}

impl<S> Parts<S> {
    fn new(
        store: S,
        clock: Arc<dyn Clock>,
        ways: Box<dyn Ways<S>>,
        settings: LimitsSettings,
    ) -> Self {
        let run = clock.wall();
        let (waiting, crowds) = (Waiting::new(run), Crowds::new(settings.waiting_max));
        let reach = Reach::new(settings.out_of_reach, clock.clone(), run.as_nanos());
        Self {
            store,
            ways,
            crowds: Arc::new(crowds),
            reach,
            pulse: Arc::new(Pulse::new(clock)),
            claims: Arc::default(),
            holds: Holds::default(),
            known: Known::default(),
            pushed: Pushed::default(),
            numbers: Numbers::default(),
            waiting,
            ticks: Ticks::default(),
            queues: Notify::new(),
            runs: Audience::default(),
            sweeps: Sweeps::default(),
            at_hand: AtHand::default(),
            elsewhere: Audience::default(),
        }
    }
}

impl<S: Lanes> Parts<S> {
    async fn act(&self, act: Act) -> Result<Acted, Error> {
        let mut answers = self.store.act(vec![act]).await?;
        Ok(answers.pop().unwrap_or_else(|| Ok(Acted::default()))?)
    }

    async fn make(&self, act: &mut Act) -> Result<Acted, Error> {
        let mut answers = self.store.make(std::slice::from_mut(act)).await?;
        Ok(answers.pop().unwrap_or_else(|| Ok(Acted::default()))?)
    }
}
