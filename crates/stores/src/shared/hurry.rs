//! Asks in the form in which a store may decide them by itself, of what is remembered of its rules.

use super::cells::CellKey;
use super::memory::Memory;
use super::quick::{Quick, QuickAsk, QuickLine};
use super::wants;
use std::sync::Arc;
use tollgate_core::contract::{Ask, MeterName};
use tollgate_core::{Definition, LimitName, toll};

/// What asks are put in form with.
pub(super) struct Hurry<'a> {
    pub(super) memory: &'a Memory,
    pub(super) read: &'a [CellKey],
    pub(super) change: &'a [CellKey],
}

/// The rules of one meter, as they are remembered.
#[derive(Clone, Copy)]
struct Rules<'a> {
    text: &'a Arc<str>,
    seen: u64,
    definition: &'a Arc<Definition>,
}

/// The limit whose rules were looked up last, if all its partitions have the same.
type Last<'a> = Option<(LimitName, Rules<'a>)>;

impl<'a> Hurry<'a> {
    /// `None` if something is not known, or not to be decided so.
    pub(super) fn quick<'b>(&self, asks: impl Iterator<Item = &'b Ask>) -> Option<Quick> {
        let epoch = self.memory.epoch()?;
        let expects = self.read.iter().map(|key| match *key == wants::epoch() {
            true => Some(epoch.written()),
            false => self.memory.known(key).map(|known| known.bytes.clone()),
        });
        let expects = expects.collect();
        let mut limit = None;
        let (mut put, mut last): (Vec<QuickAsk>, Option<&Ask>) = (Vec::new(), None);
        for ask in asks {
            match put.last_mut().filter(|_| last == Some(ask)) {
                Some(alike) => alike.count += 1,
                None => put.push(self.ask(ask, &mut limit)?),
            }
            last = Some(ask);
        }
        let asks = put;
        Some(Quick { expects, needs_all: epoch.lost.is_some(), asks })
            .filter(|it| !it.asks.is_empty())
    }

    fn ask(&self, ask: &Ask, last: &mut Last<'a>) -> Option<QuickAsk> {
        if ask.delay_max.is_some() || ask.tolls.is_empty() {
            return None;
        }
        let owed = ask.owed();
        // With others, one that is spread is refused, and that is said elsewhere.
        if owed.len() > 1 && owed.iter().any(|((limit, _), _)| self.memory.is_spread(limit)) {
            return None;
        }
        let lines = owed.iter().map(|(name, weight)| self.line(name, *weight, last));
        let lines = lines.collect::<Option<Vec<_>>>()?;
        toll::check(&ask.tolls, |toll| {
            let is_it =
                |(name, _): &(MeterName, u64)| name.0 == toll.limit && name.1 == toll.partition;
            owed.iter().position(is_it).map(|place| lines[place].definition.as_ref())
        })
        .ok()?;
        Some(QuickAsk { count: 1, life: ask.life, lines })
    }

    fn line(&self, name: &MeterName, weight: u64, last: &mut Last<'a>) -> Option<QuickLine> {
        let Rules { text, seen, definition } = self.rules(name, last)?;
        let meter = wants::meter(name);
        let meter = if self.memory.is_spread(&name.0) { wants::apart(meter) } else { meter };
        let at = self.change.binary_search(&meter).ok()?;
        Some(QuickLine { at, rules: text.clone(), seen, definition: definition.clone(), weight })
    }

    fn rules(&self, (limit, partition): &MeterName, last: &mut Last<'a>) -> Option<Rules<'a>> {
        if let Some((_, rules)) = last.as_ref().filter(|(last, _)| last == limit) {
            return Some(*rules);
        }
        let known = self.memory.known(&wants::limit(limit))?;
        let (common, in_force) = (&known.rules, known.rules.in_force()?);
        let common_rules =
            |own| Rules { text: &known.text, seen: common.latest(own), definition: in_force };
        if !self.memory.has_own(limit) {
            let rules = common_rules(None);
            *last = Some((limit.clone(), rules));
            return Some(rules);
        }
        let own = partition.as_ref();
        let own = own.and_then(|partition| self.memory.known(&wants::own(limit, partition)));
        let Some(own) = own else { return Some(common_rules(None)) };
        let seen = common.latest(Some(&own.rules));
        Some(match own.rules.in_force() {
            Some(definition) => Rules { text: &own.text, seen, definition },
            None => common_rules(Some(&own.rules)),
        })
    }
}
