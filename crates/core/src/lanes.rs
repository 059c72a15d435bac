//! Lanes: calls that wait in order, start under limits, and are settled.
//!
//! The words of the contract are here, as plain data. The scheduler is the state machine: a command
//! and the present in, an answer and effects out.

pub mod act;
pub mod call;
pub mod claim;
pub mod effect;
pub mod event;
pub mod explain;
pub mod ids;
pub mod kept;
mod learned;
#[cfg(any(test, feature = "reference"))]
pub mod naive;
pub mod path;
pub mod payload;
#[cfg(test)]
mod properties;
pub mod queue;
mod queue_toll;
mod scheduler;

pub use act::{
    Act, ActError, Acted, Count, Door, Record, Revision, Revive, Settle, Settlement, Write,
};
pub use call::{Attempts, CallId, Claimed, Death, DeathCause, End, Lease, NewCall, Started};
pub use claim::{Claim, Scope};
pub use effect::Effect;
pub use event::{Event, LineWaits, Outcome, Waits, Watch, What};
pub use explain::{Explanation, Reason};
pub use ids::CallIds;
pub use kept::{Kept, KeptFlight};
pub use path::{BodyPath, PathError};
pub use payload::Payload;
pub use queue::{Backoff, OnDead, Order, QueueError, QueueSpec};
pub use queue_toll::{QueueToll, Scalar, TollPartition, TollWeight, TollWhen};
pub use scheduler::{Forecast, LaneForecast, LaneSurvey, MeterSurvey, Most, Scheduler, Work};
