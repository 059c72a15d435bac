//! Flows: runs of step machines and of workflows. What moves a run on is decided here; that it does so in
//! one act, and what is written down of it, is whoever drives it.

/// How often a worker may die at one step or task before that has failed, where nothing else is said.
pub const CRASHES_MAX_DEFAULT: u32 = 3;

pub mod run;
pub mod workflow;
