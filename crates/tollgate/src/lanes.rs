//! Lanes: calls that wait in order, start under limits, and are settled. What a store is told, and
//! what it answers.

pub use tollgate_core::contract::{
    Answer, Ask, AskError, Lanes, MeterState, Meters, Paid, Receipt, StoreError,
};
pub use tollgate_core::lanes::*;
pub use tollgate_core::{Definition, Key, LaneName, LimitName, Meter, Partition, QueueName, Toll};
