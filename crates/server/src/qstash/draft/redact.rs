//! What of a message is not shown, though it is sent.

use super::error::DraftError;

/// Most headers that are named: as many as a call can have.
const NAMES_MAX: usize = 64;
/// Bytes of all their names: they are kept with the call.
const NAMES_BYTES_MAX: usize = 2 << 10;

const HEADER: &str = "Upstash-Redact-Fields";

/// What of a message is not shown, though it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::qstash) struct Redact {
    /// Its body.
    pub(in crate::qstash) has_body: bool,
    /// All its headers.
    pub(in crate::qstash) has_headers: bool,
    /// These headers, in lower case.
    pub(in crate::qstash) names: Vec<String>,
}

impl Redact {
    /// Whether a header is not shown.
    pub(in crate::qstash) fn hides(&self, header: &str) -> bool {
        self.has_headers || self.names.iter().any(|name| name.eq_ignore_ascii_case(header))
    }
}

/// Reads a list of `body`, `header` and `header[Name]`.
pub(super) fn read(text: Option<&str>) -> Result<Redact, DraftError> {
    let mut redact = Redact::default();
    for field in text.unwrap_or_default().split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let lower = field.to_ascii_lowercase();
        match lower.as_str() {
            "body" => redact.has_body = true,
            "header" | "headers" => redact.has_headers = true,
            _ => redact.names.push(header_name(&lower).ok_or_else(|| wrong(field))?.to_owned()),
        }
    }
    let given = redact.names.len();
    if given > NAMES_MAX {
        return Err(DraftError::TooMany { header: HEADER, most: NAMES_MAX, given });
    }
    let bytes = redact.names.iter().map(String::len).sum();
    if bytes > NAMES_BYTES_MAX {
        return Err(DraftError::Length { header: HEADER, most: NAMES_BYTES_MAX, bytes });
    }
    Ok(redact)
}

fn header_name(field: &str) -> Option<&str> {
    let inner = field.strip_prefix("headers[").or_else(|| field.strip_prefix("header["))?;
    inner.strip_suffix(']').map(str::trim).filter(|name| !name.is_empty())
}

fn wrong(field: &str) -> DraftError {
    DraftError::value(HEADER, field, "body, header or header[Name], with commas between")
}
