//! The audit log as it travels.

use super::instant::InstantWire;
use super::limit::DefinitionWire;
use super::queue::QueueWire;
use crate::http::caller::Caller;
use serde::Serialize;
use tollgate::lanes::QueueSpec;
use tollgate::{Altered, Audited, Limit};

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
    kind: &'static str,
    name: String,
    /// Of an override.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
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
        let limit = |limit: &Option<Limit>| limit.as_ref().map(|it| StateWire::Limit(it.into()));
        let queue = |spec: &Option<Box<QueueSpec>>| {
            spec.as_ref().map(|spec| StateWire::Queue(Box::new(QueueWire::new(spec, caller))))
        };
        let (kind, [before, after]) = match &audited.what {
            Altered::Limit { before, after, .. } => ("limit", [before, after].map(limit)),
            Altered::Pin { before, after, .. } => ("pin", [before, after].map(limit)),
            Altered::Override { before, after, .. } => ("override", [before, after].map(limit)),
            Altered::Queue { before, after, .. } => ("queue", [before, after].map(queue)),
            _ => ("other", [None, None]),
        };
        let partition = match &audited.what {
            Altered::Override { partition, .. } => Some(partition.clone()),
            _ => None,
        };
        let name = caller.outer(audited.what.name())?.to_owned();
        let (at, who) = (InstantWire(audited.at), audited.who.clone());
        Some(Self { at, who, kind, name, partition, before, after })
    }
}
