//! Headers as they come: with a request, or in an item of a batch.

use super::error::DraftError;
use super::sorted::Pair;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Most items of a batch: each may become many calls, and all are one act.
pub(in crate::qstash) const BATCH_MAX: usize = 1_000;

/// One item of a batch.
pub(in crate::qstash) struct BatchItem {
    /// Where it goes: a url, or the name of a group.
    pub(in crate::qstash) destination: String,
    /// Its headers.
    pub(in crate::qstash) headers: Vec<Pair>,
    /// What is sent.
    pub(in crate::qstash) body: String,
    /// The queue it goes through.
    pub(in crate::qstash) queue: Option<String>,
}

/// Python sends nulls for what is absent.
#[derive(Deserialize)]
struct ItemWire {
    destination: Option<String>,
    headers: Option<Map<String, Value>>,
    body: Option<String>,
    queue: Option<String>,
}

/// The headers of a request. Bytes that are no UTF-8 are read as Latin-1: so Python writes them.
pub(in crate::qstash) fn request_headers(headers: &HeaderMap) -> Vec<Pair> {
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    };
    headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
}

/// The items of a batch.
pub(in crate::qstash) fn read_batch(body: &[u8]) -> Result<Vec<BatchItem>, DraftError> {
    let wires: Vec<ItemWire> = serde_json::from_slice(body).map_err(|error| {
        DraftError::Batch(format!("a batch is an array of messages as JSON: {error}"))
    })?;
    if wires.len() > BATCH_MAX {
        return Err(DraftError::TooMany { header: "a batch", most: BATCH_MAX, given: wires.len() });
    }
    wires.into_iter().enumerate().map(|(at, wire)| read_item(at, wire)).collect()
}

fn read_item(at: usize, wire: ItemWire) -> Result<BatchItem, DraftError> {
    let wrong = |why: &str| DraftError::Batch(format!("message {at} of the batch: {why}"));
    let destination = wire.destination.ok_or_else(|| wrong("it has no destination"))?;
    let mut headers = Vec::new();
    for (name, value) in wire.headers.unwrap_or_default() {
        let values = texts(value)
            .ok_or_else(|| wrong("the value of a header is a text, or a list of texts"))?;
        headers.extend(values.into_iter().map(|value| (name.clone(), value)));
    }
    let queue = wire.queue.filter(|queue| !queue.is_empty());
    Ok(BatchItem { destination, headers, body: wire.body.unwrap_or_default(), queue })
}

fn texts(value: Value) -> Option<Vec<String>> {
    Some(match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text],
        Value::Bool(_) | Value::Number(_) => vec![value.to_string()],
        Value::Array(values) => {
            let text = |value| if let Value::String(text) = value { Some(text) } else { None };
            return values.into_iter().map(text).collect();
        }
        Value::Object(_) => return None,
    })
}
