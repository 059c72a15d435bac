//! The embedded store: everything in one folder, held by one process.
//!
//! So far its log: records are collected in a [`log::Batch`], a batch is committed by one write
//! and one sync, and a [`committer::Committer`] does that on a thread of its own while the next
//! batch is being filled. Neither knows what a record means.

pub mod committer;
pub mod disk;
pub mod log;
