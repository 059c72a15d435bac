//! A change as it is written down.

mod operation;

use super::{Altered, Audited};
use crate::error::Error;
use operation::OperationRecord;
use serde::{Deserialize, Serialize};
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::{
    Backoff, BodyPath, OnDead, Order, QueueSpec, QueueToll, Record, Scalar, TollPartition,
    TollWeight, TollWhen,
};
use tollgate_core::{Limit, LimitName, Partition, Priority, Span, Timestamp};

#[derive(Serialize, Deserialize)]
pub(super) struct AuditRecord {
    at: Timestamp,
    who: String,
    what: WhatRecord,
}

#[derive(Serialize, Deserialize)]
enum WhatRecord {
    Limit { name: String, before: Option<Limit>, after: Option<Limit> },
    Pin { name: String, before: Option<Limit>, after: Option<Limit> },
    Override { name: String, partition: String, before: Option<Limit>, after: Option<Limit> },
    Queue { name: String, before: Option<QueueRecord>, after: Option<QueueRecord> },
    Operated(OperationRecord),
}

#[derive(Serialize, Deserialize)]
struct QueueRecord {
    /// `None`: strict.
    parallel: Option<u32>,
    lease: Span,
    failures_max: u32,
    crashes_max: u32,
    limited_max: u32,
    backoff: (Span, Span),
    #[serde(default)]
    jitter: u8,
    holds_when_dead: bool,
    depth_max: u64,
    dead_max: u64,
    dedupe: Span,
    tolls: Vec<TollRecord>,
    #[serde(default)]
    delivery: Option<String>,
    #[serde(default)]
    tells_accepted: bool,
}

#[derive(Serialize, Deserialize)]
struct TollRecord {
    limit: String,
    like: Option<String>,
    priority: Option<u8>,
    /// The partition, or the path to it with its default; neither: the global meter.
    partition: Option<String>,
    partition_path: Option<(String, Option<String>)>,
    /// The weight, or the path to it with its default and its max.
    weight: Option<u64>,
    weight_path: Option<(String, Option<u64>, Option<u64>)>,
    /// The default and the max of a weight that is learned.
    #[serde(default)]
    learned: Option<(u64, Option<u64>)>,
    when: Option<(String, ScalarRecord)>,
}

#[derive(Serialize, Deserialize)]
enum ScalarRecord {
    Text(String),
    Number(i64),
    Truth(bool),
}

impl AuditRecord {
    pub(super) fn new(who: &str, at: Timestamp, what: Altered) -> Self {
        let queue = |spec: Option<Box<QueueSpec>>| spec.map(|spec| QueueRecord::new(&spec));
        let what = match what {
            Altered::Limit { name, before, after } => WhatRecord::Limit { name, before, after },
            Altered::Pin { name, before, after } => WhatRecord::Pin { name, before, after },
            Altered::Override { name, partition, before, after } => {
                WhatRecord::Override { name, partition, before, after }
            }
            Altered::Queue { name, before, after } => {
                WhatRecord::Queue { name, before: queue(before), after: queue(after) }
            }
            Altered::Operated(operation) => WhatRecord::Operated(operation.into()),
        };
        Self { at, who: who.to_owned(), what }
    }

    fn change(self, number: u64) -> Option<Audited> {
        let queue = |record: Option<QueueRecord>| match record {
            Some(record) => record.spec().map(Some),
            None => Some(None),
        };
        let what = match self.what {
            WhatRecord::Limit { name, before, after } => Altered::Limit { name, before, after },
            WhatRecord::Pin { name, before, after } => Altered::Pin { name, before, after },
            WhatRecord::Override { name, partition, before, after } => {
                Altered::Override { name, partition, before, after }
            }
            WhatRecord::Queue { name, before, after } => {
                Altered::Queue { name, before: queue(before)?, after: queue(after)? }
            }
            WhatRecord::Operated(record) => Altered::Operated(record.operation()?),
        };
        Some(Audited { number, at: self.at, who: self.who, what })
    }
}

impl QueueRecord {
    fn new(spec: &QueueSpec) -> Self {
        let QueueSpec { lease, failures_max, crashes_max, limited_max, backoff, .. } = *spec;
        let QueueSpec { depth_max, dead_max, dedupe, .. } = *spec;
        Self {
            parallel: match spec.order {
                Order::Strict => None,
                Order::Parallel(calls) => Some(calls),
            },
            lease,
            failures_max,
            crashes_max,
            limited_max,
            backoff: (backoff.first, backoff.most),
            jitter: backoff.jitter,
            holds_when_dead: spec.on_dead == OnDead::Hold,
            depth_max,
            dead_max,
            dedupe,
            tolls: spec.tolls.iter().map(TollRecord::new).collect(),
            delivery: spec.delivery.as_deref().map(String::from_utf8_lossy).map(Into::into),
            tells_accepted: spec.tells_accepted,
        }
    }

    fn spec(self) -> Option<Box<QueueSpec>> {
        let tolls = self.tolls.into_iter().map(TollRecord::toll).collect::<Option<_>>();
        Some(Box::new(QueueSpec {
            order: self.parallel.map_or(Order::Strict, Order::Parallel),
            lease: self.lease,
            failures_max: self.failures_max,
            crashes_max: self.crashes_max,
            limited_max: self.limited_max,
            backoff: Backoff {
                jitter: self.jitter,
                ..Backoff::doubling(self.backoff.0, self.backoff.1)
            },
            on_dead: if self.holds_when_dead { OnDead::Hold } else { OnDead::Skip },
            depth_max: self.depth_max,
            dead_max: self.dead_max,
            dedupe: self.dedupe,
            tolls: tolls?,
            delivery: self.delivery.map(|delivery| delivery.into_bytes().into()),
            tells_accepted: self.tells_accepted,
        }))
    }
}

impl TollRecord {
    fn new(toll: &QueueToll) -> Self {
        Self {
            limit: toll.limit.as_str().to_owned(),
            like: toll.like.as_ref().map(|like| like.as_str().to_owned()),
            priority: toll.priority.map(Priority::level),
            partition: match &toll.partition {
                TollPartition::Fixed(name) => Some(name.to_string()),
                TollPartition::Global | TollPartition::Body { .. } => None,
            },
            partition_path: match &toll.partition {
                TollPartition::Body { path, default } => Some((
                    path.as_str().to_owned(),
                    default.as_ref().map(|name| name.as_str().to_owned()),
                )),
                TollPartition::Global | TollPartition::Fixed(_) => None,
            },
            weight: match &toll.weight {
                TollWeight::Fixed(weight) => Some(*weight),
                TollWeight::Body { .. } | TollWeight::Learned { .. } => None,
            },
            weight_path: match &toll.weight {
                TollWeight::Body { path, default, max } => {
                    Some((path.as_str().to_owned(), *default, *max))
                }
                TollWeight::Fixed(_) | TollWeight::Learned { .. } => None,
            },
            learned: match toll.weight {
                TollWeight::Learned { default, max } => Some((default, max)),
                _ => None,
            },
            when: toll.when.as_ref().map(|when| {
                let is = match &when.is {
                    Scalar::Text(text) => ScalarRecord::Text(text.to_string()),
                    Scalar::Number(number) => ScalarRecord::Number(*number),
                    Scalar::Truth(truth) => ScalarRecord::Truth(*truth),
                };
                (when.path.as_str().to_owned(), is)
            }),
        }
    }

    /// The toll; `None` if it cannot be read.
    fn toll(self) -> Option<QueueToll> {
        let path = |text: &str| BodyPath::new(text).ok();
        let mut toll = QueueToll::new(LimitName::new(&self.limit).ok()?);
        toll.like = self.like.map(|name| LimitName::new(&name)).transpose().ok()?;
        toll.priority = self.priority.and_then(|level| Priority::new(level.into()).ok());
        if let Some(name) = self.partition {
            toll.partition = TollPartition::Fixed(Partition::new(&name).ok()?);
        }
        if let Some((from, default)) = self.partition_path {
            let default = default.map(|name| Partition::new(&name)).transpose().ok()?;
            toll.partition = TollPartition::Body { path: path(&from)?, default };
        }
        if let Some(weight) = self.weight {
            toll.weight = TollWeight::Fixed(weight);
        }
        if let Some((from, default, max)) = self.weight_path {
            toll.weight = TollWeight::Body { path: path(&from)?, default, max };
        }
        if let Some((default, max)) = self.learned {
            toll.weight = TollWeight::Learned { default, max };
        }
        if let Some((from, is)) = self.when {
            let is = match is {
                ScalarRecord::Text(text) => Scalar::Text(text.into()),
                ScalarRecord::Number(number) => Scalar::Number(number),
                ScalarRecord::Truth(truth) => Scalar::Truth(truth),
            };
            toll.when = Some(TollWhen { path: path(&from)?, is });
        }
        Some(toll)
    }
}

/// A change as its record says; `None` if that cannot be read.
pub(super) fn read(number: u64, record: &Record) -> Option<Audited> {
    let read: AuditRecord = serde_json::from_slice(&record.bytes).ok()?;
    read.change(number)
}

pub(super) fn written(record: &AuditRecord) -> Result<Box<[u8]>, Error> {
    let bytes = serde_json::to_vec(record).map_err(|error| StoreError::Failed {
        reason: format!("a record of the audit log cannot be written: {error}"),
    });
    Ok(bytes?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Operation;
    use tollgate_core::lanes::Scope;
    use tollgate_core::{LaneName, QueueName};

    /// Every kind of operation.
    fn operations() -> Vec<Operation> {
        let (limit, queue) = (LimitName::new("l").unwrap(), QueueName::new("q").unwrap());
        let of_limit = Scope::Limit(limit.clone());
        let of_lane = Scope::Lane(queue.clone(), LaneName::new("a").unwrap());
        let meter = (limit, Some(Partition::new("p").unwrap()));
        let (span, reason) = (Span::from_secs(3), "maintenance".to_owned());
        vec![
            Operation::Pause(of_limit),
            Operation::Pause(of_lane),
            Operation::Resume(Scope::Queue(queue)),
            Operation::Close { meter: meter.clone(), span, reason },
            Operation::Reopen(meter.clone()),
            Operation::Reset((meter.0, None)),
        ]
    }

    #[test]
    fn every_change_is_read_as_it_was_written() {
        let limit = |name: &str| LimitName::new(name).unwrap();
        let path = |text: &str| BodyPath::new(text).unwrap();
        let like = QueueToll {
            like: Some(limit("b")),
            priority: Some(Priority::new(3).unwrap()),
            ..QueueToll::new(limit("a"))
        };
        let fixed = QueueToll {
            partition: TollPartition::Fixed(Partition::new("p").unwrap()),
            weight: TollWeight::Fixed(3),
            when: Some(TollWhen { path: path("body.k"), is: Scalar::Truth(true) }),
            ..QueueToll::new(limit("a"))
        };
        let by_path = QueueToll {
            partition: TollPartition::Body { path: path("body.t"), default: None },
            weight: TollWeight::Body { path: path("body.n"), default: Some(1), max: Some(9) },
            when: Some(TollWhen { path: path("body.k"), is: Scalar::Text("card".into()) }),
            ..QueueToll::new(limit("a"))
        };
        let weight = TollWeight::Learned { default: 9, max: Some(99) };
        let learned = QueueToll { weight, ..QueueToll::new(limit("a")) };
        let queue = QueueSpec {
            order: Order::Parallel(7),
            on_dead: OnDead::Hold,
            tolls: vec![like, fixed, by_path, learned],
            backoff: Backoff { jitter: 10, ..QueueSpec::default().backoff },
            delivery: Some((*b"{}").into()),
            tells_accepted: true,
            ..QueueSpec::default()
        };
        let name = || "n".to_owned();
        let (before, after) = (Some(Limit::per_minute(5)), None);
        let (limit, pin) = (before.clone(), before.clone());
        let defined = [
            Altered::Limit { name: name(), before: limit, after: after.clone() },
            Altered::Pin { name: name(), before: after.clone(), after: pin },
            Altered::Override { name: name(), partition: "p".to_owned(), before, after },
            Altered::Queue { name: name(), before: None, after: Some(Box::new(queue)) },
            Altered::Queue { name: name(), before: Some(Box::default()), after: None },
        ];
        let operated = operations().into_iter().map(Altered::Operated);
        for what in defined.into_iter().chain(operated) {
            let (at, who) = (Timestamp::from_nanos(7), "ana".to_owned());
            let bytes = written(&AuditRecord::new(&who, at, what.clone())).unwrap();
            let record = Record { revision: tollgate_core::lanes::Revision(1), bytes };
            assert_eq!(read(9, &record), Some(Audited { number: 9, at, who, what }));
        }
    }
}
