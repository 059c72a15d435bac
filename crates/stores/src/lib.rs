//! Tollgate's state on disk and elsewhere, a folder for each backend.

pub mod embedded;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
pub mod shared;
pub mod store;
