//! What travels: JSON as callers write and read it, with the way to the engine's types and back.
//!
//! What does not apply is left out of an answer, never `null`.

pub(super) mod audit;
pub(super) mod consume;
pub(super) mod limit;
pub(super) mod limit_state;
pub(super) mod meter;
pub(super) mod object;
mod priority;
pub(super) mod problem;
pub(super) mod queue;
pub(super) mod receipt;
mod rule;
pub(super) mod span;
pub(super) mod units;
