//! Changes of limits with the records beside them: checked whole, then done whole.

use super::Scheduler;
use super::overrides::Overrides;
use crate::contract::{Configure, ConfigureError, MeterError, OVERRIDES_MAX};
use crate::name::{LimitName, Partition};
use crate::time::Now;
use std::collections::BTreeMap;

impl Scheduler {
    /// Changes limits and records, or nothing.
    pub fn configure(&mut self, change: Configure, now: Now) -> Result<(), ConfigureError> {
        self.advance(now);
        change.check_size()?;
        self.check_writes(&change.write)?;
        self.check_overrides(&change)?;
        let Configure { write, limits, overrides } = change;
        for write in write {
            self.write(write);
        }
        for (name, definition) in limits {
            self.define_limit(&name, definition, now);
        }
        for (limit, partition, definition) in overrides {
            self.set_override(&limit, &partition, definition, now);
        }
        self.rehead();
        Ok(())
    }

    /// Finds a partition whose limit will not be there, or would have too many with rules.
    fn check_overrides(&self, change: &Configure) -> Result<(), MeterError> {
        // What the partitions named so far will have, and how many of a limit will then.
        let mut named: BTreeMap<(&LimitName, &Partition), bool> = BTreeMap::new();
        let mut counts: BTreeMap<&LimitName, usize> = BTreeMap::new();
        for (limit, partition, definition) in &change.overrides {
            let is_there = match change.defines(limit) {
                Some(definition) => definition.is_some(),
                None => self.rules(limit, None, self.present).is_some(),
            };
            if definition.is_some() && !is_there {
                return Err(MeterError::UnknownLimit { limit: limit.clone() });
            }
            let overrides = self.overrides(limit);
            let count = counts.entry(limit).or_insert(overrides.map_or(0, Overrides::len));
            let has = || overrides.is_some_and(|all| all.get(partition).is_some());
            let had = named.insert((limit, partition), definition.is_some()).unwrap_or_else(has);
            match definition {
                Some(_) if !had && *count >= OVERRIDES_MAX => {
                    return Err(MeterError::TooManyOverrides { limit: limit.clone() });
                }
                Some(_) if !had => *count += 1,
                None if had => *count -= 1,
                _ => {}
            }
        }
        Ok(())
    }
}
