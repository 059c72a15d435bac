//! Browsing: everything there is, sorted, and cut to a page.

use super::ways::{lines, stands_at};
use super::{Call, LaneKey, Naive, State};
use crate::contract::{
    CallState, CallView, CallsQuery, LaneState, LimitView, MeterName, MeterPage, PAGE_MAX,
    QueueState,
};
use crate::lanes::act::Record;
use crate::lanes::call::CallId;
use crate::name::{Key, LaneName, LimitName, Partition, QueueName};
use crate::time::Now;
use crate::toll::Toll;
use std::collections::BTreeSet;

impl Naive {
    /// Queues by name.
    pub fn queues(&self, after: Option<&QueueName>, most: usize) -> Vec<QueueState> {
        let behind = self.queues.iter().filter(|(name, _)| after.is_none_or(|it| *name > it));
        let state = |(name, queue): (&QueueName, &super::Queue)| {
            let calls: Vec<&Call> =
                self.calls.values().filter(|call| call.new.queue == *name).collect();
            QueueState {
                name: name.clone(),
                spec: queue.spec.clone(),
                is_paused: queue.is_paused,
                waiting: count(&calls, Call::is_waiting),
                in_flight: count(&calls, |call| call.flight().is_some()),
                dead: count(&calls, Call::is_dead),
                lanes: self.lanes_of(name).len() as u64,
            }
        };
        behind.take(most.min(PAGE_MAX)).map(state).collect()
    }

    /// Lanes of a queue by name; `None` if there is no such queue.
    pub fn lanes(
        &self,
        queue: &QueueName,
        after: Option<&LaneName>,
        most: usize,
    ) -> Option<Vec<LaneState>> {
        self.queues.get(queue)?;
        let behind = self.lanes_of(queue).into_iter();
        let behind = behind.filter(|lane| after.is_none_or(|after| lane > after));
        let page = behind.take(most.min(PAGE_MAX));
        Some(page.map(|lane| self.lane_state((queue.clone(), lane))).collect())
    }

    /// One lane; `None` if there is no such queue, or nothing is known of the lane.
    pub fn lane(&self, queue: &QueueName, lane: &LaneName) -> Option<LaneState> {
        self.queues.get(queue)?;
        let is_known = self.lanes_of(queue).contains(lane);
        is_known.then(|| self.lane_state((queue.clone(), lane.clone())))
    }

    pub(super) fn lane_state(&self, key: LaneKey) -> LaneState {
        let calls = self.calls.values().filter(|call| call.lane_key() == key);
        let calls: Vec<&Call> = calls.collect();
        let lane = self.lanes.get(&key).cloned().unwrap_or_default();
        let head = calls.iter().find(|call| self.heads.contains_key(&call.id));
        LaneState {
            name: key.1,
            waiting: count(&calls, Call::is_waiting),
            in_flight: count(&calls, |call| call.flight().is_some()),
            dead: count(&calls, Call::is_dead),
            is_paused: lane.is_paused,
            is_held: lane.is_held,
            weight: lane.weight.max(1),
            head: head.map(|call| call.id),
        }
    }

    /// Lanes that have calls, or that an operator changed.
    pub(super) fn lanes_of(&self, queue: &QueueName) -> BTreeSet<LaneName> {
        let here = self.calls.values().filter(|call| call.new.queue == *queue);
        let there = here.filter(|call| !matches!(call.state, State::Ended(_)));
        let changed = self.lanes.iter().filter(|((of, _), _)| of == queue);
        let changed = changed.filter(|(_, lane)| lane.is_paused || lane.is_held || lane.weight > 1);
        let changed = changed.map(|((_, name), _)| name.clone());
        there.map(|call| call.new.lane.clone()).chain(changed).collect()
    }

    /// Calls by id.
    pub fn calls(&self, query: &CallsQuery, _: Now) -> Vec<CallView> {
        let is_sought = |call: &CallView| {
            call.queue == query.queue
                && query.lane.as_ref().is_none_or(|lane| call.lane == *lane)
                && query.state.is_none_or(|state| call.state == state)
                && query.after.is_none_or(|after| call.id > after)
        };
        let views = self.calls.values().filter_map(|call| self.view(call));
        views.filter(is_sought).take(query.most.min(PAGE_MAX)).collect()
    }

    /// Calls as they are; `None` for those that ended for good or never were.
    pub fn look(&self, ids: &[CallId], _: Now) -> Vec<Option<CallView>> {
        ids.iter().map(|id| self.view(self.calls.get(id)?)).collect()
    }

    fn view(&self, call: &Call) -> Option<CallView> {
        let state = match &call.state {
            State::Ended(_) => return None,
            State::Dead(_) => CallState::Dead,
            State::InFlight(_) => CallState::InFlight,
            State::Waiting if call.arrival.is_none() => CallState::NotDue,
            State::Waiting if call.backoff.is_some() => CallState::Resting,
            State::Waiting => CallState::Waiting,
        };
        let tolls = lines(&call.new.tolls).into_iter().map(|line| Toll {
            limit: line.meter.0,
            partition: line.meter.1,
            weight: line.weight,
            hears_feedback: line.hears_feedback,
        });
        Some(CallView {
            id: call.id,
            queue: call.new.queue.clone(),
            lane: call.new.lane.clone(),
            priority: call.new.priority,
            tolls: tolls.collect(),
            state,
            attempts: call.attempts,
            not_before: call.new.not_before.filter(|_| call.arrival.is_none()),
            expires: call.new.expires.filter(|_| call.may_expire()),
            rests_until: call.backoff.filter(|_| state == CallState::Resting),
            lease_expires: call.flight().map(|flight| flight.expires),
            death: match call.state {
                State::Dead(death) => Some(death),
                _ => None,
            },
        })
    }

    /// Limits that are defined, by name.
    pub fn limits(&self, after: Option<&LimitName>, most: usize, now: Now) -> Vec<LimitView> {
        let behind = self.limits.iter().filter(|(name, _)| after.is_none_or(|it| *name > it));
        let is_there = |name: &LimitName| self.common(name).is_some() && !self.has_gone(name, now);
        let defined = behind.filter(|(name, _)| is_there(name));
        let view = |(name, limit): (&LimitName, &super::KnownLimit)| LimitView {
            name: name.clone(),
            definition: limit.definition.clone(),
            is_paused: limit.is_paused,
            totals: self.limit_totals(name),
        };
        defined.take(most.min(PAGE_MAX)).map(view).collect()
    }

    /// The meters of a limit that are not as new, or where someone stands, or that have rules of their
    /// own; `None` if it is not defined.
    pub fn meters(
        &self,
        limit: &LimitName,
        after: Option<&Partition>,
        most: usize,
        now: Now,
    ) -> Option<MeterPage> {
        self.common(limit).filter(|_| !self.has_gone(limit, now))?;
        let own = self.overrides.keys().cloned();
        let all: BTreeSet<MeterName> = self.used(now).into_iter().chain(own).collect();
        let here = all.into_iter().filter(|(of, _)| of == limit);
        let behind = here.filter(|(_, name)| after.is_none() || name.as_ref() > after);
        let page = behind.take(most.min(PAGE_MAX));
        Some(page.filter_map(|name| Some((name.1.clone(), self.inspect(&name, now)?))).collect())
    }

    /// The meters that are not as new, or where someone stands.
    pub(super) fn used(&self, now: Now) -> BTreeSet<MeterName> {
        let is_spent = |name: &MeterName| {
            let (meter, definition) = (self.meters.get(name), self.definition(name));
            meter.zip(definition).is_some_and(|(meter, it)| !meter.is_fresh(it, now))
        };
        let spent = self.meters.keys().filter(|name| is_spent(name));
        let owed = self.calls.values().flat_map(|call| lines(&call.new.tolls));
        let stood_at = owed
            .map(|line| line.meter)
            .filter(|meter| self.heads.values().any(|head| stands_at(head, meter)));
        spent.cloned().chain(stood_at).collect()
    }

    /// Records whose keys begin so, by key.
    pub fn records_of(&self, prefix: &str, after: Option<&Key>, most: usize) -> Vec<(Key, Record)> {
        let found = self.records.iter().filter(|(key, _)| key.starts_with(prefix));
        let behind = found.filter(|(key, _)| after.is_none_or(|after| *key > after));
        let page = behind.take(most.min(PAGE_MAX));
        page.map(|(key, record)| (key.clone(), record.clone())).collect()
    }
}

fn count(calls: &[&Call], is_so: impl Fn(&Call) -> bool) -> u64 {
    calls.iter().filter(|call| is_so(call)).count() as u64
}
