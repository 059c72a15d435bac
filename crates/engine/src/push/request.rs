//! What is sent: a call as a request, made anew for each attempt.

use super::destination::Destination;
use super::headers;
use super::signature::{Delivery as Signed, Signing};
use crate::envelope::Delivery;
use crate::lanes::Job;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::Full;
use serde::de::IgnoredAny;
use tollgate_core::Timestamp;

/// Which call it is: the same for each of its attempts.
const CALL: HeaderName = HeaderName::from_static("tollgate-call");
/// Which attempt of it, from 1 on.
const ATTEMPT: HeaderName = HeaderName::from_static("tollgate-attempt");
/// The trace it is part of.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// The request for an attempt, or why there can be none: that is for good, unless the queue changes.
pub(super) fn request(
    job: &Job,
    body: Bytes,
    delivery: &Delivery,
    signing: Option<&Signing>,
    wall: Timestamp,
) -> Result<Request<Full<Bytes>>, String> {
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
    let id = job.id.0.to_string();
    headers.insert(CALL, HeaderValue::from_str(&id).map_err(|error| error.to_string())?);
    headers.insert(ATTEMPT, HeaderValue::from(job.attempt));
    if let Some(trace) = &job.envelope.trace
        && let Ok(value) = HeaderValue::from_str(trace.as_str())
    {
        headers.insert(TRACE_PARENT, value);
    }
    if let Some(signing) = signing {
        let id = format!("call_{id}");
        let signed = Signed { id: &id, wall, body: &body };
        let signed = signing.headers(&told(&destination), signed);
        headers.extend(signed.map_err(|error| error.to_string())?);
    }
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = destination.uri().clone();
    *request.headers_mut() = headers;
    Ok(request)
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
