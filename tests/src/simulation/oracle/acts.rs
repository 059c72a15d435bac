//! Acts: done whole, or refused whole for a reason that is true.

use super::Oracle;
use super::calls::Line;
use crate::simulation::run::Checked;
use tollgate_core::lanes::{Act, ActError, Acted, Settle};
use tollgate_core::{LimitName, Now};

impl Oracle {
    /// Whatever is refused changes nothing: that shows in all that follows.
    pub(super) fn acted(
        &mut self,
        act: &Act,
        answer: &Result<Acted, ActError>,
        now: Now,
    ) -> Checked {
        match answer {
            Ok(acted) => self.done(act, acted, now),
            Err(error) if self.is_right(act, error) => Ok(()),
            Err(error) => Err(format!("an act is refused without a reason: {error}")),
        }
    }

    fn done(&mut self, act: &Act, acted: &Acted, now: Now) -> Checked {
        let Acted { enqueued, duplicates, cancelled, deleted, revived, written, counted } = acted;
        let ended = [cancelled.len(), deleted.len()];
        let answered = (ended, [enqueued.len(), revived.len(), written.len(), counted.len()]);
        let Act { enqueue, cancel, delete, revive, write, count_down, .. } = act;
        let ended = [cancel.len(), delete.len()];
        let asked = (ended, [enqueue.len(), revive.len(), write.len(), count_down.len()]);
        if answered != asked {
            return Err(format!("an act of {asked:?} parts is answered with {answered:?}"));
        }
        let depths = self.depths();
        for settle in &act.settle {
            self.settled(settle, now)?;
        }
        for (id, was_there) in cancel.iter().zip(cancelled) {
            self.cancelled(*id, *was_there)?;
        }
        for (id, was_dead) in delete.iter().zip(deleted) {
            self.deleted(*id, *was_dead)?;
        }
        for (revive, was_dead) in revive.iter().zip(revived) {
            self.revived(revive, *was_dead, now)?;
        }
        for (write, revision) in write.iter().zip(written) {
            self.records.written(write, *revision)?;
        }
        let mut known = Vec::new();
        for (at, (call, id)) in enqueue.iter().zip(enqueued).enumerate() {
            let before = self.calls.len();
            self.accepted(call, *id, now)?;
            known.extend((self.calls.len() == before).then_some(at));
        }
        if known != *duplicates {
            return Err(format!("{known:?} are duplicates, and {duplicates:?} were told"));
        }
        for (count, (left, call)) in count_down.iter().zip(counted) {
            if let Some(fault) = self.fault(&count.then) {
                return Err(format!("a join counts although {fault}"));
            }
            let due = self.records.count(count);
            if (*left, call.is_some()) != (due, due == 0) {
                return Err(format!("a join ends once: {left} left instead of {due}, {call:?}"));
            }
            if let Some(id) = call {
                self.accepted(&count.then, *id, now)?;
            }
        }
        self.deepened(&depths)
    }

    fn settled(&mut self, settle: &Settle, now: Now) -> Checked {
        let lease = settle.lease;
        let Some(id) = self.held(lease) else {
            return Err(format!("a lost lease settles nothing: {lease:?} is lost"));
        };
        if let Some((limit, _)) = settle.actual.iter().find(|(limit, _)| !self.pays(id, limit)) {
            return Err(format!("{lease:?} settles at {limit}, where it paid nothing"));
        }
        self.settle(id, settle, now);
        Ok(())
    }

    fn pays(&self, id: usize, limit: &LimitName) -> bool {
        let is_there = |line: &Line| self.limits[self.meters[line.meter].limit].name == *limit;
        self.calls[id].lines.iter().any(is_there)
    }

    /// Whether what an act is refused for is so.
    fn is_right(&self, act: &Act, error: &ActError) -> bool {
        match error {
            ActError::LeaseLost { at } => {
                let lease = act.settle[*at].lease;
                let is_again = act.settle[..*at].iter().any(|other| other.lease == lease);
                is_again || self.held(lease).is_none()
            }
            ActError::NotPaid { at, limit } => {
                self.held(act.settle[*at].lease).is_some_and(|id| !self.pays(id, limit))
            }
            ActError::RevisionDiffers { at, found } => {
                let mut records = self.records.clone();
                for write in &act.write[..*at] {
                    records.write(write);
                }
                let Some(write) = act.write.get(*at) else { return false };
                records.revision(&write.key) == *found && *found != write.expected
            }
            ActError::CountFromZero { at } => {
                let mut records = self.records.clone();
                for count in &act.count_down[..*at] {
                    records.count(count);
                }
                let Some(count) = act.count_down.get(*at) else { return false };
                count.from == 0 && records.left(&count.key) == 0
            }
            ActError::QueueFull { queue, depth } => self.is_full(act, queue, *depth),
            ActError::UnknownQueue { at, .. } | ActError::Toll { at, .. } => {
                let new = act.enqueue.get(*at);
                let then = act.count_down.get(*at).map(|count| &count.then);
                new.into_iter().chain(then).any(|call| self.fault(call).is_some())
            }
            _ => false,
        }
    }
}
