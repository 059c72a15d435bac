//! Bodies: JSON with a bound and a deadline, and an error that says what to change.

use super::problem::{Problem, kinds};
use super::wire::object::Object;
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// Longest body of a request: eight tolls with their limits take a few kilobytes.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Longest time a client may take over its body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A JSON object that must be there. As an answer: any JSON.
pub(super) struct Json<T>(pub(super) T);

/// A JSON object that may be left out, which means the same as `{}`.
pub(super) struct JsonIfAny<T>(pub(super) T);

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
                let detail = "the body is empty: send a JSON object";
                return Err(Problem::new(kinds::INVALID_BODY, detail));
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
pub(super) fn json(value: &impl Serialize, content_type: &'static str) -> Response {
    // Our wire types have text keys and no maps that fail: this cannot happen, and is not hidden.
    match serde_json::to_vec(value) {
        Ok(bytes) => ([(CONTENT_TYPE, content_type)], Body::from(bytes)).into_response(),
        Err(error) => {
            tracing::error!(%error, "answer could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Reads a body that is empty or declared as JSON.
// Not an `async fn`: what it keeps while it waits is kept for every call that waits its turn.
fn read(request: Request) -> impl Future<Output = Result<Vec<u8>, Problem>> + Send {
    let declared = check_type(request.headers());
    let body = request.into_body();
    async {
        let mut reading = pin!(collect(body));
        // A small body came with its head, and needs no timer.
        let at_once = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await;
        let bytes = match at_once {
            Poll::Ready(read) => read?,
            Poll::Pending => in_time(reading).await?,
        };
        if bytes.is_empty() { Ok(bytes) } else { declared.map(|()| bytes) }
    }
}

fn in_time<T: Send>(
    reading: impl Future<Output = Result<T, Problem>> + Send,
) -> Pin<Box<impl Future<Output = Result<T, Problem>> + Send>> {
    Box::pin(async { timeout(BODY_TIMEOUT, reading).await.unwrap_or_else(|_| Err(too_slow())) })
}

async fn collect(body: Body) -> Result<Vec<u8>, Problem> {
    let least = body.size_hint().lower();
    if usize::try_from(least).map_or(true, |least| least > BODY_BYTES_MAX) {
        return Err(too_large());
    }
    let (mut body, mut bytes) = (pin!(body), Vec::new());
    while let Some(frame) = poll_fn(|context| body.as_mut().poll_frame(context)).await {
        // Trailers say nothing that we read.
        let Ok(data) = frame.map_err(|error| cut_off(&error))?.into_data() else { continue };
        if bytes.len() + data.len() > BODY_BYTES_MAX {
            return Err(too_large());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn too_slow() -> Problem {
    let seconds = BODY_TIMEOUT.as_secs();
    let detail = format!("the body did not arrive within {seconds} s: send it again");
    Problem::new(kinds::BODY_TOO_SLOW, detail)
}

fn too_large() -> Problem {
    Problem::new(kinds::BODY_TOO_LARGE, "a body has up to 1 MiB: send less at a time")
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
    match serde_json::from_slice(bytes) {
        Ok(Object(value)) => Ok(value),
        Err(error) => Err(misread(&error, &path_of_error::<T>(bytes))),
    }
}

/// Where in the body the error is. Reads it a second time, for keeping track of the path costs as
/// much as the reading.
fn path_of_error<T: DeserializeOwned>(bytes: &[u8]) -> String {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read: Result<Object<T>, _> = serde_path_to_error::deserialize(&mut json);
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
