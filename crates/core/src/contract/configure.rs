//! Changing limits: their rules, those of single partitions, and the records that say who did it.

use super::{MeterError, OVERRIDES_MAX};
use crate::lanes::act::{ACT_BYTES_MAX, Revision, Write};
use crate::limit::Definition;
use crate::name::{LimitName, Partition};

/// Most changes in one: so that a limit can go with all its partitions that have rules of their own.
pub const CONFIGURE_CHANGES_MAX: usize = 2 * OVERRIDES_MAX;

/// What changes of limits: all of it or nothing. What was spent stays spent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Configure {
    /// Opaque records, each once.
    pub write: Vec<Write>,
    /// Limits that are defined, changed or removed (`None`), in order.
    pub limits: Vec<(LimitName, Option<Definition>)>,
    /// Partitions that get rules of their own or lose them (`None`), in order and after the limits. They
    /// stay when the limit is changed, and are back with it when it was removed.
    pub overrides: Vec<(LimitName, Partition, Option<Definition>)>,
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigureError {
    /// A record is at another revision.
    #[error("write {at}: the record is at revision {}: read it again", found.0)]
    RevisionDiffers {
        /// Which write.
        at: usize,
        /// Where it is.
        found: Revision,
    },
    /// A partition would get rules that its limit does not allow.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// More than one change may hold.
    #[error(
        "a change of limits holds up to {CONFIGURE_CHANGES_MAX} changes and {ACT_BYTES_MAX} bytes of records, and this one {changes} and {bytes}: split it"
    )]
    TooLarge {
        /// How many changes.
        changes: usize,
        /// How many bytes of records.
        bytes: usize,
    },
}

impl Configure {
    /// Defines a limit, changes it, or removes it (`None`).
    pub fn limit(name: LimitName, definition: Option<Definition>) -> Self {
        Self { limits: vec![(name, definition)], ..Self::default() }
    }

    /// Gives a partition of a limit rules of its own, or takes them away (`None`).
    pub fn partition(
        limit: LimitName,
        partition: Partition,
        definition: Option<Definition>,
    ) -> Self {
        Self { overrides: vec![(limit, partition, definition)], ..Self::default() }
    }

    /// The limits that it names, as often as it does.
    pub fn named(&self) -> impl Iterator<Item = &LimitName> {
        let overridden = self.overrides.iter().map(|(limit, ..)| limit);
        self.limits.iter().map(|(limit, _)| limit).chain(overridden)
    }

    /// How many bytes of records there are.
    pub fn bytes(&self) -> usize {
        let records = self.write.iter().flat_map(|write| &write.bytes).map(|bytes| bytes.len());
        records.fold(0, usize::saturating_add)
    }

    /// Refuses what is larger than one change may be.
    pub fn check_size(&self) -> Result<(), ConfigureError> {
        let changes = self.write.len() + self.limits.len() + self.overrides.len();
        let bytes = self.bytes();
        if changes > CONFIGURE_CHANGES_MAX || bytes > ACT_BYTES_MAX {
            return Err(ConfigureError::TooLarge { changes, bytes });
        }
        Ok(())
    }

    /// What it defines a limit as, if it names it: `Some(None)` for one that it removes.
    pub fn defines(&self, limit: &LimitName) -> Option<Option<&Definition>> {
        let last = self.limits.iter().rev().find(|(name, _)| name == limit);
        last.map(|(_, definition)| definition.as_ref())
    }
}
