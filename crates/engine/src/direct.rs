//! The global meter of a plain limit without a lock: one word, changed by compare-and-swap.
//!
//! A token bucket whose unit takes a whole number of nanoseconds has a state of one word, the
//! instant at which it is full. While that word is lent here, asks are decided on it directly. Any
//! other business with the meter takes the word back under the meter's lock first, and the next
//! plain decision under the lock lends it again.

use crate::stand::Stand;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::meter::plain::{Plain, PlainRule};
use tollgate_core::{Definition, Span, Timestamp};

/// The word is not lent: the meter is in the table, under its lock.
const TAKEN: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Direct {
    full_at: Apart,
    terms: Terms,
}

/// On cache lines of its own: cores that fight for it leave the rest alone.
#[derive(Debug)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// What the rule says; written only while the word is not lent.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Terms {
    step: AtomicU64,
    fill: AtomicU64,
    limit: AtomicU64,
    burst: AtomicU64,
}

impl Direct {
    pub(crate) fn new() -> Self {
        Self { full_at: Apart(AtomicU64::new(TAKEN)), terms: Terms::default() }
    }

    /// Decides on the word, as [`tollgate_core::rule::bucket::BucketRule::admit`] does, and makes of
    /// it what `then` does; `None` if it is not lent or the weight is out of order.
    // A decision that is returned goes through memory first, and that takes a fifth of the time.
    #[inline(always)]
    pub(crate) fn admit<T>(
        &self,
        weight: u64,
        now: impl Fn() -> Timestamp,
        then: impl FnOnce(Stand, Result<(), Span>) -> T,
    ) -> Option<T> {
        let Self { full_at: Apart(word), terms } = self;
        // An earlier reading is safe: less has flowed in by then.
        let now = now().as_nanos();
        let mut full_at = word.load(Ordering::Acquire);
        loop {
            if full_at == TAKEN || weight == 0 {
                return None;
            }
            let step = terms.step.load(Ordering::Relaxed);
            let fill = terms.fill.load(Ordering::Relaxed);
            let limit = terms.limit.load(Ordering::Relaxed);
            let burst = terms.burst.load(Ordering::Relaxed);
            // One unit always fits.
            if weight > 1 && weight > burst {
                return None;
            }
            let cost = step.saturating_mul(weight);
            // The latest that it may be full, for the cost to fit: from a bucket that is full it does.
            let latest = now.saturating_add(fill);
            let next = full_at.saturating_add(cost);
            if next > latest {
                // The rule may have changed between the readings: then the word has, too.
                let again = word.load(Ordering::Acquire);
                if again != full_at {
                    full_at = again;
                    continue;
                }
                let refilling = full_at.saturating_sub(now);
                let stand = Stand::Refilling { limit, burst, step, refilling };
                return Some(then(stand, Err(Span::from_nanos(next - latest))));
            }
            let next = next.max(now.saturating_add(cost));
            // A word that was taken back and lent again under another rule differs from the one
            // that was read, since later states are later instants.
            match word.compare_exchange_weak(full_at, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    let refilling = next - now;
                    return Some(then(Stand::Refilling { limit, burst, step, refilling }, Ok(())));
                }
                Err(_) => {
                    // Whoever has the cache line gets on meanwhile.
                    std::hint::spin_loop();
                    full_at = word.load(Ordering::Acquire);
                }
            }
        }
    }

    /// Takes the word back; `None` if it is not lent. Under the meter's lock.
    pub(crate) fn take(&self) -> Option<Plain> {
        let word = self.full_at.0.swap(TAKEN, Ordering::AcqRel);
        (word != TAKEN).then(|| Plain { instant: Timestamp::from_nanos(word), count: 0 })
    }

    /// Lends the meter's word if its limit allows. Under the meter's lock, with the word taken.
    pub(crate) fn lend(&self, plain: Plain, definition: &Definition) {
        let Some(PlainRule::Bucket(rule)) = definition.plain() else { return };
        let Some((step, fill)) = rule.whole_nanos().filter(|_| plain.count == 0) else { return };
        self.terms.step.store(step, Ordering::Relaxed);
        self.terms.fill.store(fill, Ordering::Relaxed);
        self.terms.limit.store(rule.limit(), Ordering::Relaxed);
        self.terms.burst.store(rule.burst(), Ordering::Relaxed);
        self.full_at.0.store(plain.instant.as_nanos(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tollgate_core::{Limit, Now};

    fn said(stand: Stand, decided: Result<(), Span>) -> (Stand, Result<(), Span>) {
        (stand, decided)
    }

    /// The lent word decides as the rule itself does, ask by ask.
    #[test]
    fn decides_as_the_rule_does() {
        let limit = Limit::per_second(1_000).burst(7);
        let definition = Definition::new(limit).unwrap();
        let rule = definition.plain().unwrap();
        let (direct, mut plain) = (Direct::new(), Plain::default());
        direct.lend(plain, &definition);
        let mut now = 1_000_000_000;
        for turn in 0_u64..10_000 {
            now += turn * 7_919 % 900_000;
            let at = Timestamp::from_nanos(now);
            let weight = turn % 3 + 1;
            let (stand, decided) = direct.admit(weight, || at, said).unwrap();
            let expected = rule.admit(&mut plain, weight, at).map_err(|opens| opens.since(at));
            assert_eq!(decided, expected);
            assert_eq!(stand.standing(), rule.standing(plain, at));
            let is_out_of_order = |weight| direct.admit(weight, || at, said).is_none();
            assert!(is_out_of_order(0) && is_out_of_order(8));
        }
        assert_eq!(direct.take(), Some(plain));
        assert!(direct.admit(1, || Timestamp::from_nanos(now), said).is_none());
    }

    /// Threads that race for the word never get more than the burst.
    #[test]
    fn racing_threads_never_get_more_than_there_is() {
        let definition = Definition::new(Limit::per_day(1_000)).unwrap();
        let direct = Arc::new(Direct::new());
        let now = Now::both(Timestamp::from_nanos(1 << 60));
        direct.lend(Plain::default(), &definition);
        let threads = (0..4).map(|_| {
            let direct = direct.clone();
            std::thread::spawn(move || {
                let admit = || matches!(direct.admit(1, || now.at, said), Some((_, Ok(()))));
                (0..1_000).filter(|_| admit()).count()
            })
        });
        let threads: Vec<_> = threads.collect();
        let admitted: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(admitted, 1_000);
    }
}
