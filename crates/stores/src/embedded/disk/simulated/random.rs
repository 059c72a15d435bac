//! Chance from a seed: SplitMix64, enough for a disk that misbehaves.

#[derive(Debug, Default)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number from 0 up to, but without, `end`; 0 if that is empty.
    pub(super) fn below(&mut self, end: usize) -> usize {
        // The remainder favours small numbers by less than anyone could notice here.
        usize::try_from(self.next() % (end as u64).max(1)).unwrap_or(0)
    }

    /// Heads or tails.
    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
