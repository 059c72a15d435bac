//! `/v1/events`: what happens to calls, as it happens, as server-sent events.

use super::caller::Caller;
use super::path::{Filter, Listing};
use super::problem::{Problem, kinds};
use super::wire::event::{EventWire, name};
use super::wire::id::IdWire;
use super::{App, Shared};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde::Deserialize;
use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::timeout;
use tollgate::lanes::{Event, EventCursor};
use tollgate::{Events, Told};

/// Says where a client that was cut off had got to.
const LAST_EVENT_ID: &str = "last-event-id";
/// A comment is sent when nothing happened for so long, so that nobody takes the silence for a dead
/// connection.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// Most bytes of events that are sent at once.
const CHUNK_BYTES: usize = 16 << 10;

/// Whose events are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsFilter {
    queue: Option<String>,
    lane: Option<String>,
    call: Option<IdWire>,
}

impl Filter for EventsFilter {
    const FIELDS: &'static str = "`queue`, `lane` and `call`";

    fn limit(&self) -> Option<usize> {
        None
    }
}

/// Tells events until the client goes, or the server.
pub(super) async fn follow(
    State(app): Shared,
    caller: Caller,
    headers: HeaderMap,
    Listing(filter, _): Listing<EventsFilter>,
) -> Result<Response, Problem> {
    let mut events = app.gate.events(place(&headers)?);
    // From here on, not from when the client's first bytes are written.
    let place = events.place().await?;
    // With an id, so that a client that is cut off before the first event goes on from here.
    let hello = format!(": events after {0}\nid: {0}\n\n", place.0);
    let follower = Follower { app, caller, filter, events };
    let body = Following { told: Some(hello), next: None, follower: Some(follower) };
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((headers.map(|(name, value)| (name, HeaderValue::from_static(value))), Body::new(body))
        .into_response())
}

fn place(headers: &HeaderMap) -> Result<Option<EventCursor>, Problem> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(None) };
    let place = value.to_str().ok().and_then(|text| text.parse().ok());
    place.map(|place| Some(EventCursor(place))).ok_or_else(|| {
        let detail = "`Last-Event-ID` is no place in the stream: send the `id` of the last event";
        Problem::new(kinds::INVALID_HEADER, detail)
    })
}

/// One who follows.
struct Follower {
    app: Arc<App>,
    caller: Caller,
    filter: EventsFilter,
    events: Events,
}

impl Follower {
    /// What to send next; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        let mut text = String::new();
        // Events of others do not put it off.
        let mut silence = pin!(timeout(SILENCE_MAX, pending::<()>()));
        loop {
            // What is there is sent together.
            let at_once = !text.is_empty();
            let told = tokio::select! {
                biased;
                () = self.app.shutdown.begun() => return None,
                // Before the next event: others may have one at all times.
                _ = silence.as_mut() => Err(()),
                told = self.events.next() => Ok(told),
                () = yield_now(), if at_once => Err(()),
            };
            match told {
                Err(()) if text.is_empty() => return self.nothing().await,
                Err(()) => return Some(text),
                Ok(Ok(Told::Event(place, event))) if self.wants(&event) => {
                    self.put(&mut text, place, &event);
                }
                Ok(Ok(Told::Event(..))) => {}
                Ok(Ok(Told::Missed)) => text.push_str("event: missed\ndata: {}\n\n"),
                Ok(Err(error)) => {
                    tracing::warn!(%error, "a stream of events ends");
                    return None;
                }
            }
            if text.len() >= CHUNK_BYTES {
                return Some(text);
            }
        }
    }

    /// Says that nothing happened, and where a client that is cut off goes on.
    async fn nothing(&mut self) -> Option<String> {
        let place = self.events.place().await.ok()?;
        Some(format!(": nothing happened\nid: {}\n\n", place.0))
    }

    fn wants(&self, event: &Event) -> bool {
        let EventsFilter { queue, lane, call } = &self.filter;
        let Some(name) = self.caller.outer(&event.queue) else { return false };
        queue.as_deref().is_none_or(|queue| queue == name)
            && lane.as_deref().is_none_or(|lane| lane == event.lane.as_str())
            && call.is_none_or(|call| call.0 == event.call)
    }

    fn put(&self, text: &mut String, place: EventCursor, event: &Event) {
        let wire = EventWire::new(event, &self.caller, &self.app);
        // Our wire types do not fail to be written; an event that did would be left out.
        let Ok(data) = serde_json::to_string(&wire) else { return };
        // A report is shown as it was written, perhaps on several lines, and here a line ends the data.
        // In JSON they are between values alone.
        let data = data.replace(['\n', '\r'], " ");
        let name = name(event);
        text.push_str(&format!("id: {}\nevent: {name}\ndata: {data}\n\n", place.0));
    }
}

type Step = Pin<Box<dyn Future<Output = (Follower, Option<String>)> + Send>>;

/// The stream as a body.
struct Following {
    /// What is to be sent first.
    told: Option<String>,
    /// What is being waited for.
    next: Option<Step>,
    /// Who waits, when nothing is being waited for.
    follower: Option<Follower>,
}

impl HttpBody for Following {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(told) = self.told.take() {
            return Poll::Ready(Some(Ok(Frame::data(told.into()))));
        }
        if let Some(mut follower) = self.follower.take() {
            self.next = Some(Box::pin(async move {
                let told = follower.next().await;
                (follower, told)
            }));
        }
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let (follower, told) = match next.as_mut().poll(context) {
            Poll::Ready(step) => step,
            Poll::Pending => return Poll::Pending,
        };
        self.next = None;
        self.follower = Some(follower).filter(|_| told.is_some());
        Poll::Ready(told.map(|told| Ok(Frame::data(told.into()))))
    }
}
