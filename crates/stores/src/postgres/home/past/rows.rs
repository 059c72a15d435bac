//! Events as rows of the table.

use super::days::Day;
use crate::embedded::codec;
use crate::postgres::home::link::{number, shown};
use crate::postgres::row::system_time;
use std::collections::BTreeSet;
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

/// Events, column by column.
#[derive(Default)]
pub(super) struct Rows {
    at: Vec<SystemTime>,
    calls: Vec<i64>,
    queues: Vec<String>,
    lanes: Vec<String>,
    what: Vec<&'static str>,
    ends: Vec<Option<&'static str>>,
    events: Vec<Vec<u8>>,
    /// The days they are of.
    pub(super) days: BTreeSet<Day>,
}

impl Rows {
    pub(super) fn of(events: &[Event]) -> Self {
        let (mut rows, mut rest) = (Self::default(), events);
        while !rest.is_empty() {
            rest = rows.push(rest);
        }
        rows
    }

    /// Adds a row for the first of these events, with the end of its call if that came with it; says what
    /// is left.
    fn push<'a>(&mut self, events: &'a [Event]) -> &'a [Event] {
        let mut record = Vec::new();
        let taken = codec::encode_events(events, &mut record);
        let Some(((first, with), rest)) =
            events.split_at_checked(taken).and_then(|(row, rest)| Some((row.split_first()?, rest)))
        else {
            return &[];
        };
        self.at.push(system_time(first.at.wall));
        self.calls.push(number(first.call.0));
        self.queues.push(shown(first.queue.as_str()));
        self.lanes.push(shown(first.lane.as_str()));
        self.what.push(what(&first.what));
        self.ends.push(with.first().unwrap_or(first).end().map(end));
        self.events.push(record);
        self.days.insert(Day::of(first.at.wall));
        rest
    }

    pub(super) fn columns(&self) -> [&(dyn ToSql + Sync); 7] {
        let Self { at, calls, queues, lanes, what, ends, events, days: _ } = self;
        [at, calls, queues, lanes, what, ends, events]
    }

    /// What tells the first of them from all others: when it happened, its call, and itself.
    pub(super) fn first(&self) -> Option<[&(dyn ToSql + Sync); 3]> {
        Some([self.at.first()?, self.calls.first()?, self.events.first()?])
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
