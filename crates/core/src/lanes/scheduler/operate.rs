//! What an operator does to single meters: rules of their own, closing, reopening, resetting.

use super::Scheduler;
use super::overrides::Overrides;
use crate::contract::{MeterError, MeterName, REASON_CHARS_MAX};
use crate::lanes::effect::Effect;
use crate::limit::Definition;
use crate::meter::CLOSED_MAX;
use crate::name::{LimitName, Partition};
use crate::time::{Now, Span, Timestamp};

impl Scheduler {
    /// Gives one partition of a limit rules of its own, or takes them away (`None`). The limit is known,
    /// or there is nothing to take.
    pub(super) fn set_override(
        &mut self,
        limit: &LimitName,
        partition: &Partition,
        definition: Option<Definition>,
        now: Now,
    ) {
        let known = self.overrides(limit).and_then(|overrides| overrides.get(partition));
        if known != definition.as_ref() {
            let (limit, partition) = (limit.clone(), partition.clone());
            let definition = definition.map(Box::new);
            self.emit(Effect::PartitionDefined { limit, partition, definition, now });
        }
    }

    /// The partitions of a limit that have rules of their own.
    pub(super) fn overrides(&self, limit: &LimitName) -> Option<&Overrides> {
        self.meters.limit(limit).and_then(|limit| self.meters.book(limit).overrides())
    }

    /// Lets nothing pass a meter for so long, at most a day.
    pub fn close(
        &mut self,
        meter: &MeterName,
        span: Span,
        reason: &str,
        now: Now,
    ) -> Result<(), MeterError> {
        self.advance(now);
        self.check_defined(&meter.0)?;
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        let until = now.at.plus(span.min(CLOSED_MAX));
        self.emit(Effect::ClosedBy { meter: meter.clone(), until, reason: reason.into(), now });
        Ok(())
    }

    /// Ends a closure that an upstream or an operator asked for.
    pub fn reopen(&mut self, limit: &LimitName, partition: Option<&Partition>, now: Now) {
        self.advance(now);
        self.emit(Effect::Reopened { limit: limit.clone(), partition: partition.cloned() });
    }

    /// Forgets what was spent at a meter; slots stay held.
    pub fn reset(&mut self, meter: &MeterName, now: Now) -> Result<(), MeterError> {
        self.advance(now);
        self.check_defined(&meter.0)?;
        self.emit(Effect::Reset { meter: meter.clone(), now });
        Ok(())
    }

    fn check_defined(&self, limit: &LimitName) -> Result<(), MeterError> {
        match self.rules(limit, None, self.present) {
            Some(_) => Ok(()),
            None => Err(MeterError::UnknownLimit { limit: limit.clone() }),
        }
    }

    pub(super) fn partition_defined(
        &mut self,
        limit: &LimitName,
        partition: &Partition,
        definition: Option<&Definition>,
        now: Now,
    ) {
        let Some(limit) = self.meters.limit(limit) else { return };
        let limit = self.meters.override_partition(limit, partition, definition.cloned(), now);
        self.look_later(limit);
        if let Some(meter) = self.meters.find_at(limit, Some(partition)) {
            self.meter_changed(meter, true);
        }
    }

    pub(super) fn closed_by(
        &mut self,
        (limit, partition): &MeterName,
        until: Timestamp,
        reason: &str,
        now: Now,
    ) {
        let Some(limit) = self.meters.limit(limit) else { return };
        let meter = self.meters.at(limit, partition.as_ref());
        self.meters.change(meter, now, |meter, _| meter.close(until, reason, now.at));
        self.used(meter);
    }

    pub(super) fn reopened(&mut self, limit: &str, partition: Option<&Partition>) {
        let Some(meter) = self.meters.find(limit, partition) else { return };
        if let Some(meter) = &mut self.meters[meter].meter {
            meter.reopen();
        }
        self.refresh(meter);
    }

    pub(super) fn was_reset(&mut self, (limit, partition): &MeterName, now: Now) {
        let Some(meter) = self.meters.find(limit, partition.as_ref()) else { return };
        if self.meters[meter].meter.is_some() {
            self.meters.change(meter, now, |meter, definition| meter.reset(definition, now));
        }
        self.refresh(meter);
    }
}
