//! Limits that several processes share: what every store of them must do, and each beside the reference.

mod ahead;
mod cells;
mod differential;
mod encrypted;
mod faults;
mod limits;
mod lives;
mod lost;
mod memory;
mod nats;
mod overtaken;
mod postgres;
mod redis;
mod served;
mod skew;
mod together;
mod world;
