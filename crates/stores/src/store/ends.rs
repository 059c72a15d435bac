//! How calls ended: of those that ended last, for whoever asks for a call that is there no more.

use super::ByCall;
use tollgate_core::lanes::{CallId, End};

/// How many are remembered at least, and twice as many at most.
const KEPT_MIN: usize = 50_000;

/// The newest ends, in two generations: to forget many at once costs less than one with each.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    newer: ByCall<End>,
    older: ByCall<End>,
}

impl Ends {
    pub(crate) fn note(&mut self, id: CallId, end: End) {
        if self.newer.len() >= KEPT_MIN {
            self.older.clear();
            std::mem::swap(&mut self.newer, &mut self.older);
        }
        self.newer.insert(id, end);
    }

    pub(crate) fn find(&self, id: CallId) -> Option<End> {
        self.newer.get(&id).or_else(|| self.older.get(&id)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_and_no_more_than_twice_as_many() {
        let mut ends = Ends::default();
        let noted = 5 * KEPT_MIN + KEPT_MIN / 2;
        let id = |number: usize| CallId(number as u64);
        for number in 0..noted {
            ends.note(id(number), End::Done);
            let oldest = (number + 1).saturating_sub(KEPT_MIN);
            assert_eq!(ends.find(id(oldest)), Some(End::Done));
        }
        let known = (0..noted).filter(|number| ends.find(id(*number)).is_some());
        assert!((KEPT_MIN..=2 * KEPT_MIN).contains(&known.count()));
    }
}
