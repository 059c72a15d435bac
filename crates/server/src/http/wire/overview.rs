//! One look at everything, as it travels.

use super::super::caller::Caller;
use super::id::IdWire;
use super::instant::InstantWire;
use crate::access::Role;
use serde::Serialize;
use tollgate::lanes::{BusyLane, BusyQueue};
use tollgate::{MeterState, Now};

/// One look at everything, for one who asks.
#[derive(Debug, Serialize)]
pub(in crate::http) struct OverviewWire {
    pub(in crate::http) version: &'static str,
    pub(in crate::http) store: &'static str,
    pub(in crate::http) ready: bool,
    pub(in crate::http) uptime_ms: u64,
    pub(in crate::http) caller: CallerWire,
    #[serde(flatten)]
    pub(in crate::http) seen: SeenWire,
}

/// Who asks.
#[derive(Debug, Serialize)]
pub(in crate::http) struct CallerWire {
    /// The token's; null if none is wanted.
    name: Option<String>,
    /// All that they may do.
    roles: Vec<&'static str>,
    /// Null if everything is theirs.
    namespace: Option<String>,
}

/// What was seen, for all who see the same.
#[derive(Debug, Clone, Serialize)]
pub(in crate::http) struct SeenWire {
    at: InstantWire,
    waiting: u64,
    in_flight: u64,
    dead: u64,
    asking: usize,
    limits: Vec<PressedWire>,
    queues: Vec<BusyQueueWire>,
    lanes: Vec<BusyLaneWire>,
}

/// A meter that is in someone's way.
#[derive(Debug, Clone, Serialize)]
struct PressedWire {
    limit: String,
    /// Left out for the global meter.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    waiting: u64,
    in_flight: u64,
    available: i64,
    /// The number in the tightest rule.
    of: u64,
    /// Left out if no one can know.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_admission_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_for_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_reason: Option<String>,
    paused: bool,
}

#[derive(Debug, Clone, Serialize)]
struct BusyQueueWire {
    queue: String,
    waiting: u64,
    in_flight: u64,
    dead: u64,
    asking: usize,
    paused: bool,
    /// How long the oldest has been in line, and which it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<IdWire>,
}

#[derive(Debug, Clone, Serialize)]
struct BusyLaneWire {
    queue: String,
    lane: String,
    waiting: u64,
    in_flight: u64,
    dead: u64,
    paused: bool,
    held: bool,
    weight: u32,
}

impl CallerWire {
    pub(in crate::http) fn new(caller: &Caller) -> Self {
        let roles = Role::ALL.into_iter().filter(|role| caller.may(*role));
        Self {
            name: caller.token_name().map(str::to_owned),
            roles: roles.map(Role::as_str).collect(),
            namespace: caller.namespace().map(str::to_owned),
        }
    }
}

impl SeenWire {
    /// Nothing, at that instant.
    pub(in crate::http) fn new(now: Now) -> Self {
        Self {
            at: InstantWire(now.wall),
            waiting: 0,
            in_flight: 0,
            dead: 0,
            asking: 0,
            limits: Vec::new(),
            queues: Vec::new(),
            lanes: Vec::new(),
        }
    }

    /// Counts what is in a queue of the caller's, and who asks for it.
    pub(in crate::http) fn count(&mut self, queue: &BusyQueue, asking: usize) {
        self.waiting += queue.waiting;
        self.in_flight += queue.in_flight;
        self.dead += queue.dead;
        self.asking += asking;
    }

    pub(in crate::http) fn add_queue(
        &mut self,
        name: &str,
        queue: &BusyQueue,
        asking: usize,
        now: Now,
    ) {
        let since = queue.oldest.and_then(|oldest| oldest.since);
        self.queues.push(BusyQueueWire {
            queue: name.to_owned(),
            waiting: queue.waiting,
            in_flight: queue.in_flight,
            dead: queue.dead,
            asking,
            paused: queue.is_paused,
            oldest_ms: since.map(|since| now.at.since(since).as_millis_ceil()),
            oldest: queue.oldest.map(|oldest| IdWire(oldest.call)),
        });
    }

    pub(in crate::http) fn add_lane(&mut self, caller: &Caller, lane: &BusyLane) {
        let Some(queue) = caller.outer(&lane.queue) else { return };
        self.lanes.push(BusyLaneWire {
            queue: queue.to_owned(),
            lane: lane.state.name.as_str().to_owned(),
            waiting: lane.state.waiting,
            in_flight: lane.state.in_flight,
            dead: lane.state.dead,
            paused: lane.state.is_paused,
            held: lane.state.is_held,
            weight: lane.state.weight,
        });
    }

    pub(in crate::http) fn add_meter(&mut self, caller: &Caller, meter: MeterState) {
        let Some(limit) = caller.outer(&meter.limit) else { return };
        let (closed_for, closed_reason) = meter.closed.unzip();
        self.limits.push(PressedWire {
            limit: limit.to_owned(),
            partition: meter.partition,
            waiting: meter.waiting,
            in_flight: meter.in_flight,
            available: meter.standing.remaining,
            of: meter.standing.limit,
            next_admission_ms: meter.next_admission_after.map(|span| span.as_millis_ceil()),
            closed_for_ms: closed_for.map(|span| span.as_millis_ceil()),
            closed_reason,
            paused: meter.is_paused,
        });
    }
}
