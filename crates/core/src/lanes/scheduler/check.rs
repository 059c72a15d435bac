//! What is wrong with an act, found before anything of it is done.

use super::Scheduler;
use super::calls::{CallSlot, Line};
use super::meters::QueueSlot;
use crate::lanes::act::{Act, ActError, Count, Door, Revision, Settle, Stale, Write};
use crate::lanes::call::{CallId, NewCall};
use crate::limit::Definition;
use crate::name::{Key, LimitName, Partition};
use crate::toll::{self, Toll, TollError};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

impl Scheduler {
    /// Finds what is wrong with an act; what its calls owe is found with that, for bodies are read once.
    pub(super) fn check(&self, act: &Act) -> Result<Checked, ActError> {
        act.check_size()?;
        self.check_settles(&act.settle)?;
        self.check_needs(&act.needs)?;
        self.check_writes(&act.write)?;
        let mut checked = Checked::default();
        if act.enqueue.is_empty() && act.count_down.is_empty() && act.revive.is_empty() {
            return Ok(checked);
        }
        let (door, mut coming) = ((&*act.define, act.door), Coming::new(&act.cancel));
        coming.add_revived(self, act);
        for (at, call) in act.enqueue.iter().enumerate() {
            let (queue, tolls) = self.check_call(at, call, door)?;
            checked.owing.extend(tolls.map(|tolls| (at, tolls)));
            checked.queues.push(queue);
            coming.add(self, queue, call);
        }
        if !act.count_down.is_empty() {
            self.check_counts(act, &mut checked.owing, &mut coming)?;
        }
        self.check_depth(&coming)?;
        Ok(checked)
    }

    fn check_counts<'a>(
        &'a self,
        act: &'a Act,
        owing: &mut Vec<(usize, Vec<Toll>)>,
        coming: &mut Coming<'a>,
    ) -> Result<(), ActError> {
        let mut joins = Joins::new(self);
        for (at, Count { key, from, then }) in act.count_down.iter().enumerate() {
            if *from == 0 && joins.left(key) == 0 {
                return Err(ActError::CountFromZero { at });
            }
            let (queue, tolls) = self.check_call(at, then, (&act.define, act.door))?;
            owing.extend(tolls.map(|tolls| (act.enqueue.len() + at, tolls)));
            if joins.count(key, *from) == 0 {
                coming.add(self, queue, then);
            }
        }
        Ok(())
    }

    fn check_settles(&self, settles: &[Settle]) -> Result<(), ActError> {
        let mut settled = (settles.len() > 1).then(BTreeSet::new);
        for (at, settle) in settles.iter().enumerate() {
            let found = self.in_flight(settle.lease);
            let mut is_first = |lease| settled.as_mut().is_none_or(|settled| settled.insert(lease));
            let slot = found.filter(|_| is_first(settle.lease));
            let Some(slot) = slot else { return Err(ActError::LeaseLost { at }) };
            self.check_actual(at, slot, settle)?;
        }
        Ok(())
    }

    /// Refuses the true cost at a limit where the call pays nothing.
    pub(super) fn check_actual(
        &self,
        at: usize,
        slot: CallSlot,
        settle: &Settle,
    ) -> Result<(), ActError> {
        for (limit, _) in &settle.actual {
            let owed = self.meters.limit(limit);
            let pays = |line: &Line| Some(self.meters[line.meter].limit) == owed;
            if !self.calls.lines_at(slot).iter().any(pays) {
                return Err(ActError::NotPaid { at, limit: limit.clone() });
            }
        }
        Ok(())
    }

    fn check_needs(&self, needs: &[Key]) -> Result<(), ActError> {
        match needs.iter().position(|key| !self.records.has(key)) {
            Some(at) => Err(ActError::RecordMissing { at }),
            None => Ok(()),
        }
    }

    pub(super) fn check_writes(&self, writes: &[Write]) -> Result<(), Stale> {
        if writes.is_empty() {
            return Ok(());
        }
        let mut written = BTreeMap::new();
        for ((at, write), before) in writes.iter().enumerate().zip(self.revisions..) {
            let kept = || self.records.get(&write.key).map_or(Revision(0), |kept| kept.revision);
            let found = written.get(&write.key).copied().unwrap_or_else(kept);
            if found != write.expected {
                return Err(Stale { at, found });
            }
            let now_at = write.bytes.as_ref().map_or(Revision(0), |_| Revision(before + 1));
            written.insert(&write.key, now_at);
        }
        Ok(())
    }

    /// A call's queue, and what it owes if that is more than it says.
    pub(super) fn check_call(
        &self,
        at: usize,
        call: &NewCall,
        (coming, door): AtDoor<'_>,
    ) -> Result<(QueueSlot, Option<Vec<Toll>>), ActError> {
        let Some(queue) = self.lanes.find(&call.queue) else {
            return Err(ActError::UnknownQueue { at, queue: call.queue.clone() });
        };
        let refused = |error| ActError::Toll { at, error };
        let estimate = |limit: &LimitName, partition: Option<&Partition>| {
            let capacity = self.coming_rules(coming, limit, partition)?.capacity();
            let learned = self.learned.estimate(&call.queue, (limit, partition));
            learned.map(|units| units.min(capacity))
        };
        let tolls = self.lanes.queue(queue).spec.tolls_of(call, &estimate).map_err(refused)?;
        match door {
            Door::Refuses => self.check_tolls(&tolls, coming),
            Door::Parks => toll::check_shape(&tolls),
        }
        .map_err(refused)?;
        Ok(match tolls {
            Cow::Owned(tolls) => (queue, Some(tolls)),
            Cow::Borrowed(_) => (queue, None),
        })
    }

    pub(super) fn check_tolls(
        &self,
        tolls: &[Toll],
        coming: &[(LimitName, Definition)],
    ) -> Result<(), TollError> {
        let rules = |toll: &Toll| self.coming_rules(coming, &toll.limit, toll.partition.as_ref());
        toll::check(tolls, rules)
    }

    fn check_depth(&self, coming: &Coming<'_>) -> Result<(), ActError> {
        coming.queues.iter().try_for_each(|(queue, new)| self.check_room(*queue, *new))
    }

    /// Refuses so many new calls if they are more than their queue has room for.
    pub(super) fn check_room(&self, queue: QueueSlot, new: u64) -> Result<(), ActError> {
        let book = self.lanes.queue(queue);
        let bound = book.spec.depth_max;
        if new > 0 && book.depth.saturating_add(new) > bound {
            return Err(ActError::QueueFull { queue: book.name.clone(), depth: bound });
        }
        Ok(())
    }
}

/// The limits that come along with an act, and what becomes of calls that no rules let pass.
type AtDoor<'a> = (&'a [(LimitName, Definition)], Door);

/// What was found of an act's calls as they were checked.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Which of them, in their order, owe more than they say, for their queues ask for it.
    pub(super) owing: Vec<(usize, Vec<Toll>)>,
    /// The queue of each that is enqueued.
    pub(super) queues: SmallVec<[QueueSlot; 2]>,
}

/// What is left of joins while an act counts them down.
struct Joins<'a> {
    scheduler: &'a Scheduler,
    left: BTreeMap<&'a Key, u64>,
}

impl<'a> Joins<'a> {
    fn new(scheduler: &'a Scheduler) -> Self {
        Self { scheduler, left: BTreeMap::new() }
    }

    /// Zero if the next count opens it.
    fn left(&self, key: &Key) -> u64 {
        let kept = || self.scheduler.joins.get(key).copied().unwrap_or(0);
        self.left.get(key).copied().unwrap_or_else(kept)
    }

    fn count(&mut self, key: &'a Key, from: u64) -> u64 {
        let before = match self.left(key) {
            0 => from,
            left => left,
        };
        let left = before.saturating_sub(1);
        self.left.insert(key, left);
        left
    }
}

/// New calls by queue, as far as they make it deeper.
struct Coming<'a> {
    cancelled: &'a [CallId],
    /// In the order in which they were named.
    queues: SmallVec<[(QueueSlot, u64); 1]>,
    /// Most have neither.
    keys: Option<BTreeSet<(QueueSlot, &'a Key)>>,
    replaced: Option<BTreeSet<(QueueSlot, &'a str, &'a Key)>>,
}

impl<'a> Coming<'a> {
    fn new(cancelled: &'a [CallId]) -> Self {
        let queues = SmallVec::new();
        Self { cancelled, queues, keys: None, replaced: None }
    }

    /// Where a queue is among those that were named.
    fn place(&mut self, queue: QueueSlot) -> usize {
        let known = self.queues.iter().position(|(known, _)| *known == queue);
        if known.is_none() {
            self.queues.push((queue, 0));
        }
        known.unwrap_or(self.queues.len() - 1)
    }

    /// Calls that are dead before the act and stay there in it, each once.
    fn add_revived(&mut self, scheduler: &Scheduler, act: &Act) {
        if act.revive.is_empty() {
            return;
        }
        let gone = act.cancel.iter().chain(&act.delete);
        let mut passed: BTreeSet<CallId> = gone.copied().collect();
        for id in act.revive.iter().map(|revive| revive.call) {
            let found = scheduler.calls.find(id).filter(|slot| scheduler.is_dead(*slot));
            if let Some(slot) = found.filter(|_| passed.insert(id)) {
                let lane = scheduler.calls[slot].lane;
                let place = self.place(scheduler.lanes[lane].queue);
                self.queues[place].1 += 1;
            }
        }
    }

    fn add(&mut self, scheduler: &Scheduler, queue: QueueSlot, call: &'a NewCall) {
        let place = self.place(queue);
        let is_known = scheduler.duplicate(queue, call).is_some();
        let keys = &mut self.keys;
        let is_again = call
            .dedupe
            .as_ref()
            .is_some_and(|key| !keys.get_or_insert_default().insert((queue, key)));
        if is_known || is_again {
            return;
        }
        let replaced = scheduler.replaced(queue, call).map(|slot| scheduler.calls[slot].id);
        let replaces = replaced.is_some_and(|id| !self.cancelled.contains(&id));
        let again = call.supersedes.as_ref().is_some_and(|key| {
            !self.replaced.get_or_insert_default().insert((queue, &call.lane, key))
        });
        if !replaces && !again {
            self.queues[place].1 += 1;
        }
    }
}
