//! Problems: what a request cannot have, as RFC 9457 says it.

mod engine;
pub(crate) mod kinds;

use super::body::json;
use super::wire::problem::{ProblemWire, RefusalWire, StreamWire};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use kinds::Kind;

/// Most characters of a detail: it may quote what a hostile client sent.
const DETAIL_CHARS_MAX: usize = 1000;

/// An answer that says what is wrong and what to do.
// Boxed, so that a result that is nearly always good stays small.
#[derive(Debug)]
pub(crate) struct Problem(Box<Content>);

#[derive(Debug)]
struct Content {
    kind: Kind,
    detail: String,
    field: Option<String>,
    refusal: Option<RefusalWire>,
    stream: Option<StreamWire>,
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
        let (field, refusal, stream, headers) = (None, None, None, Vec::new());
        let content = Content { kind, detail, field, refusal, stream, headers };
        Self(Box::new(content))
    }

    /// Names the part of the body that is wrong.
    pub(super) fn field(mut self, path: &str) -> Self {
        self.0.field = Some(path.chars().take(DETAIL_CHARS_MAX).collect());
        self
    }

    /// Adds a header to the answer.
    pub(super) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Says how much of a stream was taken, and which line was not.
    pub(super) fn stream(mut self, accepted: u64, line: u64) -> Self {
        self.0.stream = Some(StreamWire { accepted, line });
        self
    }

    /// The problem as a part of a larger answer.
    pub(super) fn into_wire(self) -> ProblemWire {
        self.0.into_wire()
    }

    /// Says which limit refused and how it stands.
    pub(super) fn refusal(mut self, refusal: RefusalWire) -> Self {
        self.0.refusal = Some(refusal);
        self
    }
}

impl Content {
    fn into_wire(self) -> ProblemWire {
        let Self { kind, detail, field, refusal, stream, headers: _ } = self;
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
}

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        let (status, headers) = (self.0.kind.status, std::mem::take(&mut self.0.headers));
        let mut response = json(&self.into_wire(), "application/problem+json");
        *response.status_mut() = status;
        for (name, value) in headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}

pub(super) async fn unknown_route(uri: Uri) -> Problem {
    let detail = format!("there is nothing at {}: see /openapi.json for what there is", uri.path());
    Problem::new(kinds::UNKNOWN_ROUTE, detail)
}

/// The router adds the header `Allow`.
pub(super) async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{method} is not for {}: see the header Allow", uri.path());
    Problem::new(kinds::METHOD_NOT_ALLOWED, detail)
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

impl Kind {
    const fn new(status: StatusCode, code: &'static str, title: &'static str) -> Self {
        Self { status, code, title }
    }
}
