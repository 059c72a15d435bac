//! Envelopes and deliveries as they are kept: JSON, where what is not said is left out. A card stands
//! before it as it is: it is not read where nobody asks for it, and JSON in JSON would be longer.

use super::{CostPath, Delivery, Envelope, TraceParent};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::payload::EnvelopeTooLong;
use tollgate_core::{Span, Timestamp};

/// The first byte where there is a card: no JSON begins with it. Its length follows in two bytes, low
/// one first, then the card, and then the JSON.
const CARD: u8 = 0;

#[derive(Serialize, Deserialize)]
struct EnvelopeRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<Timestamp>,
    #[serde(flatten)]
    delivery: DeliveryRecord,
}

#[derive(Serialize, Deserialize, Default)]
struct DeliveryRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retries: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_delay: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fatal: Vec<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    costs: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    callback: Option<Box<Self>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure_callback: Option<Box<Self>>,
}

pub(super) fn write_envelope(envelope: &Envelope) -> Result<Vec<u8>, Error> {
    let Envelope { trace, accepted, delivery, card } = envelope;
    let trace = trace.as_ref().map(|trace| trace.as_str().to_owned());
    let delivery = DeliveryRecord::new(delivery);
    let record = EnvelopeRecord { trace, accepted: *accepted, delivery };
    let mut bytes = Vec::new();
    if !card.is_empty() {
        let too_long = |_| EnvelopeTooLong { bytes: card.len() };
        let length = u16::try_from(card.len()).map_err(too_long)?;
        bytes.push(CARD);
        bytes.extend(length.to_le_bytes());
        bytes.extend_from_slice(card);
    }
    serde_json::to_writer(&mut bytes, &record).map_err(|error| damaged(&error))?;
    Ok(bytes)
}

pub(super) fn read_envelope(bytes: &[u8]) -> Result<Envelope, Error> {
    let (card, json) = card_of(bytes).ok_or_else(|| damaged(&"its card is cut short"))?;
    let record: EnvelopeRecord = serde_json::from_slice(json).map_err(|error| damaged(&error))?;
    let EnvelopeRecord { trace, accepted, delivery } = record;
    let trace = trace.and_then(|trace| TraceParent::new(&trace));
    Ok(Envelope { trace, accepted, delivery: delivery.delivery(), card: card.into() })
}

/// The card, and what follows; `None` if there is less than it says.
fn card_of(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some((&CARD, rest)) = bytes.split_first() else { return Some((&[], bytes)) };
    let (length, rest) = rest.split_first_chunk()?;
    rest.split_at_checked(u16::from_le_bytes(*length).into())
}

pub(super) fn write_delivery(delivery: &Delivery) -> Result<Box<[u8]>, Error> {
    let record = DeliveryRecord::new(delivery);
    Ok(serde_json::to_vec(&record).map_err(|error| damaged(&error))?.into())
}

pub(super) fn read_delivery(bytes: &[u8]) -> Result<Delivery, Error> {
    let record: DeliveryRecord = serde_json::from_slice(bytes).map_err(|error| damaged(&error))?;
    Ok(record.delivery())
}

impl DeliveryRecord {
    fn new(delivery: &Delivery) -> Self {
        let nested = |callback: &Option<Box<Delivery>>| {
            callback.as_ref().map(|callback| Box::new(Self::new(callback)))
        };
        let cost = |cost: &CostPath| (cost.limit.clone(), cost.from.clone());
        Self {
            destination: delivery.destination.clone(),
            method: delivery.method.clone(),
            headers: delivery.headers.clone(),
            timeout: delivery.timeout,
            retries: delivery.retries,
            retry_delay: delivery.retry_delay.clone(),
            fatal: delivery.fatal.clone(),
            costs: delivery.costs.iter().map(cost).collect(),
            callback: nested(&delivery.callback),
            failure_callback: nested(&delivery.failure_callback),
        }
    }

    fn delivery(self) -> Delivery {
        let nested =
            |callback: Option<Box<Self>>| callback.map(|callback| Box::new(callback.delivery()));
        Delivery {
            destination: self.destination,
            method: self.method,
            headers: self.headers,
            timeout: self.timeout,
            retries: self.retries,
            retry_delay: self.retry_delay,
            fatal: self.fatal,
            costs: self.costs.into_iter().map(|(limit, from)| CostPath { limit, from }).collect(),
            callback: nested(self.callback),
            failure_callback: nested(self.failure_callback),
        }
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    let reason = format!("how a call is delivered cannot be read or written: {error}");
    StoreError::Failed { reason }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::lanes::payload::ENVELOPE_BYTES_MAX;

    #[test]
    fn everything_is_read_as_it_was_written() {
        let callback = Delivery {
            destination: Some("https://b.example/done".to_owned()),
            retries: Some(1),
            ..Delivery::default()
        };
        let delivery = Delivery {
            destination: Some("https://a.example/".to_owned()),
            method: Some("PUT".to_owned()),
            headers: vec![("x-a".to_owned(), "1".to_owned())],
            timeout: Some(Span::from_secs(3)),
            retries: Some(2),
            retry_delay: Some("pow(2, retried) * 100".to_owned()),
            fatal: vec![400, 404],
            costs: vec![CostPath { limit: "tpm".to_owned(), from: "body.usage".to_owned() }],
            callback: Some(Box::new(callback.clone())),
            failure_callback: Some(Box::new(callback)),
        };
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for envelope in [
            Envelope {
                trace: TraceParent::new(trace),
                accepted: None,
                delivery: delivery.clone(),
                card: (*b"{}\0\xff").into(),
            },
            Envelope { card: vec![7; 30_000].into(), ..Envelope::default() },
            Envelope { delivery: delivery.clone(), ..Envelope::default() },
            Envelope { trace: TraceParent::new(trace), ..Envelope::default() },
            Envelope {
                trace: TraceParent::new(trace),
                accepted: Some(Timestamp::MAX),
                ..Envelope::default()
            },
            Envelope::default(),
        ] {
            let payload = envelope.around(b"body").unwrap();
            assert_eq!(payload.body(), b"body");
            assert_eq!(Envelope::of(&payload).unwrap(), envelope);
        }
        assert_eq!(Delivery::from_bytes(&delivery.to_bytes().unwrap()).unwrap(), delivery);
    }

    #[test]
    fn an_envelope_without_a_card_is_kept_as_it_always_was() {
        let kept = br#"{"destination":"https://a.example/","retries":3}"#;
        let destination = Some("https://a.example/".to_owned());
        let delivery = Delivery { destination, retries: Some(3), ..Delivery::default() };
        let envelope = Envelope { delivery, ..Envelope::default() };
        assert_eq!(write_envelope(&envelope).unwrap(), kept);
        assert_eq!(read_envelope(kept).unwrap(), envelope);
    }

    #[test]
    fn a_card_that_is_too_long_or_cut_short_is_refused() {
        let with = |bytes: usize| Envelope { card: vec![7; bytes].into(), ..Envelope::default() };
        for bytes in [ENVELOPE_BYTES_MAX, 70_000] {
            let refused = with(bytes).around(b"").unwrap_err().to_string();
            assert!(refused.contains("may have up to"), "{refused}");
        }
        let whole = write_envelope(&with(9)).unwrap();
        for length in 0..whole.len() {
            assert!(read_envelope(&whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_card_is_not_printed() {
        let envelope = Envelope { card: (*b"secret").into(), ..Envelope::default() };
        let shown = format!("{envelope:?}");
        assert!(shown.contains("card_bytes: 6") && !shown.contains("115"), "{shown}");
    }
}
