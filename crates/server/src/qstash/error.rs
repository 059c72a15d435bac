//! What is answered to a request that is refused: a status, and `{"error": "…"}`.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::fmt::Display;

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

    /// Nobody is known by this token.
    pub(super) fn unauthorized(why: impl Display) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, why)
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
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// The answer's body.
    pub(super) fn body(&self) -> Vec<u8> {
        // A text is always JSON.
        serde_json::to_vec(&FaultWire { error: &self.text }).unwrap_or_default()
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
        for (fault, status) in [
            (Fault::unauthorized(""), 401),
            (Fault::forbidden(""), 403),
            (Fault::missing(""), 404),
            (Fault::unavailable(""), 503),
        ] {
            assert_eq!(fault.status().as_u16(), status);
        }
    }
}
