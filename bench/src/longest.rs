//! Section: the longest single call, while fresh keys arrive and old ones are cleaned up.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::contender::{Contender, Keyed};
use crate::contenders::{ALL, named};
use crate::keys::Key;
use crate::plan::{Plan, SHORT_LIVED};
use crate::process;
use crate::table::Table;

/// The child's command: `longest KIND CONTENDER KEYS`.
pub(crate) const COMMAND: &str = "longest";

/// A call over this is counted: our own bound for what clean-up may cost a call.
const LONG: Duration = Duration::from_micros(100);

/// How many calls may pass between two readings of the time without a core: few, so that what is
/// taken from a long call is its own.
const QUEUE_READ_EACH: usize = 256;

/// How many clean-ups the caller does in a pass, for limiters that leave it to the caller.
const CLEAN_UPS: usize = 10;

/// Lets children measure each contender and returns the section.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Longest single call",
        &["contender", "keys", "longest call, µs", "calls over 100 µs", "caller's clean-up, µs"],
    );
    for contender in ALL {
        if contender.strings.is_some() {
            table.add(best_pass::<String>(contender, plan)?);
        } else if contender.integers.is_some() {
            table.add(best_pass::<u64>(contender, plan)?);
        }
    }
    Ok(table)
}

/// The child's part: one pass; the longest call in ns, the calls over the bound, and the longest
/// clean-up by the caller in ns.
pub(crate) fn measure_here(kind: &str, name: &str, keys: usize) -> anyhow::Result<Vec<u64>> {
    let contender = named(name)?;
    if kind == u64::KIND { pass::<u64>(contender, keys) } else { pass::<String>(contender, keys) }
}

/// What the kernel and the host do to a call is not all told apart: the pass with the lowest
/// maximum is the one they disturbed least.
fn best_pass<K: Key>(contender: &Contender, plan: &Plan) -> anyhow::Result<Vec<String>> {
    let keys = plan.keys.to_string();
    let mut best = [u64::MAX; 3];
    for _ in 0..plan.passes {
        let pass = process::ask(&[COMMAND, K::KIND, contender.name, &keys])?;
        best = best.min(pass);
    }
    let [longest, over, clean_up] = best;
    let micros = |ns: u64| format!("{:.0}", ns as f64 / 1_000.0);
    let cleaned = if clean_up == 0 { "–".to_owned() } else { micros(clean_up) };
    let name = contender.name.to_owned();
    Ok(vec![name, K::KIND.to_owned(), micros(longest), over.to_string(), cleaned])
}

fn pass<K: Key>(contender: &Contender, keys: usize) -> anyhow::Result<Vec<u64>> {
    let open = K::opened_by(contender).context("the contender has no such keys")?;
    let limiter = open(SHORT_LIVED, keys);
    let mut calls = Calls::new();
    let mut clean_up = Duration::ZERO;
    for number in 0..keys {
        calls.time(limiter.as_ref(), K::numbered(number));
        if (number + 1).is_multiple_of(QUEUE_READ_EACH) {
            calls.queued_ns = process::queued_ns();
        }
        if (number + 1).is_multiple_of(keys.div_ceil(CLEAN_UPS)) {
            let begun = Instant::now();
            if limiter.clean_up() {
                clean_up = clean_up.max(begun.elapsed());
            }
        }
    }
    Ok(vec![whole_ns(calls.longest), calls.over, whole_ns(clean_up)])
}

/// The calls of a pass, without the time in which they were ready but had no core.
struct Calls {
    longest: Duration,
    over: u64,
    /// As last read: not at each call, which would cost more than the call.
    queued_ns: u64,
}

impl Calls {
    fn new() -> Self {
        Self { longest: Duration::ZERO, over: 0, queued_ns: process::queued_ns() }
    }

    fn time<K: Key>(&mut self, limiter: &dyn Keyed<K>, key: K) {
        let key = [key];
        let begun = Instant::now();
        limiter.decide_each(&key);
        let mut took = begun.elapsed();
        if took > LONG {
            let queued_ns = process::queued_ns();
            took = took.saturating_sub(Duration::from_nanos(queued_ns - self.queued_ns));
            self.queued_ns = queued_ns;
        }
        self.longest = self.longest.max(took);
        self.over += u64::from(took > LONG);
    }
}

fn whole_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
