//! Totals: what was counted since the store was opened. They are not kept: a restart begins at zero.

use crate::lanes::End;
#[cfg(doc)]
use crate::lanes::Outcome;
use crate::name::{LimitName, QueueName};
use crate::time::Span;
use std::collections::BTreeMap;

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

/// Everything that was counted since the store was opened: an entry for each queue and each limit that
/// there is, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// By queue.
    pub queues: Vec<QueueTotals>,
    /// By limit.
    pub limits: Vec<(LimitName, LimitTotals)>,
    /// Of the store itself.
    pub store: StoreTotals,
}

/// A queue, with how much is in it and what happened there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTotals {
    /// Its name.
    pub name: QueueName,
    /// Calls that wait, also those that rest or are not due.
    pub waiting: u64,
    /// Calls that are started and not settled.
    pub in_flight: u64,
    /// Calls that are dead.
    pub dead: u64,
    /// What happened since the store was opened.
    pub counts: QueueCounts,
}

/// What happened to the calls of a queue, since the store was opened or the queue was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// Calls that were accepted, duplicates aside.
    pub enqueued: u64,
    /// Starts.
    pub started: u64,
    /// Starts of calls that had failed, crashed or been limited before.
    pub retries: u64,
    /// What came of starts.
    pub settled: OutcomeCounts,
    /// How calls ended.
    pub ended: EndCounts,
    /// Dead calls that wait again.
    pub revived: u64,
    /// From when a call was accepted to its first start, of calls that were accepted since the store was
    /// opened. To within a twentieth, for those that waited long behind many.
    pub dwell: Histogram,
    /// From when a call that stood first at a limit could have started to its start, if a worker was
    /// asking by then.
    pub lateness: Histogram,
    /// What its calls met at limits: those that it met first, up to [`LIMITS_COUNTED`], by name.
    pub limits: BTreeMap<LimitName, LimitCounts>,
    /// What they met at all others.
    pub other_limits: LimitCounts,
}

/// At how many limits it is counted one by one what the calls of a queue met there: more than most queues
/// have, and few where each key that somebody sends is a limit.
pub const LIMITS_COUNTED: usize = 100;

/// What the calls of a queue met at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitCounts {
    /// Calls that were accepted and wait for the limit, which nobody had defined; once for each meter.
    pub unknown: u64,
    /// Calls that stood ready at a meter of the limit, each the first of its lane when it came, when that let
    /// fewer go; summed over all claims where it did. Those that are set aside do not stand there.
    pub wanted: u64,
    /// Those of them that went in the same claim.
    pub granted: u64,
}

impl QueueCounts {
    /// What is counted at a limit.
    pub(crate) fn at_limit(&mut self, limit: &LimitName) -> &mut LimitCounts {
        if self.limits.len() < LIMITS_COUNTED && !self.limits.contains_key(limit) {
            self.limits.insert(limit.clone(), LimitCounts::default());
        }
        self.limits.get_mut(limit).unwrap_or(&mut self.other_limits)
    }
}

/// How often starts came to what, as [`Outcome`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "they are the outcomes, each described there")]
pub struct OutcomeCounts {
    pub done: u64,
    pub failed: u64,
    pub released: u64,
    pub dead: u64,
    pub limited: u64,
    pub crashed: u64,
    pub cancelled: u64,
}

/// How often calls ended how, as [`End`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "they are the ends, each described there")]
pub struct EndCounts {
    pub done: u64,
    pub dead: u64,
    pub cancelled: u64,
    pub expired: u64,
    pub superseded: u64,
    pub dropped: u64,
}

impl EndCounts {
    pub(crate) fn add(&mut self, end: End) {
        *match end {
            End::Done => &mut self.done,
            End::Dead => &mut self.dead,
            End::Cancelled => &mut self.cancelled,
            End::Expired => &mut self.expired,
            End::Superseded => &mut self.superseded,
            End::Dropped => &mut self.dropped,
        } += 1;
    }
}

/// How the store itself does, if it writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreTotals {
    /// Batches that last.
    pub commits: u64,
    /// What was written for them.
    pub bytes: u64,
    /// From when a batch was handed over until it lasted.
    pub commit_time: Histogram,
}

/// How many buckets a histogram has, the one for all that is longer aside.
pub const BUCKETS: usize = 20;

/// How often something took how long.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// How often it took no longer than each of [`BOUNDS`](Self::BOUNDS) and longer than the one before;
    /// the last is for all that is longer.
    pub counts: [u64; BUCKETS + 1],
    /// All of it together in nanoseconds, which do not fit a span.
    pub sum_ns: u128,
}

impl Histogram {
    /// What each bucket goes up to.
    pub const BOUNDS: [Span; BUCKETS] = [
        Span::from_nanos(100_000),
        Span::from_nanos(250_000),
        Span::from_nanos(500_000),
        Span::from_millis(1),
        Span::from_nanos(2_500_000),
        Span::from_millis(5),
        Span::from_millis(10),
        Span::from_millis(25),
        Span::from_millis(50),
        Span::from_millis(100),
        Span::from_millis(250),
        Span::from_millis(500),
        Span::from_secs(1),
        Span::from_secs(5),
        Span::from_secs(15),
        Span::from_minutes(1),
        Span::from_minutes(5),
        Span::from_minutes(30),
        Span::from_hours(4),
        Span::from_days(1),
    ];

    /// Counts one more.
    pub fn add(&mut self, span: Span) {
        self.counts[Self::BOUNDS.partition_point(|bound| *bound < span)] += 1;
        self.sum_ns += u128::from(span.as_nanos());
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_beyond_the_first_hundred_are_counted_together() {
        let mut counts = QueueCounts::default();
        for number in (0..LIMITS_COUNTED + 2).chain([0]) {
            counts.at_limit(&LimitName::new(&number.to_string()).unwrap()).unknown += 1;
        }
        assert_eq!((counts.limits.len(), counts.other_limits.unknown), (LIMITS_COUNTED, 2));
        assert_eq!(counts.limits[&LimitName::new("0").unwrap()].unknown, 2);
    }

    #[test]
    fn what_takes_as_long_as_a_bound_is_within_it() {
        assert!(Histogram::BOUNDS.is_sorted());
        let mut histogram = Histogram::default();
        let millis = [0, 1, 2, 86_400_000, 86_400_001];
        millis.into_iter().for_each(|millis| histogram.add(Span::from_millis(millis)));
        let [zero, one, two, day, longer] = [0, 3, 4, BUCKETS - 1, BUCKETS];
        assert_eq!([zero, one, two, day, longer].map(|at| histogram.counts[at]), [1; 5]);
        assert_eq!((histogram.count(), histogram.sum_ns), (5, 172_800_004_000_000));
    }
}
