//! The contracts that a store keeps: [`Meters`] for limits alone, [`Lanes`] for calls that wait.
//!
//! Cut by atomic act, few, and batched; declared async and run by no one here. The clock is the
//! store's: it is given at construction and read after whatever locks the store needs are held. A
//! store is passive: it does what it is told and says when something is due next; whoever drives it
//! sleeps.

mod ask;
mod browse;
mod busiest;
mod configure;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod events;
#[cfg(any(test, feature = "histories"))]
pub mod histories;
#[cfg(any(test, feature = "reference"))]
pub mod kept;
mod totals;

pub use ask::{
    Ask, AskError, Cost, DELAY_MAX, Paid, PaidLine, RECEIPT_LIFE_MAX, Receipt, ReceiptError,
    Refusal,
};

pub use browse::{
    CallState, CallView, CallsQuery, LaneState, LimitView, MeterPage, PAGE_MAX, QueueState,
};

pub use busiest::{
    Among, BUSIEST_AT_ONCE, BusyLane, BusyLanes, BusyLimit, BusyMeter, BusyMeters, BusyQueue,
    Oldest, Onward,
};

pub use configure::{CONFIGURE_CHANGES_MAX, Configure, ConfigureError};

pub use events::{
    EVENTS_KEPT, EVENTS_MAX, EventCursor, EventPage, EventRing, HistoryCursor, HistoryPage,
    HistoryQuery,
};

pub use totals::{
    BUCKETS, EndCounts, Histogram, LIMITS_COUNTED, LimitCounts, LimitTotals, OutcomeCounts,
    QueueCounts, QueueTotals, StoreTotals, Tally, Totals,
};

use crate::lanes::{
    Act, ActError, Acted, CallId, Claim, Claimed, End, Event, Explanation, Lease, Payload,
    QueueError, QueueSpec, Record, Scope,
};
use crate::limit::Definition;
use crate::meter::{Meter, RuleUse, Standing};
use crate::name::{Key, LaneName, LimitName, Partition, QueueName};
use crate::time::{Now, Span, Timestamp};
use std::future::Future;

/// A limit's meter: for one partition, or the global one.
pub type MeterName = (LimitName, Option<Partition>);

/// What a store that could not answer says; nothing was changed unless it says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no room: nothing was changed, and it may work again later.
    #[error("the store is full: {reason}")]
    Full {
        /// What is full, and what to do.
        reason: String,
    },
    /// It cannot be reached; whether the change was made is not known.
    #[error("the store cannot be reached: {reason}")]
    Unreachable {
        /// What happened.
        reason: String,
    },
    /// It failed for good: open it again.
    #[error("the store failed: {reason}")]
    Failed {
        /// What happened.
        reason: String,
    },
}

/// Most partitions of one limit with rules of their own: they are kept in memory for good.
pub const OVERRIDES_MAX: usize = 100_000;
/// Longest reason of a closure, in characters: it is kept with the meter.
pub const REASON_CHARS_MAX: usize = 256;

/// Why a meter was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// There is no such limit.
    #[error("there is no limit {limit}: define it first")]
    UnknownLimit {
        /// What was named.
        limit: LimitName,
    },
    /// Its meters would be somewhere else, and what was spent there forgotten.
    #[error(
        "whether {limit} is spread was said when it was first defined, and stays: use a limit of another name"
    )]
    SpreadStays {
        /// Which limit.
        limit: LimitName,
    },
    /// More partitions would have rules of their own than one limit may keep.
    #[error(
        "{limit} has {OVERRIDES_MAX} partitions with rules of their own, the most it may: take some away, or use a second limit"
    )]
    TooManyOverrides {
        /// Which limit.
        limit: LimitName,
    },
}

/// What becomes of one thing of a batch, or why the store could say nothing of any.
pub type Answer<T> = Result<T, StoreError>;

/// Limits and their meters.
pub trait Meters: Send + Sync {
    /// The store's clock.
    fn now(&self) -> impl Future<Output = Answer<Now>> + Send;

    /// Changes limits with the records that say who did it: all of it or nothing, at once, for waiting
    /// calls, too. Records are checked first, then the limits are as they will be, then the partitions:
    /// one that gets rules needs a limit that is defined by then, one that loses them needs nothing.
    fn configure(
        &self,
        change: Configure,
    ) -> impl Future<Output = Answer<Result<(), ConfigureError>>> + Send;

    /// Pays all tolls of each ask, or none of it; each is decided as if it came after the one before.
    fn consume(
        &self,
        asks: Vec<Ask>,
    ) -> impl Future<Output = Answer<Vec<Result<Paid, AskError>>>> + Send;

    /// Says of each ask what [`Self::consume`] would, and pays nothing: how the tightest meter stands.
    fn peek(
        &self,
        asks: Vec<Ask>,
    ) -> impl Future<Output = Answer<Vec<Result<Standing, AskError>>>> + Send;

    /// Settles receipts at their true cost, each once.
    fn settle(
        &self,
        receipts: Vec<(Receipt, Cost)>,
    ) -> impl Future<Output = Answer<Vec<Result<(), ReceiptError>>>> + Send;

    /// Holds the slots of receipts for so long from now.
    fn renew(
        &self,
        receipts: Vec<Receipt>,
        life: Span,
    ) -> impl Future<Output = Answer<Vec<Result<Receipt, ReceiptError>>>> + Send;

    /// How meters stand; `None` where the limit is not defined.
    fn inspect(
        &self,
        meters: Vec<MeterName>,
    ) -> impl Future<Output = Answer<Vec<Option<MeterState>>>> + Send;

    /// Ends a closure that an upstream or an operator asked for.
    fn reopen(&self, meter: MeterName) -> impl Future<Output = Answer<()>> + Send;

    /// Lets nothing pass a meter for so long, at most a day, as an upstream's `429` does. Closed for
    /// longer already, it stays so. Of the reason, the first [`REASON_CHARS_MAX`] characters are kept.
    fn close(
        &self,
        meter: MeterName,
        span: Span,
        reason: String,
    ) -> impl Future<Output = Answer<Result<(), MeterError>>> + Send;

    /// Forgets what was spent at a meter: an operator's act. Slots stay held, and a closure stays.
    fn reset(
        &self,
        meter: MeterName,
    ) -> impl Future<Output = Answer<Result<(), MeterError>>> + Send;

    /// The records of keys.
    fn records(&self, keys: Vec<Key>) -> impl Future<Output = Answer<Vec<Option<Record>>>> + Send;

    /// Limits by name, after one, up to [`PAGE_MAX`].
    fn limits(
        &self,
        after: Option<LimitName>,
        most: usize,
    ) -> impl Future<Output = Answer<Vec<LimitView>>> + Send;
}

/// Calls that wait in order, start under limits, and are settled.
pub trait Lanes: Meters {
    /// Defines a queue, or changes it: at once, for waiting calls, too.
    fn define_queue(
        &self,
        queue: QueueName,
        spec: QueueSpec,
    ) -> impl Future<Output = Answer<Result<(), QueueError>>> + Send;

    /// Removes a queue that has no calls, with all that is known of its lanes and its dedupe keys;
    /// `false` if there is none. Calls that come for it later are refused until it is defined again.
    fn remove_queue(
        &self,
        queue: QueueName,
    ) -> impl Future<Output = Answer<Result<bool, QueueError>>> + Send;

    /// Makes changes, each whole or not at all, in order. Nothing is left of those that are made; the others are there
    /// as they were, to be tried again, unless the store failed for good.
    fn make(
        &self,
        acts: &mut [Act],
    ) -> impl Future<Output = Answer<Vec<Result<Acted, ActError>>>> + Send;

    /// Makes changes as [`Self::make`] does, that nobody tries again.
    fn act(
        &self,
        mut acts: Vec<Act>,
    ) -> impl Future<Output = Answer<Vec<Result<Acted, ActError>>>> + Send {
        async move { self.make(&mut acts).await }
    }

    /// Starts calls of a queue, the first that may go first. Nothing if there is no such queue.
    fn claim(&self, claim: Claim) -> impl Future<Output = Answer<Vec<Claimed>>> + Send;

    /// Starts calls as [`Self::claim`] does, for a worker that leaves as soon as it has some; says whether it is
    /// taken to ask for as long as it said, until [`Self::ask`] says otherwise. If not, it is expected back for
    /// [`BACK_WITHIN`](crate::lanes::claim::BACK_WITHIN), and the store need not be told that it left.
    fn claim_and_leave(
        &self,
        claim: Claim,
    ) -> impl Future<Output = Answer<(Vec<Claimed>, bool)>> + Send {
        async move { self.claim(claim).await.map(|claimed| (claimed, true)) }
    }

    /// Says until when someone asks for a queue's calls, whatever was said before: so long they keep
    /// their turn before those of other queues.
    fn ask(&self, queue: QueueName, until: Timestamp) -> impl Future<Output = Answer<()>> + Send;

    /// Holds leases for so long from now; says of each whether it was still held.
    fn renew_leases(
        &self,
        leases: Vec<Lease>,
        lease: Span,
    ) -> impl Future<Output = Answer<Vec<bool>>> + Send;

    /// Holds back a queue, a lane or a limit: nothing of it starts.
    fn pause(&self, scope: Scope) -> impl Future<Output = Answer<()>> + Send;

    /// Lets a queue, a lane or a limit go on; a lane that a dead call holds, too.
    fn resume(&self, scope: Scope) -> impl Future<Output = Answer<()>> + Send;

    /// Serves a lane so many times as much as others at meters where both wait, from 1 to
    /// [`LANE_WEIGHT_MAX`](crate::lanes::queue::LANE_WEIGHT_MAX).
    fn weigh(
        &self,
        queue: QueueName,
        lane: LaneName,
        weight: u32,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// Lets everything happen that is due. Every other command does that first.
    fn advance(&self) -> impl Future<Output = Answer<()>> + Send;

    /// When something is due next: then `advance`, and claim again for queues that were woken.
    fn next_due(&self) -> impl Future<Output = Answer<Option<Timestamp>>> + Send;

    /// Waits until there is something to do for whoever drives the store, and tells it once.
    fn woken(&self) -> impl Future<Output = Answer<Woken>> + Send;

    /// Why calls wait, and until when; `None` for those that ended or never were.
    fn explain(
        &self,
        calls: Vec<CallId>,
    ) -> impl Future<Output = Answer<Vec<Option<Explanation>>>> + Send;

    /// How calls ended, as long as that is remembered; `None` for those that did not. That a call is
    /// dead is remembered as long as it is.
    fn ends(&self, calls: Vec<CallId>) -> impl Future<Output = Answer<Vec<Option<End>>>> + Send;

    /// Waits until something happened after a place in the stream of events, and tells up to so many
    /// events, in order and only what lasts. `None`: from now on. With `most` 0 it does not wait, and
    /// says where the stream is. The last [`EVENTS_KEPT`] are kept, from when this was first asked.
    fn events(
        &self,
        after: Option<EventCursor>,
        most: usize,
    ) -> impl Future<Output = Answer<EventPage>> + Send;

    /// Of each of these calls that it was accepted, where its queue [tells](QueueSpec::tells_accepted) that, what came of its
    /// attempts and how it ended, oldest first, as long as that is kept. One that
    /// was dead and is revived, cancelled or dropped has an end for each.
    fn histories(&self, calls: Vec<CallId>)
    -> impl Future<Output = Answer<Vec<Vec<Event>>>> + Send;

    /// As [`Self::histories`] of all calls, newest first, as long as that is kept.
    fn history(&self, query: HistoryQuery) -> impl Future<Output = Answer<HistoryPage>> + Send;

    /// Queues by name, after one, up to [`PAGE_MAX`].
    fn queues(
        &self,
        after: Option<QueueName>,
        most: usize,
    ) -> impl Future<Output = Answer<Vec<QueueState>>> + Send;

    /// Lanes of a queue by name, after one, up to [`PAGE_MAX`]; `None` if there is no such queue. May
    /// cost a look at each lane of the queue.
    fn lanes(
        &self,
        queue: QueueName,
        after: Option<LaneName>,
        most: usize,
    ) -> impl Future<Output = Answer<Option<Vec<LaneState>>>> + Send;

    /// One lane, at the cost of one look; `None` if there is no such queue, or nothing is known of the
    /// lane.
    fn lane(
        &self,
        queue: QueueName,
        lane: LaneName,
    ) -> impl Future<Output = Answer<Option<LaneState>>> + Send;

    /// Calls by id. May cost a look at every call there is, unless the dead or one lane are asked for.
    fn calls(&self, query: CallsQuery) -> impl Future<Output = Answer<Vec<CallView>>> + Send;

    /// Calls as they are; `None` for those that ended for good or never were.
    fn look(
        &self,
        calls: Vec<CallId>,
    ) -> impl Future<Output = Answer<Vec<Option<CallView>>>> + Send;

    /// The payloads of calls, as many as the caller can hold; `None` for those that ended for good or
    /// never were, and where it is damaged.
    fn payloads(
        &self,
        calls: Vec<CallId>,
    ) -> impl Future<Output = Answer<Vec<Option<Payload>>>> + Send;

    /// The meters of a limit that are not as new, or where someone stands, or that have rules of their
    /// own, by partition, after one, up to [`PAGE_MAX`]: the global one first. `None` if there is no such limit. May cost a look at each
    /// meter of the limit.
    fn meters(
        &self,
        limit: LimitName,
        after: Option<Partition>,
        most: usize,
    ) -> impl Future<Output = Answer<Option<MeterPage>>> + Send;

    /// The lanes with most calls that wait, up to so many and [`PAGE_MAX`], in slices of
    /// [`BUSIEST_AT_ONCE`] lanes: from the beginning, or where the slice before says. With `most` 0 queues
    /// alone are looked at. What is told is not made to last first: whoever hands on the name of a head
    /// does that after the next [`Self::advance`].
    fn busiest_lanes(
        &self,
        among: Among,
        most: usize,
        from: Onward,
    ) -> impl Future<Output = Answer<BusyLanes>> + Send;

    /// The meters where most stand, up to so many and [`PAGE_MAX`], in slices of [`BUSIEST_AT_ONCE`]
    /// meters: from the beginning, or where the slice before says. With `most` 0 the limits are told instead,
    /// each with who is at its meters, all together.
    fn busiest_meters(
        &self,
        among: Among,
        most: usize,
        from: Onward,
    ) -> impl Future<Output = Answer<BusyMeters>> + Send;

    /// What was counted since the store was opened, for each queue and each limit there is. Costs a look
    /// at each of them.
    fn totals(&self) -> impl Future<Output = Answer<Totals>> + Send;

    /// Records whose keys begin so, by key, after one, up to [`PAGE_MAX`]. May cost a look at every
    /// record.
    fn records_of(
        &self,
        prefix: String,
        after: Option<Key>,
        most: usize,
    ) -> impl Future<Output = Answer<Vec<(Key, Record)>>> + Send;
}

/// What whoever drives a store should do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Woken {
    /// Queues that may have something to start and were not told of it: claim again.
    pub queues: Vec<QueueName>,
    /// When something is due next: `advance` then. Told whenever that comes sooner than was told
    /// before; an `advance` that finds something still to come tells it again.
    pub due: Option<Timestamp>,
}

/// How a meter stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterState {
    /// The rules it follows: its limit's, or its partition's own.
    pub definition: Definition,
    /// Its tightest rule.
    pub standing: Standing,
    /// What counts at each of its rules, in the order of the definition's.
    pub rules: Vec<RuleUse>,
    /// Slots that are held.
    pub in_flight: u64,
    /// Heads of lanes that stand at it.
    pub waiting: u64,
    /// Until when it is closed, and why.
    pub closed: Option<(Timestamp, String)>,
    /// An operator holds its limit back.
    pub is_paused: bool,
    /// What was admitted here since the store was opened, or since it was last as new and forgotten.
    pub admitted: Tally,
    /// What happened at all meters of its limit.
    pub of_limit: LimitTotals,
}

impl MeterState {
    /// As a meter is, with so many who stand at it, not held back, and nothing counted.
    pub fn new(meter: &Meter, definition: &Definition, waiting: u64, now: Now) -> Self {
        Self {
            definition: definition.clone(),
            standing: meter.standing(definition, now),
            rules: meter.rules(definition, now),
            in_flight: meter.in_flight(definition, now),
            waiting,
            closed: meter.closed(now.at).map(|(until, reason)| (until, reason.to_owned())),
            is_paused: false,
            admitted: Tally::default(),
            of_limit: LimitTotals::default(),
        }
    }
}
