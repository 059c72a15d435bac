//! Browsing: pages of what there is, each picked in one pass over what may be on it.

use super::Scheduler;
use super::calls::{Call, CallSlot, LaneSlot, Line};
use super::lanes::Queue;
use super::meters::QueueSlot;
use crate::contract::{
    CallState, CallView, CallsQuery, LaneState, LimitView, MeterPage, PAGE_MAX, QueueState,
};
use crate::lanes::act::Record;
use crate::lanes::call::CallId;
use crate::name::{Key, LaneName, LimitName, Partition, QueueName};
use crate::time::Now;
use crate::toll::Toll;
use std::collections::BinaryHeap;
use std::ops::Bound;

impl Scheduler {
    /// Queues by name.
    pub fn queues(&self, after: Option<&QueueName>, most: usize) -> Vec<QueueState> {
        let state = |queue: &Queue| QueueState {
            name: queue.name.clone(),
            spec: queue.spec.clone(),
            is_paused: queue.is_paused,
            waiting: queue.depth - queue.in_flight,
            in_flight: queue.in_flight,
            dead: queue.dead.len() as u64,
            lanes: queue.lanes.len() as u64,
        };
        self.lanes.queues_after(after).take(most.min(PAGE_MAX)).map(state).collect()
    }

    /// Lanes of a queue by name; `None` if there is no such queue. Costs a look at each of its lanes.
    pub fn lanes(
        &self,
        queue: &QueueName,
        after: Option<&LaneName>,
        most: usize,
    ) -> Option<Vec<LaneState>> {
        let queue = self.lanes.queue(self.lanes.find(queue)?);
        let known = queue.lanes.iter().map(|slot| (&self.lanes[*slot], *slot));
        let behind = known.filter(|(lane, _)| after.is_none_or(|after| lane.name > *after));
        let named = behind.filter(|(lane, _)| !lane.is_empty());
        let page = least(named.map(|(lane, slot)| (&lane.name, slot)), most);
        Some(page.into_iter().map(|(_, slot)| self.lane_state(slot)).collect())
    }

    /// One lane; `None` if there is no such queue, or nothing is known of the lane.
    pub fn lane(&self, queue: &QueueName, lane: &LaneName) -> Option<LaneState> {
        let slot = self.lanes.lane_named(self.lanes.find(queue)?, lane)?;
        (!self.lanes[slot].is_empty()).then(|| self.lane_state(slot))
    }

    pub(super) fn lane_state(&self, slot: LaneSlot) -> LaneState {
        let lane = &self.lanes[slot];
        LaneState {
            name: lane.name.clone(),
            waiting: (lane.calls - lane.in_flight - lane.dead).into(),
            in_flight: lane.in_flight.into(),
            dead: lane.dead.into(),
            is_paused: lane.is_paused,
            is_held: lane.is_held,
            weight: lane.weight,
            head: lane.head.map(|head| self.calls[head.call].id),
        }
    }

    /// Calls by id. For the dead it costs a look at those of the queue; for one lane at what is in it,
    /// and if some of its calls are in flight, not due or dead, at all that are; else at all calls.
    pub fn calls(&self, query: &CallsQuery, now: Now) -> Vec<CallView> {
        let Some(queue) = self.lanes.find(&query.queue) else { return Vec::new() };
        let lane = query.lane.as_ref().map(|lane| self.lanes.lane_named(queue, lane));
        let is_sought = |slot: &CallSlot| {
            let call = &self.calls[*slot];
            query.after.is_none_or(|after| call.id > after)
                && lane.is_none_or(|lane| lane == Some(call.lane))
                && self.lanes[call.lane].queue == queue
                && query.state.is_none_or(|state| self.state(call, now) == state)
        };
        let dead = || self.dead_of(queue);
        if self.lanes.queue(queue).is_empty() {
            return Vec::new();
        }
        let slots: Box<dyn Iterator<Item = CallSlot>> = match (lane, query.state) {
            (Some(None), _) => return Vec::new(),
            (_, Some(CallState::Dead)) => Box::new(dead()),
            (Some(Some(lane)), state) => Box::new(self.calls_of(lane, state)),
            (None, _) => Box::new(self.calls.iter().map(|(slot, _)| slot)),
        };
        let named = slots.map(|slot| (self.calls[slot].id, slot));
        let page = least_of(named, |(_, slot)| is_sought(slot), query.most);
        self.views(page.into_iter().map(|(_, slot)| Some(slot)), now)
            .into_iter()
            .flatten()
            .collect()
    }

    /// Calls as they are; `None` for those that ended for good or never were.
    pub fn look(&self, ids: &[CallId], now: Now) -> Vec<Option<CallView>> {
        self.views(ids.iter().map(|id| self.calls.find(*id)), now)
    }

    /// Limits that are defined, by name. Costs a look at each limit.
    pub fn limits(&self, after: Option<&LimitName>, most: usize, now: Now) -> Vec<LimitView> {
        let behind =
            self.meters.limits().filter(|limit| after.is_none_or(|it| limit.name() > it.as_str()));
        let defined = behind.filter(|limit| self.is_defined(*limit, now));
        let named = defined.map(|limit| (limit.name(), self.meters.limit(limit.name())));
        let view = |(_, slot): (&str, Option<_>)| self.meters.book(slot?).view();
        least(named, most).into_iter().filter_map(view).collect()
    }

    /// The meters of a limit that are not as new, or where someone stands, or that have rules of their
    /// own, by partition, the global one first; `None` if it is not defined. Costs a look at each of
    /// its meters.
    pub fn meters(
        &self,
        limit: &LimitName,
        after: Option<&Partition>,
        most: usize,
        now: Now,
    ) -> Option<MeterPage> {
        let slot = self.there(limit, now)?;
        let book = self.meters.book(slot);
        book.definition()?;
        let used = book.meters().filter(|meter| self.is_used(*meter, now));
        let used = used.map(|meter| self.meters[meter].partition());
        let is_unused = |partition: &&Partition| {
            let meter = self.meters.find_at(slot, Some(*partition));
            meter.is_none_or(|meter| !self.is_used(meter, now))
        };
        let own = book.overrides().into_iter().flat_map(|all| all.iter());
        let own = own.map(|(partition, _)| partition).filter(is_unused).cloned().map(Some);
        let behind = used.chain(own).filter(|name| after.is_none() || name.as_ref() > after);
        let state = |partition: Option<Partition>| {
            let name = (limit.clone(), partition);
            let state = self.inspect(&name, now)?;
            Some((name.1, state))
        };
        Some(least(behind, most).into_iter().filter_map(state).collect())
    }

    pub(super) fn is_used(&self, slot: u32, now: Now) -> bool {
        let (book, definition) = (&self.meters[slot], self.meters.definition(slot));
        let spent = book.meter.as_ref().zip(definition);
        book.standing() > 0 || spent.is_some_and(|(meter, it)| !meter.is_fresh(it, now))
    }

    /// Records whose keys begin so, by key. Costs a look at those it finds.
    pub fn records_of(&self, prefix: &str, after: Option<&Key>, most: usize) -> Vec<(Key, Record)> {
        let from = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        let found = self.records.from(from);
        let found = found.take_while(|(key, _)| key.starts_with(prefix)).take(most.min(PAGE_MAX));
        found.map(|(key, record)| (key.clone(), record.clone())).collect()
    }

    fn dead_of(&self, queue: QueueSlot) -> impl Iterator<Item = CallSlot> {
        let dead = self.lanes.queue(queue).dead.iter();
        dead.filter_map(|(_, id)| self.calls.find(*id))
    }

    /// The calls of a lane in a state, and others: those in no order of the lane are found among all
    /// of their kind, if the lane has any.
    fn calls_of(&self, slot: LaneSlot, state: Option<CallState>) -> impl Iterator<Item = CallSlot> {
        let lane = &self.lanes[slot];
        let asks = move |kind: CallState| state.is_none_or(|state| state == kind);
        let returned = lane.returned().into_iter();
        let returned = returned.flat_map(|it| it.back.iter().chain(it.resting.iter()));
        let joined = lane.waiting.iter().chain(returned.map(|(_, call)| call));
        let joined = joined.filter(move |_| asks(CallState::Waiting) || asks(CallState::Resting));
        let is_here = move |call: &CallSlot| self.calls[*call].lane == slot;
        let flying = self.timers.leases.iter().map(|(_, _, call)| call).filter(is_here);
        let flights = if asks(CallState::InFlight) { lane.in_flight } else { 0 };
        let not_due = self.timers.joins.iter().filter_map(|(_, id)| self.calls.find(*id));
        let apart = if asks(CallState::NotDue) { self.apart(slot) } else { 0 };
        let dead = if asks(CallState::Dead) { lane.dead } else { 0 };
        let dead = self.dead_of(lane.queue).filter(is_here).take(dead as usize);
        let flying = flying.take(flights as usize);
        joined.chain(flying).chain(not_due.filter(is_here).take(apart)).chain(dead)
    }

    /// How many calls of a lane have not joined it.
    fn apart(&self, slot: LaneSlot) -> usize {
        let lane = &self.lanes[slot];
        let returned = lane.returned().map_or(0, |it| it.back.len() + it.resting.len());
        let joined = lane.waiting.iter().count() + returned;
        let here = (lane.calls - lane.in_flight - lane.dead) as usize;
        here.saturating_sub(joined)
    }

    /// Where a call is in its life.
    fn state(&self, call: &Call, now: Now) -> CallState {
        let progress = self.calls.progress(call);
        match progress {
            Some(progress) if progress.flight.is_some() => CallState::InFlight,
            Some(progress) if progress.death.is_some() => CallState::Dead,
            _ if !call.has_joined => CallState::NotDue,
            Some(progress) if progress.rests_until > now.at => CallState::Resting,
            _ => CallState::Waiting,
        }
    }

    fn views(
        &self,
        slots: impl Iterator<Item = Option<CallSlot>>,
        now: Now,
    ) -> Vec<Option<CallView>> {
        let slots: Vec<_> = slots.collect();
        let view = |slot: Option<CallSlot>| slot.map(|slot| self.view(slot, now));
        slots.into_iter().map(view).collect()
    }

    fn view(&self, slot: CallSlot, now: Now) -> CallView {
        let call = &self.calls[slot];
        let (lane, progress) = (&self.lanes[call.lane], self.calls.progress(call));
        let state = self.state(call, now);
        let rests = progress.filter(|_| state == CallState::Resting);
        CallView {
            id: call.id,
            queue: self.lanes.queue(lane.queue).name.clone(),
            lane: lane.name.clone(),
            priority: call.priority,
            tolls: self.calls.lines(call).iter().map(|line| self.toll(line)).collect(),
            state,
            attempts: self.calls.attempts(call),
            not_before: call.due(),
            expires: self.timers.expiries.of(call.id).filter(|_| self.calls.flight(call).is_none()),
            rests_until: rests.map(|progress| progress.rests_until),
            lease_expires: self.calls.flight(call).map(|flight| flight.expires),
            death: self.calls.death(call),
        }
    }

    /// A line as a toll.
    pub(super) fn toll(&self, line: &Line) -> Toll {
        let (limit, partition) = self.meters.name(line.meter);
        let Line { weight, hears_feedback, .. } = *line;
        Toll { limit, partition, weight, hears_feedback }
    }
}

/// The least of them in order, up to a page: memory for a page, not for a million names.
pub(super) fn least<T: Ord>(all: impl Iterator<Item = T>, most: usize) -> Vec<T> {
    least_of(all, |_| true, most)
}

/// As [`least`], of those that are sought: whoever comes too late for the page is not asked.
fn least_of<T: Ord>(
    all: impl Iterator<Item = T>,
    is_sought: impl Fn(&T) -> bool,
    most: usize,
) -> Vec<T> {
    let most = most.min(PAGE_MAX);
    let mut least = BinaryHeap::with_capacity(most + 1);
    for item in all {
        let has_room = least.len() < most || least.peek().is_some_and(|last| item < *last);
        if has_room && is_sought(&item) {
            least.push(item);
            if least.len() > most {
                least.pop();
            }
        }
    }
    least.into_sorted_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_least_are_those_that_sorting_puts_first(
            all in prop::collection::vec(0..100_u8, 0..200),
            most in 0..40_usize,
        ) {
            let is_sought = |item: &u8| !item.is_multiple_of(3);
            let mut sorted: Vec<_> = all.iter().copied().filter(is_sought).collect();
            sorted.sort_unstable();
            sorted.truncate(most);
            prop_assert_eq!(least_of(all.into_iter(), is_sought, most), sorted);
        }
    }

    #[test]
    fn a_page_is_no_longer_than_it_may_be() {
        assert_eq!(least(0..PAGE_MAX * 2, usize::MAX).len(), PAGE_MAX);
    }
}
