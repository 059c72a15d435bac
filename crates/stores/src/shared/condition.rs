//! How a store was when it was last asked: whoever asks next may be told without a round trip.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::contract::{Answer, StoreError};

/// What became of changes and looks.
#[derive(Debug, Default)]
pub(super) struct Condition {
    /// Why the last one came to nothing, if it did.
    trouble: Mutex<Option<StoreError>>,
    failures: AtomicU64,
}

impl Condition {
    /// Takes note of what the store said.
    pub(super) fn noted<T>(&self, said: Answer<T>) -> Answer<T> {
        if said.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        *self.trouble.lock() = said.as_ref().err().cloned();
        said
    }

    /// As the last one found it.
    pub(super) fn last(&self) -> Answer<()> {
        self.trouble.lock().clone().map_or(Ok(()), Err)
    }

    /// How many came to nothing.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_out_of_reach_is_sound_once_it_answers() {
        let condition = Condition::default();
        assert_eq!((condition.last(), condition.failures()), (Ok(()), 0));
        let away = StoreError::Unreachable { reason: "nobody is there".to_owned() };
        assert_eq!(condition.noted::<()>(Err(away.clone())), Err(away.clone()));
        assert_eq!((condition.last(), condition.failures()), (Err(away), 1));
        assert_eq!(condition.noted(Ok(7)), Ok(7));
        assert_eq!((condition.last(), condition.failures()), (Ok(()), 1));
    }
}
