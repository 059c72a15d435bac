//! `/v1/queues/{queue}/calls`: calls are handed in, one, many at once, or as a stream.

mod stream;
mod trace;

use super::Shared;
use super::body::{Json, Large};
use super::caller::Caller;
use super::path::InPath;
use super::problem::{Problem, kinds};
use super::queues::known;
use super::wire::id::IdWire;
use super::wire::new_call::{CallWire, HandedIn, OWN_KEYS};
use super::wire::object::Object;
use crate::traces::Entering;
use axum::extract::{FromRequest, Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tollgate::Error;
use tollgate::lanes::{Act, Key, NewCall, QueueName};

/// Says that the same request may come again, and is to be taken once.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Longest such key: with the number of a call behind it, it is a dedupe key.
const KEY_BYTES_MAX: usize = 256;

/// The calls that were accepted, in order.
#[derive(Debug, Serialize)]
struct IdsWire {
    ids: Vec<IdWire>,
}

/// Takes calls. All of an array or none; of a stream, a thousand at a time.
pub(super) async fn enqueue(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
    request: Request,
) -> Result<Response, Problem> {
    let queue = QueueName::new(&caller.inner(&name)).map_err(Error::from)?;
    let idempotency = Idempotency::new(request.headers())?;
    let trace = trace::of(request.headers());
    // Asked only by who traces: it is a look at the store's clock.
    let arrived = if app.traces.is_on() { Some(app.gate.now().await?.wall) } else { None };
    if stream::is_stream(request.headers()) {
        idempotency.refuse_for_stream()?;
        let to = stream::To {
            app: &app,
            caller: &caller,
            name: &name,
            queue: &queue,
            trace: trace.as_ref(),
        };
        let taken = stream::enqueue(to, request.into_body());
        return Ok(Json(taken.await?).into_response());
    }
    let body = Large::from_request(request, &app).await?;
    let calls: Vec<Object<CallWire<'_>>> = body.all()?;
    if calls.is_empty() {
        known(&app.gate, &caller, &name).await?;
    }
    let (now, trace) = (app.gate.now().await?, trace.as_ref());
    let handed_in = HandedIn { caller: &caller, queue: Some(&queue), now, trace };
    let mut entering = Entering::new(&app.traces, &name, caller.namespace());
    let mut enqueue = Vec::with_capacity(calls.len());
    for (nth, Object(call)) in calls.iter().enumerate() {
        let at = if body.is_array() { format!("[{nth}]") } else { String::new() };
        let mut call = call.new_call(handed_in).map_err(|fault| fault.problem(&at))?;
        idempotency.mark(&mut call, nth)?;
        entering.begin(&mut call, arrived.unwrap_or(now.wall), now.wall);
        enqueue.push(call);
    }
    let acted = app.gate.act(Act { enqueue, ..Act::default() }).await?;
    entering.end(&acted.enqueued, &app.gate).await;
    Ok(Json(IdsWire { ids: acted.enqueued.iter().copied().map(IdWire).collect() }).into_response())
}

/// The key of a request that may come again.
struct Idempotency(Option<String>);

impl Idempotency {
    fn new(headers: &HeaderMap) -> Result<Self, Problem> {
        let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(Self(None)) };
        match value.to_str() {
            Ok(key) if (1..=KEY_BYTES_MAX).contains(&key.len()) => Ok(Self(Some(key.to_owned()))),
            _ => {
                let detail = format!(
                    "`Idempotency-Key` has 1 to {KEY_BYTES_MAX} printable ASCII characters: a UUID, say"
                );
                Err(Problem::new(kinds::INVALID_HEADER, detail))
            }
        }
    }

    /// A stream that goes on after a wrong line would have its calls taken for those before.
    fn refuse_for_stream(&self) -> Result<(), Problem> {
        match &self.0 {
            None => Ok(()),
            Some(_) => {
                let detail = "a stream takes no `Idempotency-Key`: give each call that may come twice a `dedupe_id`";
                Err(Problem::new(kinds::INVALID_HEADER, detail))
            }
        }
    }

    /// Lets a call be known by the request's key and its place, unless it is known by something else.
    fn mark(&self, call: &mut NewCall, nth: usize) -> Result<(), Problem> {
        if let (Some(key), None) = (&self.0, &call.dedupe) {
            let key = format!("{OWN_KEYS}request/{key}/{nth}");
            call.dedupe = Some(Key::new(&key).map_err(Error::from)?);
        }
        Ok(())
    }
}
