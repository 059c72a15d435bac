//! Why a request was not answered as one would like: the server said no, was not there, or spoke in tongues.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use tollgate_core::Span;

/// Why a request failed. The variants differ by what the caller can do.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server said no, and why: wait, or change the request.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// No server answered in time: whether it did what it was asked is not known unless the request can
    /// be repeated.
    #[error("the server at {url} cannot be reached: {reason}; {}", cure(url, reason))]
    Unreachable {
        /// Its address.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// What answered is no Tollgate, or one of another version.
    #[error(
        "the server at {url} answered in a way that is not understood: {reason}; is it a Tollgate of this version?"
    )]
    Protocol {
        /// Its address.
        url: String,
        /// What was not understood.
        reason: String,
    },
    /// The server answered with more than a client holds at once.
    #[error(
        "the answer of the server at {url} is over 256 MiB: ask for fewer at a time, a worker with a smaller concurrency"
    )]
    TooLong {
        /// Its address.
        url: String,
    },
    /// The client was set up, or asked, in a way that cannot be.
    #[error("{reason}")]
    Invalid {
        /// What is wrong, and the cure.
        reason: String,
    },
}

/// What a server says when it says no, as RFC 9457 has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The status of the answer.
    pub status: u16,
    /// What kind of problem: `refused`, `unknown_limit`, `lease_lost`, …
    pub code: String,
    /// What happened, with the values and the cure.
    pub detail: String,
    /// Which part of the body is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// All else that was said: which limit refuses, and until when.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What to do about a server that cannot be reached.
fn cure(url: &str, reason: &str) -> &'static str {
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    let is_secure = url.starts_with("https:");
    if is_secure && says(&["UnknownIssuer", "BadSignature"]) {
        "its certificate is not trusted: name the authority that signed it, with --authorities on the command line"
    } else if is_secure && says(&["invalid peer certificate"]) {
        "its certificate does not do: use the name that it is for, or renew it"
    } else if is_secure && says(&["InvalidContentType"]) {
        "it does not speak https: write http:// in its URL"
    } else if !is_secure && says(&["invalid HTTP version"]) {
        "does it speak https? write https:// in its URL"
    } else {
        "is it running? start it with `tollgate serve`, or name another with TOLLGATE_URL"
    }
}

impl Problem {
    /// When to ask again, if the server says so.
    pub fn retry_after(&self) -> Option<Span> {
        self.more.get("retry_after_ms")?.as_u64().map(Span::from_millis)
    }

    /// Which limit it is about, if it is about one.
    pub fn limit(&self) -> Option<&str> {
        self.more.get("limit")?.as_str()
    }

    /// Which call of those that were handed in together it is about, from 0, if it is about one.
    pub fn place(&self) -> Option<usize> {
        // All of them go to one queue.
        if self.code == "unknown_queue" {
            return None;
        }
        let field = self.field.as_deref().and_then(|field| field.strip_prefix('['));
        let by_field = field.and_then(|field| field.split(']').next());
        let by_detail = self.detail.strip_prefix("call ").and_then(|rest| rest.split(':').next());
        by_field.or(by_detail)?.parse().ok()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Problem {}

impl ClientError {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid { reason: reason.into() }
    }

    /// What the server said, if it did.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    /// The code of the problem that the server told of.
    pub fn code(&self) -> Option<&str> {
        self.problem().map(|problem| &*problem.code)
    }

    /// Whether a limit refuses for now: wait, and ask again.
    pub fn is_refused(&self) -> bool {
        self.code() == Some("refused")
    }

    /// Whether the same may be answered later: the server is out of reach, full or overworked.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Problem(problem) => problem.status >= 500 || matches!(problem.status, 408 | 429),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_place_of_a_problem_is_found() {
        let of = |field: Option<&str>, detail: &str| {
            let wire = json!({"status": 422, "code": "c", "field": field, "detail": detail});
            serde_json::from_value::<Problem>(wire).unwrap().place()
        };
        assert_eq!(of(Some("[12].lane"), "wrong"), Some(12));
        assert_eq!(of(None, "call 200: limit x is not defined"), Some(200));
        assert_eq!((of(Some("lane"), "wrong"), of(None, "called off")), (None, None));
    }
}
