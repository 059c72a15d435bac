//! Random worlds in simulated time, each from its seed, judged by what is promised.
//!
//! In each, calls are sent, started, settled, taken back, replaced and explained, records are written
//! and joins counted, workers die and answers are lost, limits and queues change, clocks are set, and
//! the process restarts. One world in five hundred has two thousand lanes.
//!
//! `TOLLGATE_SIMULATION_SEEDS=100000 cargo test -p tollgate-tests simulation` runs so many worlds,
//! `=N..M` those from N to before M.

mod acts;
mod catalog;
mod explained;
mod fairness;
mod limits;
mod oracle;
mod random;
mod record;
mod run;
mod stage;
mod starvation;
mod steps;
mod workers;

use run::Run;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many worlds run if nothing else is asked for, and how large they are.
const SEEDS: u64 = 2_000;
const STEPS: usize = 60;
/// How much of a broken world is told.
const LINES_MAX: usize = 25;

/// What broke, after how many steps, and what came before.
struct Failure {
    what: String,
    steps: usize,
    lines: Vec<String>,
}

#[test]
fn every_promise_holds_in_every_world() {
    for seed in seeds(SEEDS) {
        if let Some(failure) = failure_of(seed, STEPS) {
            let Failure { what, steps, lines } = shortest(seed, failure);
            panic!(
                "world {seed} broke a promise after {steps} steps: {what}\n{}\nagain: \
                 TOLLGATE_SIMULATION_SEEDS={seed}..{} cargo test -p tollgate-tests {}",
                lines.join("\n"),
                seed + 1,
                "every_promise_holds_in_every_world",
            );
        }
    }
}

/// The seeds that are asked for, or so many.
fn seeds(count: u64) -> Range<u64> {
    let Ok(asked) = std::env::var("TOLLGATE_SIMULATION_SEEDS") else { return 0..count };
    let number = |text: &str| -> u64 {
        text.parse().expect("TOLLGATE_SIMULATION_SEEDS is a count, or N..M")
    };
    match asked.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&asked),
    }
}

/// Runs a world of so many steps. A panic of the scheduler breaks it, too.
fn failure_of(seed: u64, steps: usize) -> Option<Failure> {
    let mut world = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let run = world.insert(Run::new(seed)?);
        run.run(steps)
    }));
    let what = match outcome {
        Ok(Ok(())) => return None,
        Ok(Err(what)) => what,
        Err(_) => "the scheduler panicked, as printed above".to_owned(),
    };
    let entries = world.map_or(vec![], |run| run.entries);
    let last = entries.len().saturating_sub(LINES_MAX);
    let lines = entries[last..].iter().map(record::Entry::line).collect();
    Some(Failure { what, steps, lines })
}

/// The same world with as few steps as still break it: half as many as long as that does, then one
/// less at a time.
fn shortest(seed: u64, mut failure: Failure) -> Failure {
    while let Some(shorter) = failure_of(seed, failure.steps / 2).filter(|_| failure.steps > 0) {
        failure = shorter;
    }
    while let Some(shorter) = failure.steps.checked_sub(1).and_then(|less| failure_of(seed, less)) {
        failure = shorter;
    }
    failure
}
