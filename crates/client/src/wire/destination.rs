//! Where calls are delivered to, and how, as it travels.

use super::time::SpanWire;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tollgate_engine::{CostPath, Delivery};

/// How calls are delivered. A server hides keys and passwords: what it shows for them is `***`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DestinationWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_delay: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fatal: Vec<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    costs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback: Option<Box<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_callback: Option<Box<Self>>,
}

impl From<Delivery> for DestinationWire {
    fn from(delivery: Delivery) -> Self {
        let nested = |callback: Option<Box<Delivery>>| {
            callback.map(|callback| Box::new(Self::from(*callback)))
        };
        Self {
            url: delivery.destination,
            method: delivery.method,
            headers: by_name(delivery.headers),
            timeout: delivery.timeout.map(SpanWire),
            retries: delivery.retries,
            retry_delay: delivery.retry_delay,
            fatal: delivery.fatal,
            costs: delivery.costs.into_iter().map(|cost| (cost.limit, cost.from)).collect(),
            callback: nested(delivery.callback),
            failure_callback: nested(delivery.failure_callback),
        }
    }
}

/// Several headers of a name are one with a list, in their order.
fn by_name(pairs: Vec<(String, String)>) -> BTreeMap<String, String> {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in pairs {
        let list = headers.entry(name.to_ascii_lowercase());
        list.and_modify(|list| *list = format!("{list}, {value}")).or_insert(value);
    }
    headers
}

impl From<DestinationWire> for Delivery {
    fn from(wire: DestinationWire) -> Self {
        let nested = |callback: Option<Box<DestinationWire>>| {
            callback.map(|callback| Box::new(Self::from(*callback)))
        };
        let cost = |(limit, from)| CostPath { limit, from };
        Self {
            destination: wire.url,
            method: wire.method,
            headers: wire.headers.into_iter().collect(),
            timeout: wire.timeout.map(|timeout| timeout.0),
            retries: wire.retries,
            retry_delay: wire.retry_delay,
            fatal: wire.fatal,
            costs: wire.costs.into_iter().map(cost).collect(),
            callback: nested(wire.callback),
            failure_callback: nested(wire.failure_callback),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tollgate_core::Span;

    /// With something in every part.
    pub(in super::super) fn whole() -> Delivery {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let to = |url: &str| Delivery { destination: Some(url.to_owned()), ..Delivery::default() };
        Delivery {
            method: Some("PUT".to_owned()),
            headers: vec![pair("x-a", "1"), pair("x-b", "2")],
            timeout: Some(Span::from_secs(30)),
            retries: Some(3),
            retry_delay: Some("pow(2, retried) * 1000".to_owned()),
            fatal: vec![400, 404],
            costs: vec![CostPath { limit: "tpm".to_owned(), from: "body.tokens".to_owned() }],
            callback: Some(Box::new(to("https://b.example/"))),
            failure_callback: Some(Box::new(to("https://c.example/"))),
            ..to("https://a.example/")
        }
    }

    #[test]
    fn a_delivery_comes_back_as_it_went() {
        for delivery in [whole(), Delivery::default()] {
            let text = serde_json::to_string(&DestinationWire::from(delivery.clone())).unwrap();
            let wire: DestinationWire = serde_json::from_str(&text).unwrap();
            assert_eq!(Delivery::from(wire), delivery);
        }
    }

    #[test]
    fn several_headers_of_a_name_go_as_a_list() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![pair("x-a", "2"), pair("X-A", "1")];
        let wire = DestinationWire::from(Delivery { headers, ..Delivery::default() });
        let told = serde_json::json!({"headers": {"x-a": "2, 1"}});
        assert_eq!(serde_json::to_value(wire).unwrap(), told);
    }
}
