//! Where calls are delivered to, and how, as it travels.

mod headers;
#[cfg(test)]
mod tests;

use super::span::SpanWire;
use super::units::Count;
use crate::http::caller::Caller;
use headers::HeadersWire;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use tollgate::lanes::Payload;
use tollgate::push::delivery::{CostSource, check};
use tollgate::push::destination::Destination;
use tollgate::{CostPath, Delivery, Envelope};

/// What stands in place of a secret.
const HIDDEN: &str = "***";
/// Credentials of an address that are not shown.
const HIDDEN_CREDENTIALS: &str = "://***@";
/// What is said to one who sends back what was shown.
const IS_HIDDEN: &str = "*** stands for what is not shown: write the value itself";

/// Where calls are delivered to: an address, or an object with one and how to send it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(in crate::http) struct DestinationWire(Box<PartsWire>);

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct PartsWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "HeadersWire::is_empty")]
    headers: HeadersWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<Count>,
    /// Milliseconds, as an expression of `retried`.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_delay: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fatal: Vec<Count>,
    /// By limit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    costs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback: Option<DestinationWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_callback: Option<DestinationWire>,
}

/// How much of a destination is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Telling {
    /// All of it: to a server that is to have it.
    All,
    /// All but credentials, and headers that may be keys.
    NoSecrets,
    /// No header but its name: it may say what a body says.
    NoHeaders,
}

/// Which part is wrong, as it stands behind `destination`, and why.
type Wrong = (String, String);

struct DestinationVisitor;

impl<'de> Deserialize<'de> for DestinationWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DestinationVisitor)
    }
}

impl<'de> Visitor<'de> for DestinationVisitor {
    type Value = DestinationWire;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address, as in \"https://api.example.com/v1\", or an object with a `url`")
    }

    fn visit_str<E>(self, url: &str) -> Result<DestinationWire, E> {
        let url = Some(url.to_owned());
        Ok(DestinationWire(Box::new(PartsWire { url, ..PartsWire::default() })))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DestinationWire, A::Error> {
        PartsWire::deserialize(MapAccessDeserializer::new(map)).map(Box::new).map(DestinationWire)
    }
}

impl DestinationWire {
    /// The delivery that is meant, by the names of the store, if it can be made.
    pub(in crate::http) fn delivery(&self, caller: &Caller) -> Result<Delivery, Wrong> {
        self.refuse_hidden("")?;
        let delivery = self.parts(caller)?;
        check(&delivery).map_err(|error| (format!(".{}", error.field), error.why))?;
        Ok(delivery)
    }

    /// A delivery as a caller is told it.
    pub(in crate::http) fn new(delivery: &Delivery, caller: &Caller, telling: Telling) -> Self {
        let nested = |callback: &Option<Box<Delivery>>| {
            callback.as_ref().map(|callback| Self::new(callback, caller, telling))
        };
        let cost = |cost: &CostPath| (caller.shown(&cost.limit).to_owned(), cost.from.clone());
        Self(Box::new(PartsWire {
            url: delivery.destination.as_deref().map(|url| shown_url(url, telling)),
            method: delivery.method.clone(),
            headers: HeadersWire::new(&delivery.headers, telling),
            timeout: delivery.timeout.map(SpanWire),
            retries: delivery.retries.map(Count),
            retry_delay: delivery.retry_delay.clone(),
            fatal: delivery.fatal.iter().map(|status| Count((*status).into())).collect(),
            costs: delivery.costs.iter().map(cost).collect(),
            callback: nested(&delivery.callback),
            failure_callback: nested(&delivery.failure_callback),
        }))
    }

    /// What a call says of its own, as those are told who look at it; `None` if nothing.
    pub(in crate::http) fn looked_at(
        payload: &Payload,
        caller: &Caller,
        hides_headers: bool,
    ) -> Option<Self> {
        // What cannot be read was not written here.
        let delivery = Envelope::of(payload).unwrap_or_default().delivery;
        let telling = if hides_headers { Telling::NoHeaders } else { Telling::NoSecrets };
        (delivery != Delivery::default()).then(|| Self::new(&delivery, caller, telling))
    }

    fn parts(&self, caller: &Caller) -> Result<Delivery, Wrong> {
        let parts = &self.0;
        let nested = |callback: &Option<Self>, field: &str| {
            let delivery = callback.as_ref().map(|callback| callback.parts(caller)).transpose();
            delivery
                .map(|delivery| delivery.map(Box::new))
                .map_err(|(at, why)| (format!(".{field}{at}"), why))
        };
        // One that is too large is none that could be allowed.
        let status = |Count(status): &Count| u16::try_from(*status).unwrap_or(u16::MAX);
        Ok(Delivery {
            destination: parts.url.clone(),
            method: parts.method.clone(),
            headers: parts.headers.pairs(),
            timeout: parts.timeout.map(|timeout| timeout.0),
            retries: parts.retries.map(|retries| retries.0),
            retry_delay: parts.retry_delay.clone(),
            fatal: parts.fatal.iter().map(status).collect(),
            costs: self.costs(caller)?,
            callback: nested(&parts.callback, "callback")?,
            failure_callback: nested(&parts.failure_callback, "failure_callback")?,
        })
    }

    fn costs(&self, caller: &Caller) -> Result<Vec<CostPath>, Wrong> {
        let cost = |(limit, from): (&String, &String)| {
            CostSource::new(from).map_err(|why| (format!(".costs.{limit}"), why))?;
            Ok(CostPath { limit: caller.inner(limit).into_owned(), from: from.clone() })
        };
        self.0.costs.iter().map(cost).collect()
    }

    /// Refuses what was shown in place of a secret: kept, it would be sent.
    fn refuse_hidden(&self, at: &str) -> Result<(), Wrong> {
        let parts = &self.0;
        if parts.url.as_ref().is_some_and(|url| url.contains(HIDDEN_CREDENTIALS) || url == HIDDEN) {
            return Err((format!("{at}.url"), IS_HIDDEN.to_owned()));
        }
        if let Some(name) = parts.headers.hidden() {
            return Err((format!("{at}.headers.{name}"), IS_HIDDEN.to_owned()));
        }
        let callbacks =
            [("callback", &parts.callback), ("failure_callback", &parts.failure_callback)];
        for (field, callback) in callbacks {
            if let Some(callback) = callback {
                callback.refuse_hidden(&format!("{at}.{field}"))?;
            }
        }
        Ok(())
    }
}

/// An address as it was given, without credentials if those are not told.
fn shown_url(url: &str, telling: Telling) -> String {
    match Destination::parse(url) {
        _ if telling == Telling::All => url.to_owned(),
        Ok(destination) if destination.authorization().is_none() => url.to_owned(),
        Ok(destination) => destination.to_string(),
        // Where there is no telling what is in it, nothing is told.
        Err(_) => HIDDEN.to_owned(),
    }
}
