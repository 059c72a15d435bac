//! Several nodes as one store: each command goes to the next of them. What holds of one node holds of
//! all of them together.

use std::sync::atomic::{AtomicUsize, Ordering};
use tollgate::store::Store;
use tollgate_core::contract::{
    Among, Answer, Ask, AskError, BusyLanes, BusyMeters, CallView, CallsQuery, Configure,
    ConfigureError, Cost, EventCursor, EventPage, HistoryPage, HistoryQuery, LaneState, Lanes,
    LimitView, MeterError, MeterName, MeterPage, MeterState, Meters, Onward, Paid, QueueState,
    Receipt, ReceiptError, Totals, Woken,
};
use tollgate_core::lanes::Event;
use tollgate_core::lanes::{
    Act, ActError, Acted, CallId, Claim, Claimed, End, Explanation, Lease, Payload, QueueError,
    QueueSpec, Record, Scope,
};
use tollgate_core::{
    Key, LaneName, LimitName, Now, Partition, QueueName, Span, Standing, Timestamp,
};

/// Nodes that are asked in turn.
pub(super) struct InTurn {
    pub(super) nodes: Vec<Store>,
    next: AtomicUsize,
}

impl InTurn {
    pub(super) fn new(nodes: Vec<Store>) -> Self {
        Self { nodes, next: AtomicUsize::new(0) }
    }

    fn next(&self) -> &Store {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        &self.nodes[next % self.nodes.len()]
    }
}

/// Hands each command on to the next node.
macro_rules! in_turn {
    ($contract:ident: $(fn $name:ident($($given:ident: $type:ty),*) -> $told:ty;)*) => {
        impl $contract for InTurn {
            $(async fn $name(&self, $($given: $type),*) -> $told {
                self.next().$name($($given),*).await
            })*
        }
    };
}

in_turn! {
    Meters:
    fn now() -> Answer<Now>;
    fn configure(change: Configure) -> Answer<Result<(), ConfigureError>>;
    fn consume(asks: Vec<Ask>) -> Answer<Vec<Result<Paid, AskError>>>;
    fn peek(asks: Vec<Ask>) -> Answer<Vec<Result<Standing, AskError>>>;
    fn settle(receipts: Vec<(Receipt, Cost)>) -> Answer<Vec<Result<(), ReceiptError>>>;
    fn renew(receipts: Vec<Receipt>, life: Span) -> Answer<Vec<Result<Receipt, ReceiptError>>>;
    fn inspect(meters: Vec<MeterName>) -> Answer<Vec<Option<MeterState>>>;
    fn reopen(meter: MeterName) -> Answer<()>;
    fn close(meter: MeterName, span: Span, reason: String) -> Answer<Result<(), MeterError>>;
    fn reset(meter: MeterName) -> Answer<Result<(), MeterError>>;
    fn records(keys: Vec<Key>) -> Answer<Vec<Option<Record>>>;
    fn limits(after: Option<LimitName>, most: usize) -> Answer<Vec<LimitView>>;
}

in_turn! {
    Lanes:
    fn define_queue(queue: QueueName, spec: QueueSpec) -> Answer<Result<(), QueueError>>;
    fn remove_queue(queue: QueueName) -> Answer<Result<bool, QueueError>>;
    fn make(acts: &mut [Act]) -> Answer<Vec<Result<Acted, ActError>>>;
    fn claim(claim: Claim) -> Answer<Vec<Claimed>>;
    fn ask(queue: QueueName, until: Timestamp) -> Answer<()>;
    fn renew_leases(leases: Vec<Lease>, lease: Span) -> Answer<Vec<bool>>;
    fn pause(scope: Scope) -> Answer<()>;
    fn resume(scope: Scope) -> Answer<()>;
    fn weigh(queue: QueueName, lane: LaneName, weight: u32) -> Answer<()>;
    fn advance() -> Answer<()>;
    fn next_due() -> Answer<Option<Timestamp>>;
    fn woken() -> Answer<Woken>;
    fn explain(calls: Vec<CallId>) -> Answer<Vec<Option<Explanation>>>;
    fn ends(calls: Vec<CallId>) -> Answer<Vec<Option<End>>>;
    fn events(after: Option<EventCursor>, most: usize) -> Answer<EventPage>;
    fn histories(calls: Vec<CallId>) -> Answer<Vec<Vec<Event>>>;
    fn history(query: HistoryQuery) -> Answer<HistoryPage>;
    fn queues(after: Option<QueueName>, most: usize) -> Answer<Vec<QueueState>>;
    fn lanes(queue: QueueName, after: Option<LaneName>, most: usize) -> Answer<Option<Vec<LaneState>>>;
    fn lane(queue: QueueName, lane: LaneName) -> Answer<Option<LaneState>>;
    fn calls(query: CallsQuery) -> Answer<Vec<CallView>>;
    fn look(calls: Vec<CallId>) -> Answer<Vec<Option<CallView>>>;
    fn payloads(calls: Vec<CallId>) -> Answer<Vec<Option<Payload>>>;
    fn meters(limit: LimitName, after: Option<Partition>, most: usize) -> Answer<Option<MeterPage>>;
    fn busiest_lanes(among: Among, most: usize, from: Onward) -> Answer<BusyLanes>;
    fn busiest_meters(among: Among, most: usize, from: Onward) -> Answer<BusyMeters>;
    fn totals() -> Answer<Totals>;
    fn records_of(prefix: String, after: Option<Key>, most: usize) -> Answer<Vec<(Key, Record)>>;
}
