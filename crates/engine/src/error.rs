//! Why an ask was not granted: fix it, wait, or look after the store.

use crate::ask::TOLLS_MAX;
use crate::flows::FlowError;
use std::sync::Arc;
use tollgate_core::contract;
use tollgate_core::lanes::payload::EnvelopeTooLong;
use tollgate_core::lanes::{ActError, CallId, QueueError};
use tollgate_core::{Cause, LimitError, NameError, Span, Standing, TollError, UNITS_MAX};

/// What the keys of records begin with that the engine keeps for itself.
pub(crate) const RESERVED: &str = "tollgate/";
/// Names of queues that begin so are Tollgate's own: those who wait for a pass are in one.
pub const RESERVED_QUEUE: &str = "tollgate:";

/// Why an ask was not granted. The variants differ by what the caller can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not now: wait and ask again.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Never as it is: change the ask.
    #[error(transparent)]
    Invalid(#[from] AskError),
    /// The store could not decide. The memory store fails in one way only: when it is full.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A change of calls was refused, and nothing of it was done.
    #[error(transparent)]
    Act(#[from] ActError),
    /// A queue cannot be so.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A meter cannot be changed so.
    #[error(transparent)]
    Meter(contract::MeterError),
    /// A run is not there, or cannot be changed so.
    #[error(transparent)]
    Flow(#[from] FlowError),
}

impl Error {
    /// Whether the store may answer later: it is full, or out of reach.
    pub(crate) fn may_pass(&self) -> bool {
        let Self::Store(StoreError::Kept(error)) = self else { return false };
        !matches!(error, contract::StoreError::Failed { .. })
    }
}

impl From<contract::MeterError> for Error {
    fn from(error: contract::MeterError) -> Self {
        match error {
            contract::MeterError::UnknownLimit { limit } => {
                AskError::UnknownLimit { name: limit.as_str().to_owned() }.into()
            }
            other => Self::Meter(other),
        }
    }
}

impl From<contract::ConfigureError> for Error {
    fn from(error: contract::ConfigureError) -> Self {
        use contract::ConfigureError::{Meter, RevisionDiffers, TooLarge};
        match error {
            Meter(error) => error.into(),
            RevisionDiffers { at, found } => ActError::RevisionDiffers { at, found }.into(),
            // One change is of one limit: what is too large is its record.
            TooLarge { bytes, .. } => ActError::TooManyBytes { bytes }.into(),
            other => contract::StoreError::Failed { reason: other.to_string() }.into(),
        }
    }
}

impl From<NameError> for Error {
    fn from(error: NameError) -> Self {
        AskError::Name(error).into()
    }
}

impl From<EnvelopeTooLong> for Error {
    fn from(error: EnvelopeTooLong) -> Self {
        AskError::Envelope(error).into()
    }
}

impl From<contract::ReceiptError> for Error {
    fn from(error: contract::ReceiptError) -> Self {
        match error {
            contract::ReceiptError::NotPaid { limit } => {
                AskError::NotPaid { name: limit.as_str().to_owned() }.into()
            }
            contract::ReceiptError::NothingHeld => AskError::NothingHeld.into(),
            _ => AskError::ReceiptSpent.into(),
        }
    }
}

impl From<contract::StoreError> for Error {
    fn from(error: contract::StoreError) -> Self {
        StoreError::from(error).into()
    }
}

/// Why a quick ask was not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryError {
    /// Not now.
    #[error("the limit refuses for now")]
    Refused {
        /// When to ask again; `None` if no one can know.
        retry_after: Option<Span>,
    },
    /// Anything else.
    #[error(transparent)]
    Failed(Box<Error>),
}

impl From<Error> for TryError {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(Refusal { retry_after, .. }) => Self::Refused { retry_after },
            other => Self::Failed(Box::new(other)),
        }
    }
}

/// A limit stands in the way for now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limit {} refuses{}: {}{}", self.limit, self.place(), self.cause.reason(), self.wait())]
pub struct Refusal {
    /// The limit that opens last for this ask.
    pub limit: Arc<str>,
    /// The partition of that toll.
    pub partition: Option<Box<str>>,
    /// What is in the way there.
    pub cause: Cause,
    /// When to ask again; `None` if no one can know, as with slots.
    pub retry_after: Option<Span>,
    /// How that meter stands.
    pub standing: Standing,
}

impl Refusal {
    fn place(&self) -> String {
        self.partition.as_ref().map_or_else(String::new, |partition| format!(" for {partition}"))
    }

    fn wait(&self) -> String {
        match self.retry_after {
            Some(span) => format!("; retry after {}ms", span.as_millis_ceil()),
            None => "; retry when a call has finished".to_owned(),
        }
    }
}

/// What is wrong with an ask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No such limit.
    #[error("no limit is called {name:?}: define it first, or send its definition with the toll")]
    UnknownLimit {
        /// The name that was given.
        name: String,
    },
    /// More than can ever pass.
    #[error(
        "weight {weight} can never pass limit {name}, which lets {capacity} through at most: split the call, or raise the limit's burst"
    )]
    WeightOverCapacity {
        /// The limit.
        name: String,
        /// The weight, of all tolls at that meter together.
        weight: u64,
        /// The most that can pass.
        capacity: u64,
    },
    /// Less than one.
    #[error("a toll at limit {name} weighs 0: give at least 1, or leave the toll out")]
    WeightZero {
        /// The limit.
        name: String,
    },
    /// Nothing to pay.
    #[error("an ask needs at least one toll")]
    NoToll,
    /// Too many tolls.
    #[error("an ask takes up to {TOLLS_MAX} tolls, and this one has {count}")]
    TooManyTolls {
        /// How many were given.
        count: usize,
    },
    /// Slots cannot be promised for later.
    #[error(
        "limit {name} counts calls at a time, and no one knows when a slot is freed: use wait instead of delay"
    )]
    DelayWithSlots {
        /// The limit.
        name: String,
    },
    /// The name does not do.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Where calls are to be delivered to is no place for that.
    #[cfg(feature = "push")]
    #[error(transparent)]
    Destination(#[from] crate::push::destination::DestinationError),
    /// How calls are to be delivered cannot be.
    #[cfg(feature = "push")]
    #[error(transparent)]
    Delivery(#[from] crate::push::delivery::DeliveryError),
    /// More goes with a body than may.
    #[error(transparent)]
    Envelope(#[from] EnvelopeTooLong),
    /// The definition sent with a toll does not do.
    #[error("limit {name}: {error}")]
    Limit {
        /// The limit.
        name: String,
        /// What is wrong with it.
        error: LimitError,
    },
    /// More calls than a forecast is made of.
    #[error("there are more than {calls_max} calls, and a forecast is made of so many at most")]
    ForecastTooLarge {
        /// The most.
        calls_max: u64,
    },
    /// The true cost is beyond counting.
    #[error("a cost of {actual} is over the largest that can be settled, {UNITS_MAX}")]
    ActualTooLarge {
        /// What was given.
        actual: u64,
    },
    /// The payment has no such toll, or was not made to be settled.
    #[error(
        "the call paid no toll that can be settled at limit {name}: settle a limit it paid, and give its weight as an estimate"
    )]
    NotPaid {
        /// The limit that was named.
        name: String,
    },
    /// Tolls that can never be paid as they are.
    #[error(transparent)]
    Toll(TollError),
    /// A record that is not the caller's.
    #[error("keys that begin with {RESERVED:?} are Tollgate's own: choose another")]
    ReservedKey,
    /// A queue that is not the caller's.
    #[error("queues whose names begin with {RESERVED_QUEUE:?} are Tollgate's own: choose another")]
    ReservedQueue,
    /// A queue whose calls are those of runs.
    #[error(
        "the calls of queue {queue} are those of runs: nobody else hands in there, defines it or claims from it, except for a worker of tasks"
    )]
    OfRuns {
        /// Which queue.
        queue: String,
    },
    /// A call that a run stands on.
    #[error("call {} is of run {run}, which would wait for it: cancel the run", call.0)]
    CallOfRun {
        /// Which call.
        call: CallId,
        /// Which run.
        run: String,
    },
    /// A schedule's call with a time of its own.
    #[error(
        "a call of a schedule counts its times from each tick: give it a delay, and no instant"
    )]
    InstantInSchedule,
    /// A call that says where it goes, of a queue whose calls are the workers'.
    #[error(
        "call {at}: the queue {queue} hands its calls to workers: define it with a destination, or leave this out"
    )]
    QueueNotPushed {
        /// Which new call.
        at: usize,
        /// Its queue.
        queue: String,
    },
    /// A call that nobody knows where to send.
    #[error(
        "call {at}: the destination of the queue {queue} has no url: give the call one, or the queue"
    )]
    DestinationMissing {
        /// Which new call.
        at: usize,
        /// Its queue.
        queue: String,
    },
    /// A worker asks for calls that are not for workers.
    #[error(
        "Tollgate delivers the calls of {queue} itself: take its destination away to have workers claim them"
    )]
    QueuePushed {
        /// The queue.
        queue: String,
    },
    /// There is nothing to renew.
    #[error(
        "this receipt holds no slots, so there is nothing to renew: settle it before it expires"
    )]
    NothingHeld,
    /// The receipt was settled, handed back or has expired.
    #[error(
        "this receipt was settled before, handed back, or has expired: what it paid stays spent"
    )]
    ReceiptSpent,
}

/// Why a store could not decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No room for another limit.
    #[error(
        "{limits} limits are defined, the most there may be: remove some, or use partitions of one limit"
    )]
    LimitsFull {
        /// The bound.
        limits: usize,
    },
    /// No room for another meter, and none of those kept may be forgotten.
    #[error(
        "{meters} meters are in use, the most that are kept: raise the bound, or use fewer partitions"
    )]
    MetersFull {
        /// The bound.
        meters: usize,
    },
    /// No room for another waiting call.
    #[error("{waiting} calls are waiting, the most that may: ask again later")]
    WaitingFull {
        /// The bound.
        waiting: usize,
    },
    /// Calls and limits are kept elsewhere, and could not be had.
    #[error(transparent)]
    Kept(#[from] contract::StoreError),
    /// There are no calls here.
    #[error(
        "this gate keeps limits alone, and no calls: open a folder with `Tollgate::open` instead"
    )]
    LimitsOnly,
    /// The store does not know which meters there are.
    #[error(
        "a store that processes share does not list its meters: look at one by its partition instead"
    )]
    MetersNotListed,
    /// The thread that drives it could not be started.
    #[error("the thread that drives the store could not be started: {reason}")]
    NoThread {
        /// What the system said.
        reason: String,
    },
    /// No room to remember another settled receipt.
    #[error(
        "{receipts} settled receipts are remembered, the most that are: settle later, or give receipts a shorter life"
    )]
    ReceiptsFull {
        /// The bound.
        receipts: usize,
    },
}
