//! Asks as the script takes them: what they cost under each rule is reckoned here, and nothing twice.

use super::pack::{Pack, pair};
use crate::shared::cells::Wanted;
use crate::shared::quick::{Quick, QuickAsk, QuickLine};
use std::collections::HashMap;
use tollgate_core::contract::RECEIPT_LIFE_MAX;
use tollgate_core::{Definition, Now, Rule};

/// What the script is handed, and how many asks are alike, row by row.
#[derive(Debug)]
pub(super) struct Request {
    parts: Parts,
    expects: Vec<Option<Vec<u8>>>,
    needs_all: bool,
    pub(super) rows: Vec<usize>,
}

#[derive(Debug, Default)]
struct Parts {
    definitions: Vec<Pack>,
    costs: Vec<Pack>,
    /// Of each meter its definition.
    uses: Vec<Option<u64>>,
    asks: Vec<u64>,
}

/// What was numbered before.
#[derive(Default)]
struct Known<'a> {
    definitions: HashMap<(&'a str, u64), u64>,
    costs: HashMap<(u64, u64), u64>,
}

impl Request {
    /// `None` if there is something among it that the script has no port for.
    pub(super) fn new(wanted: Wanted<'_>, quick: &Quick) -> Option<Self> {
        if quick.expects.len() != wanted.read.len() {
            return None;
        }
        let (mut parts, mut known) = (Parts::default(), Known::default());
        parts.uses.resize(wanted.change.len(), None);
        let (mut rows, mut last): (Vec<usize>, Vec<u64>) = (Vec::new(), Vec::new());
        for ask in &quick.asks {
            let numbers = parts.ask(ask, &mut known)?;
            match rows.last_mut().filter(|_| last == numbers) {
                Some(alike) => *alike += ask.count,
                None => {
                    parts.close_row(&last, rows.last());
                    rows.push(ask.count);
                    last = numbers;
                }
            }
        }
        parts.close_row(&last, rows.last());
        // A meter that nobody asks at is here for something else.
        let is_whole = !rows.is_empty() && parts.uses.iter().all(Option::is_some);
        let (expects, needs_all) = (quick.expects.clone(), quick.needs_all);
        is_whole.then_some(Self { parts, expects, needs_all, rows })
    }

    /// As the script's argument; `None`: the time is the server's.
    pub(super) fn packed(&self, now: Option<Now>) -> Vec<u8> {
        let Parts { definitions, costs, uses, asks } = &self.parts;
        let mut pack = Pack::default();
        pack.list(9);
        pack.number(self.expects.len() as u64);
        match now {
            Some(now) => pack.pair(now.at.as_nanos()),
            None => {
                pack.bytes(None);
                pack.bytes(None);
            }
        }
        pack.list(self.expects.len());
        for value in &self.expects {
            pack.bytes(value.as_deref());
        }
        for list in [definitions, costs] {
            pack.list(list.len());
            for each in list {
                pack.append(each);
            }
        }
        pack.numbers(&uses.iter().map(|uses| uses.unwrap_or_default()).collect::<Vec<_>>());
        pack.numbers(asks);
        pack.number(u64::from(self.needs_all));
        pack.finish()
    }

    /// The values that were taken for those of the cells that are only read.
    pub(super) fn expects(&self) -> &[Option<Vec<u8>>] {
        &self.expects
    }
}

impl Parts {
    /// The life of its receipt, how many lines it has, and of each its meter and cost.
    fn ask<'a>(&mut self, ask: &'a QuickAsk, known: &mut Known<'a>) -> Option<Vec<u64>> {
        let [seconds, nanos] = pair(ask.life.min(RECEIPT_LIFE_MAX).as_nanos());
        let mut numbers = vec![seconds, nanos, ask.lines.len() as u64];
        for line in &ask.lines {
            let definition = self.definition(line, known)?;
            let uses = self.uses.get_mut(line.at)?;
            if *uses.get_or_insert(definition) != definition {
                return None;
            }
            numbers.extend([line.at as u64 + 1, self.cost(line, definition, known)?]);
        }
        (!ask.lines.is_empty()).then_some(numbers)
    }

    fn close_row(&mut self, numbers: &[u64], alike: Option<&usize>) {
        self.asks.extend(alike.map(|alike| *alike as u64));
        self.asks.extend(numbers);
    }

    /// The number of a line's definition.
    fn definition<'a>(&mut self, line: &'a QuickLine, known: &mut Known<'a>) -> Option<u64> {
        if let Some(number) = known.definitions.get(&(&*line.rules, line.seen)) {
            return Some(*number);
        }
        let mut pack = Pack::default();
        pack.list(4);
        pack.bytes(Some(line.rules.as_bytes()));
        pack.pair(line.seen);
        let rules = line.definition.rules();
        pack.list(rules.len());
        for rule in rules {
            pack.numbers(&numbers_of(rule)?);
        }
        self.definitions.push(pack);
        let number = self.definitions.len() as u64;
        known.definitions.insert((&line.rules, line.seen), number);
        Some(number)
    }

    /// The number of what a line costs.
    fn cost(&mut self, line: &QuickLine, definition: u64, known: &mut Known<'_>) -> Option<u64> {
        if let Some(number) = known.costs.get(&(definition, line.weight)) {
            return Some(*number);
        }
        let is_possible = (1..=line.definition.capacity()).contains(&line.weight);
        let mut pack = Pack::default();
        pack.numbers(&cost_of(&line.definition, line.weight));
        self.costs.push(pack);
        let number = self.costs.len() as u64;
        known.costs.insert((definition, line.weight), number);
        is_possible.then_some(number)
    }
}

/// A rule: its kind, and what the script needs of it. `None` if there is no port.
fn numbers_of(rule: &Rule) -> Option<Vec<u64>> {
    let limit = rule.limit();
    let lasting = |kind, length: u64| [vec![kind, limit], pair(length).to_vec()].concat();
    match rule {
        Rule::Bucket(bucket) => {
            let (nanos, fraction) = bucket.lapse(bucket.burst());
            let [seconds, nanos] = pair(nanos);
            Some(vec![1, bucket.scale(), seconds, nanos, fraction])
        }
        Rule::Window(window) if window.is_on_calendar() => None,
        Rule::Window(window) => Some(lasting(2, window.length().as_nanos())),
        Rule::Sliding(sliding) => {
            Some([lasting(3, sliding.length().as_nanos()), vec![sliding.grain()]].concat())
        }
        Rule::Slots(_) => Some(vec![4, limit]),
        _ => None,
    }
}

/// The weight, and for each rule how long it takes to flow in, where it does.
fn cost_of(definition: &Definition, weight: u64) -> Vec<u64> {
    let mut cost = vec![weight];
    for rule in definition.rules() {
        let (nanos, fraction) = match rule {
            Rule::Bucket(bucket) => bucket.lapse(weight),
            _ => (0, 0),
        };
        cost.extend(pair(nanos));
        cost.push(fraction);
    }
    cost
}
