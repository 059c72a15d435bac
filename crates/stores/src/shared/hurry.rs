//! Asks in the form in which a store may decide them by itself, of what is remembered of its rules.

use super::cells::CellKey;
use super::memory::Memory;
use super::quick::{Quick, QuickAsk, QuickLine};
use super::{rules, wants};
use std::collections::HashMap;
use std::sync::Arc;
use tollgate_core::Definition;
use tollgate_core::contract::{Ask, MeterName};
use tollgate_core::toll;

/// What asks are put in form with.
pub(super) struct Hurry<'a> {
    pub(super) memory: &'a Memory,
    pub(super) read: &'a [CellKey],
    pub(super) change: &'a [CellKey],
}

/// The rules of one meter, as they are remembered.
#[derive(Clone)]
struct Rules {
    text: Arc<str>,
    seen: u64,
    definition: Arc<Definition>,
}

impl Hurry<'_> {
    /// `None` if something is not known, or not to be decided so.
    pub(super) fn quick<'a>(&self, asks: impl Iterator<Item = &'a Ask>) -> Option<Quick> {
        let epoch = self.memory.epoch()?;
        let expects = self.read.iter().map(|key| match *key == wants::epoch() {
            true => Some(epoch.written()),
            false => self.memory.known(key).map(|known| known.bytes.clone()),
        });
        let expects = expects.collect();
        let mut known = HashMap::new();
        let (mut put, mut last): (Vec<QuickAsk>, Option<&Ask>) = (Vec::new(), None);
        for ask in asks {
            match put.last_mut().filter(|_| last == Some(ask)) {
                Some(alike) => alike.count += 1,
                None => put.push(self.ask(ask, &mut known)?),
            }
            last = Some(ask);
        }
        let asks = put;
        Some(Quick { expects, needs_all: epoch.lost.is_some(), asks })
            .filter(|it| !it.asks.is_empty())
    }

    fn ask(&self, ask: &Ask, known: &mut HashMap<MeterName, Rules>) -> Option<QuickAsk> {
        if ask.delay_max.is_some() || ask.tolls.is_empty() {
            return None;
        }
        let owed = ask.owed();
        // With others, one that is spread is refused, and that is said elsewhere.
        if owed.len() > 1 && owed.iter().any(|((limit, _), _)| self.memory.is_spread(limit)) {
            return None;
        }
        for (name, _) in &owed {
            if !known.contains_key(name) {
                known.insert(name.clone(), self.rules(name)?);
            }
        }
        toll::check(&ask.tolls, |toll| {
            let rules = known.get(&(toll.limit.clone(), toll.partition.clone()));
            rules.map(|rules| rules.definition.as_ref())
        })
        .ok()?;
        let lines = owed.iter().map(|(name, weight)| {
            let Rules { text, seen, definition } = known.get(name)?.clone();
            let meter = wants::meter(name);
            let is_spread = self.memory.is_spread(&name.0);
            let meter = if is_spread { wants::apart(meter) } else { meter };
            let at = self.change.binary_search(&meter).ok()?;
            Some(QuickLine { at, rules: text, seen, definition, weight: *weight })
        });
        Some(QuickAsk { count: 1, life: ask.life, lines: lines.collect::<Option<_>>()? })
    }

    fn rules(&self, (limit, partition): &MeterName) -> Option<Rules> {
        let common = &self.memory.known(&wants::limit(limit))?.rules;
        let own = partition.as_ref().filter(|_| self.memory.has_own(limit));
        let own = own.and_then(|partition| self.memory.known(&wants::own(limit, partition)));
        let own = own.map(|own| &own.rules);
        let definition = own.and_then(|own| own.in_force()).or(common.in_force())?.clone();
        common.in_force()?;
        let text = rules::written(&definition).into();
        Some(Rules { text, seen: common.latest(own), definition })
    }
}
