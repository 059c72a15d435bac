//! Asks as the script takes them: what they cost under each rule is reckoned here, and nothing twice.

mod rows;

use super::pack::{Pack, pair};
use crate::shared::cells::Wanted;
use crate::shared::codec;
use crate::shared::quick::{Quick, QuickLine};
use redis::Cmd;
use rows::{Line, Rows};
use std::collections::HashMap;
use std::sync::Arc;
use tollgate_core::{Definition, Now, Rule};

/// What the script is handed.
#[derive(Debug)]
pub(super) struct Request {
    expects: Vec<Option<Vec<u8>>>,
    needs_all: bool,
    /// Definitions and costs, each named by the place where it begins.
    numbers: Vec<u64>,
    /// What the values of meters begin with, for each definition.
    heads: Vec<Vec<u8>>,
    rows: Rows,
}

/// Numbers that come before definitions and costs.
const FIRST: usize = 5;
/// Most numbers: more do not fit on the stack of Lua.
const NUMBERS_MAX: usize = 4_000;

/// What has a place already.
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
        let (expects, needs_all) = (quick.expects.clone(), quick.needs_all);
        // Nothing is told apart from no cell by being empty.
        let has_blank = expects.iter().flatten().any(Vec::is_empty);
        if expects.len() != wanted.read.len() || has_blank || quick.asks.is_empty() {
            return None;
        }
        let (numbers, heads, rows) = (Vec::new(), Vec::new(), Rows::default());
        let mut request = Self { expects, needs_all, numbers, heads, rows };
        let mut lines = Vec::with_capacity(quick.asks.len());
        let (mut known, mut is_plain) = (Known::default(), true);
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
        let numbers = request.numbers.len() + request.rows.runs().len();
        (numbers <= NUMBERS_MAX).then_some(request)
    }

    /// As the script's arguments; `None`: the time is the server's.
    pub(super) fn write(&self, now: Option<Now>, call: &mut Cmd) {
        let mut pack = Pack::default();
        pack.number(self.expects.len() as u64);
        match now {
            Some(now) => pack.pair(now.at.as_nanos()),
            None => {
                pack.bytes(None);
                pack.bytes(None);
            }
        }
        pack.number(u64::from(self.needs_all));
        pack.number(self.next());
        for number in self.numbers.iter().chain(self.rows.runs()) {
            pack.number(*number);
        }
        call.arg(pack.finish());
        for value in &self.expects {
            call.arg(value.as_deref().unwrap_or_default());
        }
        for head in &self.heads {
            call.arg(&**head);
        }
        if let Some(pack) = self.rows.packed() {
            call.arg(pack);
        }
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

    /// Where the next number is, as the script counts.
    fn next(&self) -> u64 {
        (FIRST + self.numbers.len() + 1) as u64
    }

    /// Where a line's definition begins.
    fn definition<'a>(&mut self, line: &'a QuickLine, known: &mut Known<'a>) -> Option<u64> {
        if let Some(place) = known.definitions.get(&(&*line.rules, line.seen)) {
            return Some(*place);
        }
        let place = self.next();
        let rules = line.definition.rules();
        // Arguments are counted from 1, and the numbers and what is expected come first.
        let head = 2 + self.expects.len() + self.heads.len();
        self.numbers.extend([head as u64, rules.len() as u64]);
        for rule in rules {
            self.numbers.extend(numbers_of(rule)?);
        }
        self.heads.push(codec::meter_head(&line.rules, line.seen));
        known.definitions.insert((&line.rules, line.seen), place);
        Some(place)
    }

    /// Where it is said what a line costs; `None` if that never passes.
    fn cost(&mut self, line: &QuickLine, definition: u64, known: &mut Known<'_>) -> Option<u64> {
        if let Some(place) = known.costs.get(&(definition, line.weight)) {
            return Some(*place);
        }
        if !(1..=line.definition.capacity()).contains(&line.weight) {
            return None;
        }
        let place = self.next();
        self.numbers.extend(cost_of(&line.definition, line.weight));
        known.costs.insert((definition, line.weight), place);
        Some(place)
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
fn numbers_of(rule: &Rule) -> Option<[u64; 5]> {
    let limit = rule.limit();
    let lasting = |kind, length: u64, last| {
        let [seconds, nanos] = pair(length);
        Some([kind, limit, seconds, nanos, last])
    };
    match rule {
        Rule::Bucket(bucket) => {
            let (nanos, fraction) = bucket.lapse(bucket.burst());
            let [seconds, nanos] = pair(nanos);
            Some([1, bucket.scale(), seconds, nanos, fraction])
        }
        Rule::Window(window) if window.is_on_calendar() => None,
        Rule::Window(window) => lasting(2, window.length().as_nanos(), 0),
        Rule::Sliding(sliding) => lasting(3, sliding.length().as_nanos(), sliding.grain()),
        Rule::Slots(_) => Some([4, limit, 0, 0, 0]),
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
