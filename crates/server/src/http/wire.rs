//! What travels: JSON as callers write and read it, with the way to the engine's types and back.
//!
//! What does not apply is left out of an answer, and `null` only where a place stays empty on purpose: who asks in an
//! overview, and points of a series.

pub(super) mod audit;
pub(super) mod call;
pub(super) mod claim;
pub(super) mod consume;
pub(super) mod dead;
pub(super) mod destination;
pub(super) mod event;
pub(super) mod explanation;
pub(super) mod forecast;
pub(super) mod id;
pub(super) mod instant;
pub(super) mod items;
pub(super) mod lane;
pub(super) mod limit;
pub(super) mod limit_state;
pub(super) mod meter;
pub(super) mod new_call;
pub(super) mod object;
pub(super) mod overview;
mod priority;
pub(super) mod problem;
pub(super) mod queue;
mod queue_toll;
pub(super) mod receipt;
mod report;
mod rule;
pub(super) mod run;
pub(super) mod schedule;
pub(super) mod series;
pub(super) mod settle;
pub(super) mod span;
mod totals;
pub(super) mod units;
pub(super) mod workflow;
