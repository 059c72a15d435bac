//! Push: Tollgate makes the calls of a queue itself, over HTTP.
//!
//! What is decided before and after a call is sent does no IO: where to and whether that may be
//! ([`destination`], [`address`]), with which [`headers`] and [`signature`], what came of it
//! (`verdict`), when to come again ([`expression`], [`feedback`]); for calls of another API the words are
//! those of its [`Manner`]. The [`Pusher`] runs a worker for each
//! queue that is delivered, and a client with its pool of connections for all of them.

pub mod address;
mod answer;
mod callback;
pub mod caps;
mod client;
mod connector;
pub mod delivery;
pub mod destination;
pub mod expression;
pub mod feedback;
pub mod headers;
mod manner;
mod pusher;
mod request;
mod resolver;
pub mod signature;
mod stream;
pub mod tracer;
mod verdict;

pub use answer::{Answer, Answered};
pub use client::{PushError, PushSettings};
pub use manner::{Attempt, Manner, Preparing, Sent};
pub use pusher::Pusher;
