//! Events as rows of the table.

use crate::postgres::home::link::{number, shown};
use crate::postgres::row::system_time;
use std::time::SystemTime;
use tokio_postgres::types::{ToSql, Type};
use tollgate_core::lanes::{End, Event, What};

/// The types of the columns.
pub(super) const TYPES: [Type; 7] = [
    Type::TIMESTAMPTZ_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::BYTEA_ARRAY,
];

/// Records of events, column by column.
#[derive(Default)]
pub(super) struct Rows<'a> {
    at: Vec<SystemTime>,
    calls: Vec<i64>,
    queues: Vec<String>,
    lanes: Vec<String>,
    what: Vec<&'static str>,
    ends: Vec<Option<&'static str>>,
    events: Vec<&'a [u8]>,
}

impl<'a> Rows<'a> {
    /// Adds a row for what a record tells.
    pub(super) fn push(&mut self, record: &'a [u8], event: &Event, end: Option<&Event>) {
        self.at.push(system_time(event.at.wall));
        self.calls.push(number(event.call.0));
        self.queues.push(shown(event.queue.as_str()));
        self.lanes.push(shown(event.lane.as_str()));
        self.what.push(what(&event.what));
        self.ends.push(end.unwrap_or(event).end().map(self::end));
        self.events.push(record);
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn columns(&self) -> [&(dyn ToSql + Sync); 7] {
        let Self { at, calls, queues, lanes, what, ends, events } = self;
        [at, calls, queues, lanes, what, ends, events]
    }
}

/// What happened, in a word.
fn what(what: &What) -> &'static str {
    match what {
        What::Enqueued { .. } => "enqueued",
        What::Unknown { .. } => "unknown",
        What::Throttled { .. } => "throttled",
        What::Started { .. } => "started",
        What::Settled { .. } => "settled",
        What::Ended { .. } => "ended",
        What::Revived => "revived",
    }
}

/// How a call ended, in a word.
pub(super) fn end(end: End) -> &'static str {
    match end {
        End::Done => "done",
        End::Dead => "dead",
        End::Cancelled => "cancelled",
        End::Expired => "expired",
        End::Superseded => "superseded",
        End::Dropped => "dropped",
    }
}
