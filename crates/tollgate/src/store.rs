//! The store with lanes, for those who drive one themselves: it keeps the contracts of
//! [`lanes`](crate::lanes), in whichever home it was opened. With the feature `postgres`, `copy_folder`
//! moves what an embedded one holds into a database.

#[cfg(feature = "postgres")]
pub use tollgate_stores::postgres::{DatabaseSettings, MoveError, copy_folder};
pub use tollgate_stores::store::{Store, TimeSource};
