//! A stream of calls, a line each, of any length: taken a thousand at a time as they come.

use crate::http::App;
use crate::http::body::{Taken, parse_as};
use crate::http::caller::Caller;
use crate::http::problem::{Problem, kinds, shutting_down};
use crate::http::wire::id::IdWire;
use crate::http::wire::new_call::{CallWire, HandedIn};
use crate::http::wire::object::Object;
use crate::traces::Entering;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde::Serialize;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::timeout;
use tollgate::lanes::act::BODY_BYTES_MAX;
use tollgate::lanes::{Act, ActError, CallId, NewCall, QueueName};
use tollgate::{AskError, Error, TraceParent};

/// Calls of one commit.
const BATCH: usize = 1_000;
/// Bytes of bodies of one commit.
const BATCH_BYTES: usize = 4 << 20;
/// Longest line: the longest call, as base64, with some room.
const LINE_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
/// What was taken is kept when nothing comes for so long.
const QUIET: Duration = Duration::from_millis(20);
/// Longest time that a stream may rest.
const REST_MAX: Duration = Duration::from_secs(30);

/// How much was taken.
#[derive(Debug, Serialize)]
pub(super) struct TakenWire {
    accepted: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<IdWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<IdWire>,
}

/// Whether a body is declared as lines of JSON.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = declared.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    ["application/x-ndjson", "application/jsonl"].iter().any(|it| essence.eq_ignore_ascii_case(it))
}

/// Where a stream goes, and whose it is.
#[derive(Clone, Copy)]
pub(super) struct To<'a> {
    pub(super) app: &'a App,
    pub(super) caller: &'a Caller,
    /// The queue as the caller calls it, and as the store does.
    pub(super) name: &'a str,
    pub(super) queue: &'a QueueName,
    /// Of which trace its calls are a part that do not say.
    pub(super) trace: Option<&'a TraceParent>,
}

/// Takes calls as they come. What was taken before a line that does not do is kept, and told.
pub(super) async fn enqueue(to: To<'_>, body: Body) -> Result<TakenWire, Problem> {
    let mut taker = Taker::new(to);
    if let Err(problem) = taker.take_all(body).await {
        // Those before it are kept, so that the stream can go on from this line.
        let problem = taker.flush().await.err().unwrap_or(problem);
        return Err(problem.stream(taker.accepted, taker.line));
    }
    let (first, last) = taker.ids.unzip();
    Ok(TakenWire { accepted: taker.accepted, first: first.map(IdWire), last: last.map(IdWire) })
}

/// What came of a body within a time: a piece, or `None` for its end.
enum Came {
    Piece(Option<Bytes>),
    Nothing,
}

/// Takes lines, and keeps them a thousand at a time.
struct Taker<'a> {
    to: To<'a>,
    /// What came of a line that is not whole yet.
    rest: Vec<u8>,
    /// The room that it takes.
    taken: Taken,
    /// Calls that are not kept yet, and their lines.
    batch: Vec<NewCall>,
    lines: Vec<u64>,
    entering: Entering<'a>,
    batch_bytes: usize,
    /// The line that was read last, from 1 on.
    line: u64,
    accepted: u64,
    ids: Option<(CallId, CallId)>,
}

impl<'a> Taker<'a> {
    fn new(to: To<'a>) -> Self {
        Self {
            to,
            rest: Vec::new(),
            taken: Taken::default(),
            batch: Vec::new(),
            lines: Vec::new(),
            entering: Entering::new(&to.app.traces, to.name, to.caller.namespace()),
            batch_bytes: 0,
            line: 0,
            accepted: 0,
            ids: None,
        }
    }

    async fn take_all(&mut self, body: Body) -> Result<(), Problem> {
        let mut body = pin!(body);
        while let Some(data) = self.next(body.as_mut()).await? {
            let mut data = &data[..];
            while let Some(end) = data.iter().position(|byte| *byte == b'\n') {
                let (line, behind) = data.split_at(end);
                self.take(line).await?;
                data = behind.get(1..).unwrap_or_default();
            }
            self.keep_for_later(data)?;
        }
        self.take(&[]).await?;
        self.flush().await
    }

    /// What comes next. While nothing does, what was taken is kept.
    async fn next(&mut self, mut body: Pin<&mut Body>) -> Result<Option<Bytes>, Problem> {
        let soon = self.within(QUIET, body.as_mut()).await?;
        if let Came::Piece(piece) = soon {
            return Ok(piece);
        }
        // Seen through, also when the server ends: what is being kept is to be counted.
        self.flush().await?;
        match self.within(REST_MAX, body).await? {
            Came::Piece(piece) => Ok(piece),
            Came::Nothing => Err(too_slow()),
        }
    }

    /// What comes within so long. One who never stops is stopped between two pieces when the server ends.
    async fn within(&self, span: Duration, body: Pin<&mut Body>) -> Result<Came, Problem> {
        tokio::select! {
            biased;
            () = self.to.app.shutdown.begun() => Err(shutting_down()),
            piece = timeout(span, piece(body)) => match piece {
                Ok(piece) => piece.map(Came::Piece),
                Err(_) => Ok(Came::Nothing),
            },
        }
    }

    fn keep_for_later(&mut self, data: &[u8]) -> Result<(), Problem> {
        if self.rest.len() + data.len() > LINE_BYTES_MAX {
            self.line += 1;
            let detail = format!("a line has up to {} MiB", LINE_BYTES_MAX >> 20);
            return Err(Problem::new(kinds::BODY_TOO_LARGE, detail));
        }
        self.to.app.room.take(self.rest.len() + data.len(), &mut self.taken)?;
        self.rest.extend_from_slice(data);
        Ok(())
    }

    /// Takes the rest of a line.
    async fn take(&mut self, end: &[u8]) -> Result<(), Problem> {
        self.keep_for_later(end)?;
        let (line, _taken) = (std::mem::take(&mut self.rest), std::mem::take(&mut self.taken));
        self.line += 1;
        let text = line.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        let Object(call): Object<CallWire<'_>> = parse_as(text)?;
        let To { app, caller, queue, trace, .. } = self.to;
        let now = app.gate.now().await?;
        let handed_in = HandedIn { caller, queue: Some(queue), now, trace };
        let mut call = call.new_call(handed_in).map_err(|fault| fault.problem(""))?;
        // Each line arrives by itself.
        self.entering.begin(&mut call, now.wall, now.wall);
        self.batch_bytes += call.payload.bytes();
        self.batch.push(call);
        self.lines.push(self.line);
        if self.batch.len() >= BATCH || self.batch_bytes >= BATCH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Keeps what was taken. If a call does not do, those before it are kept.
    async fn flush(&mut self) -> Result<(), Problem> {
        let (mut batch, lines) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.lines));
        self.batch_bytes = 0;
        // Bodies are shared by no one: the copy is for the case that one of them does not do.
        let error = match self.keep(batch.clone()).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let wrong = position(&error).unwrap_or(0);
        self.line = lines.get(wrong).copied().unwrap_or(self.line);
        batch.truncate(wrong);
        self.keep(batch).await?;
        Err(error.into())
    }

    async fn keep(&mut self, enqueue: Vec<NewCall>) -> Result<(), Error> {
        if enqueue.is_empty() {
            return Ok(());
        }
        let acted = self.to.app.gate.act(Act { enqueue, ..Act::default() }).await?;
        self.accepted += acted.enqueued.len() as u64;
        self.entering.end(&acted.enqueued, &self.to.app.gate).await;
        if let (Some(first), Some(last)) = (acted.enqueued.first(), acted.enqueued.last()) {
            let (first, _) = self.ids.unwrap_or((*first, *last));
            self.ids = Some((first, *last));
        }
        Ok(())
    }
}

fn too_slow() -> Problem {
    let detail = format!("nothing came for {} s: send the rest again", REST_MAX.as_secs());
    Problem::new(kinds::BODY_TOO_SLOW, detail)
}

/// Which call of a batch does not do.
fn position(error: &Error) -> Option<usize> {
    match error {
        Error::Act(
            ActError::Toll { at, .. }
            | ActError::BodyTooLong { at, .. }
            | ActError::UnknownQueue { at, .. },
        )
        | Error::Invalid(
            AskError::QueueNotPushed { at, .. } | AskError::DestinationMissing { at, .. },
        ) => Some(*at),
        _ => None,
    }
}

/// The next piece of a body; `None` at its end.
async fn piece(mut body: Pin<&mut Body>) -> Result<Option<Bytes>, Problem> {
    loop {
        match poll_fn(|context| body.as_mut().poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(error)) => {
                let detail = format!("the body cannot be read: {error}");
                return Err(Problem::new(kinds::INVALID_BODY, detail));
            }
            // Trailers say nothing that we read.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}
