//! Totals: what was counted since the store was opened. They are not kept: a restart begins at zero.

/// How often, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// What all of it weighed.
    pub weight: u64,
}

impl Tally {
    /// Counts one more.
    pub(crate) fn add(&mut self, weight: u64) {
        self.count += 1;
        self.weight = self.weight.saturating_add(weight);
    }
}

/// What happened at a limit, at all its meters together, since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitTotals {
    /// Calls that started and asks that were paid, with what they weighed then: what is settled or
    /// handed back later changes nothing here.
    pub admitted: Tally,
    /// Asks that were refused here, with what they wanted.
    pub refused: Tally,
    /// How long calls waited here as the first of their lanes, counted when they start; in nanoseconds,
    /// for the waits of a hundred thousand lanes do not fit a span.
    pub waited_ns: u128,
}
