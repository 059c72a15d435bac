//! The trace that a request is part of, as its header says.

use axum::http::HeaderMap;
use tollgate::TraceParent;

/// W3C's header.
const TRACEPARENT: &str = "traceparent";

/// What the header says; `None` if there is none, or not exactly one that can be read: whoever wrote it
/// wants their calls accepted all the same.
pub(super) fn of(headers: &HeaderMap) -> Option<TraceParent> {
    let mut said = headers.get_all(TRACEPARENT).iter();
    match (said.next(), said.next()) {
        (Some(value), None) => TraceParent::new(value.to_str().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_said_twice_or_cannot_be_read_is_not_said() {
        let mut headers = HeaderMap::new();
        assert_eq!(of(&headers), None);
        headers.insert(TRACEPARENT, WHOLE.parse().unwrap());
        assert_eq!(of(&headers), TraceParent::new(WHOLE));
        headers.append(TRACEPARENT, WHOLE.parse().unwrap());
        assert_eq!(of(&headers), None);
        headers.insert(TRACEPARENT, "00-1-2-01".parse().unwrap());
        assert_eq!(of(&headers), None);
    }
}
