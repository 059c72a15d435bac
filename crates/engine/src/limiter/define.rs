//! Defining limits: live, pinned, overridden for a partition, removed.

use super::{Inner, Limiter};
use crate::ask::{LimitRef, Toll};
use crate::error::{AskError, Error, StoreError};
use crate::limits::{Edit, Entry, LimitState, UNSAID};
use std::sync::Arc;
use tollgate_core::name::check_name;
use tollgate_core::{Definition, Limit, LimitName, Partition};

impl Limiter {
    /// Whether a limit is defined so.
    pub fn is_defined_as(&self, name: &str, limit: &Limit) -> bool {
        self.inner.limits.find(name).is_some_and(|entry| entry.is_defined_as(limit))
    }

    /// Defines a limit, or changes it: at once, for waiting calls too, keeping what was spent.
    pub fn define(&self, name: &str, limit: Limit) -> Result<LimitRef, Error> {
        self.define_as(UNSAID, name, limit)
    }

    /// Defines a limit and writes down who did.
    pub fn define_as(&self, who: &str, name: &str, limit: Limit) -> Result<LimitRef, Error> {
        let entry = self.inner.define(who, name, limit)?;
        Ok(LimitRef { entry })
    }

    /// Puts a value over what callers define, until it is unpinned. The limit must exist.
    pub fn pin(&self, who: &str, name: &str, limit: Limit) -> Result<(), AskError> {
        let definition = checked(name, limit)?;
        self.inner.edit_known(who, name, Edit::Pin(Some(definition)))
    }

    /// Lets what callers define be in force again.
    pub fn unpin(&self, who: &str, name: &str) -> Result<(), AskError> {
        self.inner.edit_known(who, name, Edit::Pin(None))
    }

    /// Removes a limit with all its meters: what was spent is forgotten, and calls that wait for it
    /// wait until it is defined again.
    pub fn remove(&self, who: &str, name: &str) -> Result<(), AskError> {
        self.inner.edit_known(who, name, Edit::Remove)?;
        self.inner.limits.forget(name);
        Ok(())
    }

    /// Gives one partition a definition of its own, keeping what it spent; `None` takes it away.
    pub fn override_partition(
        &self,
        name: &str,
        partition: &str,
        limit: Option<Limit>,
    ) -> Result<(), AskError> {
        Partition::new(partition)?;
        let definition = limit.map(|limit| checked(name, limit)).transpose()?;
        let entry = self.inner.known(name)?;
        let address = entry.address(Some(partition));
        {
            let mut shard = entry.lock(address);
            let now = self.inner.settings.clock.both();
            shard.override_key(address.hash, address.key, definition, now);
        }
        self.inner.wake_entry(&entry);
        Ok(())
    }

    /// The limit as it stands, with its history; `None` if there is none of that name.
    pub fn limit(&self, name: &str) -> Option<LimitState> {
        self.inner.limits.find(name)?.state()
    }

    /// A reference that tolls can use instead of the name; `None` if there is no such limit.
    pub fn limit_ref(&self, name: &str) -> Option<LimitRef> {
        let entry = self.inner.limits.find(name)?;
        entry.is_defined().then_some(LimitRef { entry })
    }

    /// All limits, sorted by name.
    pub fn limits(&self) -> Vec<LimitState> {
        let entries = self.inner.limits.all();
        let mut states: Vec<_> = entries.iter().filter_map(|entry| entry.state()).collect();
        states.sort_by(|a, b| a.name.cmp(&b.name));
        states
    }
}

impl Inner {
    fn define(self: &Arc<Self>, who: &str, name: &str, limit: Limit) -> Result<Arc<Entry>, Error> {
        let checked_name = LimitName::new(name).map_err(AskError::from)?;
        let definition = checked(name, limit)?;
        let limits = self.settings.limits_max;
        let entry = self.limits.find_or_make(&checked_name, limits);
        let entry = entry.ok_or(StoreError::LimitsFull { limits })?;
        self.edit(&entry, who, Edit::Define(definition));
        Ok(entry)
    }

    /// The entry of a toll, defined along the way if the toll says how.
    pub(crate) fn resolve(self: &Arc<Self>, toll: &Toll<'_>) -> Result<Arc<Entry>, Error> {
        if let Some(partition) = toll.partition {
            check_name("partition", partition).map_err(AskError::from)?;
        }
        let found = match toll.limit {
            crate::ask::Named::Ref(limit) => Some(limit.entry.clone()),
            crate::ask::Named::Name(name) => self.limits.find(name),
        };
        match (toll.definition, found) {
            (None, Some(entry)) => Ok(entry),
            (None, None) => Err(unknown(toll.name()).into()),
            (Some(limit), Some(entry)) if entry.is_defined_as(limit) => Ok(entry),
            (Some(limit), _) => self.define("inline", toll.name(), limit.clone()),
        }
    }

    pub(crate) fn known(&self, name: &str) -> Result<Arc<Entry>, AskError> {
        let found = self.limits.find(name).filter(|entry| entry.is_defined());
        found.ok_or_else(|| unknown(name))
    }

    fn edit_known(self: &Arc<Self>, who: &str, name: &str, edit: Edit) -> Result<(), AskError> {
        let entry = self.known(name)?;
        self.edit(&entry, who, edit);
        Ok(())
    }

    fn edit(self: &Arc<Self>, entry: &Arc<Entry>, who: &str, edit: Edit) {
        if entry.edit(edit, who, self.settings.clock.both()) {
            tracing::info!(limit = &*entry.name, who, "limit changed");
            self.wake_entry(entry);
        }
    }
}

fn checked(name: &str, limit: Limit) -> Result<Arc<Definition>, AskError> {
    let definition = Definition::new(limit);
    definition.map(Arc::new).map_err(|error| AskError::Limit { name: short(name), error })
}

/// Why a limit is not found: there is none of that name, or nothing could have it.
fn unknown(name: &str) -> AskError {
    match check_name("limit name", name) {
        Ok(()) => AskError::UnknownLimit { name: short(name) },
        Err(error) => error.into(),
    }
}

/// A name as an error shows it: hostile ones may be long.
fn short(name: &str) -> String {
    name.chars().take(128).collect()
}
