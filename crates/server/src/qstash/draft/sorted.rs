//! The headers of a request, sorted by what they are for.

use super::error::DraftError;
use std::collections::BTreeMap;
use tollgate::push::headers::{HeadersError, collect};

/// A header's name and value.
pub(in crate::qstash) type Pair = (String, String);

/// How names of settings begin.
const SETTING: &str = "upstash-";
/// How names begin of what is sent on.
const FORWARD: &str = "forward-";
/// How names begin of what is for callbacks.
const CALLBACK: &str = "callback-";
/// How names begin of what is for failure callbacks.
const FAILURE_CALLBACK: &str = "failure-callback-";
/// As it is sent on.
const CONTENT_TYPE: &str = "content-type";

/// What a callback can be told that is no header of its own.
const CALLBACK_SETTINGS: [&str; 11] = [
    "method",
    "timeout",
    "retries",
    "retry-delay",
    "delay",
    "not-before",
    "flow-control-key",
    "flow-control-value",
    "label",
    "redact-fields",
    "priority",
];

/// How names begin of what SDKs say of themselves, or to a service that is not here.
const UNHEARD: [&str; 3] = ["telemetry-", "workflow-", "feature-set"];

/// Headers by what they are for. Values are trimmed, and what is empty is not there.
#[derive(Default)]
pub(super) struct Sorted<'a> {
    /// Settings by their names in lower case, without what all begin with.
    settings: BTreeMap<String, Vec<&'a str>>,
    /// What is sent on.
    pub(super) forwarded: Vec<Pair>,
    /// Settings and headers of the callback, named as if it were a message.
    pub(super) callback: Vec<Pair>,
    /// The same for the failure callback.
    pub(super) failure_callback: Vec<Pair>,
}

impl<'a> Sorted<'a> {
    /// Sorts headers, in their order.
    pub(super) fn new(headers: &'a [Pair]) -> Result<Self, DraftError> {
        let mut sorted = Self::default();
        let mut content_type = None;
        let mut plain = Vec::new();
        for (name, value) in headers {
            let value = value.trim();
            match after(name, SETTING) {
                Some(setting) => sorted.take(setting, value),
                None if name.eq_ignore_ascii_case(CONTENT_TYPE) => {
                    content_type = content_type.or(Some(value));
                }
                None => plain.push((name.as_str(), value)),
            }
        }
        if sorted.is_set("header-forward", "Upstash-Header-Forward")? {
            sorted.forward_plain(plain);
        }
        sorted.forward_content_type(content_type);
        Ok(sorted)
    }

    /// A setting, by its name in lower case without what all begin with. Of several the first counts.
    pub(super) fn setting(&self, name: &str) -> Option<&'a str> {
        self.all(name).iter().copied().find(|value| !value.is_empty())
    }

    /// All that a setting says, in order, with what is empty.
    pub(super) fn all(&self, name: &str) -> &[&'a str] {
        self.settings.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether a setting says yes. Python writes its booleans with a capital letter.
    pub(super) fn is_set(&self, name: &str, header: &'static str) -> Result<bool, DraftError> {
        match self.setting(name) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(DraftError::value(header, text, "true or false")),
        }
    }

    /// Bytes of all that is sent on.
    pub(super) fn bytes(&self) -> usize {
        let lists = [&self.forwarded, &self.callback, &self.failure_callback];
        lists.into_iter().flatten().map(|(name, value)| name.len() + value.len()).sum()
    }

    fn take(&mut self, setting: &str, value: &'a str) {
        if let Some(name) = after(setting, FORWARD) {
            self.forwarded.push((name.to_owned(), value.to_owned()));
        } else if let Some(setting) = after(setting, FAILURE_CALLBACK) {
            self.failure_callback.extend(callback_pair(setting, value));
        } else if let Some(setting) = after(setting, CALLBACK) {
            self.callback.extend(callback_pair(setting, value));
        } else {
            self.settings.entry(setting.to_ascii_lowercase()).or_default().push(value);
        }
    }

    /// What a webhook's sender sent. What is the connection's stays here, and so does the token.
    fn forward_plain(&mut self, plain: Vec<(&str, &str)>) {
        for (name, value) in plain {
            let is_ours = matches!(
                collect([(name, value)]),
                Err(HeadersError::Connection { .. } | HeadersError::Own { .. })
            );
            if !is_ours && !name.eq_ignore_ascii_case("authorization") {
                self.forwarded.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// One that is sent on by name says it more plainly than the request's.
    fn forward_content_type(&mut self, content_type: Option<&str>) {
        let is_there =
            self.forwarded.iter().any(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE));
        if let Some(value) = content_type.filter(|value| !is_there && !value.is_empty()) {
            self.forwarded.insert(0, (CONTENT_TYPE.to_owned(), value.to_owned()));
        }
    }
}

/// What is said of a callback, in the words of a message. Python says headers without `Forward-`.
fn callback_pair(setting: &str, value: &str) -> Option<Pair> {
    let lower = setting.to_ascii_lowercase();
    if UNHEARD.iter().any(|start| lower.starts_with(start)) {
        return None;
    }
    let name = if lower == CONTENT_TYPE {
        setting.to_owned()
    } else if CALLBACK_SETTINGS.contains(&lower.as_str()) || lower.starts_with(FORWARD) {
        format!("Upstash-{setting}")
    } else {
        format!("Upstash-Forward-{setting}")
    };
    Some((name, value.to_owned()))
}

/// What stands after a beginning, in whichever case that is, if anything does.
fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(start.len())?;
    (head.eq_ignore_ascii_case(start) && !rest.is_empty()).then_some(rest)
}
