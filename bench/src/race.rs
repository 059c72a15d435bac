//! Rounds of several entries in turn (A, B, C, A, B, C), so that noise hits all alike.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::contender::Contender;
use crate::process;

/// One contender in one row.
pub(crate) struct Entry<'keys> {
    pub(crate) name: &'static str,
    pub(crate) clock: &'static str,
    /// Decisions in one round.
    pub(crate) decisions: usize,
    /// How many of them a correct limiter grants.
    pub(crate) granted: usize,
    /// Runs the round with this number and returns how many were granted.
    pub(crate) round: Box<dyn Fn(usize) -> usize + Sync + 'keys>,
}

/// What an entry reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Nanoseconds per decision in the best round.
    pub(crate) least: f64,
    pub(crate) median: f64,
    /// False if the scheduler left fewer than [`UNDISTURBED_MIN`] rounds alone.
    pub(crate) is_undisturbed: bool,
    /// True if every round granted as many as it should.
    pub(crate) is_right: bool,
}

/// Fewer rounds than this are no sample: then the disturbed ones count as well.
const UNDISTURBED_MIN: usize = 3;

/// A round is disturbed if one of its threads was ready, but without a core, for more than this
/// part (a twentieth) of it. Two threads that take turns do not contend: such a round can be far
/// too fast, so the best round is sought among the undisturbed ones.
const QUEUED_PART_MAX: u128 = 20;

/// Races the entries; each round of an entry is run by `threads` threads at once, which share it.
pub(crate) fn race(entries: &[Entry<'_>], threads: usize, rounds: usize) -> Vec<Timing> {
    let mut laps: Vec<Vec<Lap>> = entries.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (entry, laps) in entries.iter().zip(&mut laps) {
            laps.push(run_round(entry, round, threads));
        }
    }
    laps.iter().map(|laps| summarise(laps)).collect()
}

/// One thread's part of a round, or the whole of it.
struct Lap {
    begun: Instant,
    ended: Instant,
    decisions: usize,
    is_undisturbed: bool,
    is_right: bool,
}

impl<'keys> Entry<'keys> {
    pub(crate) fn new(
        contender: &Contender,
        (decisions, granted): (usize, usize),
        round: impl Fn(usize) -> usize + Sync + 'keys,
    ) -> Self {
        let Contender { name, clock, .. } = contender;
        Self { name, clock, decisions, granted, round: Box::new(round) }
    }
}

impl Lap {
    fn ns_per_decision(&self) -> f64 {
        (self.ended - self.begun).as_nanos() as f64 / self.decisions as f64
    }

    /// Both parts as one: from the first start to the last end.
    fn join(self, other: Self) -> Self {
        Self {
            begun: self.begun.min(other.begun),
            ended: self.ended.max(other.ended),
            decisions: self.decisions,
            is_undisturbed: self.is_undisturbed && other.is_undisturbed,
            is_right: self.is_right && other.is_right,
        }
    }
}

fn run_round(entry: &Entry<'_>, round: usize, threads: usize) -> Lap {
    let waiting = AtomicUsize::new(threads);
    let part = |thread: usize| run_part(entry, round * threads + thread, &waiting);
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        let first = part(0);
        others.into_iter().filter_map(|other| other.join().ok()).fold(first, Lap::join)
    })
}

fn run_part(entry: &Entry<'_>, number: usize, waiting: &AtomicUsize) -> Lap {
    let queued_before = process::queued_ns();
    // Spinning, so that all threads start within a microsecond.
    waiting.fetch_sub(1, Ordering::SeqCst);
    while waiting.load(Ordering::SeqCst) > 0 {
        spin_loop();
    }
    let begun = Instant::now();
    let granted = (entry.round)(number);
    let ended = Instant::now();
    let queued = process::queued_ns() - queued_before;
    Lap {
        begun,
        ended,
        decisions: entry.decisions,
        is_undisturbed: u128::from(queued) * QUEUED_PART_MAX <= (ended - begun).as_nanos(),
        is_right: granted == entry.granted,
    }
}

fn summarise(laps: &[Lap]) -> Timing {
    let undisturbed: Vec<&Lap> = laps.iter().filter(|lap| lap.is_undisturbed).collect();
    let is_undisturbed = undisturbed.len() >= UNDISTURBED_MIN.min(laps.len());
    let counted = if is_undisturbed { undisturbed } else { laps.iter().collect() };
    let mut times: Vec<f64> = counted.into_iter().map(Lap::ns_per_decision).collect();
    times.sort_by(f64::total_cmp);
    Timing {
        least: times[0],
        median: times[times.len() / 2],
        is_undisturbed,
        is_right: laps.iter().all(|lap| lap.is_right),
    }
}
