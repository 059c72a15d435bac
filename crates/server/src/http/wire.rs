//! What travels: JSON as callers write and read it, with the way to the engine's types and back.
//!
//! What does not apply is left out of an answer, never `null`.

pub(super) mod consume;
pub(super) mod limit;
pub(super) mod limit_state;
pub(super) mod meter;
pub(super) mod object;
pub(super) mod problem;
pub(super) mod receipt;
mod rule;
pub(super) mod span;
pub(super) mod units;
