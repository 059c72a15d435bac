//! Lanes: calls that wait in order, start under limits, and are settled. What a store is told, and
//! what it answers.

pub use tollgate_core::contract::{
    Answer, Ask, AskError, CallState, CallView, CallsQuery, EVENTS_KEPT, EVENTS_MAX, EventCursor,
    EventPage, HistoryCursor, HistoryPage, HistoryQuery, LaneState, Lanes, LimitView, MeterError,
    MeterPage, MeterState, Meters, PAGE_MAX, Paid, QueueState, Receipt, StoreError,
};
pub use tollgate_core::lanes::*;
pub use tollgate_core::{
    Definition, Key, LaneName, LimitName, Meter, Partition, QueueName, Toll, TollError,
};
