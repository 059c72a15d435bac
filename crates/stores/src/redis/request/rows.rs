//! Asks that are alike are one row, in one of the two forms that the script takes.

use crate::redis::pack::{Pack, pair};
use crate::shared::quick::QuickAsk;
use tollgate_core::contract::RECEIPT_LIFE_MAX;

/// One line of an ask, by numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// Which meter, from 0.
    pub(super) at: usize,
    /// Where its definition begins, and what it costs.
    pub(super) definition: u64,
    pub(super) cost: u64,
}

/// Asks as the script takes them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Runs of meters at which the same is asked; empty if not all asks are plain.
    runs: Vec<u64>,
    /// Otherwise: of each meter its definition.
    uses: Vec<u64>,
    /// And the asks.
    asks: Vec<u64>,
    /// Of each ask the row that it is in.
    row_of: Vec<usize>,
    /// How many asks each row is.
    counts: Vec<u64>,
}

impl Rows {
    /// Each ask has one line, so those at different meters do not mind each other: they are told meter by
    /// meter. `None` if a meter has two definitions, or nobody asks there: it is here for something else.
    pub(super) fn plain(asks: &[QuickAsk], lines: &[Line], meters: usize) -> Option<Self> {
        let mut rows = Self { row_of: vec![0; asks.len()], ..Self::default() };
        let mut order: Vec<usize> = (0..lines.len()).collect();
        // Those at one meter stay in order.
        order.sort_by_key(|ask| lines[*ask].at);
        let (mut begun, mut met) = (0, 0);
        for here in order.chunk_by(|one, other| lines[*one].at == lines[*other].at) {
            let (first, start) = (lines[here[0]], rows.runs.len());
            let alike = here.chunk_by(|one, other| lines[*one].cost == lines[*other].cost);
            rows.runs.extend([1, first.definition, 0]);
            for row in alike {
                let count = row.iter().map(|ask| asks[*ask].count as u64).sum();
                row.iter().for_each(|ask| rows.row_of[*ask] = rows.counts.len());
                rows.counts.push(count);
                rows.runs.extend([lines[row[0]].cost, count]);
                rows.runs[start + 2] += 1;
            }
            if first.at != met || here.iter().any(|ask| lines[*ask].definition != first.definition)
            {
                return None;
            }
            met += 1;
            // The same as at the meters before: then they are one more.
            if start > 0 && rows.runs[begun + 1..start] == rows.runs[start + 1..] {
                rows.runs.truncate(start);
                rows.runs[begun] += 1;
            } else {
                begun = start;
            }
        }
        (met == meters).then_some(rows)
    }

    /// Asks of any kind, in order. `None` as above.
    pub(super) fn any(asks: &[QuickAsk], lines: &[Line], meters: usize) -> Option<Self> {
        let mut rows = Self { uses: vec![0; meters], ..Self::default() };
        let (mut rest, mut last) = (lines, 0..0);
        for ask in asks {
            let (lines, others) = rest.split_at_checked(ask.lines.len())?;
            rest = others;
            let [seconds, nanos] = pair(ask.life.min(RECEIPT_LIFE_MAX).as_nanos());
            let start = rows.asks.len();
            rows.asks.extend([ask.count as u64, seconds, nanos, lines.len() as u64]);
            for line in lines {
                let uses = rows.uses.get_mut(line.at)?;
                if *uses != 0 && *uses != line.definition {
                    return None;
                }
                *uses = line.definition;
                rows.asks.extend([line.at as u64 + 1, line.cost]);
            }
            match last.len() > 1 && rows.asks[last.start + 1..last.end] == rows.asks[start + 1..] {
                true => {
                    rows.asks.truncate(start);
                    rows.asks[last.start] += ask.count as u64;
                    *rows.counts.last_mut()? += ask.count as u64;
                }
                false => {
                    last = start..rows.asks.len();
                    rows.counts.push(ask.count as u64);
                }
            }
            rows.row_of.push(rows.counts.len() - 1);
            if lines.is_empty() {
                return None;
            }
        }
        rows.uses.iter().all(|uses| *uses != 0).then_some(rows)
    }

    /// Runs, if all asks are plain.
    pub(super) fn runs(&self) -> &[u64] {
        &self.runs
    }

    /// The two lists, if they are not.
    pub(super) fn packed(&self) -> Option<Vec<u8>> {
        let mut pack = Pack::default();
        for numbers in [&self.uses, &self.asks] {
            pack.numbers(numbers);
        }
        self.runs.is_empty().then(|| pack.finish())
    }

    /// Which asks were granted, where in these rows, each with its number, only so many were.
    pub(super) fn granted(&self, asks: &[QuickAsk], refused: &[u64]) -> Option<Vec<bool>> {
        let mut left = self.counts.clone();
        for told in refused.chunks(2) {
            let &[row, granted] = told else { return None };
            *left.get_mut(usize::try_from(row).ok()?.checked_sub(1)?)? = granted;
        }
        let mut granted = Vec::with_capacity(asks.len());
        for (ask, row) in asks.iter().zip(&self.row_of) {
            let left = left.get_mut(*row)?;
            let passed = (ask.count as u64).min(*left);
            *left -= passed;
            granted.extend((0..ask.count as u64).map(|place| place < passed));
        }
        Some(granted)
    }
}
