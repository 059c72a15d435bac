//! New calls: duplicates, calls that take another's place, and joins that come to zero.

use super::perform::Performed;
use super::ways::{Line, lines};
use super::{Call, Naive, State};
use crate::lanes::act::Count;
use crate::lanes::call::{Attempts, CallId, End, NewCall};
use crate::lanes::event::{BEGINS_BYTES_MAX, What};
use crate::lanes::payload::Payload;
use crate::time::Now;
use std::borrow::Cow;

impl Naive {
    /// Takes a new call, or finds the one that it repeats.
    pub(super) fn enqueue(&mut self, new: &NewCall, now: Now, done: &mut Performed) -> CallId {
        if let Some(first) = self.duplicated(new) {
            return first;
        }
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.remember_dedupe(id, new, now);
        let superseded = self.superseded(new);
        let taken_over = superseded.as_ref().and_then(|old| old.arrival);
        match &superseded {
            Some(old) => self.end_call(old.id, End::Superseded),
            None => done.deepened.push(new.queue.clone()),
        }
        let is_due = new.not_before.is_none_or(|not_before| not_before <= now.wall);
        let arrival = is_due.then(|| taken_over.unwrap_or_else(|| self.take_arrival()));
        let mut new = new.clone();
        let spec = self.queues.get(&new.queue).map(|queue| &queue.spec);
        // The act was checked.
        if let Some(Ok(tolls)) = spec.map(|spec| {
            let estimate = |limit: &_, partition: Option<&_>| {
                self.estimate(&new.queue, (limit, partition), &done.coming)
            };
            spec.tolls_of(&new, &estimate).map(Cow::into_owned)
        }) {
            new.tolls = tolls.into();
        }
        let tells = self.queues.get(&new.queue).is_some_and(|queue| queue.spec.tells_accepted);
        let tells = tells && !new.payload.envelope().is_empty();
        let payload = if tells { new.payload.told() } else { Payload::default() };
        let call = Call {
            id,
            new,
            arrival,
            attempts: Attempts::default(),
            came_back: false,
            backoff: None,
            state: State::Waiting,
        };
        self.calls.insert(id, call);
        self.tell(id, now, What::Enqueued { payload });
        self.tell_unknown(id, now);
        id
    }

    /// Tells at which limits that nobody defined a new call owes.
    fn tell_unknown(&mut self, id: CallId, now: Now) {
        let Some(new) = self.calls.get(&id).map(|call| call.new.clone()) else { return };
        for Line { meter, .. } in lines(&new.tolls) {
            if self.definition(&meter).is_none() {
                let begins = new.payload.body().iter().take(BEGINS_BYTES_MAX).copied().collect();
                let (limit, partition) = meter;
                self.tell(id, now, What::Unknown { limit, partition, begins });
            }
        }
    }

    /// A join comes one closer.
    pub(super) fn count(
        &mut self,
        count: &Count,
        now: Now,
        done: &mut Performed,
    ) -> (u64, Option<CallId>) {
        let before = self.joins.get(&count.key).copied().unwrap_or(count.from);
        let left = before.saturating_sub(1);
        if left > 0 {
            self.joins.insert(count.key.clone(), left);
            return (left, None);
        }
        self.joins.remove(&count.key);
        (0, Some(self.enqueue(&count.then, now, done)))
    }

    pub(super) fn duplicated(&self, new: &NewCall) -> Option<CallId> {
        let key = new.dedupe.clone()?;
        self.dedupes.get(&(new.queue.clone(), key)).map(|(first, _)| *first)
    }

    fn remember_dedupe(&mut self, id: CallId, new: &NewCall, now: Now) {
        let Some(queue) = self.queues.get(&new.queue) else { return };
        if let Some(key) = new.dedupe.clone() {
            let until = now.at.plus(queue.spec.dedupe);
            self.dedupes.insert((new.queue.clone(), key), (id, until));
        }
    }

    /// The call whose place a new one takes. A call that was handed back unstarted can leave two of
    /// one key: the younger is meant.
    fn superseded(&self, new: &NewCall) -> Option<Call> {
        let key = new.supersedes.as_ref()?;
        let mut same = self.calls.values().filter(|call| {
            call.never_started()
                && call.new.queue == new.queue
                && call.new.lane == new.lane
                && call.new.supersedes.as_ref() == Some(key)
        });
        same.next_back().cloned()
    }
}
