//! The checks of an act: the first thing that is wrong with it.

use super::Naive;
use super::transient::Coming;
use crate::lanes::act::{Act, ActError, Door, Revision, Settle, Stale, Write};
use crate::lanes::call::{Lease, NewCall};
use crate::name::{Key, LimitName, Partition, QueueName};
use crate::toll::{self, Toll, TollError};
use std::collections::{BTreeMap, BTreeSet};

impl Naive {
    /// Everything but the depth of the queues, which is checked last and knows what the act did.
    pub(super) fn check(&self, act: &Act) -> Result<(), ActError> {
        act.check_size()?;
        self.check_settles(act)?;
        if let Some(at) = act.needs.iter().position(|key| self.record(key).is_none()) {
            return Err(ActError::RecordMissing { at });
        }
        self.check_writes(&act.write)?;
        for (at, new) in act.enqueue.iter().enumerate() {
            self.check_new(at, new, act)?;
        }
        self.check_counts(act)
    }

    /// Calls that end in the act make no room: what was there before counts.
    pub(super) fn check_depth(&self, act: &Act, deepened: &[QueueName]) -> Result<(), ActError> {
        let thens = act.count_down.iter().map(|count| &count.then);
        let new = act.enqueue.iter().chain(thens).map(|new| &new.queue);
        let revived = self.revived_queues(act);
        for queue in revived.iter().chain(new) {
            let Some(depth) = self.queues.get(queue).map(|queue| queue.spec.depth_max) else {
                continue;
            };
            let here = self.calls.values().filter(|call| call.new.queue == *queue);
            let before = here.filter(|call| self.end(call.id).is_none()).count();
            let new = revived.iter().chain(deepened).filter(|deepened| *deepened == queue).count();
            if new > 0 && u64::try_from(before + new).unwrap_or(u64::MAX) > depth {
                return Err(ActError::QueueFull { queue: queue.clone(), depth });
            }
        }
        Ok(())
    }

    fn check_settles(&self, act: &Act) -> Result<(), ActError> {
        let mut seen: BTreeSet<Lease> = BTreeSet::new();
        for (at, settle) in act.settle.iter().enumerate() {
            if !self.is_lease_held(settle.lease) || !seen.insert(settle.lease) {
                return Err(ActError::LeaseLost { at });
            }
            self.check_actual(at, settle)?;
        }
        Ok(())
    }

    fn is_lease_held(&self, lease: Lease) -> bool {
        let flight = self.calls.get(&lease.call).and_then(|call| call.flight());
        flight.is_some_and(|flight| flight.token == lease.token)
    }

    fn check_actual(&self, at: usize, settle: &Settle) -> Result<(), ActError> {
        let Some(call) = self.calls.get(&settle.lease.call) else { return Ok(()) };
        for (limit, _) in &settle.actual {
            if !call.new.tolls.iter().any(|toll| toll.limit == *limit) {
                return Err(ActError::NotPaid { at, limit: limit.clone() });
            }
        }
        Ok(())
    }

    pub(super) fn check_writes(&self, writes: &[Write]) -> Result<(), Stale> {
        let mut revisions: BTreeMap<&Key, Revision> =
            self.records.iter().map(|(key, record)| (key, record.revision)).collect();
        let mut last_revision = self.last_revision;
        for (at, write) in writes.iter().enumerate() {
            let found = revisions.get(&write.key).copied().unwrap_or_default();
            if found != write.expected {
                return Err(Stale { at, found });
            }
            last_revision += 1;
            match write.bytes {
                Some(_) => revisions.insert(&write.key, Revision(last_revision)),
                None => revisions.remove(&write.key),
            };
        }
        Ok(())
    }

    fn check_new(&self, at: usize, new: &NewCall, act: &Act) -> Result<(), ActError> {
        let coming = &act.define;
        let Some(queue) = self.queues.get(&new.queue) else {
            return Err(ActError::UnknownQueue { at, queue: new.queue.clone() });
        };
        let estimate = |limit: &_, partition: Option<&_>| {
            self.estimate(&new.queue, (limit, partition), coming)
        };
        let tolls = queue.spec.tolls_of(new, &estimate);
        let checked = tolls.and_then(|tolls| match act.door {
            Door::Refuses => self.check_tolls(&tolls, coming),
            Door::Parks => toll::check_shape(&tolls),
        });
        checked.map_err(|error| ActError::Toll { at, error })
    }

    /// What a new call is likely to cost at a meter.
    pub(super) fn estimate(
        &self,
        queue: &QueueName,
        (limit, partition): (&LimitName, Option<&Partition>),
        coming: &Coming,
    ) -> Option<u64> {
        let meter = (limit.clone(), partition.cloned());
        let definition = self.coming_definition(&meter, coming)?;
        let learned = self.learned.estimate(queue, (limit, partition))?;
        Some(learned.min(definition.capacity()))
    }

    pub(super) fn check_tolls(&self, tolls: &[Toll], coming: &Coming) -> Result<(), TollError> {
        toll::check(tolls, |toll| {
            let meter = (toll.limit.clone(), toll.partition.clone());
            self.coming_definition(&meter, coming)
        })
    }

    fn check_counts(&self, act: &Act) -> Result<(), ActError> {
        let mut joins = self.joins.clone();
        for (at, count) in act.count_down.iter().enumerate() {
            let left = match joins.get(&count.key) {
                Some(left) => *left,
                None if count.from == 0 => return Err(ActError::CountFromZero { at }),
                None => count.from,
            };
            self.check_new(at, &count.then, act)?;
            match left.saturating_sub(1) {
                0 => joins.remove(&count.key),
                left => joins.insert(count.key.clone(), left),
            };
        }
        Ok(())
    }
}
