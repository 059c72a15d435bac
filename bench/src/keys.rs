//! The keys that are visited, and the order of the visits.

use crate::contender::{Contender, OpenKeyed};

/// What a keyed limiter is asked about.
pub(crate) trait Key: Clone + Send + Sync + Sized {
    /// As the tables and the children's arguments name it.
    const KIND: &'static str;

    fn numbered(number: usize) -> Self;

    fn opened_by(contender: &Contender) -> Option<OpenKeyed<Self>>;
}

impl Key for u64 {
    const KIND: &'static str = "integer";

    fn numbered(number: usize) -> Self {
        number as u64
    }

    fn opened_by(contender: &Contender) -> Option<OpenKeyed<Self>> {
        contender.integers
    }
}

impl Key for String {
    const KIND: &'static str = "string";

    /// 14 bytes, as `user-000012345`.
    fn numbered(number: usize) -> Self {
        format!("user-{number:09}")
    }

    fn opened_by(contender: &Contender) -> Option<OpenKeyed<Self>> {
        contender.strings
    }
}

/// The keys below `count`, each once, in an order that no prefetcher foresees.
///
/// They lie in memory in the order of the visits: a caller has its key at hand, so a cache miss on
/// the key itself is none of the limiter's.
pub(crate) fn shuffled<K: Key>(count: usize) -> Vec<K> {
    let mut numbers: Vec<usize> = (0..count).collect();
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    for last in (1..count).rev() {
        numbers.swap(last, random.below(last + 1));
    }
    numbers.into_iter().map(K::numbered).collect()
}

/// A cheap generator with a fixed seed: every run visits in the same order.
struct Xorshift(u64);

impl Xorshift {
    #[expect(clippy::cast_possible_truncation, reason = "the remainder is below a usize")]
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_every_key_once() {
        let mut keys = shuffled::<u64>(1_000);
        assert!(!keys.is_sorted());
        keys.sort_unstable();
        assert_eq!(keys, (0..1_000).collect::<Vec<u64>>());
    }

    #[test]
    fn names_a_key_in_14_bytes() {
        assert_eq!(String::numbered(999_999).len(), 14);
    }
}
