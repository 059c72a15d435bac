//! Random histories: what can happen to a store, and how it is told to any that keeps the contracts, so
//! that its answers can be compared with those of another.
//!
//! A history goes by a clock of its own: [`Seen::pass`] says what time it is at a step, and whoever
//! compares sets the stores' clocks to that, and then tells each of them ([`tell()`]).

#![allow(missing_docs, reason = "a step is what its name says")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a history that cannot be told fails the test it is for"
)]

pub mod catalog;
pub mod made;
pub mod steps;
mod tell;
mod told;

pub use steps::{Step, beginning, step};
pub use tell::{Seen, tell};
pub use told::{compared_meter, compared_totals, counted, everything, lasting, queries};
