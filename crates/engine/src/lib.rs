//! Tollgate's time and effects: the limiter people call, its waiters and its clocks.

mod acquire;
mod ask;
mod clock;
mod direct;
mod envelope;
mod error;
pub mod flows;
mod lanes;
mod limiter;
mod limits;
mod locked;
mod pass;
#[cfg(feature = "push")]
pub mod push;
mod report;
mod stand;
mod table;
#[cfg(feature = "tower")]
pub mod tower;
mod turns;

pub use acquire::{Acquire, Acquiring};
pub use ask::{Ask, Asking, LimitRef, Named, TOLLS_MAX, Toll, global, toll};
pub use clock::{Ahead, Bell, Clock, CoarseClock, ManualClock, StoreClock, SystemClock};
pub use envelope::{CostPath, Delivery, Envelope, SpanId, TraceParent};
pub use error::{AskError, Error, RESERVED_QUEUE, Refusal, StoreError, TryError};
pub use lanes::{
    Altered, Audited, Call, CallParts, Due, Elsewhere, Engine, Events, Job, LimitsSettings,
    Operation, OutOfReach, Outcome, OutcomeParts, Owed, Schedule, Told, When, Worked, Worker,
};
pub use limiter::operate::{MeterState, PartitionPage};
pub use limiter::{Limiter, Settings};
pub use limits::{Change, LimitState, UNSAID};
pub use pass::{Pass, Receipt, ReceiptLine};
