//! Problems: what a request cannot have, as RFC 9457 says it.

mod engine;
mod flows;
pub(crate) mod kinds;

use super::caller::Caller;
use super::wire::problem::{ProblemWire, RefusalWire, StreamWire};
use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use kinds::Kind;
use std::fmt;
use tollgate::Error;

/// Most characters of a detail: it may quote what a hostile client sent.
const DETAIL_CHARS_MAX: usize = 1000;

/// An answer that says what is wrong and what to do.
// Boxed, so that a result that is nearly always good stays small.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<Content>);

#[derive(Debug, Clone)]
struct Content {
    kind: Kind,
    detail: String,
    field: Option<String>,
    refusal: Option<RefusalWire>,
    stream: Option<StreamWire>,
    /// What the engine said, in the names of the store.
    error: Option<Error>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of this kind, told with its values and its cure.
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS_MAX) {
            detail.truncate(end);
            detail.push('…');
        }
        let (field, refusal, stream, error, headers) = (None, None, None, None, Vec::new());
        Self(Box::new(Content { kind, detail, field, refusal, stream, error, headers }))
    }

    /// What kind of problem it is.
    pub(super) fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Names the part of the body that is wrong.
    pub(super) fn field(mut self, path: &str) -> Self {
        self.0.field = Some(path.chars().take(DETAIL_CHARS_MAX).collect());
        self
    }

    /// Adds a header to the answer.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Says how much of a stream was taken, and which line was not.
    pub(super) fn stream(mut self, accepted: u64, line: u64) -> Self {
        self.0.stream = Some(StreamWire { accepted, line });
        self
    }

    /// Its status, its code and its words, in the names that the caller uses: for who writes it otherwise.
    pub(crate) fn told(self, caller: &Caller) -> (StatusCode, &'static str, String) {
        let (status, code) = (self.0.kind.status, self.0.kind.code);
        (status, code, self.outward(caller).0.detail)
    }

    /// The problem as it travels, in the names that the caller uses.
    pub(super) fn into_wire(self, caller: &Caller) -> ProblemWire {
        let Content { kind, detail, field, refusal, stream, .. } = *self.outward(caller).0;
        ProblemWire {
            kind: format!("urn:tollgate:problem:{}", kind.code),
            title: kind.title,
            status: kind.status.as_u16(),
            detail,
            code: kind.code,
            field,
            refusal,
            stream,
        }
    }

    /// Says which limit refused and how it stands.
    pub(super) fn refusal(mut self, refusal: RefusalWire) -> Self {
        self.0.refusal = Some(refusal);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.detail)
    }
}

impl IntoResponse for Problem {
    /// An answer without a body: the door writes it, for it knows whose words to use.
    fn into_response(mut self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.0.kind.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        for (name, value) in std::mem::take(&mut self.0.headers) {
            headers.append(name, value);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The answer with its problem written out, if it is one, in the words of the caller.
pub(super) fn written(mut response: Response, caller: &Caller) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let wire = problem.into_wire(caller);
    // It was that of no body.
    response.headers_mut().remove(CONTENT_LENGTH);
    match serde_json::to_vec(&wire) {
        Ok(bytes) => *response.body_mut() = Body::from(bytes),
        Err(error) => tracing::error!(%error, "problem could not be written"),
    }
    response
}

impl Problem {
    /// The same, in the names that the caller uses.
    fn outward(mut self, caller: &Caller) -> Self {
        if caller.namespace().is_some()
            && let Some(error) = self.0.error.take()
        {
            let told = *Self::from(caller.outward(error)).0;
            (self.0.detail, self.0.refusal) = (told.detail, told.refusal);
        }
        self
    }
}

pub(crate) async fn unknown_route(uri: Uri) -> Problem {
    let detail = format!("there is nothing at {}: see /openapi.json for what there is", uri.path());
    Problem::new(kinds::UNKNOWN_ROUTE, detail)
}

/// The router adds the header `Allow`.
pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{method} is not for {}: see the header Allow", uri.path());
    Problem::new(kinds::METHOD_NOT_ALLOWED, detail)
}

/// The server goes, and should be sent nothing more.
pub(super) fn leaving() -> Problem {
    let detail = "the server is shutting down: send nothing more here until it is back";
    Problem::new(kinds::SHUTTING_DOWN, detail)
}

/// The server goes while a call waits.
pub(super) fn shutting_down() -> Problem {
    let detail = "the server is shutting down; nothing was paid: ask again when it is back";
    Problem::new(kinds::SHUTTING_DOWN, detail)
}

/// One field holds a value that reads well but does not do.
pub(super) fn invalid_field(path: &str, why: &str) -> Problem {
    Problem::new(kinds::INVALID_BODY, format!("`{path}`: {why}")).field(path)
}
