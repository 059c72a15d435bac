//! Flows: runs of step machines and of workflows. What moves a run on is decided here; that it does so in
//! one act, and what is written down of it, is whoever drives it.

pub mod run;
pub mod workflow;
