//! An operation as it is written down.

use crate::lanes::Operation;
use serde::{Deserialize, Serialize};
use tollgate_core::contract::MeterName;
use tollgate_core::lanes::Scope;
use tollgate_core::{LaneName, LimitName, Partition, QueueName, Span};

#[derive(Serialize, Deserialize)]
pub(super) enum OperationRecord {
    Pause(ScopeRecord),
    Resume(ScopeRecord),
    Close { meter: MeterRecord, span: Span, reason: String },
    Reopen(MeterRecord),
    Reset(MeterRecord),
}

#[derive(Serialize, Deserialize)]
pub(super) enum ScopeRecord {
    Limit(String),
    Queue(String),
    Lane(String, String),
}

/// The limit, and the partition.
#[derive(Serialize, Deserialize)]
pub(super) struct MeterRecord(String, Option<String>);

impl From<Operation> for OperationRecord {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Pause(scope) => Self::Pause(ScopeRecord::new(&scope)),
            Operation::Resume(scope) => Self::Resume(ScopeRecord::new(&scope)),
            Operation::Close { meter, span, reason } => {
                Self::Close { meter: MeterRecord::new(&meter), span, reason }
            }
            Operation::Reopen(meter) => Self::Reopen(MeterRecord::new(&meter)),
            Operation::Reset(meter) => Self::Reset(MeterRecord::new(&meter)),
        }
    }
}

impl OperationRecord {
    /// What was done; `None` if no such thing can be named.
    pub(super) fn operation(self) -> Option<Operation> {
        Some(match self {
            Self::Pause(scope) => Operation::Pause(scope.scope()?),
            Self::Resume(scope) => Operation::Resume(scope.scope()?),
            Self::Close { meter, span, reason } => {
                Operation::Close { meter: meter.meter()?, span, reason }
            }
            Self::Reopen(meter) => Operation::Reopen(meter.meter()?),
            Self::Reset(meter) => Operation::Reset(meter.meter()?),
        })
    }
}

impl ScopeRecord {
    fn new(scope: &Scope) -> Self {
        match scope {
            Scope::Limit(limit) => Self::Limit(limit.to_string()),
            Scope::Queue(queue) => Self::Queue(queue.to_string()),
            Scope::Lane(queue, lane) => Self::Lane(queue.to_string(), lane.to_string()),
        }
    }

    fn scope(self) -> Option<Scope> {
        Some(match self {
            Self::Limit(limit) => Scope::Limit(LimitName::new(&limit).ok()?),
            Self::Queue(queue) => Scope::Queue(QueueName::new(&queue).ok()?),
            Self::Lane(queue, lane) => {
                Scope::Lane(QueueName::new(&queue).ok()?, LaneName::new(&lane).ok()?)
            }
        })
    }
}

impl MeterRecord {
    fn new((limit, partition): &MeterName) -> Self {
        Self(limit.to_string(), partition.as_ref().map(ToString::to_string))
    }

    fn meter(self) -> Option<MeterName> {
        let partition = self.1.as_deref().map(Partition::new).transpose().ok()?;
        Some((LimitName::new(&self.0).ok()?, partition))
    }
}
