//! The audit log as it travels.

use super::instant::InstantWire;
use super::limit::DefinitionWire;
use super::queue::QueueWire;
use crate::http::caller::Caller;
use serde::Serialize;
use tollgate::lanes::{MeterName, QueueSpec, Scope};
use tollgate::{Altered, Audited, Limit, Operation};

/// Of what there are changes.
pub(in crate::http) const KINDS: [&str; 6] = ["limit", "pin", "override", "meter", "queue", "lane"];

/// Some changes, the newest first.
#[derive(Debug, Serialize)]
pub(in crate::http) struct AuditPageWire {
    pub(in crate::http) changes: Vec<AuditedWire>,
    /// Send it as `after` to get the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

/// One change.
#[derive(Debug, Serialize)]
pub(in crate::http) struct AuditedWire {
    at: InstantWire,
    who: String,
    #[serde(flatten)]
    what: WhatWire,
}

/// What was changed: `before` and `after` of a definition, or the action of an operation.
#[derive(Debug, Default, Serialize)]
struct WhatWire {
    kind: &'static str,
    name: String,
    /// Of an override or a meter.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    /// Of a closure.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Left out if there was nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<StateWire>,
    /// Left out if nothing is there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<StateWire>,
}

/// What a limit or a queue was.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum StateWire {
    Limit(DefinitionWire),
    Queue(Box<QueueWire>),
}

impl AuditedWire {
    /// A change in the caller's words; `None` if it is of something that is not theirs.
    pub(in crate::http) fn new(audited: &Audited, caller: &Caller) -> Option<Self> {
        let name = caller.outer(audited.what.name())?.to_owned();
        let what = WhatWire { name, ..WhatWire::new(&audited.what, caller) };
        Some(Self { at: InstantWire(audited.at), who: audited.who.clone(), what })
    }

    pub(in crate::http) fn kind(&self) -> &'static str {
        self.what.kind
    }
}

impl WhatWire {
    /// All but the name.
    fn new(what: &Altered, caller: &Caller) -> Self {
        let limit = |limit: &Option<Limit>| limit.as_ref().map(|it| StateWire::Limit(it.into()));
        let queue = |spec: &Option<Box<QueueSpec>>| {
            spec.as_ref().map(|spec| StateWire::Queue(Box::new(QueueWire::new(spec, caller))))
        };
        let (kind, [before, after]) = match what {
            Altered::Limit { before, after, .. } => ("limit", [before, after].map(limit)),
            Altered::Pin { before, after, .. } => ("pin", [before, after].map(limit)),
            Altered::Override { before, after, .. } => ("override", [before, after].map(limit)),
            Altered::Queue { before, after, .. } => ("queue", [before, after].map(queue)),
            Altered::Operated(operation) => return Self::operated(operation),
            _ => ("other", [None, None]),
        };
        let partition = match what {
            Altered::Override { partition, .. } => Some(partition.clone()),
            _ => None,
        };
        Self { kind, partition, before, after, ..Self::default() }
    }

    fn operated(operation: &Operation) -> Self {
        let what = match operation {
            Operation::Pause(scope) | Operation::Resume(scope) => Self::held(scope),
            Operation::Close { meter, span, reason } => {
                let (for_ms, reason) = (Some(span.as_millis_ceil()), Some(reason.clone()));
                Self { for_ms, reason, ..Self::at_meter(meter) }
            }
            Operation::Reopen(meter) | Operation::Reset(meter) => Self::at_meter(meter),
            _ => Self { kind: "other", ..Self::default() },
        };
        Self { action: Some(operation.action()), ..what }
    }

    fn held(scope: &Scope) -> Self {
        let (kind, lane) = match scope {
            Scope::Limit(_) => ("limit", None),
            Scope::Queue(_) => ("queue", None),
            Scope::Lane(_, lane) => ("lane", Some(lane.to_string())),
        };
        Self { kind, lane, ..Self::default() }
    }

    fn at_meter((_, partition): &MeterName) -> Self {
        let partition = partition.as_ref().map(ToString::to_string);
        Self { kind: "meter", partition, ..Self::default() }
    }
}
