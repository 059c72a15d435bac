//! Acts of one call or one settlement, as most are: they do what such an act needs and no more, for a thousand of
//! them in a row do best if all that is done fits the processor's caches.

use super::Scheduler;
use crate::lanes::act::{Act, ActError, Acted, Door, FITS_BYTES};
use crate::time::Now;
use crate::tolls::Tolls;

impl Scheduler {
    /// Makes an act that enqueues one call.
    pub(super) fn make_call(&mut self, act: &mut Act, now: Now) -> Result<Acted, ActError> {
        let Some(call) = act.enqueue.last() else { return self.make_any(act, now) };
        if call.payload.bytes() > FITS_BYTES {
            act.check_size()?;
        }
        let (queue, tolls) = self.check_call(0, call, (&[], Door::Refuses))?;
        let is_one_more =
            self.duplicate(queue, call).is_none() && self.replaced(queue, call).is_none();
        self.check_room(queue, u64::from(is_one_more))?;
        let mut acted = Acted::default();
        self.watching.enter(Door::Refuses);
        if let Some(mut call) = act.enqueue.pop() {
            call.tolls = tolls.map_or(call.tolls, Tolls::from);
            self.enqueue(queue, call, now).tell(&mut acted);
        }
        self.rehead();
        Ok(acted)
    }

    /// Makes an act that settles one start.
    pub(super) fn make_settlement(&mut self, act: &mut Act, now: Now) -> Result<Acted, ActError> {
        let Some(settle) = act.settle.last() else { return self.make_any(act, now) };
        if settle.report.len() > FITS_BYTES {
            act.check_size()?;
        }
        let found = self.in_flight(settle.lease);
        let slot = found.ok_or(ActError::LeaseLost { at: 0 })?;
        self.check_actual(0, slot, settle)?;
        self.watching.enter(Door::Refuses);
        if let Some(settle) = act.settle.pop() {
            self.settle_at(slot, settle, now);
        }
        self.rehead();
        Ok(Acted::default())
    }
}
