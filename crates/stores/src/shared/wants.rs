//! Which cells something needs, by what it names.

use super::cells::{CellKey, Kind};
use std::collections::BTreeSet;
use tollgate_core::contract::{MeterName, Receipt};
use tollgate_core::till::ReceiptKey;
use tollgate_core::{Key, LimitName, Partition};

/// The cells of a change, and which of them may be written.
#[derive(Debug, Default)]
pub(super) struct Wants {
    pub(super) read: BTreeSet<CellKey>,
    pub(super) change: Vec<CellKey>,
    /// The meters among them, if their partitions may have rules of their own.
    pub(super) meters: Vec<MeterName>,
    needs_meters: bool,
    /// The one that was paid at last: most often it is the next one, too, or of the same limit.
    last: Option<MeterName>,
}

impl Wants {
    /// Nothing yet. Partitions that have rules of their own are known to be there, or not to be.
    pub(super) fn new(has_own: bool) -> Self {
        Self { needs_meters: has_own, ..Self::default() }
    }

    /// A meter that may change, with its limit.
    pub(super) fn pay_at(&mut self, name: &MeterName) {
        if self.last.as_ref() == Some(name) {
            return;
        }
        self.change.push(meter(name));
        self.rules_of(name);
        self.last = Some(name.clone());
    }

    /// A meter that is looked at, with its limit.
    pub(super) fn look_at(&mut self, name: &MeterName) {
        self.read.insert(meter(name));
        self.rules_of(name);
    }

    fn rules_of(&mut self, name: &MeterName) {
        if self.last.as_ref().is_none_or(|last| last.0 != name.0) {
            self.read.insert(limit(&name.0));
        }
        if self.needs_meters {
            self.meters.push(name.clone());
        }
    }

    pub(super) fn pay_for(&mut self, receipt: &Receipt) {
        for line in &receipt.lines {
            self.pay_at(&(line.limit.clone(), line.partition.clone()));
        }
    }

    /// Sorted and without doubles; and what is written is not only read.
    pub(super) fn settled(mut self) -> Self {
        self.change.sort_unstable();
        self.change.dedup();
        self.read.retain(|key| self.change.binary_search(key).is_err());
        self
    }
}

pub(super) fn epoch() -> CellKey {
    CellKey { kind: Kind::Epoch, name: "epoch".into(), part: None }
}

pub(super) fn limit(name: &LimitName) -> CellKey {
    CellKey { kind: Kind::Limit, name: name.as_str().into(), part: None }
}

pub(super) fn own(name: &LimitName, partition: &Partition) -> CellKey {
    let part = Some(partition.as_str().into());
    CellKey { kind: Kind::Own, name: name.as_str().into(), part }
}

pub(super) fn meter((name, partition): &MeterName) -> CellKey {
    let part = partition.as_ref().map(|partition| partition.as_str().into());
    CellKey { kind: Kind::Meter, name: name.as_str().into(), part }
}

/// The cell of a limit that is spread.
pub(super) fn apart(cell: CellKey) -> CellKey {
    let kind = match cell.kind {
        Kind::Meter => Kind::SpreadMeter,
        Kind::Settled => Kind::SpreadSettled,
        other => other,
    };
    CellKey { kind, ..cell }
}

/// Stands for all cells that lie together with one: the meter of a limit that is spread, or the one cell that
/// lies where all others do.
pub(super) fn place(cell: &CellKey) -> CellKey {
    let part = match cell.kind {
        Kind::SpreadMeter => cell.part.as_deref(),
        Kind::SpreadSettled => {
            cell.part.as_deref().and_then(|part| part.split_once(':')).map(|(_, part)| part)
        }
        _ => return epoch(),
    };
    CellKey { kind: Kind::SpreadMeter, name: cell.name.clone(), part: part.map(Into::into) }
}

pub(super) fn record(key: &Key) -> CellKey {
    CellKey { kind: Kind::Record, name: key.as_str().into(), part: None }
}

/// Ids are one at a meter; the id comes first, for a partition may be any text.
pub(super) fn settled(((name, partition), id): &ReceiptKey) -> CellKey {
    let part = match partition {
        Some(partition) => format!("{id}:{partition}"),
        None => id.to_string(),
    };
    CellKey { kind: Kind::Settled, name: name.as_str().into(), part: Some(part.into()) }
}
