//! Bodies: JSON with a bound and a deadline, and an error that says what to change.

use super::App;
use super::problem::{Problem, kinds};
use super::wire::items::Items;
use super::wire::object::Object;
use crate::threads::at_length;
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Longest body of most requests: eight tolls with their limits take a few kilobytes.
const BODY_BYTES_MAX: usize = MIB;
/// Longest body of a request that hands in calls: the longest call, as base64, with some room.
const LARGE_BYTES_MAX: usize = 32 * MIB;
/// Most bytes of large bodies that are held at once, beyond the first MiB of each, in units of MiB.
const LARGE_MIB_MAX: usize = 256;
const MIB: usize = 1024 * 1024;
/// Longest time a client may take over its body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A JSON object that must be there. As an answer: any JSON.
pub(super) struct Json<T>(pub(super) T);

/// A JSON object that may be left out, which means the same as `{}`.
pub(super) struct JsonIfAny<T>(pub(super) T);

/// A JSON body that may be large, with its share of the room for such, to be parsed by who asked.
pub(super) struct Large {
    pub(super) bytes: Vec<u8>,
    _room: Taken,
}

/// The room for large bodies. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

/// A share of the room. It is given back when this is dropped.
pub(crate) type Taken = Vec<OwnedSemaphorePermit>;

impl Room {
    /// Takes as much more as so many bytes need.
    pub(super) fn take(&self, bytes: usize, taken: &mut Taken) -> Result<(), Problem> {
        // The first MiB is everybody's.
        while bytes > (taken.len() + 1) * MIB {
            taken.push(self.0.clone().try_acquire_owned().map_err(|_| too_busy())?);
        }
        Ok(())
    }
}

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_MIB_MAX)))
    }
}

impl Large {
    /// The one thing that the body is.
    pub(super) fn one<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        let Object(value) = self.parse()?;
        Ok(value)
    }

    /// The things that the body is: one, or an array of them.
    pub(super) fn all<'a, T: Deserialize<'a>>(&'a self) -> Result<Vec<Object<T>>, Problem> {
        match self.is_array() {
            true => self.parse().map(|Items(items)| items),
            false => Ok(vec![self.parse()?]),
        }
    }

    /// Any JSON, as it was sent; nothing at all means `null`.
    pub(super) fn any(&self) -> Result<&[u8], Problem> {
        match self.bytes.is_empty() {
            true => Ok(b"null"),
            false => self.parse::<&RawValue>().map(|json| json.get().as_bytes()),
        }
    }

    /// Whether the body is an array.
    pub(super) fn is_array(&self) -> bool {
        self.bytes.trim_ascii_start().first() == Some(&b'[')
    }

    fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        if self.bytes.is_empty() {
            return Err(empty());
        }
        at_length(self.bytes.len(), || parse_as(&self.bytes))
    }
}

impl FromRequest<Arc<App>> for Large {
    type Rejection = Problem;

    fn from_request(
        request: Request,
        app: &Arc<App>,
    ) -> impl Future<Output = Result<Self, Problem>> + Send {
        let read = read_up_to(request, Some(app.room.clone()));
        async {
            let (bytes, room) = read.await?;
            Ok(Self { bytes, _room: room })
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    fn from_request(
        request: Request,
        _state: &S,
    ) -> impl Future<Output = Result<Self, Problem>> + Send {
        let read = read(request);
        async {
            let bytes = read.await?;
            if bytes.is_empty() {
                return Err(empty());
            }
            parse(&bytes).map(Self)
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonIfAny<T> {
    type Rejection = Problem;

    fn from_request(
        request: Request,
        _state: &S,
    ) -> impl Future<Output = Result<Self, Problem>> + Send {
        let read = read(request);
        async {
            let bytes = read.await?;
            parse(if bytes.is_empty() { b"{}" } else { &bytes }).map(Self)
        }
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        json(&self.0, "application/json")
    }
}

/// An answer in JSON, declared as `content_type`.
pub(crate) fn json(value: &impl Serialize, content_type: &'static str) -> Response {
    // Our wire types have text keys and no maps that fail: this cannot happen, and is not hidden.
    match serde_json::to_vec(value) {
        Ok(bytes) => ([(CONTENT_TYPE, content_type)], Body::from(bytes)).into_response(),
        Err(error) => {
            tracing::error!(%error, "answer could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Reads a body of any kind, with the share of the room for large ones that it takes.
pub(crate) async fn read_any(body: Body, room: &Room) -> Result<(Vec<u8>, Taken), Problem> {
    in_time(collect(body, Some(room.clone()))).await
}

/// Reads a body that is empty or declared as JSON.
// Not an `async fn`: what it keeps while it waits is kept for every call that waits its turn.
fn read(request: Request) -> impl Future<Output = Result<Vec<u8>, Problem>> + Send {
    let reading = read_up_to(request, None);
    async { Ok(reading.await?.0) }
}

/// Like [`read`]; where there is room for large bodies, with the share of it that was taken.
fn read_up_to(
    request: Request,
    room: Option<Room>,
) -> impl Future<Output = Result<(Vec<u8>, Taken), Problem>> + Send {
    let declared = check_type(request.headers());
    let body = request.into_body();
    async {
        let mut reading = pin!(collect(body, room));
        // A small body came with its head, and needs no timer.
        let at_once = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await;
        let bytes = match at_once {
            Poll::Ready(read) => read?,
            Poll::Pending => in_time(reading).await?,
        };
        if bytes.0.is_empty() { Ok(bytes) } else { declared.map(|()| bytes) }
    }
}

fn in_time<T: Send>(
    reading: impl Future<Output = Result<T, Problem>> + Send,
) -> Pin<Box<impl Future<Output = Result<T, Problem>> + Send>> {
    Box::pin(async { timeout(BODY_TIMEOUT, reading).await.unwrap_or_else(|_| Err(too_slow())) })
}

async fn collect(body: Body, room: Option<Room>) -> Result<(Vec<u8>, Taken), Problem> {
    let most = if room.is_some() { LARGE_BYTES_MAX } else { BODY_BYTES_MAX };
    let least = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if least > most {
        return Err(too_large(most));
    }
    let (mut body, mut bytes, mut taken) = (pin!(body), Vec::new(), Taken::new());
    if least <= BODY_BYTES_MAX {
        bytes.reserve_exact(least);
    }
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        // Trailers say nothing that we read.
        let Ok(data) = frame.map_err(|error| cut_off(&error))?.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > most {
            return Err(too_large(most));
        }
        if let Some(room) = &room {
            room.take(length, &mut taken)?;
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, taken))
}

fn too_slow() -> Problem {
    let seconds = BODY_TIMEOUT.as_secs();
    let detail = format!("the body did not arrive within {seconds} s: send it again");
    Problem::new(kinds::BODY_TOO_SLOW, detail)
}

fn too_large(most: usize) -> Problem {
    let detail = format!("a body has up to {} MiB: send less at a time", most / MIB);
    Problem::new(kinds::BODY_TOO_LARGE, detail)
}

fn too_busy() -> Problem {
    let detail = "as many large bodies are arriving as there is room for: send it again in a second, or send less at a time";
    Problem::new(kinds::TOO_BUSY, detail).header(RETRY_AFTER, HeaderValue::from(1))
}

fn empty() -> Problem {
    Problem::new(kinds::INVALID_BODY, "the body is empty: send JSON")
}

fn cut_off(error: &axum::Error) -> Problem {
    Problem::new(kinds::INVALID_BODY, format!("the body cannot be read: {error}"))
}

/// Refuses what is not declared as JSON: a page in a browser can send the rest to a server on its
/// user's machine without being asked for leave.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("unreadable"));
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let given = given.unwrap_or("missing").chars().take(100).collect::<String>();
    let detail = format!("Content-Type is {given}: send the body as application/json");
    Err(Problem::new(kinds::UNSUPPORTED_MEDIA_TYPE, detail))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    parse_as(bytes).map(|Object(value)| value)
}

pub(super) fn parse_as<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| misread(&error, &path_of_error::<T>(bytes)))
}

/// Where in the body the error is. Reads it a second time, for keeping track of the path costs as
/// much as the reading.
fn path_of_error<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> String {
    // Of a large one the line and the column must do.
    if bytes.len() > BODY_BYTES_MAX {
        return ".".to_owned();
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read: Result<T, _> = serde_path_to_error::deserialize(&mut json);
    read.err().map_or_else(|| ".".to_owned(), |error| error.path().to_string())
}

fn misread(error: &serde_json::Error, path: &str) -> Problem {
    match error.classify() {
        Category::Data if path == "." => Problem::new(kinds::INVALID_BODY, error.to_string()),
        Category::Data => {
            let detail = format!("`{path}`: {error}");
            Problem::new(kinds::INVALID_BODY, detail).field(path)
        }
        _ => Problem::new(kinds::MALFORMED_JSON, format!("the body is not JSON: {error}")),
    }
}
