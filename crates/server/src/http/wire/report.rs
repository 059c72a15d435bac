//! What there is to say about an attempt, as it travels.

use crate::http::App;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;

/// What was said about an attempt: as JSON if it is JSON, and nothing if nothing was.
#[derive(Debug, Default, Serialize)]
pub(super) struct ReportWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report_base64: Option<String>,
    /// How long it is, in place of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    report_bytes: Option<usize>,
}

impl ReportWire {
    /// What those are told who look: all, or how long it is.
    pub(super) fn looked_at(bytes: &[u8], app: &App) -> Self {
        match bytes {
            [] => Self::default(),
            // An answer may hold what the body of a call did.
            _ if app.redact_bodies => Self { report_bytes: Some(bytes.len()), ..Self::default() },
            _ => Self::new(bytes),
        }
    }

    fn new(bytes: &[u8]) -> Self {
        // With anything around it, it would not come out as it went in.
        match serde_json::from_slice::<&RawValue>(bytes) {
            Ok(json) if json.get().len() == bytes.len() => {
                Self { report: Some(json.to_owned()), ..Self::default() }
            }
            _ => Self { report_base64: Some(STANDARD.encode(bytes)), ..Self::default() },
        }
    }
}

/// The bytes that are kept of a report; or why there can be none.
pub(super) fn bytes(json: Option<&RawValue>, base64: Option<&str>) -> Result<Box<[u8]>, String> {
    match (json, base64) {
        (Some(_), Some(_)) => Err("there is one report: leave out `report`, or this".to_owned()),
        (Some(json), None) => Ok(json.get().as_bytes().into()),
        (None, Some(text)) => match STANDARD.decode(text) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => Err(format!("this is not base64: {error}")),
        },
        (None, None) => Ok([].into()),
    }
}
