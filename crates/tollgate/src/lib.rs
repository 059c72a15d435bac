//! Durable flow control for outbound API calls.
//!
//! Limits are named; a call owes tolls at their meters; all are paid or none, at the first instant
//! that every limit allows and never before.
//!
//! ```
//! use tollgate::{Limit, Tollgate, toll};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let gate = Tollgate::memory();
//! gate.limit("openai-rpm", Limit::per_minute(500).burst(50)).await?;
//! gate.limit("openai-tpm", Limit::per_minute(30_000)).await?;
//!
//! let mut pass = gate
//!     .acquire(toll("openai-rpm", "acme"))
//!     .and(toll("openai-tpm", "acme").weight(1_200))
//!     .await?;
//! // … the call is made here …
//! pass.settle("openai-tpm", 940).await?;
//! # Ok::<(), tollgate::Error>(())
//! # }).unwrap();
//! ```

pub mod embedded;
pub mod flows;
mod gate;
pub mod lanes;
pub mod shared;
pub mod store;
#[cfg(feature = "test-kit")]
pub mod test_kit;

#[cfg(feature = "push")]
pub use gate::Pusher;
pub use gate::{Builder, Events, GateError, Load, Outlook, Tollgate, Worker};
pub use tollgate_core::rule::UNITS_MAX;
pub use tollgate_core::rule::slots::HoldId;
pub use tollgate_core::{
    Align, Cause, Cron, CronError, Limit, LimitError, NameError, Now, Opening, Payment, Priority,
    RuleSpec, RuleUse, Span, SpanError, Standing, Timestamp,
};
#[cfg(feature = "push")]
pub use tollgate_engine::push;
#[cfg(feature = "tower")]
pub use tollgate_engine::tower;
pub use tollgate_engine::{
    Acquire, Acquiring, Altered, Ask, AskError, Asking, Audited, Bell, Call, Change, Clock,
    CoarseClock, CostPath, Delivery, Envelope, Error, Job, LimitRef, LimitState, Limiter,
    ManualClock, MeterState, Named, Operation, OutOfReach, Outcome, PartitionPage, Pass,
    RESERVED_QUEUE, Receipt, ReceiptLine, Refusal, Schedule, Settings, SpanId, StoreError,
    SystemClock, TOLLS_MAX, Told, Toll, TraceParent, TryError, When, Worked, global, toll,
};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/effect.md")]
struct Effect;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/quickstart.md")]
struct QuickStart;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/rules.md")]
struct Rules;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/recipes.md")]
struct Recipes;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from.md")]
struct ComingFrom;

#[cfg(all(doctest, feature = "test-kit"))]
#[doc = include_str!("../../../docs/flows.md")]
struct FlowsPage;

#[cfg(all(doctest, feature = "redis"))]
#[doc = include_str!("../../../docs/shared.md")]
struct SharedPage;
