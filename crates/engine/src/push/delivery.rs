//! How calls are to be delivered, checked at the door: what cannot be sent is not kept.

use super::destination::Destination;
use super::expression::Expression;
use super::headers;
use crate::envelope::Delivery;
use http::{HeaderName, Method};
use std::fmt::Display;
use tollgate_core::lanes::BodyPath;
use tollgate_core::{LimitName, Span};

/// Shortest time for an answer: less is a mistake of units.
pub const TIMEOUT_MIN: Span = Span::from_millis(1);

/// Longest time for an answer: a connection is kept open for it.
pub const TIMEOUT_MAX: Span = Span::from_hours(2);

/// Most retries: with any backoff, that is weeks.
pub const RETRIES_MAX: u32 = 1_000;

/// Most statuses that make a call dead: more than are in use.
pub const FATAL_MAX: usize = 64;

/// Most limits of which an answer tells the true cost: as many as a call may owe at, and some.
pub const COSTS_MAX: usize = 64;

/// Longest method: the longest that is registered has 16 letters.
pub const METHOD_BYTES_MAX: usize = 32;

/// Why something is no delivery, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct DeliveryError {
    /// Which part, as in `headers.x-a` or `callback.url`.
    pub field: String,
    /// What is wrong with it, and what to do. It shows no value of a header and no credentials.
    pub why: String,
}

/// Where in an answer the true cost stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CostSource {
    /// In its body, which is JSON.
    Body(BodyPath),
    /// In this header.
    Header(HeaderName),
}

impl CostSource {
    /// The place that a text says: `body.usage.total_tokens`, or `header.x-cost`.
    pub fn new(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("header.") {
            let wrong = |_| "this names no header: write it as header.x-cost".to_owned();
            return HeaderName::from_bytes(name.as_bytes()).map(Self::Header).map_err(wrong);
        }
        if text == "body" || text.starts_with("body.") || text.starts_with("body[") {
            return BodyPath::new(text).map(Self::Body).map_err(|error| error.to_string());
        }
        Err("a cost stands in the answer's body or in a header: write body.usage.total_tokens or header.x-cost".to_owned())
    }
}

/// Says what is wrong with a delivery, if anything is.
pub fn check(delivery: &Delivery) -> Result<(), DeliveryError> {
    check_parts(delivery)?;
    for (field, callback) in
        [("callback", &delivery.callback), ("failure_callback", &delivery.failure_callback)]
    {
        if let Some(callback) = callback {
            check_callback(callback).map_err(|error| DeliveryError {
                field: format!("{field}.{}", error.field),
                ..error
            })?;
        }
    }
    Ok(())
}

/// What is told of a call goes somewhere, and nothing comes of that.
fn check_callback(callback: &Delivery) -> Result<(), DeliveryError> {
    if callback.destination.is_none() {
        return Err(wrong("url", "a callback has an address of its own: say which"));
    }
    if callback.callback.is_some() {
        return Err(wrong("callback", "a callback has none itself: leave it out"));
    }
    if callback.failure_callback.is_some() {
        return Err(wrong("failure_callback", "a callback has none itself: leave it out"));
    }
    if !callback.costs.is_empty() {
        return Err(wrong("costs", "a callback pays at no limit: leave it out"));
    }
    check_parts(callback)
}

fn check_parts(delivery: &Delivery) -> Result<(), DeliveryError> {
    if let Some(url) = &delivery.destination {
        Destination::parse(url).map_err(|error| wrong("url", error))?;
    }
    delivery.method.as_deref().map_or(Ok(()), check_method)?;
    let pairs = delivery.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    headers::collect(pairs)
        .map_err(|error| wrong(&format!("headers.{}", error.header()), error))?;
    if delivery.timeout.is_some_and(|given| !(TIMEOUT_MIN..=TIMEOUT_MAX).contains(&given)) {
        let why = format!("an answer may take from {TIMEOUT_MIN} to {TIMEOUT_MAX}");
        return Err(wrong("timeout", why));
    }
    if let Some(given) = delivery.retries.filter(|given| *given > RETRIES_MAX) {
        return Err(wrong("retries", format!("{given} is over the most, {RETRIES_MAX}")));
    }
    if let Some(text) = &delivery.retry_delay {
        Expression::parse(text).map_err(|error| wrong("retry_delay", error))?;
    }
    check_fatal(&delivery.fatal)?;
    check_costs(delivery)
}

fn check_method(method: &str) -> Result<(), DeliveryError> {
    let is_token =
        method.len() <= METHOD_BYTES_MAX && Method::from_bytes(method.as_bytes()).is_ok();
    if !is_token {
        return Err(wrong("method", "this is no method: write GET, POST, PUT, PATCH or DELETE"));
    }
    // One makes the connection something else, the other sends back the keys that were sent.
    if ["CONNECT", "TRACE"].iter().any(|it| it.eq_ignore_ascii_case(method)) {
        return Err(wrong("method", "CONNECT and TRACE are not sent: write another method"));
    }
    Ok(())
}

fn check_fatal(fatal: &[u16]) -> Result<(), DeliveryError> {
    if fatal.len() > FATAL_MAX {
        let why = format!("there are {}, and {FATAL_MAX} are the most", fatal.len());
        return Err(wrong("fatal", why));
    }
    if fatal.iter().any(|status| !(300..=599).contains(status)) {
        return Err(wrong("fatal", "a status that makes a call dead is from 300 to 599"));
    }
    Ok(())
}

fn check_costs(delivery: &Delivery) -> Result<(), DeliveryError> {
    if delivery.costs.len() > COSTS_MAX {
        let why = format!("there are {}, and {COSTS_MAX} are the most", delivery.costs.len());
        return Err(wrong("costs", why));
    }
    for cost in &delivery.costs {
        LimitName::new(&cost.limit).map_err(|error| wrong("costs", error))?;
        CostSource::new(&cost.from).map_err(|why| wrong("costs", why))?;
    }
    Ok(())
}

fn wrong(field: &str, why: impl Display) -> DeliveryError {
    DeliveryError { field: field.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::CostPath;

    fn to(url: &str) -> Delivery {
        Delivery { destination: Some(url.to_owned()), ..Delivery::default() }
    }

    fn cost(from: &str) -> Vec<CostPath> {
        vec![CostPath { limit: "tokens".to_owned(), from: from.to_owned() }]
    }

    fn field(delivery: &Delivery) -> Option<String> {
        check(delivery).err().map(|error| error.field)
    }

    fn whole() -> Delivery {
        Delivery {
            method: Some("PURGE".to_owned()),
            headers: vec![("x-a".to_owned(), "1".to_owned())],
            timeout: Some(TIMEOUT_MAX),
            retries: Some(RETRIES_MAX),
            retry_delay: Some("pow(2, retried) * 1000".to_owned()),
            fatal: vec![300, 599],
            costs: cost("body.usage.total_tokens"),
            callback: Some(Box::new(to("https://b.example/"))),
            failure_callback: Some(Box::new(to("https://c.example/"))),
            ..to("https://a.example/")
        }
    }

    #[test]
    fn what_can_be_sent_passes_and_so_does_what_is_left_open() {
        assert_eq!(check(&whole()), Ok(()));
        assert_eq!(check(&Delivery::default()), Ok(()));
        assert_eq!(check(&Delivery { timeout: Some(TIMEOUT_MIN), ..whole() }), Ok(()));
    }

    #[test]
    fn each_part_is_named_that_is_wrong() {
        let header = |name: &str| vec![(name.to_owned(), "1".to_owned())];
        let callback = |callback: Delivery| Some(Box::new(callback));
        let over = TIMEOUT_MAX.plus(Span::from_nanos(1));
        for (wrong, named) in [
            (to("ftp://a.example"), "url"),
            (Delivery { method: Some("TRACE".to_owned()), ..whole() }, "method"),
            (Delivery { method: Some("connect".to_owned()), ..whole() }, "method"),
            (Delivery { method: Some("A B".to_owned()), ..whole() }, "method"),
            (Delivery { method: Some(String::new()), ..whole() }, "method"),
            (Delivery { headers: header("Host"), ..whole() }, "headers.host"),
            (Delivery { headers: header("a b"), ..whole() }, "headers.a b"),
            (Delivery { timeout: Some(Span::ZERO), ..whole() }, "timeout"),
            (Delivery { timeout: Some(over), ..whole() }, "timeout"),
            (Delivery { retries: Some(RETRIES_MAX + 1), ..whole() }, "retries"),
            (Delivery { retry_delay: Some("2 +".to_owned()), ..whole() }, "retry_delay"),
            (Delivery { fatal: vec![299], ..whole() }, "fatal"),
            (Delivery { fatal: vec![600], ..whole() }, "fatal"),
            (Delivery { fatal: vec![400; FATAL_MAX + 1], ..whole() }, "fatal"),
            (Delivery { costs: cost("trailer.x"), ..whole() }, "costs"),
            (Delivery { callback: callback(Delivery::default()), ..whole() }, "callback.url"),
            (Delivery { callback: callback(to("x")), ..whole() }, "callback.url"),
            (Delivery { callback: callback(whole()), ..whole() }, "callback.callback"),
        ] {
            assert_eq!(field(&wrong).as_deref(), Some(named), "{wrong:?}");
        }
        let pays = Delivery { costs: cost("body.x"), ..to("https://b.example/") };
        let delivery = Delivery { failure_callback: callback(pays), ..whole() };
        assert_eq!(field(&delivery).as_deref(), Some("failure_callback.costs"));
    }

    #[test]
    fn a_cost_is_read_from_the_body_or_a_header() {
        let name = HeaderName::from_static("x-cost");
        assert_eq!(CostSource::new("header.X-Cost"), Ok(CostSource::Header(name)));
        let path = BodyPath::new("body.usage.total_tokens").unwrap();
        assert_eq!(CostSource::new("body.usage.total_tokens"), Ok(CostSource::Body(path)));
        for wrong in ["", "header.", "header.a b", "usage", "bodyguard", "body.", "headers.x"] {
            assert!(CostSource::new(wrong).is_err(), "{wrong}");
        }
    }
}
