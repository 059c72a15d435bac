//! Limits that several processes share, in the stores that carry them.

mod cells;
mod lives;
mod nats;
mod postgres;
mod redis;
