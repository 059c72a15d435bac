//! What an operator does to single meters.

use super::{MeterKey, Naive, Stand};
use crate::contract::{MeterError, MeterName, OVERRIDES_MAX, REASON_CHARS_MAX};
use crate::lanes::call::CallId;
use crate::limit::Definition;
use crate::meter::Meter;
use crate::name::{LimitName, Partition};
use crate::time::{Now, Span};

impl Naive {
    /// Gives one partition of a limit rules of its own, or takes them away.
    pub(super) fn override_partition(
        &mut self,
        limit: &LimitName,
        partition: &Partition,
        definition: Option<Definition>,
        now: Now,
    ) -> Result<(), MeterError> {
        // Of a limit that was removed, the last one there was counts.
        let last = self.limits.get(limit).map(|limit| limit.definition.clone());
        let common = self.common(limit).cloned().or(last.filter(|_| definition.is_none()));
        let Some(common) = common else {
            let unknown = MeterError::UnknownLimit { limit: limit.clone() };
            return definition.map_or(Ok(()), |_| Err(unknown));
        };
        let key = (limit.clone(), Some(partition.clone()));
        let count = self.overrides.keys().filter(|(of, _)| of == limit).count();
        let is_new = definition.is_some() && !self.overrides.contains_key(&key);
        if is_new && count >= OVERRIDES_MAX {
            return Err(MeterError::TooManyOverrides { limit: limit.clone() });
        }
        let before = self.overrides.get(&key).unwrap_or(&common).clone();
        let after = definition.as_ref().unwrap_or(&common);
        if let Some(meter) = self.meters.get_mut(&key).filter(|_| before != *after) {
            meter.carry(&before, after, now);
        }
        match definition {
            Some(definition) => self.overrides.insert(key.clone(), definition),
            None => self.overrides.remove(&key),
        };
        self.stand_again(&key);
        Ok(())
    }

    /// The rules of a meter changed: who is there stands there, or is shut out.
    fn stand_again(&mut self, key: &MeterKey) {
        let heads = self.heads.iter();
        let is_here = |stand: &Stand| match stand {
            Stand::Parked(meter) | Stand::At(meter, _) => meter == key,
            Stand::Ready => false,
        };
        let here: Vec<CallId> =
            heads.filter(|(_, head)| is_here(&head.stand)).map(|(id, _)| *id).collect();
        for id in here {
            self.stand_at(id, key);
        }
    }

    /// Lets nothing pass a meter for so long.
    pub fn close(
        &mut self,
        meter: &MeterName,
        span: Span,
        reason: &str,
        now: Now,
    ) -> Result<(), MeterError> {
        self.advance(now);
        let Some(definition) = self.definition(meter).cloned() else {
            return Err(MeterError::UnknownLimit { limit: meter.0.clone() });
        };
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        let fresh = || Meter::new(&definition, now.at);
        let meter = self.meters.entry(meter.clone()).or_insert_with(fresh);
        meter.close(now.at.plus(span), &reason, now.at);
        Ok(())
    }

    /// Ends the closure of a meter.
    pub fn reopen(&mut self, limit: &LimitName, partition: Option<&Partition>, now: Now) {
        self.advance(now);
        if let Some(meter) = self.meters.get_mut(&(limit.clone(), partition.cloned())) {
            meter.reopen();
        }
    }

    /// Forgets what was spent at a meter.
    pub fn reset(&mut self, meter: &MeterName, now: Now) -> Result<(), MeterError> {
        self.advance(now);
        let Some(definition) = self.definition(meter).cloned() else {
            return Err(MeterError::UnknownLimit { limit: meter.0.clone() });
        };
        if let Some(meter) = self.meters.get_mut(meter) {
            meter.reset(&definition, now);
        }
        Ok(())
    }
}
