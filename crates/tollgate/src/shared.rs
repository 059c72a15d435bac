//! Limits that several processes share, in a store that keeps values.

pub use tollgate_stores::shared::{Shared, cells};
