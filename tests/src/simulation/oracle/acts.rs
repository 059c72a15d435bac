//! What is accepted and what is refused: ids, duplicates, replacements, full queues.

use super::Oracle;
use super::calls::{Call, Line};
use crate::simulation::run::Checked;
use tollgate_core::lanes::{ActError, Attempts, CallId, End, NewCall, QueueSpec};
use tollgate_core::{Key, Now, QueueName, Timestamp};

impl Oracle {
    pub(super) fn spec_of(&self, id: usize) -> &QueueSpec {
        &self.queues[&self.lanes[self.calls[id].lane].queue].spec
    }

    /// Calls of a queue that have not ended.
    fn depth(&self, call: &NewCall) -> usize {
        self.open.iter().filter(|id| self.calls[**id].new.queue == call.queue).count()
    }

    pub(super) fn accepted(&mut self, calls: &[NewCall], ids: &[CallId], now: Now) -> Checked {
        if calls.len() != ids.len() {
            return Err(format!("{} calls and {} ids", calls.len(), ids.len()));
        }
        for (call, id) in calls.iter().zip(ids) {
            if let Some(fault) = self.fault(call) {
                return Err(format!("call {} was accepted although {fault}", id.0));
            }
            self.accept(call, *id, now)?;
        }
        for call in calls {
            let most = self.queues[&call.queue].spec.depth_max;
            let depth = self.depth(call);
            if depth as u64 > most {
                return Err(format!("a queue of {most} took calls until it held {depth}"));
            }
        }
        Ok(())
    }

    fn accept(&mut self, new: &NewCall, id: CallId, now: Now) -> Checked {
        let key = new.dedupe.clone().map(|key| (new.queue.clone(), key));
        let first = key.as_ref().and_then(|key| self.dedupes.get(key)).map(|(first, _)| *first);
        let next = CallId(self.calls.len() as u64);
        let due = first.unwrap_or(next);
        if due != id {
            return Err(format!("a duplicate is the first call: {} instead of {}", id.0, due.0));
        }
        if first.is_some() {
            return Ok(());
        }
        if let Some(key) = key {
            self.remember(key, id, now);
        }
        let lane = self.lane(&new.queue, &new.lane);
        self.supersede(new, lane);
        let lines = self.lines(new);
        self.open.push(self.calls.len());
        self.calls.push(Call {
            id,
            new: new.clone(),
            lane,
            lines,
            attempts: Attempts::default(),
            has_joined: new.not_before.is_none_or(|due| due <= now.wall),
            has_started: false,
            is_cancelled: false,
            rests_until: Timestamp::default(),
            flight: None,
            end: None,
        });
        Ok(())
    }

    fn remember(&mut self, key: (QueueName, Key), id: CallId, now: Now) {
        let until = now.at.plus(self.queues[&key.0].spec.dedupe);
        self.dedupes.insert(key, (id, until));
    }

    fn supersede(&mut self, new: &NewCall, lane: usize) {
        let Some(key) = &new.supersedes else { return };
        let is_replaced = |id: &usize| {
            let call = &self.calls[*id];
            call.lane == lane && !call.has_started && call.new.supersedes.as_ref() == Some(key)
        };
        if let Some(id) = self.open.iter().copied().find(is_replaced) {
            self.end(id, End::Superseded);
        }
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
    fn fault(&mut self, call: &NewCall) -> Option<String> {
        for line in self.lines(call) {
            let limit = &self.limits[self.meters[line.meter].limit];
            match &limit.definition {
                None => return Some("a limit is missing".to_owned()),
                Some(definition) if line.weight > definition.capacity() => {
                    return Some(format!("{} never passes", line.weight));
                }
                Some(_) => {}
            }
        }
        None
    }

    /// An array that is refused is refused for a reason. That it is refused whole shows in the ids
    /// of those that follow.
    pub(super) fn refused(&mut self, calls: &[NewCall], error: &ActError) -> Checked {
        let is_right = match error {
            ActError::Toll { at, .. } => self.fault(&calls[*at]).is_some(),
            ActError::QueueFull { queue, .. } => {
                let mine = calls.iter().filter(|call| call.queue == *queue);
                let depth = mine.clone().next().map_or(0, |call| self.depth(call));
                (depth + mine.count()) as u64 > self.queues[queue].spec.depth_max
            }
            _ => false,
        };
        if is_right { Ok(()) } else { Err(format!("refused without a reason: {error}")) }
    }
}
