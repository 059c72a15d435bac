//! What is answered to a request that is refused: a status, and `{"error": "…"}`.

use crate::http::caller::Caller;
use crate::http::problem::Problem;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::fmt::Display;
use tollgate::Error;

/// Codes of what is more than there may be.
const TOO_LARGE: [&str; 3] = ["body_too_large", "call_body_too_long", "too_many_changes"];

/// Why a request is refused. The SDKs show the body as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub(super) struct Fault {
    status: StatusCode,
    text: String,
}

#[derive(Serialize)]
struct FaultWire<'a> {
    error: &'a str,
}

impl Fault {
    /// With this status, and these words.
    pub(super) fn new(status: StatusCode, why: impl Display) -> Self {
        Self { status, text: why.to_string() }
    }

    /// What was asked cannot be done as it was written.
    pub(super) fn invalid(why: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    /// The token is for something else.
    pub(super) fn forbidden(why: impl Display) -> Self {
        Self::new(StatusCode::FORBIDDEN, why)
    }

    /// There is no such thing.
    pub(super) fn missing(why: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, why)
    }

    /// It is more than there may be: of bytes, or of things.
    pub(super) fn over_quota(why: impl Display) -> Self {
        Self::new(StatusCode::PRECONDITION_FAILED, why)
    }

    /// It could not be done now.
    pub(super) fn unavailable(why: impl Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// The status of the answer.
    #[cfg(test)]
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// The answer's body.
    pub(super) fn body(&self) -> Vec<u8> {
        // A text is always JSON.
        serde_json::to_vec(&FaultWire { error: &self.text }).unwrap_or_default()
    }
}

impl Fault {
    /// What the engine refuses, in the caller's words.
    pub(super) fn of(error: Error, caller: &Caller) -> Self {
        Self::told(Problem::from(error), caller)
    }

    fn told(problem: Problem, caller: &Caller) -> Self {
        let (status, code, text) = problem.told(caller);
        match status {
            // What is too large is over a quota, in the words of this API.
            _ if TOO_LARGE.contains(&code) => Self::over_quota(text),
            StatusCode::UNPROCESSABLE_ENTITY => Self::invalid(text),
            // Its clients take 429 for a limit of their own plan.
            StatusCode::TOO_MANY_REQUESTS => Self::unavailable(text),
            status => Self::new(status, text),
        }
    }
}

impl From<Problem> for Fault {
    /// Of a problem that names nothing of the caller's.
    fn from(problem: Problem) -> Self {
        Self::told(problem, &Caller::ANYONE)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let json = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
        (self.status, [json], self.body()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_stands_in_one_field() {
        let fault = Fault::invalid("no \"such\" thing");
        assert_eq!(fault.body(), br#"{"error":"no \"such\" thing"}"#);
        assert_eq!(fault.status(), StatusCode::BAD_REQUEST);
        let response = Fault::over_quota("too large").into_response();
        assert_eq!(response.status(), StatusCode::PRECONDITION_FAILED);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    }

    #[test]
    fn each_refusal_has_its_status() {
        for (fault, status) in
            [(Fault::forbidden(""), 403), (Fault::missing(""), 404), (Fault::unavailable(""), 503)]
        {
            assert_eq!(fault.status().as_u16(), status);
        }
    }
}
