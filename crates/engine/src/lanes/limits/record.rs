//! What is written down of a limit, beside what the store has in force.

use super::checked;
use crate::error::Error;
use crate::lanes::audit::Altered;
use crate::limits::{Change, HISTORY_MAX, LimitState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tollgate_core::contract::{Configure, LimitTotals, StoreError};
use tollgate_core::{Definition, Limit, LimitName, Partition, Timestamp};

/// What is written down of a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LimitRecord {
    /// What callers defined last.
    pub(super) defined: Option<Limit>,
    /// What an operator put over it.
    pub(super) pinned: Option<Limit>,
    /// Partitions with a definition of their own.
    pub(super) overrides: BTreeMap<String, Limit>,
    /// The latest changes, oldest first.
    history: Vec<Change>,
}

impl LimitRecord {
    /// One that came along with calls and has no record yet.
    pub(super) fn of(defined: Limit) -> Self {
        Self { defined: Some(defined), ..Self::default() }
    }

    pub(super) fn in_force(&self) -> Option<Limit> {
        let defined = self.defined.as_ref()?;
        Some(self.pinned.as_ref().map_or_else(|| defined.clone(), |pinned| defined.under(pinned)))
    }

    /// What is in force, as stores know it.
    pub(super) fn definition(&self, name: &LimitName) -> Result<Option<Definition>, Error> {
        Ok(self.in_force().map(|limit| checked(name, &limit)).transpose()?)
    }

    /// What changes of the limit and its partitions when it becomes another.
    pub(super) fn changed_to(&self, after: &Self, name: &LimitName) -> Result<Configure, Error> {
        let mut change = Configure::default();
        if self.in_force() != after.in_force() {
            change.limits.push((name.clone(), after.definition(name)?));
        }
        let gone = self.overrides.keys().filter(|it| !after.overrides.contains_key(*it));
        for partition in gone {
            change.overrides.push((name.clone(), Partition::new(partition)?, None));
        }
        let own = after.overrides.iter().filter(|(it, own)| self.overrides.get(*it) != Some(own));
        for (partition, own) in own {
            let (partition, own) = (Partition::new(partition)?, checked(name, own)?);
            change.overrides.push((name.clone(), partition, Some(own)));
        }
        Ok(change)
    }

    /// Changes it, and notes who changed what is in force.
    pub(super) fn change(&mut self, who: &str, at: Timestamp, change: impl FnOnce(&mut Self)) {
        let before = self.in_force();
        change(self);
        let after = self.in_force();
        if before != after {
            self.history.push(Change { at, who: who.to_owned(), before, after });
            let surplus = self.history.len().saturating_sub(HISTORY_MAX);
            self.history.drain(..surplus);
        }
    }

    /// The latest change of what is in force.
    pub(super) fn latest(&self) -> Option<&Change> {
        self.history.last()
    }

    /// What one change made of it, for the audit log.
    pub(super) fn altered(&self, after: &Self, name: &LimitName) -> Altered {
        let limit = name.as_str().to_owned();
        let of = |limit: &Option<Limit>| limit.clone();
        if self.defined == after.defined && self.pinned != after.pinned {
            let (before, after) = (of(&self.pinned), of(&after.pinned));
            return Altered::Pin { name: limit, before, after };
        }
        let own = |record: &Self, partition: &String| record.overrides.get(partition).cloned();
        let mut partitions = self.overrides.keys().chain(after.overrides.keys());
        let changed = partitions.find(|it| own(self, it) != own(after, it));
        match changed.filter(|_| self.defined == after.defined) {
            Some(partition) => Altered::Override {
                name: limit,
                partition: partition.clone(),
                before: own(self, partition),
                after: own(after, partition),
            },
            None => {
                let (before, after) = (of(&self.defined), of(&after.defined));
                Altered::Limit { name: limit, before, after }
            }
        }
    }

    /// The limit as it stands: with whether it is held back and what was counted, if the store knows.
    pub(super) fn state(
        self,
        name: &LimitName,
        seen: Option<(bool, LimitTotals)>,
    ) -> Option<LimitState> {
        let Self { defined, pinned, overrides, history } = self;
        let (name, overrides) = (name.as_str().into(), overrides.into_iter().collect());
        let (is_paused, totals) = seen.unwrap_or_default();
        let totals = Some(totals);
        let defined = defined?;
        Some(LimitState { name, defined, pinned, overrides, history, is_paused, totals })
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(bytes).map_err(damaged)
    }

    pub(super) fn written(&self) -> Result<Box<[u8]>, Error> {
        Ok(serde_json::to_vec(self).map_err(damaged)?.into())
    }
}

fn damaged(error: serde_json::Error) -> Error {
    let reason = format!("the record of a limit cannot be read or written: {error}");
    StoreError::Failed { reason }.into()
}
