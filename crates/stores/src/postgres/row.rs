//! Cells as rows: their keys, values and instants in the types of the database.

use crate::shared::cells::{CellKey, Kind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tollgate_core::Timestamp;

/// Comes before a part, so that an empty one is not none.
const PART_MARK: u8 = b':';

/// The keys of rows, column by column.
#[derive(Default)]
pub(super) struct Keys<'a> {
    pub(super) kinds: Vec<i8>,
    pub(super) names: Vec<&'a [u8]>,
    pub(super) parts: Vec<Vec<u8>>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(keys: impl IntoIterator<Item = &'a CellKey>) -> Self {
        let mut columns = Self::default();
        keys.into_iter().for_each(|key| columns.push(key));
        columns
    }

    pub(super) fn push(&mut self, key: &'a CellKey) {
        self.kinds.push(letter(key.kind));
        self.names.push(key.name.as_bytes());
        self.parts.push(part(key.part.as_deref()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

/// The letter of a kind, as the database's "char" has it.
pub(super) fn letter(kind: Kind) -> i8 {
    // Letters are ASCII.
    i8::try_from(u32::from(kind.letter())).unwrap_or_default()
}

fn part(part: Option<&str>) -> Vec<u8> {
    part.map_or_else(Vec::new, |part| {
        let mut bytes = Vec::with_capacity(1 + part.len());
        bytes.push(PART_MARK);
        bytes.extend_from_slice(part.as_bytes());
        bytes
    })
}

/// An instant of the database's.
pub(super) fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// An instant for the database, which counts microseconds. Rounded up: what is still needed stays.
pub(super) fn system_time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(at.as_nanos().div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_part_is_not_none() {
        assert_ne!(part(None), part(Some("")));
        assert!(part(None) < part(Some("")));
    }

    #[test]
    fn an_instant_is_rounded_up_to_what_the_database_can_hold() {
        let at = |nanos| timestamp(system_time(Timestamp::from_nanos(nanos))).as_nanos();
        assert_eq!(at(1_001), 2_000);
        assert_eq!(at(2_000), 2_000);
        assert_eq!(at(0), 0);
        assert_eq!(at(u64::MAX), u64::MAX);
    }

    #[test]
    fn every_kind_has_a_letter_that_the_database_can_hold() {
        for kind in Kind::ALL {
            assert_eq!(u8::try_from(letter(kind)).map(char::from), Ok(kind.letter()));
        }
    }
}
