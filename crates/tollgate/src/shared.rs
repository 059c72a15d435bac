//! Limits that several processes share, in a store that they all reach.
//!
//! [`Tollgate::connect`](crate::Tollgate::connect) takes a url. A program that has a connection or a pool
//! anyway makes cells of it, and hands them to [`Builder::share`](crate::Builder::share); what the stores
//! promise, and where they differ, is in `docs/shared.md`.

pub use tollgate_stores::shared::cells::{self, Cells};
pub use tollgate_stores::shared::later::{Connect, LaterCells, Nature};
#[cfg(feature = "tls")]
pub use tollgate_stores::shared::tls;
pub use tollgate_stores::shared::{Shared, quick};

#[cfg(feature = "nats")]
pub use tollgate_stores::nats;
#[cfg(feature = "postgres")]
pub use tollgate_stores::postgres;
#[cfg(feature = "redis")]
pub use tollgate_stores::redis;
