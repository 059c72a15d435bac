//! What a process remembers of a store: not to decide by, but to know what to read, and what is lost.

use super::ahead::Lending;
use super::cells::{CellKey, Kind};
use super::codec::{self, Definitions, Epoch};
use super::news::News;
use super::rules;
use super::wants::{self, Wants};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tollgate_core::LimitName;
use tollgate_core::till::Timeline;

/// Most rules that are remembered as they were last seen.
const KNOWN_MAX: usize = 10_000;

/// What a process remembers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    remembered: Remembered,
    definitions: Definitions,
    /// Limits that are spread; none where the store does not spread them.
    spread: BTreeSet<LimitName>,
    spreads: bool,
    /// Rules of limits and of partitions, as they were last seen.
    known: BTreeMap<CellKey, Known>,
    lending: Lending,
    news: Arc<News>,
}

/// What tells which cells have to be read.
#[derive(Debug, Clone, Default)]
pub(super) struct Remembered {
    /// Since when the store remembers.
    pub(super) epoch: Option<Epoch>,
    /// Limits with partitions that have, or had, rules of their own.
    pub(super) with_own: Arc<BTreeSet<LimitName>>,
}

/// Rules as they were last seen.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) bytes: Vec<u8>,
    pub(super) rules: Timeline,
    /// The rules in force, as they are written; empty if there are none.
    pub(super) text: Arc<str>,
}

impl Memory {
    /// Nothing yet. What is learnt of limits that lend, and of those that changed, is told there.
    pub(super) fn new(lending: Lending, news: Arc<News>, spreads: bool) -> Self {
        Self { lending, news, spreads, ..Self::default() }
    }

    pub(super) fn remembered(&self) -> Remembered {
        self.remembered.clone()
    }

    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.remembered.epoch
    }

    pub(super) fn agree(&mut self, epoch: Epoch) {
        self.remembered.epoch = Some(epoch);
    }

    pub(super) fn definitions(&mut self) -> &mut Definitions {
        &mut self.definitions
    }

    pub(super) fn has_own(&self, limit: &LimitName) -> bool {
        self.remembered.with_own.contains(limit)
    }

    /// Whether a partition of any limit has, or had, rules of its own.
    pub(super) fn has_any_own(&self) -> bool {
        !self.remembered.with_own.is_empty()
    }

    pub(super) fn note_own(&mut self, limits: &[LimitName]) {
        let new = limits.iter().filter(|limit| !self.has_own(limit)).cloned();
        let new: Vec<_> = new.collect();
        if !new.is_empty() {
            Arc::make_mut(&mut self.remembered.with_own).extend(new);
        }
    }

    /// Whether the meters of some limit lie apart.
    pub(super) fn has_spread(&self) -> bool {
        !self.spread.is_empty()
    }

    /// Whether the meters of a limit lie apart.
    pub(super) fn is_spread(&self, limit: &LimitName) -> bool {
        !self.spread.is_empty() && self.spread.contains(limit)
    }

    /// Whether the store keeps meters apart at all.
    pub(super) fn spreads(&self) -> bool {
        self.spreads
    }

    /// Limits that are spread, or not, as they were read.
    pub(super) fn note_spread(&mut self, limits: &[(LimitName, bool)]) {
        for (limit, is_spread) in limits {
            match is_spread {
                true if self.spreads => self.spread.insert(limit.clone()),
                _ => self.spread.remove(limit),
            };
        }
    }

    /// Has cells lie apart that do, of those that were asked for.
    pub(super) fn put_apart(&self, wants: &mut Wants) {
        if self.spread.is_empty() {
            return;
        }
        let apart = |cell: CellKey| {
            let limit = LimitName::new(&cell.name);
            if limit.is_ok_and(|limit| self.is_spread(&limit)) { wants::apart(cell) } else { cell }
        };
        wants.read = std::mem::take(&mut wants.read).into_iter().map(apart).collect();
        wants.change = std::mem::take(&mut wants.change).into_iter().map(apart).collect();
    }

    /// Remembers the rules that were read.
    pub(super) fn learn(&mut self, keys: &[CellKey], found: &[Option<Vec<u8>>]) {
        for (key, value) in keys.iter().zip(found) {
            if !matches!(key.kind, Kind::Limit | Kind::Own) {
                continue;
            }
            let known = self.known.get(key).map(|known| &known.bytes);
            if known == value.as_ref() {
                continue;
            }
            let has_room = known.is_some() || self.known.len() < KNOWN_MAX;
            self.known.remove(key);
            let Some(bytes) = value.clone().filter(|_| has_room) else { continue };
            if let Ok(timeline) = codec::timeline_read(&bytes, &mut self.definitions) {
                self.tell(key, &timeline);
                let in_force = timeline.in_force();
                let text = in_force.map(|it| rules::written(it)).unwrap_or_default().into();
                self.known.insert(key.clone(), Known { bytes, rules: timeline, text });
            }
        }
    }

    fn tell(&self, key: &CellKey, rules: &Timeline) {
        let (Kind::Limit, Ok(name)) = (key.kind, LimitName::new(&key.name)) else { return };
        let span = rules.in_force().map(|rules| rules.limit().taken_ahead());
        match span.is_some_and(|span| !span.is_zero()) {
            true => self.lending.write().insert(name.clone()),
            false => self.lending.write().remove(&name),
        };
        self.news.tell(name);
    }

    /// Rules as they were last seen: what a store that lost them is told again.
    pub(super) fn all_known(&self) -> Vec<(CellKey, Known)> {
        self.known.iter().map(|(key, known)| (key.clone(), known.clone())).collect()
    }

    /// What was last seen of rules.
    pub(super) fn known(&self, key: &CellKey) -> Option<&Known> {
        self.known.get(key)
    }
}
