//! Tollgate's decisions: limits, meters, turns and lanes, exact and pure.
//!
//! Everything here is a function of (state, request, now). Nothing reads a clock, does IO, runs
//! async or uses a float: the caller loads, saves, sleeps and sends.

pub mod contract;
pub mod cron;
pub mod flow;
pub mod gate;
pub mod lanes;
pub mod limit;
pub mod meter;
pub mod name;
pub mod rule;
pub mod till;
pub mod time;
pub mod toll;
mod tolls;
pub mod turn;

pub use cron::{Cron, CronError};
pub use limit::{Align, Definition, Limit, LimitError, RuleSpec};
pub use meter::{Blocker, Cause, Meter, Payment, RuleUse, Standing};
pub use name::{Key, LaneName, LimitName, NameError, Partition, QueueName};
pub use rule::{Opening, Rule, UNITS_MAX};
pub use time::{Now, Span, SpanError, Timestamp};
pub use toll::{TOLLS_MAX, Toll, TollError};
pub use tolls::Tolls;
pub use turn::{Judgement, Place, Priority};
