//! Chance from a seed: the same numbers each time.

/// SplitMix64: short, and good enough to choose by.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A source of its own for one of several.
    pub(super) fn of(seed: u64, which: u64) -> Self {
        Self(Self(seed ^ which.wrapping_mul(0xD1B5_4A32_D192_ED03)).next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero; some a trifle more often than others.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Whether something happens that does once in `times`.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these, if there are any.
    pub(super) fn choose<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let index = self.below(u64::try_from(all.len().max(1)).unwrap_or(1));
        usize::try_from(index).ok().and_then(|index| all.get(index))
    }
}
