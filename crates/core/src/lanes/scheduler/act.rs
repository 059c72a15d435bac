//! Acts: checked whole, then done whole.

use super::Scheduler;
use super::calls::{CallSlot, Line};
use super::meters::QueueSlot;
use crate::lanes::act::{
    Act, ActError, Acted, Count, Door, Only, Revision, Settle, Settlement, Stale, Write,
};
use crate::lanes::call::{CallId, DeathCause, End, Lease, NewCall};
use crate::lanes::effect::Effect;
use crate::lanes::queue_toll::QueueToll;
use crate::limit::Definition;
use crate::name::{Key, LimitName, Partition};
use crate::rule::Rule;
use crate::time::{Now, Span};
use crate::toll::{self, Toll, TollError};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

impl Scheduler {
    /// Changes all that an act says, or nothing.
    pub fn act(&mut self, mut act: Act, now: Now) -> Result<Acted, ActError> {
        self.make(&mut act, now)
    }

    /// Changes all that an act says, or nothing: then it is as it was.
    pub fn make(&mut self, act: &mut Act, now: Now) -> Result<Acted, ActError> {
        self.advance(now);
        match act.only() {
            Some(Only::Call) => self.make_call(act, now),
            Some(Only::Settlement) => self.make_settlement(act, now),
            None => self.make_any(act, now),
        }
    }

    fn make_any(&mut self, act: &mut Act, now: Now) -> Result<Acted, ActError> {
        let Checked { owing, queues } = self.check(act)?;
        if !owing.is_empty() {
            act.owe(owing);
        }
        let mut acted = Acted::default();
        self.watching.enter(act.door);
        if act.door == Door::Parks {
            self.let_go(act, now);
        }
        for (limit, definition) in act.define.drain(..) {
            self.come(limit, definition, now);
        }
        // Their memory is left to whoever has the act: to give it back is cheapest where it is from.
        for settle in act.settle.drain(..) {
            self.settle(settle, now);
        }
        acted.cancelled = each(&mut act.cancel, |id| self.cancel(id));
        acted.revived = each(&mut act.revive, |revive| self.revive(&revive, now));
        acted.written = each(&mut act.write, |write| self.write(write));
        acted.enqueued.reserve(act.enqueue.len());
        for (new, queue) in act.enqueue.drain(..).zip(queues) {
            self.enqueue(queue, new, now).tell(&mut acted);
        }
        acted.counted = each(&mut act.count_down, |count| self.count_down(count, now));
        self.forget_joins(&mut act.forget);
        self.rehead();
        Ok(acted)
    }

    fn forget_joins(&mut self, keys: &mut Vec<Key>) {
        for key in keys.drain(..) {
            if self.joins.contains_key(&key) {
                self.emit(Effect::Counted { key, left: 0 });
            }
        }
    }

    /// Finds what is wrong with an act; what its calls owe is found with that, for bodies are read once.
    fn check(&self, act: &Act) -> Result<Checked, ActError> {
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

    fn settle(&mut self, settle: Settle, now: Now) {
        if let Some(slot) = self.in_flight(settle.lease) {
            self.settle_at(slot, settle, now);
        }
    }

    /// Settles the start of a call that was found.
    pub(super) fn settle_at(&mut self, slot: CallSlot, settle: Settle, now: Now) {
        let (id, mut attempts) = (self.calls[slot].id, self.calls.attempts(&self.calls[slot]));
        let queue = self.lanes[self.calls[slot].lane].queue;
        let actual = self.actual(slot, &settle);
        self.learn(slot, &settle);
        let Settle { lease, settlement, report, .. } = settle;
        self.count_settled(slot, settlement);
        self.emit_of(slot, Effect::Settled { lease, actual, now, report });
        let spec = &self.lanes.queue(queue).spec;
        match settlement {
            Settlement::Done => self.emit_of(slot, Effect::Ended { id, end: End::Done }),
            Settlement::Dead => self.die(slot, attempts, DeathCause::GivenUp),
            Settlement::Release => self.come_back(slot, attempts, None, now.at),
            Settlement::Retry(after) => {
                attempts.failures += 1;
                let after = after.unwrap_or_else(|| spec.backoff.delay(id, attempts.failures));
                let is_dead = attempts.failures >= spec.failures_max;
                let death = is_dead.then_some(DeathCause::Failed);
                self.come_back(slot, attempts, death, now.at.plus(after));
            }
            Settlement::Limited(pause) => {
                attempts.limited += 1;
                let is_dead = attempts.limited >= spec.limited_max;
                let death = is_dead.then_some(DeathCause::Limited);
                let is_closed = self.close_for(slot, now, pause);
                let eligible = if is_closed { now.at } else { now.at.plus(pause) };
                self.come_back(slot, attempts, death, eligible);
            }
        }
    }

    /// Remembers what a call cost where its queue estimates by that.
    fn learn(&mut self, slot: CallSlot, settle: &Settle) {
        // What was not made, or was turned away, tells nothing of what it costs.
        let tells = !matches!(settle.settlement, Settlement::Release | Settlement::Limited(_));
        if settle.actual.is_empty() || !tells {
            return;
        }
        let queue = self.lanes.queue(self.lanes[self.calls[slot].lane].queue);
        for line in self.calls.lines_at(slot) {
            let (limit, partition) = self.meters.name(line.meter);
            let is_learned = |toll: &QueueToll| toll.is_learned() && toll.limit == limit;
            let told = settle.actual.iter().find(|(name, _)| *name == limit);
            if let Some((_, cost)) = told.filter(|_| queue.spec.tolls.iter().any(is_learned)) {
                self.learned.note(&queue.name, (&limit, partition.as_ref()), *cost);
            }
        }
    }

    /// The true cost of a start at each of its meters.
    fn actual(&self, slot: CallSlot, settle: &Settle) -> SmallVec<[u64; 1]> {
        let of_line = |line: &Line| {
            let limit = self.meters[line.meter].limit;
            let named =
                settle.actual.iter().find(|(name, _)| self.meters.limit(name) == Some(limit));
            match settle.settlement {
                Settlement::Release => 0,
                _ => named.map_or(line.weight, |(_, actual)| *actual),
            }
        };
        let mut actual = SmallVec::new();
        for line in self.calls.lines_at(slot) {
            actual.push(of_line(line));
        }
        actual
    }

    /// Closes the meters that hear feedback, or the first if it has a rate; says whether there was one.
    fn close_for(&mut self, slot: CallSlot, now: Now, pause: Span) -> bool {
        let id = self.calls[slot].id;
        let lines = self.calls.lines_at(slot);
        let anyone_hears = lines.iter().any(|line| line.hears_feedback);
        let closes = |(at, line): (usize, &Line)| {
            let definition = self.meters.definition(line.meter);
            let has_rate = || definition.is_some_and(|d| d.rules().iter().any(Rule::is_rate));
            let hears = match anyone_hears {
                true => line.hears_feedback && definition.is_some(),
                false => at == 0 && has_rate(),
            };
            hears.then_some(at)
        };
        let closed: Vec<_> = lines.iter().enumerate().filter_map(closes).collect();
        for line in &closed {
            self.emit(Effect::Closed { id, line: *line, until: now.at.plus(pause), now });
        }
        !closed.is_empty()
    }

    fn cancel(&mut self, id: CallId) -> bool {
        let Some(slot) = self.calls.find(id) else { return false };
        self.emit(match self.calls.flight(&self.calls[slot]) {
            Some(_) => Effect::CancelAsked(id),
            None => Effect::Ended { id, end: End::Cancelled },
        });
        true
    }

    pub(super) fn write(&mut self, Write { key, bytes, .. }: Write) -> Revision {
        let revision = Revision(self.revisions + 1);
        self.emit(Effect::Written { key, revision, bytes });
        revision
    }

    /// The new call, or the one that it repeats.
    pub(super) fn enqueue(&mut self, queue: QueueSlot, new: NewCall, now: Now) -> Enqueued {
        if let Some(first) = self.duplicate(queue, &new) {
            return Enqueued::Known(first);
        }
        let inherited = self.supersede(queue, &new);
        let remembered = now.at.plus(self.lanes.queue(queue).spec.dedupe);
        let arrival = match new.not_before {
            Some(due) if due > now.wall => None,
            _ => Some(inherited.unwrap_or(self.arrivals)),
        };
        let id = self.emit_accepted(queue, Box::new(new), arrival, remembered);
        self.count_accepted(queue, id, now);
        Enqueued::New(id)
    }

    #[inline]
    pub(super) fn duplicate(&self, queue: QueueSlot, new: &NewCall) -> Option<CallId> {
        let key = new.dedupe.clone()?;
        self.dedupes.get(&(queue, key)).map(|(first, _)| *first)
    }

    /// Ends the call that a new one replaces; says which arrival it had.
    fn supersede(&mut self, queue: QueueSlot, new: &NewCall) -> Option<u64> {
        let old = self.replaced(queue, new)?;
        let call = &self.calls[old];
        let (id, arrival) = (call.id, Some(call.arrival).filter(|_| call.has_joined));
        self.emit(Effect::Ended { id, end: End::Superseded });
        arrival
    }

    #[inline]
    pub(super) fn replaced(&self, queue: QueueSlot, new: &NewCall) -> Option<CallSlot> {
        let key = new.supersedes.as_ref()?;
        let lane = self.lanes.lane_named(queue, &new.lane)?;
        let old = self.newest.find(lane, key)?;
        self.calls[old].progress.is_none().then_some(old)
    }

    fn count_down(&mut self, count: Count, now: Now) -> (u64, Option<CallId>) {
        let left = self.joins.get(&count.key).copied().unwrap_or(count.from).saturating_sub(1);
        self.emit(Effect::Counted { key: count.key, left });
        let opens = (left == 0).then(|| self.lanes.find(&count.then.queue)).flatten();
        let then = opens.map(|queue| self.enqueue(queue, count.then, now));
        (left, then.map(Enqueued::id))
    }

    pub(super) fn in_flight(&self, lease: Lease) -> Option<CallSlot> {
        let slot = self.calls.find(lease.call)?;
        let flight = self.calls.flight(&self.calls[slot])?;
        (flight.token == lease.token).then_some(slot)
    }
}

/// The limits that come along with an act, and what becomes of calls that no rules let pass.
type AtDoor<'a> = (&'a [(LimitName, Definition)], Door);

/// What was found of an act's calls as they were checked.
#[derive(Debug, Default)]
struct Checked {
    /// Which of them, in their order, owe more than they say, for their queues ask for it.
    owing: Vec<(usize, Vec<Toll>)>,
    /// The queue of each that is enqueued.
    queues: SmallVec<[QueueSlot; 2]>,
}

/// What became of a call that was to be enqueued.
#[derive(Debug, Clone, Copy)]
pub(super) enum Enqueued {
    New(CallId),
    /// It repeats this one.
    Known(CallId),
}

impl Enqueued {
    fn id(self) -> CallId {
        match self {
            Self::New(id) | Self::Known(id) => id,
        }
    }

    /// Says so, as the next of an act's calls.
    pub(super) fn tell(self, acted: &mut Acted) {
        if matches!(self, Self::Known(_)) {
            acted.duplicates.push(acted.enqueued.len());
        }
        acted.enqueued.push(self.id());
    }
}

/// What came of each; most lists of an act are empty.
fn each<T, R>(items: &mut Vec<T>, make: impl FnMut(T) -> R) -> Vec<R> {
    if items.is_empty() { Vec::new() } else { items.drain(..).map(make).collect() }
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

    /// Calls that are dead before the act and not cancelled in it, each once.
    fn add_revived(&mut self, scheduler: &Scheduler, act: &Act) {
        if act.revive.is_empty() {
            return;
        }
        let mut passed: BTreeSet<CallId> = act.cancel.iter().copied().collect();
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
