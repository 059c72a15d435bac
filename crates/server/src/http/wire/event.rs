//! Events as they travel.

use super::call::end;
use super::id::IdWire;
use super::instant::InstantWire;
use super::report::ReportWire;
use super::span::SpanWire;
use crate::http::App;
use crate::http::caller::Caller;
use serde::Serialize;
use std::collections::BTreeMap;
use tollgate::Now;
use tollgate::flows::AwaitingStep;
use tollgate::lanes::{Event, Partition, What, event};

/// What happened to a call.
#[derive(Debug, Serialize)]
pub(in crate::http) struct EventWire {
    pub(in crate::http) at: InstantWire,
    call: IdWire,
    pub(in crate::http) queue: String,
    pub(in crate::http) lane: String,
    #[serde(flatten)]
    what: WhatWire,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum WhatWire {
    Enqueued,
    Unknown {
        limit: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        partition: Option<String>,
        /// Of a step of a machine.
        #[serde(skip_serializing_if = "Option::is_none")]
        machine: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<String>,
    },
    Throttled {
        limit: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        partition: Option<String>,
        wanted: u64,
        granted: u64,
    },
    Started {
        attempt: u32,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        waits: BTreeMap<String, SpanWire>,
    },
    Settled {
        attempt: u32,
        started: InstantWire,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        waits: BTreeMap<String, SpanWire>,
        outcome: &'static str,
        /// When it is tried again, or until when its upstream asked for a pause.
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<InstantWire>,
        #[serde(flatten)]
        report: ReportWire,
    },
    Ended {
        end: &'static str,
        attempts: u32,
    },
    Revived,
}

/// Some of history.
#[derive(Debug, Serialize)]
pub(in crate::http) struct HistoryPageWire {
    pub(in crate::http) events: Vec<EventWire>,
    /// Send it as `after` to get the next page, which is there even if this one is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

impl EventWire {
    pub(in crate::http) fn new(event: &Event, caller: &Caller, app: &App) -> Self {
        Self {
            at: InstantWire(event.at.wall),
            call: IdWire(event.call),
            queue: caller.shown(&event.queue).to_owned(),
            lane: event.lane.as_str().to_owned(),
            what: WhatWire::new(event, caller, app),
        }
    }
}

/// The event's name: what it is called in a stream.
pub(in crate::http) fn name(event: &Event) -> &'static str {
    match event.what {
        What::Enqueued { .. } => "enqueued",
        What::Unknown { .. } => "unknown",
        What::Throttled { .. } => "throttled",
        What::Started { .. } => "started",
        What::Settled { .. } => "settled",
        What::Ended { .. } => "ended",
        What::Revived => "revived",
    }
}

impl WhatWire {
    fn new(event: &Event, caller: &Caller, app: &App) -> Self {
        let waits = |waits: &event::Waits| {
            let waits = waits.iter();
            waits.map(|(limit, span)| (caller.shown(limit).to_owned(), SpanWire(*span))).collect()
        };
        let shown = |it: &Option<Partition>| it.as_ref().map(|it| it.as_str().to_owned());
        match &event.what {
            What::Enqueued { .. } => Self::Enqueued,
            What::Unknown { limit, partition, begins: _ } => {
                let (machine, step) =
                    AwaitingStep::of(event).map(|it| (it.machine, it.step)).unzip();
                Self::Unknown {
                    limit: caller.shown(limit).to_owned(),
                    partition: shown(partition),
                    machine,
                    step: step.flatten(),
                }
            }
            What::Throttled { limit, partition, wanted, granted } => Self::Throttled {
                limit: caller.shown(limit).to_owned(),
                partition: shown(partition),
                wanted: *wanted,
                granted: *granted,
            },
            What::Started { attempt, waits: waited, .. } => {
                Self::Started { attempt: *attempt, waits: waits(waited) }
            }
            What::Settled { attempt, started, waits: waited, outcome, report, .. } => {
                let (outcome, until) = outcome_of(outcome, event.at);
                let started = InstantWire(started.wall);
                let (waits, report) = (waits(waited), ReportWire::looked_at(report, app));
                Self::Settled { attempt: *attempt, started, waits, outcome, until, report }
            }
            What::Ended { end: how, attempts } => {
                Self::Ended { end: end(*how), attempts: *attempts }
            }
            What::Revived => Self::Revived,
        }
    }
}

/// What came of an attempt, and until when the call or its upstream rests.
pub(super) fn outcome_of(
    outcome: &event::Outcome,
    now: Now,
) -> (&'static str, Option<InstantWire>) {
    let until = |at| Some(InstantWire::of(at, now));
    match outcome {
        event::Outcome::Done => ("done", None),
        event::Outcome::Failed { again_at } => ("failed", until(*again_at)),
        event::Outcome::Released => ("released", None),
        event::Outcome::Dead => ("dead", None),
        event::Outcome::Limited { until: at } => ("limited", until(*at)),
        event::Outcome::Crashed => ("crashed", None),
        event::Outcome::Cancelled => ("cancelled", None),
    }
}
