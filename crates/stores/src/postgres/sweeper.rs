//! When expired cells are looked for, and where: by whoever writes, a few at a time, round and round.

/// How many cells are looked at in one sweep: a millisecond's work.
pub(super) const SWEEP_CELLS: i64 = 256;
/// How many cells are looked at for each that was added: so those that have expired and are still
/// there never outnumber the others for long.
const LOOKS_PER_CELL: i64 = 4;

/// The key of the last cell that was looked at, as its columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LastCell {
    pub(super) kind: i8,
    pub(super) name: Vec<u8>,
    pub(super) part: Vec<u8>,
}

/// Where this process has got to.
#[derive(Debug, Default)]
pub(super) struct Sweeper {
    owed: i64,
    after: LastCell,
}

impl Sweeper {
    /// Says after which cell to sweep, if it is time: a change was made that added so many cells.
    pub(super) fn due(&mut self, added: usize) -> Option<LastCell> {
        let added = i64::try_from(added).unwrap_or(SWEEP_CELLS);
        self.owed = self.owed.saturating_add(1 + added.saturating_mul(LOOKS_PER_CELL));
        (self.owed >= SWEEP_CELLS).then(|| {
            // What is owed beyond that is owed still, up to a bound: a sweep may not catch up at once.
            self.owed = (self.owed - SWEEP_CELLS).min(SWEEP_CELLS * 1024);
            self.after.clone()
        })
    }

    /// Takes note of the last cell that was looked at; `None`: there was none, so it begins anew.
    pub(super) fn swept(&mut self, last: Option<LastCell>) {
        self.after = last.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_as_many_cells_as_four_for_each_that_was_added() {
        let mut sweeper = Sweeper::default();
        let sweeps = (0..1000).filter(|_| sweeper.due(64).is_some()).count();
        assert_eq!(sweeps, 1000);
        assert_eq!(sweeper.owed, 1000);
        let mut idle = Sweeper::default();
        assert_eq!((0..1024).filter(|_| idle.due(0).is_some()).count(), 4);
    }

    #[test]
    fn goes_on_where_it_was_and_begins_anew_at_the_end() {
        let mut sweeper = Sweeper::default();
        assert_eq!(sweeper.due(256), Some(LastCell::default()));
        let place = LastCell { kind: 109, name: b"a".to_vec(), part: Vec::new() };
        sweeper.swept(Some(place.clone()));
        assert_eq!(sweeper.due(256), Some(place));
        sweeper.swept(None);
        assert_eq!(sweeper.due(256), Some(LastCell::default()));
    }
}
