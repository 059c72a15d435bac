//! The store with lanes, for those who drive one themselves: it keeps the contracts of
//! [`lanes`](crate::lanes), in whichever home it was opened.

pub use tollgate_stores::store::{Store, TimeSource};
