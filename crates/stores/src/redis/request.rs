//! Asks as the script takes them: what they cost under each rule is reckoned here, and nothing twice.

mod rows;

use super::pack::{Pack, pair};
use crate::shared::cells::Wanted;
use crate::shared::codec;
use crate::shared::quick::{Quick, QuickLine};
use rows::{Line, Rows};
use std::collections::HashMap;
use std::sync::Arc;
use tollgate_core::{Definition, Now, Rule};

/// What the script is handed.
#[derive(Debug)]
pub(super) struct Request {
    expects: Vec<Option<Vec<u8>>>,
    needs_all: bool,
    definitions: Numbered,
    costs: Numbered,
    rows: Rows,
}

/// Lists that are packed already, and how many they are.
#[derive(Debug, Default)]
struct Numbered {
    packed: Pack,
    count: u64,
}

/// What was numbered before.
#[derive(Default)]
struct Known<'a> {
    definitions: HashMap<(&'a str, u64), u64>,
    costs: HashMap<(u64, u64), u64>,
    /// Most often the next line is under the same rules, and weighs the same.
    last: Option<(&'a QuickLine, Line)>,
}

impl Request {
    /// `None` if there is something among it that the script has no port for.
    pub(super) fn new(wanted: Wanted<'_>, quick: &Quick) -> Option<Self> {
        if quick.expects.len() != wanted.read.len() || quick.asks.is_empty() {
            return None;
        }
        let (definitions, costs) = (Numbered::default(), Numbered::default());
        let (expects, needs_all) = (quick.expects.clone(), quick.needs_all);
        let rows = Rows::default();
        let mut request = Self { expects, needs_all, definitions, costs, rows };
        let (mut known, mut lines, mut is_plain) = (Known::default(), Vec::new(), true);
        for ask in &quick.asks {
            is_plain &= ask.lines.len() == 1;
            for line in &ask.lines {
                lines.push(request.line(line, &mut known)?);
                is_plain &= is_plainly_ruled(&line.definition);
            }
        }
        let meters = wanted.change.len();
        request.rows = match is_plain {
            true => Rows::plain(&quick.asks, &lines, meters)?,
            false => Rows::any(&quick.asks, &lines, meters)?,
        };
        Some(request)
    }

    /// As the script's argument; `None`: the time is the server's.
    pub(super) fn packed(&self, now: Option<Now>) -> Vec<u8> {
        let mut pack = Pack::default();
        pack.list(10);
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
        pack.number(u64::from(self.needs_all));
        for Numbered { packed, count } in [&self.definitions, &self.costs] {
            pack.list(usize::try_from(*count).unwrap_or_default());
            pack.append(packed);
        }
        self.rows.pack(&mut pack);
        pack.finish()
    }

    /// The values that were taken for those of the cells that are only read.
    pub(super) fn expects(&self) -> &[Option<Vec<u8>>] {
        &self.expects
    }

    /// Which asks were granted, of what the script says of rows whose last ones were not: the number of
    /// each and how many were. `None` if it says something else.
    pub(super) fn granted(&self, quick: &Quick, refused: &[u64]) -> Option<Vec<bool>> {
        self.rows.granted(&quick.asks, refused)
    }

    fn line<'a>(&mut self, line: &'a QuickLine, known: &mut Known<'a>) -> Option<Line> {
        if let Some((last, number)) = known.last.as_ref().filter(|(last, _)| is_like(last, line)) {
            let number = Line { at: line.at, ..*number };
            known.last = Some((last, number));
            return Some(number);
        }
        let definition = self.definition(line, known)?;
        let number = Line { at: line.at, definition, cost: self.cost(line, definition, known)? };
        known.last = Some((line, number));
        Some(number)
    }

    /// The number of a line's definition.
    fn definition<'a>(&mut self, line: &'a QuickLine, known: &mut Known<'a>) -> Option<u64> {
        if let Some(number) = known.definitions.get(&(&*line.rules, line.seen)) {
            return Some(*number);
        }
        let Numbered { packed, count } = &mut self.definitions;
        packed.list(2);
        packed.bytes(Some(&codec::meter_head(&line.rules, line.seen)));
        let rules = line.definition.rules();
        packed.list(rules.len());
        for rule in rules {
            packed.numbers(&numbers_of(rule)?);
        }
        *count += 1;
        known.definitions.insert((&line.rules, line.seen), *count);
        Some(*count)
    }

    /// The number of what a line costs; `None` if that never passes.
    fn cost(&mut self, line: &QuickLine, definition: u64, known: &mut Known<'_>) -> Option<u64> {
        if let Some(number) = known.costs.get(&(definition, line.weight)) {
            return Some(*number);
        }
        if !(1..=line.definition.capacity()).contains(&line.weight) {
            return None;
        }
        let Numbered { packed, count } = &mut self.costs;
        packed.numbers(&cost_of(&line.definition, line.weight));
        *count += 1;
        known.costs.insert((definition, line.weight), *count);
        Some(*count)
    }
}

/// Whether two lines are under the same rules and weigh the same, as far as that is seen at once.
fn is_like(line: &QuickLine, other: &QuickLine) -> bool {
    Arc::ptr_eq(&line.rules, &other.rules) && (line.seen, line.weight) == (other.seen, other.weight)
}

/// Whether a meter under these rules may be plain: one bucket, or one window.
fn is_plainly_ruled(definition: &Definition) -> bool {
    matches!(definition.rules(), [Rule::Bucket(_) | Rule::Window(_)])
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
