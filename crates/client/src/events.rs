//! Events of calls: told as they happen, and found in history.

mod lines;

use crate::calls::{CallId, Page};
use crate::client::{Asked, Client};
use crate::clock::{self, Backoff};
use crate::error::ClientError;
use crate::path::{path, with_query};
use crate::wire::time::{instant, write_instant};
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use lines::{Lines, Message};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::timeout;
use tollgate_core::{Span, Timestamp};

/// A stream that is silent for so long is gone: the server says something every few seconds.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Longest pause before a stream that broke is asked for again.
const PAUSE_MAX: Span = Span::from_secs(5);
/// Where to go on.
const LAST_EVENT_ID: &str = "last-event-id";

/// Something that happened to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// When, by the wall clock.
    #[serde(deserialize_with = "instant", serialize_with = "write_instant")]
    pub at: Timestamp,
    /// To which call.
    pub call: CallId,
    /// Its queue.
    pub queue: String,
    /// Its lane.
    pub lane: String,
    /// What: `enqueued`, `unknown`, `throttled`, `started`, `settled`, `ended` or `revived`.
    pub event: String,
    /// How, and all else that is told of such an event.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What a stream tells.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Told {
    /// What happened next.
    Event(Box<Event>),
    /// Events were missed: it goes on with what happens now.
    Missed,
}

/// Which events: all that are told of none are told of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsQuery {
    /// Of which queue.
    pub queue: Option<String>,
    /// Of which lane of it.
    pub lane: Option<String>,
    /// Of which call.
    pub call: Option<CallId>,
}

/// Which part of history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryQuery<'a> {
    /// Of which queue.
    pub queue: Option<&'a str>,
    /// Of which lane of it.
    pub lane: Option<&'a str>,
    /// How calls ended: `done`, `dead`, `cancelled`, `expired`, `superseded` or `dropped`.
    pub end: Option<&'a str>,
    /// From which instant on, as RFC 3339 says.
    pub from: Option<&'a str>,
    /// Up to which instant.
    pub to: Option<&'a str>,
    /// The `next` of the page before.
    pub after: Option<&'a str>,
    /// At most so many, up to 1,000.
    pub most: usize,
}

#[derive(Deserialize)]
struct HistoryPageWire {
    events: Vec<Event>,
    next: Option<String>,
}

impl Client {
    /// Events from when they are first asked for.
    pub fn events(&self, query: EventsQuery) -> Events {
        let EventsQuery { queue, lane, call } = query;
        let call = call.as_ref().map(CallId::as_str);
        let parameters = [("queue", queue.as_deref()), ("lane", lane.as_deref()), ("call", call)];
        let path = with_query(path(&["events"]), &parameters);
        let backoff = Backoff::up_to(PAUSE_MAX);
        Events { client: self.clone(), path, place: None, open: None, backoff, failed: false }
    }

    /// What came of attempts and how calls ended, newest first and page by page, as long as that is kept.
    pub async fn history(&self, query: HistoryQuery<'_>) -> Result<Page<Event>, ClientError> {
        let most = query.most.to_string();
        let parameters = [
            ("queue", query.queue),
            ("lane", query.lane),
            ("end", query.end),
            ("from", query.from),
            ("to", query.to),
            ("after", query.after),
            ("limit", Some(&*most)),
        ];
        let page: HistoryPageWire = self.fetch(with_query(path(&["history"]), &parameters)).await?;
        Ok(Page { items: page.events, next: page.next })
    }
}

/// A server's events from a place on, in order. A connection that is lost is made anew, and it goes on
/// from the place.
#[derive(Debug)]
#[must_use = "nothing is told until it is asked for"]
pub struct Events {
    client: Client,
    path: String,
    place: Option<String>,
    open: Option<Open>,
    backoff: Backoff,
    failed: bool,
}

#[derive(Debug)]
struct Open {
    body: Incoming,
    lines: Lines,
}

impl Events {
    /// Goes on behind a place, of an earlier stream perhaps.
    pub fn after(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// The place behind what was told last.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Waits for the next event. Dropped before it is ready, it has told nothing, and nothing is lost.
    pub async fn next(&mut self) -> Result<Told, ClientError> {
        loop {
            if let Some(message) = self.open.as_mut().and_then(|open| open.lines.next()) {
                let told = self.read(&message)?;
                self.place = message.id.or(self.place.take());
                if let Some(told) = told {
                    return Ok(told);
                }
                continue;
            }
            if self.open.is_none() {
                self.open().await?;
            }
            if let Err(reason) = self.more().await {
                tracing::debug!(reason, "a stream of events broke and is asked for again");
                (self.open, self.failed) = (None, true);
            }
        }
    }

    async fn open(&mut self) -> Result<(), ClientError> {
        loop {
            if std::mem::take(&mut self.failed) {
                clock::rest(self.backoff.next()).await;
            }
            let mut asked = Asked::new(Method::GET, self.path.clone()).ahead();
            if let Some(place) = &self.place {
                asked = asked.header(LAST_EVENT_ID, place)?;
            }
            let inner = &self.client.inner;
            match inner.transport.listen(&inner.request(asked)).await {
                Ok(body) => {
                    self.open = Some(Open { body, lines: Lines::default() });
                    return Ok(());
                }
                // Who was told something is told the rest.
                Err(error) if error.may_pass() && self.place.is_some() => self.failed = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes in what comes next.
    async fn more(&mut self) -> Result<(), String> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let frame = timeout(SILENCE_MAX, open.body.frame()).await;
        let frame = frame.map_err(|_| "it was silent for too long".to_owned())?;
        let frame = frame.ok_or_else(|| "it ended".to_owned())?;
        let frame = frame.map_err(|error| error.to_string())?;
        if let Some(bytes) = frame.data_ref() {
            open.lines.take_in(bytes)?;
            self.backoff = Backoff::up_to(PAUSE_MAX);
        }
        Ok(())
    }

    fn read(&self, message: &Message) -> Result<Option<Told>, ClientError> {
        if message.event == "missed" {
            return Ok(Some(Told::Missed));
        }
        if message.data.is_empty() {
            return Ok(None);
        }
        let event = serde_json::from_str(&message.data).map_err(|error| ClientError::Protocol {
            url: self.client.url().to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Some(Told::Event(event)))
    }
}
