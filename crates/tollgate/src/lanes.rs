//! Lanes: calls that wait in order, start under limits, and are settled. What a store is told, and
//! what it answers.

pub use tollgate_core::contract::{
    Among, Answer, Ask, AskError, BUCKETS, BusyLane, BusyLanes, BusyLimit, BusyQueue, CallState,
    CallView, CallsQuery, Configure, ConfigureError, Cost, EVENTS_KEPT, EVENTS_MAX, EndCounts,
    EventCursor, EventPage, Histogram, HistoryCursor, HistoryPage, HistoryQuery, LIMITS_COUNTED,
    LaneState, Lanes, LimitCounts, LimitTotals, LimitView, MeterError, MeterName, MeterPage,
    MeterState, Meters, Oldest, OutcomeCounts, PAGE_MAX, Paid, QueueCounts, QueueState,
    QueueTotals, Receipt, StoreError, StoreTotals, Tally, Totals,
};
pub use tollgate_core::lanes::*;
pub use tollgate_core::{
    Definition, Key, LaneName, LimitName, Meter, Partition, QueueName, Toll, TollError, Tolls,
};
