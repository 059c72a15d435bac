//! The dead: calls that are not tried again, and those of them that are tried again all the same.

use super::{Call, Naive, State};
use crate::lanes::act::{Act, Revive};
use crate::lanes::call::{CallId, Death, DeathCause, End};
use crate::lanes::event::What;
use crate::lanes::queue::OnDead;
use crate::name::QueueName;
use crate::time::Now;

impl Naive {
    /// A call dies; it may hold its lane, and another may have to go for it.
    pub(super) fn die(&mut self, id: CallId, cause: DeathCause, now: Now) {
        let Some(attempts) = self.calls.get(&id).map(Call::tried) else { return };
        self.tell(id, now, What::Ended { end: End::Dead, attempts });
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.state = State::Dead(Death { cause, at: now.at });
        // Once started a call does not expire, nor is it superseded: so it stays when it is revived.
        (call.new.expires, call.new.supersedes) = (None, None);
        self.ended.push((id, End::Dead));
        let (queue, lane) = (call.new.queue.clone(), call.lane_key());
        let holds = self.queues.get(&queue).is_some_and(|it| it.spec.on_dead == OnDead::Hold);
        if holds {
            self.lanes.entry(lane).or_default().is_held = true;
        }
        self.drop_dead(&queue);
    }

    /// Those that died first go until there are no more than the queue keeps.
    pub(super) fn drop_dead(&mut self, queue: &QueueName) {
        let Some(most) = self.queues.get(queue).map(|queue| queue.spec.dead_max) else { return };
        let of_queue = self.calls.values().filter(|call| call.new.queue == *queue);
        let mut dead: Vec<_> = of_queue
            .filter_map(|call| match call.state {
                State::Dead(death) => Some((death.at, call.id)),
                _ => None,
            })
            .collect();
        dead.sort_unstable();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let beyond = dead.len().saturating_sub(most);
        for (_, id) in dead.into_iter().take(beyond) {
            self.end_call(id, End::Dropped);
        }
    }

    /// A dead call waits again; says whether it was dead.
    pub(super) fn revive(&mut self, revive: &Revive, now: Now) -> bool {
        let Some(call) = self.calls.get(&revive.call).filter(|call| call.is_dead()) else {
            return false;
        };
        let (key, old) = (call.lane_key(), call.arrival);
        let was_held = self.lanes.get(&key).is_some_and(|lane| lane.is_held);
        let is_due = revive.not_before.is_none_or(|not_before| not_before <= now.wall);
        let arrival = match (is_due, was_held) {
            (false, _) => None,
            (true, true) => old,
            (true, false) => Some(self.take_arrival()),
        };
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.is_held = false;
        }
        let Some(call) = self.calls.get_mut(&revive.call) else { return false };
        (call.arrival, call.new.not_before) = (arrival, revive.not_before);
        (call.state, call.came_back, call.backoff) = (State::Waiting, false, None);
        call.attempts = crate::lanes::call::Attempts::default();
        self.tell(revive.call, now, What::Revived);
        true
    }

    /// The queues of the calls that an act revives: dead before it, not gone in it, each once.
    pub(super) fn revived_queues(&self, act: &Act) -> Vec<QueueName> {
        let mut seen = [&act.cancel[..], &act.delete].concat();
        let mut queues = Vec::new();
        for id in act.revive.iter().map(|revive| revive.call) {
            let dead = self.calls.get(&id).filter(|call| call.is_dead());
            if let Some(call) = dead.filter(|_| !seen.contains(&id)) {
                seen.push(id);
                queues.push(call.new.queue.clone());
            }
        }
        queues
    }
}

impl Call {
    /// Whether it is among the dead.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead(_))
    }
}
