//! The log: what happened to messages, told from history.
//!
//! History is read the newest first. Who asks for the earliest first, or for certain messages, is told
//! of what was collected before; so much of it that does not fit is refused, and not left out.

mod lines;

use super::error::Fault;
use super::face::{ApiRequest, reply};
use super::filter::{Facts, Filter, Order, Sought};
use super::names::{self, Names};
use super::remembered::Message;
use super::shape::log::{Happened, LogWire};
use super::shape::reply::{EventsPage, LogsPage};
use axum::http::StatusCode;
use axum::response::Response;
use lines::{Before, Line, lines};
use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;
use std::sync::Arc;
use tollgate::lanes::{CallId, End, Event, HistoryCursor, HistoryQuery, Outcome, Payload, What};
use tollgate::{Error, Span, Timestamp, Tollgate};

/// Most events of the caller's messages that one request looks at: who asks for more goes on from there.
const SCANNED_MAX: usize = 20_000;
/// Most events of all queues that one request skips over.
const SKIPPED_MAX: usize = 100_000;
/// Most bytes of envelopes and reports that are collected at once.
const COLLECTED_BYTES_MAX: usize = 64 << 20;
/// How many events are read at a time.
const PAGE: usize = 2_000;
/// Of how many events more is looked up at once.
const TOGETHER: usize = 16;
/// Of so many messages it is remembered what they are.
const REMEMBERED_MAX: usize = 4_000;
/// Bodies are told up to so many bytes on a page, and with those of one message beyond that.
const BODIES_BYTES_MAX: usize = 4 << 20;

/// A page of the log.
struct Told {
    lines: Vec<LogWire>,
    cursor: Option<String>,
}

/// Where a page begins: at a place of history, or at a line of those collected; and how many lines of
/// what is there were told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogCursor {
    at: u64,
    told: usize,
}

impl FromStr for LogCursor {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let parts = text.split_once('-');
        let place = parts
            .and_then(|(at, told)| Some(Self { at: at.parse().ok()?, told: told.parse().ok()? }));
        place.ok_or_else(|| Fault::invalid("cursor should be that of the page before"))
    }
}

impl std::fmt::Display for LogCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.at, self.told)
    }
}

impl ApiRequest<'_> {
    /// The log under its old name.
    pub(super) async fn list_events(&self) -> Result<Response, Fault> {
        let Told { lines, cursor } = self.search_log().await?;
        Ok(reply(StatusCode::OK, &EventsPage { cursor, events: lines }))
    }

    /// The log.
    pub(super) async fn list_logs(&self) -> Result<Response, Fault> {
        let Told { lines, cursor } = self.search_log().await?;
        Ok(reply(StatusCode::OK, &LogsPage { cursor, logs: lines }))
    }

    async fn search_log(&self) -> Result<Told, Fault> {
        let filter = Filter::read(Sought::Logs, self.query(), &[])?;
        let place = filter.cursor.as_deref().map(LogCursor::from_str).transpose()?;
        let search = Search {
            gate: self.app.gate.clone(),
            names: self.names.clone(),
            is_hidden: self.app.redact_bodies,
            filter,
            messages: HashMap::new(),
            histories: HashMap::new(),
            body: None,
            bodies_bytes: 0,
            told: Vec::new(),
        };
        let told = self.app.history.read(search.run(place)).await?;
        told.ok_or_else(|| {
            Fault::invalid(format!(
                "there are more than {SCANNED_MAX} events or much in other queues, too many to tell the earliest first: narrow them with fromDate and toDate, or ask for order=latestFirst"
            ))
        })
    }
}

/// A look into history.
struct Search {
    gate: Tollgate,
    names: Names,
    filter: Filter,
    /// Nothing is told that a sender could mean as a secret.
    is_hidden: bool,
    /// What the messages are, of those that were needed.
    messages: HashMap<CallId, Option<Arc<Message>>>,
    /// The histories of calls whose events are looked at now, where these do not tell all.
    histories: HashMap<CallId, Vec<Event>>,
    /// The payload that was read last: lines of one message often stand together.
    body: Option<(CallId, Option<Payload>)>,
    bodies_bytes: usize,
    told: Vec<LogWire>,
}

impl Search {
    /// A page; `None` if there is too much to be told in this order.
    async fn run(mut self, place: Option<LogCursor>) -> Result<Option<Told>, Error> {
        let is_latest = self.filter.order() == Order::LatestFirst;
        if self.filter.ids().is_none() && is_latest {
            return self.scan(place).await.map(Some);
        }
        let found = match self.filter.ids() {
            Some(ids) => Some(self.of_messages(ids).await?),
            None => self.collected().await?,
        };
        let Some(events) = found else { return Ok(None) };
        let mut lines = Vec::new();
        for events in events.chunks(TOGETHER) {
            self.look_up(events).await?;
            for event in events {
                let matching = self.matching(event).await?.into_iter();
                lines.extend(matching.map(|line| (event.call, line)));
            }
        }
        self.cut(lines, place).await.map(Some)
    }

    /// The lines from a place on, the latest first.
    async fn scan(mut self, place: Option<LogCursor>) -> Result<Told, Error> {
        let mut after = place.map(|place| HistoryCursor(place.at));
        let mut told = place.map_or(0, |place| place.told);
        let (mut scanned, mut skipped) = (0, 0);
        loop {
            let page = self.gate.history(self.query(after)).await?;
            self.learn(&page.events);
            for (at, (event, place)) in page.events.iter().zip(&page.places).enumerate() {
                if at % TOGETHER == 0 {
                    let rest = &page.events[at..];
                    self.look_up(&rest[..rest.len().min(TOGETHER)]).await?;
                }
                let lines = self.matching(event).await?.into_iter().rev().enumerate();
                for (nth, line) in lines.skip(std::mem::take(&mut told)) {
                    if self.is_full() {
                        // The next page begins with this event.
                        let rest = LogCursor { at: place.0.saturating_add(1), told: nth };
                        return Ok(self.page(Some(rest)));
                    }
                    self.tell(event.call, &line).await?;
                }
                scanned += usize::from(self.names.has_messages(&event.queue));
                skipped += 1;
                if scanned == SCANNED_MAX || skipped == SKIPPED_MAX {
                    return Ok(self.page(Some(LogCursor { at: place.0, told: 0 })));
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(self.page(None)),
            }
        }
    }

    /// Tells those of the lines that are on a page. They are counted from the earliest: what comes later
    /// does not move them.
    async fn cut(
        mut self,
        lines: Vec<(CallId, Line)>,
        place: Option<LogCursor>,
    ) -> Result<Told, Error> {
        let at = place.and_then(|place| usize::try_from(place.at).ok());
        let is_latest = self.filter.order() == Order::LatestFirst;
        let count = self.filter.count().unwrap_or(usize::MAX);
        let (from, to, rest) = if is_latest {
            let to = at.unwrap_or(usize::MAX).min(lines.len());
            let from = to.saturating_sub(count);
            (from, to, Some(from).filter(|from| *from > 0))
        } else {
            let from = at.unwrap_or(0).min(lines.len());
            let to = from.saturating_add(count).min(lines.len());
            (from, to, Some(to).filter(|to| *to < lines.len()))
        };
        let mut chosen: Vec<_> = lines.into_iter().skip(from).take(to - from).collect();
        if is_latest {
            chosen.reverse();
        }
        for (call, line) in chosen {
            self.tell(call, &line).await?;
        }
        // A number of lines fits.
        let at = |rest| u64::try_from(rest).unwrap_or(u64::MAX);
        Ok(self.page(rest.map(|rest| LogCursor { at: at(rest), told: 0 })))
    }

    /// The events of certain messages, the earliest first.
    async fn of_messages(&self, ids: &[String]) -> Result<Vec<Event>, Error> {
        let mut events: Vec<Event> = Vec::new();
        for calls in calls(ids).chunks(TOGETHER) {
            events.extend(self.gate.histories(calls.to_vec()).await?.into_iter().flatten());
        }
        events.sort_by_key(|event| event.at.at);
        Ok(events)
    }

    /// All events of the time that is asked for, the earliest first; `None` if they are too many.
    async fn collected(&mut self) -> Result<Option<Vec<Event>>, Error> {
        let (mut events, mut bytes, mut after) = (Vec::new(), 0, None);
        let mut skipped = 0;
        loop {
            let page = self.gate.history(self.query(after)).await?;
            skipped += page.events.len();
            let is_ours = |event: &Event| self.names.has_messages(&event.queue);
            for event in page.events.into_iter().filter(is_ours) {
                bytes += event.bytes();
                events.push(event);
            }
            let is_long = events.len() > SCANNED_MAX || skipped > SKIPPED_MAX;
            if is_long || bytes > COLLECTED_BYTES_MAX {
                return Ok(None);
            }
            after = page.next;
            if after.is_none() {
                self.learn(&events);
                events.reverse();
                return Ok(Some(events));
            }
        }
    }

    fn query(&self, after: Option<HistoryCursor>) -> HistoryQuery {
        let (from, to) = self.filter.times_ms();
        let at = |ms: u64| Timestamp::default().plus(Span::from_millis(ms));
        let to = (to < u64::MAX).then(|| at(to.saturating_add(1)));
        let from = (from > 0).then(|| at(from));
        HistoryQuery { from, to, after, most: PAGE, ..HistoryQuery::default() }
    }

    /// Looks up, of all events at once, what each needs beside itself: what became of its call before, if that ended
    /// without being done, and what message it is, if that is not known.
    async fn look_up(&mut self, events: &[Event]) -> Result<(), Error> {
        let ours = events.iter().filter(|event| self.names.has_messages(&event.queue));
        let needs = |event: &&Event| !self.messages.contains_key(&event.call) || ends_undone(event);
        let calls: BTreeSet<CallId> = ours.filter(needs).map(|event| event.call).collect();
        let calls: Vec<CallId> = calls.into_iter().collect();
        let histories = self.gate.histories(calls.clone()).await?;
        let is_unknown = |(call, _): &(&CallId, &Vec<Event>)| !self.messages.contains_key(*call);
        let unknown = calls.iter().zip(&histories).filter(is_unknown);
        let found = unknown.map(|(call, events)| (*call, events.iter().find_map(accepted)));
        let found: Vec<_> = found.collect();
        // As history has it, and else as its call still has it.
        let rest = found.iter().filter(|(_, message)| message.is_none()).map(|(call, _)| *call);
        let mut payloads = self.gate.payloads(rest.collect()).await?.into_iter();
        for (call, message) in found {
            let message = message.or_else(|| Message::of(payloads.next()??.envelope()));
            self.remember(call, message);
        }
        self.histories = calls.into_iter().zip(histories).collect();
        Ok(())
    }

    /// The lines of an event that are asked for, the earliest first.
    async fn matching(&mut self, event: &Event) -> Result<Vec<Line>, Error> {
        if !self.names.has_messages(&event.queue) {
            return Ok(Vec::new());
        }
        let before = if ends_undone(event) { self.before(event) } else { Before::default() };
        self.that_match(event.call, lines(event, before)).await
    }

    async fn that_match(&mut self, call: CallId, lines: Vec<Line>) -> Result<Vec<Line>, Error> {
        let message = if lines.is_empty() { None } else { self.message(call).await? };
        let Some(message) = message else { return Ok(Vec::new()) };
        let id = names::message_id(call);
        let url = message.kept(&id, None).url();
        let facts = message.facts(&id, &url);
        let is_wanted = |line: &Line| {
            let (state, time_ms) = (Some(line.state), line.time_ms);
            self.filter.matches(&Facts { state, time_ms, ..facts.clone() })
        };
        Ok(lines.into_iter().filter(is_wanted).collect())
    }

    /// What came before the end of a call.
    fn before(&self, event: &Event) -> Before {
        let history = self.histories.get(&event.call);
        let is_earlier = |other: &&Event| other.at.at <= event.at.at && *other != event;
        let mut before = Before::default();
        for event in history.into_iter().flatten().filter(is_earlier) {
            match event.what {
                What::Ended { end: End::Dead, .. } => before.was_dead = true,
                What::Revived => before.was_dead = false,
                What::Settled { outcome, .. } => {
                    before.has_crashed = outcome == Outcome::Crashed;
                }
                _ => {}
            }
        }
        before
    }

    /// What a message is.
    async fn message(&mut self, call: CallId) -> Result<Option<Arc<Message>>, Error> {
        if let Some(known) = self.messages.get(&call) {
            return Ok(known.clone());
        }
        // So many others were looked at meanwhile that it was forgotten.
        let history = self.gate.history_of(call).await?;
        let mut found = history.iter().find_map(accepted);
        if found.is_none() {
            let payload = self.gate.payload(call).await?;
            found = payload.and_then(|payload| Message::of(payload.envelope()));
        }
        self.remember(call, found);
        Ok(self.messages.get(&call).cloned().flatten())
    }

    /// Remembers the messages that were accepted among these events.
    fn learn(&mut self, events: &[Event]) {
        for event in events {
            if let Some(message) = accepted(event)
                && self.names.has_messages(&event.queue)
            {
                self.remember(event.call, Some(message));
            }
        }
    }

    fn remember(&mut self, call: CallId, message: Option<Message>) {
        if self.messages.len() >= REMEMBERED_MAX {
            self.messages.clear();
        }
        let message = message.map(|message| Arc::new(message.hidden_if(self.is_hidden)));
        self.messages.insert(call, message);
    }

    fn is_full(&self) -> bool {
        self.filter.count().is_some_and(|count| self.told.len() >= count)
    }

    async fn tell(&mut self, call: CallId, line: &Line) -> Result<(), Error> {
        let Some(message) = self.message(call).await? else { return Ok(()) };
        let payload = self.payload(call, &message).await?;
        let body = payload.as_ref().map(Payload::body);
        self.bodies_bytes += body.map_or(0, <[u8]>::len);
        let report = line.report.clone().map(|report| report.hidden_if(self.is_hidden));
        let happened = Happened {
            time_ms: line.time_ms,
            state: line.state,
            error: line.error.as_deref().filter(|_| !self.is_hidden),
            next_ms: line.next_ms,
            response: report.as_ref().map(super::remembered::Report::response),
        };
        let id = names::message_id(call);
        self.told.push(LogWire::new(&message.kept(&id, body), &happened));
        Ok(())
    }

    /// What a message carries, if history or its call still has it and it is told.
    async fn payload(&mut self, call: CallId, message: &Message) -> Result<Option<Payload>, Error> {
        let is_told = !self.filter.is_trimmed && !self.is_hidden;
        if !is_told || self.bodies_bytes >= BODIES_BYTES_MAX {
            return Ok(None);
        }
        if message.body.is_some() {
            return Ok(message.body.clone());
        }
        if let Some((known, payload)) = &self.body
            && *known == call
        {
            return Ok(payload.clone());
        }
        let payload = self.gate.payload(call).await?;
        self.body = Some((call, payload.clone()));
        Ok(payload)
    }

    fn page(self, rest: Option<LogCursor>) -> Told {
        Told { lines: self.told, cursor: rest.map(|rest| rest.to_string()) }
    }
}

/// Whether a call ended with this without being done: then it counts what became of it before.
fn ends_undone(event: &Event) -> bool {
    matches!(event.end(), Some(End::Cancelled | End::Dead))
}

/// The message of an event that tells of its beginning.
fn accepted(event: &Event) -> Option<Message> {
    match &event.what {
        What::Enqueued { payload } => Message::told(payload),
        _ => None,
    }
}

/// The calls of messages, each once.
fn calls(ids: &[String]) -> Vec<CallId> {
    let mut calls: Vec<_> = ids.iter().filter_map(|id| names::call_of(id)).collect();
    calls.sort();
    calls.dedup();
    calls
}
