//! Heads: which call of each lane may start next.

use super::ways::lines;
use super::{Call, Head, LaneKey, MeterKey, Naive, Stand};
use crate::lanes::call::CallId;
use crate::lanes::queue::Order;
use crate::turn::Priority;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::collections::btree_map::Entry;

impl Naive {
    /// What a call had at its meters goes when it is no head any more; a new head starts with
    /// nothing.
    pub(super) fn refresh_heads(&mut self) {
        let lanes: BTreeSet<LaneKey> =
            self.calls.values().filter(|call| call.is_waiting()).map(Call::lane_key).collect();
        let heads: BTreeSet<CallId> = lanes.iter().filter_map(|lane| self.head_of(lane)).collect();
        self.heads.retain(|id, _| heads.contains(id));
        for id in heads {
            if let Entry::Vacant(vacant) = self.heads.entry(id) {
                vacant.insert(Head::default());
                self.stand_at_first(id);
            }
        }
    }

    /// A new head stands at the first of its meters.
    fn stand_at_first(&mut self, id: CallId) {
        let lines = self.calls.get(&id).map(|call| lines(&call.new.tolls));
        if let Some(first) = lines.as_ref().and_then(|lines| lines.first()) {
            self.stand_at(id, &first.meter);
        }
    }

    /// A head comes to stand at one of its meters, or stays there; it is parked, and no senior any
    /// more, if the limit is shut to it.
    pub(super) fn stand_at(&mut self, id: CallId, meter: &MeterKey) {
        let Some(call) = self.calls.get(&id) else { return };
        let tag = self.tag(call, meter);
        let is_shut = self.is_shut(call, meter);
        let Some(head) = self.heads.get_mut(&id) else { return };
        head.is_senior &= !is_shut;
        head.stand = match is_shut {
            true => Stand::Parked(meter.clone()),
            false => Stand::At(meter.clone(), tag),
        };
    }

    fn head_of(&self, key: &LaneKey) -> Option<CallId> {
        let queue = self.queues.get(&key.0)?;
        let is_held_back = self.lanes.get(key).is_some_and(|lane| lane.is_paused || lane.is_held);
        if is_held_back {
            return None;
        }
        let is_here = |call: &&Call| call.new.queue == key.0 && call.new.lane == key.1;
        let of_lane = || self.calls.values().filter(is_here);
        let in_flight = of_lane().filter(|call| call.flight().is_some()).count();
        if u64::try_from(in_flight).unwrap_or(u64::MAX) >= queue.spec.in_flight_max().into() {
            return None;
        }
        let joined: Vec<&Call> =
            of_lane().filter(|call| call.is_waiting() && call.arrival.is_some()).collect();
        let head = match queue.spec.order {
            Order::Strict => strict_head(&joined),
            Order::Parallel(_) => first(joined.into_iter().filter(|call| is_eligible(call))),
        };
        head.map(|call| call.id)
    }
}

/// The order within a lane, and among the heads that a claim may try.
pub(super) fn rank(call: &Call) -> (Reverse<Priority>, Option<u64>) {
    (Reverse(call.new.priority), call.arrival)
}

/// A call that came back is current: it alone can start, once it is eligible.
fn strict_head<'a>(joined: &[&'a Call]) -> Option<&'a Call> {
    let current = first(joined.iter().copied().filter(|call| call.came_back));
    match current {
        Some(current) => Some(current).filter(|call| is_eligible(call)),
        None => first(joined.iter().copied()),
    }
}

fn first<'a>(calls: impl Iterator<Item = &'a Call>) -> Option<&'a Call> {
    calls.min_by_key(|call| rank(call))
}

fn is_eligible(call: &Call) -> bool {
    call.backoff.is_none()
}
