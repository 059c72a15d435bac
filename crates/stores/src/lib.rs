//! Tollgate's state on disk and elsewhere, a folder for each backend.

pub mod embedded;
pub mod shared;
