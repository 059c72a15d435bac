//! Whether the store takes writes, as the last one found it: told without another.

use super::closed;
use std::sync::atomic::{AtomicU8, Ordering};
use tollgate_core::contract::{Answer, StoreError};

const WRITES: u8 = 0;
const FULL: u8 = 1;
const ENDED: u8 = 2;

/// How the store is.
// Invariant: one of the three above; an end is for good.
#[derive(Debug, Default)]
pub(super) struct Condition(AtomicU8);

impl Condition {
    /// A write found no room. It is tried again until it finds some.
    pub(super) fn is_full(&self) {
        self.change(WRITES, FULL);
    }

    /// A write lasts.
    pub(super) fn has_room(&self) {
        self.change(FULL, WRITES);
    }

    /// It failed, or is closed.
    pub(super) fn end(&self) {
        self.0.store(ENDED, Ordering::Release);
    }

    /// What a write would be told now, as far as is known.
    pub(super) fn told(&self) -> Answer<()> {
        match self.0.load(Ordering::Acquire) {
            WRITES => Ok(()),
            FULL => Err(full()),
            _ => Err(closed()),
        }
    }

    fn change(&self, from: u8, to: u8) {
        // It is so already, or has ended.
        let _ = self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    }
}

pub(super) fn full() -> StoreError {
    StoreError::Full { reason: "the disk has no space: free some, it is tried again".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_full_takes_writes_again_and_one_that_ended_never_does() {
        let condition = Condition::default();
        assert_eq!(condition.told(), Ok(()));
        condition.is_full();
        assert!(matches!(condition.told(), Err(StoreError::Full { .. })));
        condition.has_room();
        assert_eq!(condition.told(), Ok(()));
        condition.end();
        condition.has_room();
        condition.is_full();
        assert!(matches!(condition.told(), Err(StoreError::Failed { .. })));
    }
}
