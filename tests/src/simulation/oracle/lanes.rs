//! Queues and lanes: how they are, who waits in which order, and which call is the next.

use super::Oracle;
use super::calls::Call;
use crate::simulation::run::Checked;
use std::collections::BTreeSet;
use tollgate_core::lanes::{Order, QueueError, QueueSpec, Scope};
use tollgate_core::{LaneName, Now, QueueName};

#[derive(Debug)]
pub(super) struct QueueBook {
    pub(super) spec: QueueSpec,
    pub(super) is_paused: bool,
    /// Its calls that have not ended.
    pub(super) depth: u64,
}

#[derive(Debug)]
pub(super) struct LaneBook {
    pub(super) queue: QueueName,
    pub(super) name: LaneName,
    pub(super) is_paused: bool,
    pub(super) is_held: bool,
    /// Its calls that have not ended.
    pub(super) open: BTreeSet<usize>,
}

impl Oracle {
    /// A queue is as it was said last: for all who wait and for all who start from now on.
    pub(super) fn queue_defined(
        &mut self,
        name: &QueueName,
        spec: &QueueSpec,
        answer: &Result<(), QueueError>,
    ) -> Checked {
        if spec.check() != *answer {
            return Err(format!("a queue of {spec:?} is answered with {answer:?}"));
        }
        if answer.is_ok() {
            let fresh = || QueueBook { spec: spec.clone(), is_paused: false, depth: 0 };
            self.queues.entry(name.clone()).or_insert_with(fresh).spec = spec.clone();
            self.told.clear();
        }
        Ok(())
    }

    /// A queue goes when none of its calls is left, and what was known of its lanes goes with it.
    pub(super) fn queue_removed(
        &mut self,
        name: &QueueName,
        answer: &Result<bool, QueueError>,
    ) -> Checked {
        let depth = self.queues.get(name).map(|queue| queue.depth);
        let is_right = match answer {
            Ok(false) => depth.is_none(),
            Ok(true) => depth == Some(0),
            Err(QueueError::NotEmpty { waiting, in_flight, dead }) => {
                depth == Some(waiting + in_flight) && waiting + in_flight + dead > 0
            }
            Err(_) => false,
        };
        if !is_right {
            return Err(format!(
                "to remove a queue of {depth:?} calls is answered with {answer:?}"
            ));
        }
        if *answer == Ok(true) {
            self.queues.remove(name);
            self.dedupes.retain(|(queue, _), _| queue != name);
            for lane in self.lanes.iter_mut().filter(|lane| lane.queue == *name) {
                (lane.is_paused, lane.is_held) = (false, false);
            }
        }
        Ok(())
    }

    pub(super) fn spec_of(&self, id: usize) -> &QueueSpec {
        &self.queues[&self.lanes[self.calls[id].lane].queue].spec
    }

    pub(super) fn set_paused(&mut self, scope: &Scope, is_paused: bool) {
        match scope {
            Scope::Queue(name) => {
                if let Some(queue) = self.queues.get_mut(name) {
                    queue.is_paused = is_paused;
                }
            }
            Scope::Lane(queue, name) => {
                let lane = self.lane(queue, name);
                self.lanes[lane].is_paused = is_paused;
                self.lanes[lane].is_held &= is_paused;
            }
            Scope::Limit(name) => {
                let limit = self.limit(name);
                self.limits[limit].is_paused = is_paused;
            }
        }
    }

    pub(super) fn lane(&mut self, queue: &QueueName, name: &LaneName) -> usize {
        let key = (queue.clone(), name.clone());
        if let Some(found) = self.lanes_by_name.get(&key) {
            return *found;
        }
        let (queue, name) = key.clone();
        let open = BTreeSet::new();
        self.lanes.push(LaneBook { queue, name, is_paused: false, is_held: false, open });
        self.lanes_by_name.insert(key, self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    /// Whether an operator or a dead call holds a lane back.
    pub(super) fn is_held_back(&self, lane: usize) -> bool {
        let lane = &self.lanes[lane];
        lane.is_paused || lane.is_held || self.queues[&lane.queue].is_paused
    }

    /// The calls of a lane that have not ended.
    pub(super) fn of_lane(&self, lane: usize) -> impl Iterator<Item = &Call> {
        self.lanes[lane].open.iter().map(|id| &self.calls[*id])
    }

    /// How many of a lane are in flight, and how many may be.
    pub(super) fn flights(&self, lane: usize) -> (usize, usize) {
        let most = match self.queues[&self.lanes[lane].queue].spec.order {
            Order::Strict => 1,
            Order::Parallel(most) => most as usize,
        };
        (self.of_lane(lane).filter(|call| call.flight.is_some()).count(), most)
    }

    /// The calls of its lane that go before a call, those in flight aside.
    pub(super) fn ahead_of<'a>(
        &'a self,
        call: &'a Call,
        now: Now,
    ) -> impl Iterator<Item = &'a Call> {
        let is_strict = self.queues[&call.new.queue].spec.order == Order::Strict;
        self.of_lane(call.lane).filter(move |other| {
            let waits = other.id != call.id && other.place.is_some() && other.flight.is_none();
            waits
                && match is_strict {
                    // A call once started stays first until it ends, also while it backs off.
                    true if other.has_started != call.has_started => other.has_started,
                    true => other.goes_before(call),
                    false => other.rests_until <= now.at && other.goes_before(call),
                }
        })
    }

    /// The call of a lane that is to start next, if any may.
    pub(super) fn head(&self, lane: usize, now: Now) -> Option<&Call> {
        let (in_flight, most) = self.flights(lane);
        if self.is_held_back(lane) || in_flight >= most {
            return None;
        }
        let waits = |call: &&Call| call.place.is_some() && call.flight.is_none();
        let is_first = |call: &&Call| self.ahead_of(call, now).next().is_none();
        let mut firsts = self.of_lane(lane).filter(waits).filter(is_first);
        firsts.find(|call| call.rests_until <= now.at)
    }
}
