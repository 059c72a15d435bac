//! What is sent: a call as a request, made anew for each attempt.

use super::destination::Destination;
use super::headers;
use super::manner::{Manner, Sent};
use super::signature::{Delivery as Signed, Signing};
use crate::envelope::Delivery;
use crate::lanes::Job;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use serde::de::IgnoredAny;
use tollgate_core::{QueueName, Timestamp};

/// Which call it is: the same for each of its attempts.
const CALL: HeaderName = HeaderName::from_static("tollgate-call");
/// Which attempt of it, from 1 on.
const ATTEMPT: HeaderName = HeaderName::from_static("tollgate-attempt");
/// The trace it is part of.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// What a request is made of, but for its body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sending<'a> {
    pub(super) queue: &'a QueueName,
    pub(super) job: &'a Job,
    pub(super) delivery: &'a Delivery,
    pub(super) signing: Option<&'a Signing>,
    /// Whose words they are, if not ours.
    pub(super) manner: Option<&'a dyn Manner>,
    pub(super) wall: Timestamp,
}

/// The request for an attempt, or why there can be none: that is for good, unless the queue changes.
pub(super) fn request(sending: Sending<'_>, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
    let Sending { queue, job, delivery, manner, wall, .. } = sending;
    let text =
        delivery.destination.as_deref().ok_or("neither the call nor its queue says where to")?;
    let destination = Destination::parse(text).map_err(|error| error.to_string())?;
    let method = delivery.method.as_deref().unwrap_or("POST");
    let method = Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
    let mut headers = own_headers(&delivery.headers)?;
    if let Some(authorization) = destination.authorization() {
        headers.entry(AUTHORIZATION).or_insert_with(|| authorization.clone());
    }
    if let Some(kind) = content_type(&body) {
        headers.entry(CONTENT_TYPE).or_insert(kind);
    }
    let agent = HeaderValue::from_static(concat!("Tollgate/", env!("CARGO_PKG_VERSION")));
    headers.entry(USER_AGENT).or_insert(agent);
    if let Some(trace) = &job.envelope.trace
        && let Ok(value) = HeaderValue::from_str(trace.as_str())
    {
        headers.insert(TRACE_PARENT, value);
    }
    match manner {
        Some(manner) => {
            let destination = &*told(&destination);
            let sent = Sent { queue, job, delivery, destination, body: &body, wall };
            manner.dress(&sent, &mut headers)?;
        }
        None => dress(sending, &destination, &body, &mut headers)?,
    }
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = destination.uri().clone();
    *request.headers_mut() = headers;
    Ok(request)
}

/// Adds our own headers: which call and attempt it is, and the signature.
fn dress(
    sending: Sending<'_>,
    destination: &Destination,
    body: &[u8],
    headers: &mut HeaderMap,
) -> Result<(), String> {
    let Sending { job, signing, wall, .. } = sending;
    let id = job.id.0.to_string();
    headers.insert(CALL, HeaderValue::from_str(&id).map_err(|error| error.to_string())?);
    headers.insert(ATTEMPT, HeaderValue::from(job.attempt));
    if let Some(signing) = signing {
        let id = format!("call_{id}");
        let signed = signing.headers(&told(destination), Signed { id: &id, wall, body });
        headers.extend(signed.map_err(|error| error.to_string())?);
    }
    Ok(())
}

/// Where to, as its owner knows it: as it was given, but for credentials.
fn told(destination: &Destination) -> String {
    match destination.authorization() {
        None => destination.as_text().to_owned(),
        Some(_) => destination.uri().to_string(),
    }
}

/// Of two of a name the first counts: a call's stand before its queue's.
fn own_headers(pairs: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut names: Vec<&str> = Vec::new();
    let first = pairs.iter().filter(|(name, _)| {
        let is_new = !names.iter().any(|known| known.eq_ignore_ascii_case(name));
        names.push(name);
        is_new
    });
    let first: Vec<_> = first.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    headers::collect(first).map_err(|error| error.to_string())
}

/// What a body is, where nobody says.
fn content_type(body: &[u8]) -> Option<HeaderValue> {
    let is_json = || serde_json::from_slice::<IgnoredAny>(body).is_ok();
    match body {
        [] => None,
        _ if is_json() => Some(HeaderValue::from_static("application/json")),
        _ => Some(HeaderValue::from_static("application/octet-stream")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Envelope;
    use crate::lanes::Outcome;
    use crate::push::{Answered, Attempt, Preparing};
    use tollgate_core::LaneName;
    use tollgate_core::lanes::{Attempts, CallId, Lease};

    /// Says all that it is told in a header, and takes another away.
    #[derive(Debug)]
    struct Other;

    impl Manner for Other {
        fn ready<'a>(&'a self, _: &'a QueueName) -> Preparing<'a> {
            Box::pin(std::future::ready(()))
        }

        fn dress(&self, sent: &Sent<'_>, headers: &mut HeaderMap) -> Result<(), String> {
            let Sent { queue, job, destination, body, .. } = sent;
            if body.is_empty() {
                return Err("there is nothing to send".to_owned());
            }
            let card = String::from_utf8_lossy(&job.envelope.card);
            let said = format!("{queue} {card} {destination} {}", body.len());
            headers.insert("x-said", HeaderValue::from_str(&said).unwrap());
            headers.remove(USER_AGENT);
            Ok(())
        }

        fn judge(&self, _: &Attempt<'_>, _: &Answered) -> Outcome {
            Outcome::done()
        }
    }

    fn requested(
        manner: Option<&dyn Manner>,
        body: &'static [u8],
    ) -> Result<Request<Full<Bytes>>, String> {
        let job = Job {
            id: CallId(7),
            lane: LaneName::new("a").unwrap(),
            body: [].into(),
            envelope: Envelope { card: (*b"card").into(), ..Envelope::default() },
            attempt: 2,
            tried: Attempts::default(),
            lease: Lease { call: CallId(7), token: 1 },
            started: Timestamp::default(),
        };
        let delivery = Delivery {
            destination: Some("https://ana:secret@a.example/hook".to_owned()),
            headers: vec![("x-own".to_owned(), "1".to_owned())],
            ..Delivery::default()
        };
        let signing = Signing::from_texts("sig_5fbc2e4a77d04c31", None).unwrap();
        let queue = QueueName::new("q").unwrap();
        let (signing, wall) = (Some(&signing), Timestamp::default());
        let sending =
            Sending { queue: &queue, job: &job, delivery: &delivery, signing, manner, wall };
        request(sending, Bytes::from_static(body))
    }

    const OURS: [&str; 4] =
        ["tollgate-call", "tollgate-attempt", "tollgate-signature", "user-agent"];

    #[test]
    fn a_call_in_another_manner_has_the_headers_of_that_and_none_that_are_ours_alone() {
        let request = requested(Some(&Other), b"body").unwrap();
        let headers = request.headers();
        assert_eq!(headers["x-said"], "q card https://a.example/hook 4");
        assert_eq!(headers["x-own"], "1");
        assert!(headers.contains_key(AUTHORIZATION), "the destination's");
        assert_eq!(OURS.map(|name| headers.contains_key(name)), [false; 4]);
    }

    #[test]
    fn a_call_in_our_own_manner_says_which_it_is_and_is_signed() {
        let request = requested(None, b"body").unwrap();
        assert_eq!(OURS.map(|name| request.headers().contains_key(name)), [true; 4]);
        assert_eq!(request.headers()["tollgate-attempt"], "2");
        assert!(!request.headers().contains_key("x-said"));
    }

    #[test]
    fn what_cannot_be_dressed_is_not_sent() {
        assert_eq!(requested(Some(&Other), b"").unwrap_err(), "there is nothing to send");
    }
}
