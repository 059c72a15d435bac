//! What comes in and what does not: ids, duplicates, replacements, full queues.

use super::Oracle;
use super::calls::{Call, Line};
use crate::simulation::run::Checked;
use std::collections::BTreeMap;
use tollgate_core::lanes::{Act, Attempts, CallId, End, NewCall};
use tollgate_core::{Key, Now, QueueName, Timestamp};

impl Oracle {
    pub(super) fn accepted(&mut self, call: &NewCall, id: CallId, now: Now) -> Checked {
        if let Some(fault) = self.fault(call) {
            return Err(format!("call {} was accepted although {fault}", id.0));
        }
        let key = call.dedupe.clone().map(|key| (call.queue.clone(), key));
        let first = key.as_ref().and_then(|key| self.dedupes.get(key)).map(|(first, _)| *first);
        let next = CallId(self.calls.len() as u64);
        let due = first.unwrap_or(next);
        if due != id {
            return Err(format!("a duplicate is the first call: {} instead of {}", id.0, due.0));
        }
        if first.is_none() {
            if let Some(key) = key {
                self.remember(key, id, now);
            }
            self.accept(call, id, now);
        }
        Ok(())
    }

    fn accept(&mut self, new: &NewCall, id: CallId, now: Now) {
        let lane = self.lane(&new.queue, &new.lane);
        let inherited = self.supersede(new, lane);
        let place = match new.not_before {
            Some(due) if due > now.wall => None,
            _ => Some(inherited.unwrap_or(self.places)),
        };
        self.places += 1;
        let (lines, at) = (self.lines(new), self.calls.len());
        for line in &lines {
            self.meters[line.meter].open.insert(at);
        }
        self.open.insert(at);
        if new.not_before.is_some() || new.expires.is_some() {
            self.restless.insert(at);
            // It may be too old already.
            self.advanced = None;
        }
        self.lanes[lane].open.insert(at);
        if let Some(queue) = self.queues.get_mut(&new.queue) {
            queue.depth += 1;
        }
        self.calls.push(Call {
            id,
            new: new.clone(),
            lane,
            lines,
            attempts: Attempts::default(),
            place,
            has_started: false,
            is_cancelled: false,
            rests_until: Timestamp::default(),
            flight: None,
            end: None,
        });
    }

    fn remember(&mut self, key: (QueueName, Key), id: CallId, now: Now) {
        let until = now.at.plus(self.queues[&key.0].spec.dedupe);
        self.dedupes.insert(key, (id, until));
    }

    /// Ends the call that a new one replaces; says which place it had.
    fn supersede(&mut self, new: &NewCall, lane: usize) -> Option<u64> {
        let key = new.supersedes.as_ref()?;
        let is_replaced = |id: &usize| {
            let call = &self.calls[*id];
            !call.has_started && call.new.supersedes.as_ref() == Some(key)
        };
        let id = self.lanes[lane].open.iter().copied().find(is_replaced)?;
        self.end(id, End::Superseded);
        self.calls[id].place
    }

    fn lines(&mut self, new: &NewCall) -> Vec<Line> {
        let mut lines: Vec<Line> = vec![];
        for toll in &new.tolls {
            let meter = self.meter(&toll.limit, toll.partition.as_ref());
            let (weight, hears_feedback) = (toll.weight, toll.hears_feedback);
            match lines.iter_mut().find(|line| line.meter == meter) {
                Some(line) => {
                    line.weight += weight;
                    line.hears_feedback |= hears_feedback;
                }
                None => lines.push(Line { meter, weight, hears_feedback }),
            }
        }
        lines
    }

    /// Why a call can never start as things are.
    pub(super) fn fault(&self, call: &NewCall) -> Option<String> {
        if !self.queues.contains_key(&call.queue) {
            return Some("its queue is missing".to_owned());
        }
        for toll in &call.tolls {
            let limit = self.limits.iter().find(|limit| limit.name == toll.limit);
            let Some(definition) = limit.and_then(|limit| limit.definition.as_ref()) else {
                return Some("a limit is missing".to_owned());
            };
            let is_there = |other: &&tollgate_core::Toll| {
                (&other.limit, &other.partition) == (&toll.limit, &toll.partition)
            };
            let weight: u64 = call.tolls.iter().filter(is_there).map(|toll| toll.weight).sum();
            if weight > definition.capacity() || toll.weight == 0 {
                return Some(format!("{weight} never passes"));
            }
        }
        None
    }

    /// How deep each queue is.
    pub(super) fn depths(&self) -> BTreeMap<QueueName, u64> {
        self.queues.iter().map(|(name, queue)| (name.clone(), queue.depth)).collect()
    }

    /// No queue took more than it holds. One that was made shallower stays as deep as it was.
    pub(super) fn deepened(&self, before: &BTreeMap<QueueName, u64>) -> Checked {
        for (name, queue) in &self.queues {
            let (depth, most) = (queue.depth, queue.spec.depth_max);
            if depth > most && depth > before[name] {
                return Err(format!("a queue of {most} took calls until it held {depth}"));
            }
        }
        Ok(())
    }

    /// Whether a queue would become too deep. What is refused is refused whole: that shows in the
    /// ids of those that follow.
    pub(super) fn is_full(&self, act: &Act, queue: &QueueName, depth: u64) -> bool {
        let Some(book) = self.queues.get(queue) else { return false };
        let mut records = self.records.clone();
        let ended = act.count_down.iter().filter(|count| records.count(count) == 0);
        let new = act.enqueue.iter().chain(ended.map(|count| &count.then));
        let is_new = |call: &&NewCall| {
            let key = call.dedupe.clone().map(|key| (call.queue.clone(), key));
            call.queue == *queue && !key.is_some_and(|key| self.dedupes.contains_key(&key))
        };
        let revived = act.revive.iter().filter(|revive| {
            let id = usize::try_from(revive.call.0).ok().filter(|id| self.is_dead(*id));
            id.is_some_and(|id| self.calls[id].new.queue == *queue)
        });
        let coming = (new.filter(is_new).count() + revived.count()) as u64;
        book.spec.depth_max == depth && book.depth + coming > depth
    }
}
