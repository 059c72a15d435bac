//! Whether the store takes writes, as the last one found it: told without another.

use super::closed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tollgate_core::contract::{Answer, StoreError};

/// How the store is.
#[derive(Debug, Default)]
pub(crate) struct Condition(Mutex<Found>);

#[derive(Debug, Default)]
enum Found {
    #[default]
    Well,
    /// It is tried again.
    Trouble(StoreError),
    /// For good.
    Ended,
}

impl Condition {
    /// A write found no room, or nobody to take it. It is tried again.
    pub(crate) fn is_in_trouble(&self, error: StoreError) {
        let mut found = self.lock();
        if !matches!(*found, Found::Ended) {
            *found = Found::Trouble(error);
        }
    }

    /// A write lasts.
    pub(crate) fn is_well(&self) {
        let mut found = self.lock();
        if matches!(*found, Found::Trouble(_)) {
            *found = Found::Well;
        }
    }

    /// It failed, or is closed.
    pub(crate) fn end(&self) {
        *self.lock() = Found::Ended;
    }

    /// What a write would be told now, as far as is known.
    pub(crate) fn told(&self) -> Answer<()> {
        match &*self.lock() {
            Found::Well => Ok(()),
            Found::Trouble(error) => Err(error.clone()),
            Found::Ended => Err(closed()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_full_takes_writes_again_and_one_that_ended_never_does() {
        let full = || StoreError::Full { reason: "no space".to_owned() };
        let condition = Condition::default();
        assert_eq!(condition.told(), Ok(()));
        condition.is_in_trouble(full());
        assert_eq!(condition.told(), Err(full()));
        condition.is_well();
        assert_eq!(condition.told(), Ok(()));
        condition.end();
        condition.is_well();
        condition.is_in_trouble(full());
        assert!(matches!(condition.told(), Err(StoreError::Failed { .. })));
    }
}
