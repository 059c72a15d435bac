//! Limits that come along with calls, and go with them.

use super::ways::lines;
use super::{MeterKey, Naive, State};
use crate::lanes::act::Act;
use crate::lanes::call::NewCall;
use crate::limit::Definition;
use crate::name::LimitName;
use crate::time::Now;

/// Limits that an act brings along.
pub(super) type Coming = [(LimitName, Definition)];

impl Naive {
    /// The rules that a meter follows once these limits have come along.
    pub(super) fn coming_definition<'a>(
        &'a self,
        meter: &MeterKey,
        coming: &'a Coming,
    ) -> Option<&'a Definition> {
        let stands = |limit: &super::KnownLimit| limit.is_defined && !limit.is_transient;
        match coming.iter().rfind(|(name, _)| *name == meter.0) {
            Some((name, new)) if !self.limits.get(name).is_some_and(stands) => {
                Some(self.overrides.get(meter).unwrap_or(new))
            }
            _ => self.definition(meter),
        }
    }

    /// Whether a limit went with its calls: nobody needs it, and nothing is known of it.
    pub(super) fn has_gone(&self, name: &LimitName, now: Now) -> bool {
        let Some(limit) = self.limits.get(name) else { return false };
        if !limit.is_transient || limit.is_paused {
            return false;
        }
        let is_owed = self.calls.values().any(|call| {
            let owes = || lines(&call.new.tolls).iter().any(|line| line.meter.0 == *name);
            !matches!(call.state, State::Ended(_)) && owes()
        });
        let mut meters = self.meters.iter().filter(|((of, _), _)| of == name);
        !is_owed
            && self.overrides.keys().all(|(of, _)| of != name)
            && meters.all(|(_, meter)| meter.is_forgettable(&limit.definition, now))
    }

    /// What is left of a limit that has gone counts for nobody.
    pub(super) fn begin_anew(&mut self, name: &LimitName, now: Now) {
        if self.has_gone(name, now) {
            self.totals.remove(name);
            self.meters.retain(|(of, _), _| of != name);
        }
    }

    /// Forgets limits that have gone and that calls of an act may wait for.
    pub(super) fn let_go(&mut self, act: &Act, now: Now) {
        let limits = act.new_calls().flat_map(|new| self.limits_of(new, act)).collect::<Vec<_>>();
        for limit in limits {
            let comes = act.define.iter().any(|(name, _)| *name == limit);
            if !comes && self.has_gone(&limit, now) {
                self.begin_anew(&limit, now);
                self.limits.remove(&limit);
            }
        }
    }

    /// Where a new call will owe, for itself and for its queue.
    fn limits_of(&self, new: &NewCall, act: &Act) -> Vec<LimitName> {
        let estimate = |limit: &_, partition: Option<&_>| {
            self.estimate(&new.queue, (limit, partition), &act.define)
        };
        let queue = self.queues.get(&new.queue);
        let tolls = queue.and_then(|queue| queue.spec.tolls_of(new, &estimate).ok());
        tolls.iter().flat_map(|tolls| tolls.iter()).map(|toll| toll.limit.clone()).collect()
    }

    /// Defines a limit that comes along with calls, unless it stands in its own right.
    pub(super) fn come(&mut self, name: &LimitName, definition: &Definition, now: Now) {
        let known = self.limits.get(name);
        if known.is_some_and(|limit| limit.is_defined && !limit.is_transient) {
            return;
        }
        self.set_definition(name, definition.clone(), now, true);
        self.limit_changed(name, true);
    }
}
