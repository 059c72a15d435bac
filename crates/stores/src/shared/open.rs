//! What was read for one change, opened: a till, and the records beside it; and what of it changed, to be
//! written again.

use super::cells::{CellKey, Change, Found, Kind};
use super::codec::{self, Definitions, Epoch, Kept, Unreadable};
use super::wants;
use std::collections::BTreeMap;
use tollgate_core::contract::{ConfigureError, StoreError};
use tollgate_core::lanes::{Record, Revision, Write};
use tollgate_core::till::{KeptMeter, ReceiptKey, Till};
use tollgate_core::{Key, LimitName, Now, Partition, Span};

/// For how long a meter that is as new is kept on: a limit may be made slower just then. A minute, and half of one more
/// that a store may leave out.
const MARGIN: Span = Span::from_secs(90);
/// For how long it is remembered what rules there were that are there no more: longer than any period.
const GONE_KEPT: Span = Span::from_days(732);

/// Everything that was read for one change.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) till: Till,
    pub(super) epoch: Option<Epoch>,
    /// Of limits that have partitions with rules of their own.
    pub(super) with_own: Vec<LimitName>,
    /// Of each limit, whether it is spread.
    pub(super) spread: Vec<(LimitName, bool)>,
    records: BTreeMap<Key, Kept>,
    written: Vec<Key>,
}

impl Opened {
    /// Opens what was found of these cells, in an empty till.
    pub(super) fn new<'a>(
        till: Till,
        keys: impl Iterator<Item = &'a CellKey>,
        found: impl Iterator<Item = &'a Option<Vec<u8>>>,
        definitions: &mut Definitions,
    ) -> Result<Self, StoreError> {
        let (epoch, with_own) = (None, Vec::new());
        let (records, written) = (BTreeMap::new(), Vec::new());
        let mut opened = Self { till, epoch, with_own, spread: Vec::new(), records, written };
        for (key, value) in keys.zip(found) {
            let Some(value) = value else {
                opened.note_missing(key);
                continue;
            };
            opened.put(key, value, definitions).map_err(|_| unreadable(key))?;
        }
        if let Some(lost) = opened.epoch.and_then(|epoch| epoch.lost) {
            opened.till.lost_at(lost);
        }
        Ok(opened)
    }

    /// A limit that is not there is not spread.
    fn note_missing(&mut self, key: &CellKey) {
        if let (Kind::Limit, Ok(limit)) = (key.kind, LimitName::new(&key.name)) {
            self.spread.push((limit, false));
        }
    }

    fn put(
        &mut self,
        key: &CellKey,
        value: &[u8],
        definitions: &mut Definitions,
    ) -> Result<(), Unreadable> {
        let limit = || LimitName::new(&key.name).map_err(|_| Unreadable);
        let part = || key.part.as_deref().map(Partition::new).transpose().map_err(|_| Unreadable);
        match key.kind {
            Kind::Epoch => self.epoch = Some(Epoch::read(value)?),
            Kind::Record => {
                let key = Key::new(&key.name).map_err(|_| Unreadable)?;
                self.records.insert(key, Kept::read(value)?);
            }
            Kind::Limit => {
                let rules = codec::timeline_read(value, definitions)?;
                if rules.has_own {
                    self.with_own.push(limit()?);
                }
                self.spread.push((limit()?, rules.is_spread()));
                self.till.put_limit(limit()?, rules);
            }
            Kind::Own => {
                let rules = codec::timeline_read(value, definitions)?;
                self.till.put_own(limit()?, part()?.ok_or(Unreadable)?, rules);
            }
            Kind::Settled | Kind::SpreadSettled => {
                let part = key.part.as_deref().ok_or(Unreadable)?;
                self.till.put_settled(settled(limit()?, part).ok_or(Unreadable)?);
            }
            Kind::Meter | Kind::SpreadMeter => {
                let meter = codec::meter_read(value, definitions)?;
                self.till.put_meter((limit()?, part()?), meter);
            }
        }
        Ok(())
    }

    pub(super) fn record(&self, key: &Key) -> Option<&Record> {
        self.records.get(key).and_then(Kept::record)
    }

    /// Writes records, all or none.
    pub(super) fn write(&mut self, writes: &[Write]) -> Result<(), ConfigureError> {
        for (at, write) in writes.iter().enumerate() {
            let found = self.record(&write.key).map(|record| record.revision).unwrap_or_default();
            if found != write.expected {
                return Err(ConfigureError::RevisionDiffers { at, found });
            }
        }
        for write in writes {
            // Later than any that was: a record that is removed and written again has one of its own.
            let before = self.records.get(&write.key).map_or(0, |kept| kept.revision().0);
            let now = self.till.now().at.as_nanos();
            let revision = Revision(now.max(before.saturating_add(1)));
            let kept = match write.bytes.clone() {
                Some(bytes) => Kept::Record(Record { revision, bytes }),
                None => Kept::Removed(revision),
            };
            self.records.insert(write.key.clone(), kept);
            self.written.push(write.key.clone());
        }
        Ok(())
    }

    /// What changed, as it is to be written, in the order of these keys.
    pub(super) fn changes(&self, keys: &[CellKey]) -> Vec<Change> {
        let now = self.till.now();
        let changes = self.till.changes();
        let records = self.written.iter().map(|key| {
            let kept = self.records.get(key);
            let is_gone = kept.is_none_or(|kept| kept.record().is_none());
            (wants::record(key), kept.map(Kept::written), is_gone.then_some(GONE_KEPT))
        });
        let limits = changes.limits.iter().filter_map(|name| {
            let rules = self.till.limit(name)?;
            let life = rules.in_force().is_none().then_some(GONE_KEPT);
            Some((wants::limit(name), Some(codec::timeline_written(rules)), life))
        });
        let own = changes.own.iter().filter_map(|key| {
            let rules = self.till.own(key)?;
            let life = rules.in_force().is_none().then_some(GONE_KEPT);
            Some((wants::own(&key.0, &key.1), Some(codec::timeline_written(rules)), life))
        });
        let settled = changes.settled.iter().map(|(receipt, until)| {
            (wants::settled(receipt), Some(vec![1]), Some(until.since(now.at)))
        });
        let meters = self.till.changed_meters().map(|(name, kept)| {
            let (value, life) = (codec::meter_written(kept, now.at), kept_for(kept, now));
            (wants::meter(name), Some(value), Some(life))
        });
        let all = records.chain(limits).chain(own).chain(settled).chain(meters);
        let placed = all.filter_map(|(key, value, life)| {
            let at = keys.binary_search(&key).or_else(|_| keys.binary_search(&wants::apart(key)));
            Some(Change { at: at.ok()?, value, life })
        });
        let mut placed: Vec<Change> = placed.collect();
        placed.sort_unstable_by_key(|change| change.at);
        placed
    }
}

/// The instants of a meter, as its store may forget it.
pub(super) fn kept_for(kept: &KeptMeter, now: Now) -> Span {
    kept.life(now).plus(MARGIN)
}

fn settled(limit: LimitName, part: &str) -> Option<ReceiptKey> {
    let (id, partition) = match part.split_once(':') {
        Some((id, partition)) => (id, Some(Partition::new(partition).ok()?)),
        None => (part, None),
    };
    Some(((limit, partition), id.parse().ok()?))
}

fn unreadable(key: &CellKey) -> StoreError {
    let CellKey { kind, name, .. } = key;
    let name: String = name.chars().take(128).collect();
    let reason = format!(
        "what is kept of {name:?} ({kind:?}) cannot be read: was it written by a newer version, or by something else under the same prefix?"
    );
    StoreError::Failed { reason }
}

/// Both halves of what was found, in the order of their keys.
pub(super) fn all_found(found: &Found) -> impl Iterator<Item = &Option<Vec<u8>>> {
    found.read.iter().chain(&found.change)
}
