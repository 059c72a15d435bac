//! Section: nanoseconds per decision, on one budget and on many, on one thread and on two.

use std::fmt;

use crate::contender::Contender;
use crate::contenders::{ALL, REFERENCE};
use crate::keys::{Key, shuffled};
use crate::plan::{MANY_KEYS, OPEN, Plan, SHUT, THREADS};
use crate::race::{Entry, Timing, race};
use crate::table::{Table, grouped};

/// Copies of the hot key that are visited in turn: few enough to stay in the nearest cache.
const HOT_COPIES: usize = 100;

const COLUMNS: [&str; 9] = [
    "row",
    "contender",
    "clock",
    "1 thread: least ns",
    "median ns",
    "least × governor",
    "2 threads: least ns",
    "median ns",
    "median × governor",
];

/// Measures every row and returns the section.
pub(crate) fn measure(plan: &Plan) -> Table {
    let mut table = Table::new("Time per decision", &COLUMNS);
    add_row(&mut table, "direct, allowed", &direct_allowed(plan.hot_round), plan.hot_rounds);
    add_row(&mut table, "direct, denied", &direct_denied(plan.hot_round), plan.hot_rounds);
    add_row(&mut table, "one hot integer key", &hot::<u64>(plan.hot_round), plan.hot_rounds);
    add_row(&mut table, "one hot string key", &hot::<String>(plan.hot_round), plan.hot_rounds);
    add_many_keys::<u64>(&mut table, plan);
    add_many_keys::<String>(&mut table, plan);
    table
}

fn direct_allowed(decisions: usize) -> Vec<Entry<'static>> {
    let entry = |contender: &'static Contender| {
        let limiter = contender.direct?(OPEN);
        Some(Entry::new(contender, (decisions, decisions), move |_| limiter.decide(decisions)))
    };
    ALL.iter().filter_map(entry).collect()
}

fn direct_denied(decisions: usize) -> Vec<Entry<'static>> {
    let entry = |contender: &'static Contender| {
        let limiter = contender.direct?(SHUT);
        limiter.decide(1);
        Some(Entry::new(contender, (decisions, 0), move |_| limiter.decide(decisions)))
    };
    ALL.iter().filter_map(entry).collect()
}

fn hot<K: Key + 'static>(decisions: usize) -> Vec<Entry<'static>> {
    let entry = |contender: &'static Contender| {
        let limiter = K::opened_by(contender)?(OPEN, 1);
        let keys = vec![K::numbered(0); HOT_COPIES];
        let repeats = decisions / HOT_COPIES;
        let round = move |_| (0..repeats).map(|_| limiter.decide_each(&keys)).sum();
        Some(Entry::new(contender, (decisions, decisions), round))
    };
    ALL.iter().filter_map(entry).collect()
}

fn many<K: Key + 'static>(decisions: usize, keys: &[K]) -> Vec<Entry<'_>> {
    let entry = |contender: &'static Contender| {
        let limiter = K::opened_by(contender)?(MANY_KEYS, keys.len());
        // In the order of the numbers: in the order of the visits, a limiter that copies its keys
        // would find them one after the other.
        for number in 0..keys.len() {
            limiter.decide_each(&[K::numbered(number)]);
        }
        let round = move |number: usize| {
            let start = number * decisions % keys.len();
            limiter.decide_each(&keys[start..start + decisions])
        };
        Some(Entry::new(contender, (decisions, decisions), round))
    };
    ALL.iter().filter_map(entry).collect()
}

fn add_many_keys<K: Key + 'static>(table: &mut Table, plan: &Plan) {
    let keys = shuffled::<K>(plan.keys);
    let title = format!("{} {} keys", grouped(plan.keys), K::KIND);
    add_row(table, &title, &many(plan.cold_round, &keys), plan.cold_rounds);
}

fn add_row(table: &mut Table, title: &str, entries: &[Entry<'_>], rounds: usize) {
    let runs = THREADS.map(|threads| race(entries, threads, rounds));
    let reference = entries.iter().position(|entry| entry.name == REFERENCE);
    for (place, entry) in entries.iter().enumerate() {
        let mut cells = vec![title.to_owned(), entry.name.to_owned(), entry.clock.to_owned()];
        for (timings, compared) in runs.iter().zip([Timing::LEAST, Timing::MEDIAN]) {
            let timing = timings[place];
            let ratio =
                reference.map(|reference| compared(&timing) / compared(&timings[reference]));
            cells.extend([timing.to_string(), format!("{:.0}", timing.median)]);
            cells.push(ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")));
        }
        table.add(cells);
    }
}

impl Timing {
    /// What is compared on one thread: there, everything but the limiter adds time.
    const LEAST: fn(&Self) -> f64 = |timing| timing.least;

    /// What is compared on two: there, a round in which they met less than usual is faster.
    const MEDIAN: fn(&Self) -> f64 = |timing| timing.median;
}

impl fmt::Display for Timing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noise = if self.is_undisturbed { "" } else { " (disturbed)" };
        let mistake = if self.is_right { "" } else { " (wrong decisions)" };
        write!(formatter, "{:.1}{noise}{mistake}", self.least)
    }
}
