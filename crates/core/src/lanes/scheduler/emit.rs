//! Emitting effects: what lasts is changed, told and kept to be written down.

use super::Scheduler;
use super::calls::CallSlot;
use super::meters::QueueSlot;
use crate::lanes::call::{CallId, NewCall};
use crate::lanes::effect::Effect;
use crate::time::Timestamp;

impl Scheduler {
    /// What changed since this was asked last, in order. Kept until someone takes it: who needs none
    /// of it takes it all the same.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.watching.forget_time();
        std::mem::take(&mut self.effects)
    }

    /// As [`Self::take_effects`], into a list that was emptied: its memory is used again.
    pub fn swap_effects(&mut self, effects: &mut Vec<Effect>) {
        effects.clear();
        self.watching.forget_time();
        std::mem::swap(&mut self.effects, effects);
    }

    /// Changes what lasts, and says so.
    pub(super) fn emit(&mut self, effect: Effect) {
        self.tell_time(&effect);
        self.count_effect(&effect, None);
        self.apply(&effect);
        self.effects.push(effect);
    }

    /// As [`Self::emit`], of a call that was found: among millions, finding it is what costs most.
    pub(super) fn emit_of(&mut self, slot: CallSlot, effect: Effect) {
        self.tell_time(&effect);
        self.count_effect(&effect, Some(slot));
        self.observe(&effect, Some(slot));
        match &effect {
            Effect::Settled { actual, now, .. } => self.settled_at(slot, actual, *now),
            Effect::Ended { end, .. } => self.ended_at(slot, *end),
            other => self.happen(other),
        }
        self.effects.push(effect);
    }

    /// Changes and tells that a call was accepted, by a queue that was found.
    pub(super) fn emit_accepted(
        &mut self,
        queue: QueueSlot,
        call: Box<NewCall>,
        arrival: Option<u64>,
        remembered: Timestamp,
    ) -> CallId {
        let id = CallId(self.ids);
        let may_be_told = self.may_tell_accepted(&call);
        let effect = Effect::Accepted { id, call, arrival, remembered };
        if may_be_told {
            self.tell_time(&effect);
            self.observe(&effect, None);
        }
        if let Effect::Accepted { call, .. } = &effect {
            self.accepted_by(queue, (id, call), arrival, remembered);
        }
        self.effects.push(effect);
        id
    }

    /// Says when it is, if an effect that follows tells something and does not.
    fn tell_time(&mut self, effect: &Effect) {
        if self.lacks_time(effect) {
            let timed = Effect::Timed(self.present);
            self.apply(&timed);
            self.effects.push(timed);
        }
    }
}
