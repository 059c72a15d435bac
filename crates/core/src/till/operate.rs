//! Defining limits, and what operators do to meters.

use super::{KeptMeter, Till};
use crate::contract::{MeterError, MeterName, OVERRIDES_MAX, REASON_CHARS_MAX};
use crate::limit::Definition;
use crate::name::{LimitName, Partition};
use crate::time::{Now, Span};

impl Till {
    /// Defines a limit, changes or removes it: from now on, and for meters when they are used next.
    pub fn define(
        &mut self,
        name: &LimitName,
        definition: Option<Definition>,
    ) -> Result<(), MeterError> {
        let rules = self.limits.entry(name.clone()).or_default();
        let is_spread = definition.as_ref().map(|definition| definition.limit().is_spread());
        if rules.had_rules() && is_spread.is_some_and(|is_spread| is_spread != rules.is_spread()) {
            return Err(MeterError::SpreadStays { limit: name.clone() });
        }
        if rules.is_changed_by(definition.as_ref()) {
            rules.turn(rules.changed + 1, definition, self.now);
            self.changes.limits.insert(name.clone());
        }
        Ok(())
    }

    /// Gives one partition rules of its own, or takes them away.
    pub fn override_partition(
        &mut self,
        limit: &LimitName,
        partition: &Partition,
        definition: Option<Definition>,
    ) -> Result<(), MeterError> {
        let unknown = || MeterError::UnknownLimit { limit: limit.clone() };
        let now = self.now;
        let Some(rules) = self.limits.get_mut(limit) else {
            return if definition.is_some() { Err(unknown()) } else { Ok(()) };
        };
        if definition.is_some() && rules.in_force().is_none() {
            return Err(unknown());
        }
        let key = (limit.clone(), partition.clone());
        let own = self.own.entry(key.clone()).or_default();
        let (had, has) = (own.in_force().is_some(), definition.is_some());
        if has && !had && rules.own >= OVERRIDES_MAX as u64 {
            return Err(MeterError::TooManyOverrides { limit: limit.clone() });
        }
        if !own.is_changed_by(definition.as_ref()) {
            return Ok(());
        }
        rules.changed += 1;
        own.turn(rules.changed, definition, now);
        rules.own = rules.own.saturating_add(u64::from(has)).saturating_sub(u64::from(had));
        rules.has_own = true;
        self.changes.own.insert(key);
        self.changes.limits.insert(limit.clone());
        Ok(())
    }

    /// Lets nothing pass a meter for so long.
    pub fn close(&mut self, name: &MeterName, span: Span, reason: &str) -> Result<(), MeterError> {
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        self.operate(name, |kept, now| kept.meter.close(now.at.plus(span), &reason, now.at))
    }

    /// Forgets what was spent at a meter. Slots stay held, and a closure stays.
    pub fn reset(&mut self, name: &MeterName) -> Result<(), MeterError> {
        self.operate(name, |KeptMeter { meter, definition, .. }, now| meter.reset(definition, now))
    }

    fn operate(
        &mut self,
        name: &MeterName,
        change: impl FnOnce(&mut KeptMeter, Now),
    ) -> Result<(), MeterError> {
        let now = self.now;
        let unknown = || MeterError::UnknownLimit { limit: name.0.clone() };
        let place = self.at(name.clone()).ok_or_else(unknown)?;
        change(self.meters.changed(place), now);
        Ok(())
    }

    /// Ends the closure of a meter.
    pub fn reopen(&mut self, name: &MeterName) {
        let Some(place) = self.meters.place(name) else { return };
        if self.meters.kept_mut(place).meter.reopen() {
            self.meters.changed(place);
        }
    }
}
