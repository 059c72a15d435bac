//! A message as it was asked for: headers and a destination, read and checked, and nothing done yet.

mod error;
pub(super) mod incoming;
pub(super) mod keys;
mod redact;
mod sorted;
#[cfg(test)]
mod tests;

pub(super) use error::DraftError;
pub(super) use keys::KeyDraft;
pub(super) use redact::Redact;
pub(super) use sorted::Pair;

use super::destination::{Target, check_name};
use super::digest::sha256_hex_of;
use sorted::Sorted;
use std::fmt;
use tollgate::push::delivery::{RETRIES_MAX, check};
use tollgate::push::destination::Destination;
use tollgate::{Cron, Delivery, Priority, Span, Timestamp};

/// How often a message is tried again, unless it says so.
pub(super) const RETRIES_DEFAULT: u32 = 3;
/// How long it waits before that, unless it says so: 12 seconds, two and a half minutes, half an hour, six
/// hours, and then a day each time.
pub(super) const RETRY_DELAY_DEFAULT: &str = "min(86400, exp(2.5 * (retried + 1))) * 1000";
/// Most bytes of headers that are sent on, with those of callbacks: what else goes with a call needs
/// room beside them.
pub(super) const HEADER_BYTES_MAX: usize = 16 << 10;
/// Most labels.
pub(super) const LABELS_MAX: usize = 16;
/// Longest label.
pub(super) const LABEL_BYTES_MAX: usize = 256;
/// Longest id to know a message again by.
pub(super) const DEDUP_BYTES_MAX: usize = 512;
/// Longest delay: ten years, and else a mistake of units.
pub(super) const DELAY_MAX: Span = Span::from_days(3_660);
/// The highest priority of a message: what is told of messages comes first.
pub(super) const PRIORITY_MAX: u64 = 8;
/// What is sent, and what is not.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A message as it was asked for.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Draft {
    /// Where it goes.
    pub(super) target: Target,
    /// How it is sent. Without a destination if that is a group; of callbacks, their addresses alone.
    pub(super) delivery: Delivery,
    /// How the callback is sent, in the words of a message.
    pub(super) callback_headers: Vec<Pair>,
    /// How the failure callback is sent, in the words of a message.
    pub(super) failure_callback_headers: Vec<Pair>,
    /// When it is sent.
    pub(super) start: Start,
    /// How it is known again.
    pub(super) dedup: Option<Dedup>,
    /// At which limits it waits.
    pub(super) keys: Vec<KeyDraft>,
    /// What it can be found by.
    pub(super) labels: Vec<String>,
    /// What of it is not shown.
    pub(super) redact: Redact,
    /// How soon it goes among those of its lane.
    pub(super) priority: Priority,
    /// When it is sent again and again.
    pub(super) cron: Option<CronDraft>,
    /// What that is called.
    pub(super) schedule: Option<String>,
    /// The queue it goes through, as far as headers say.
    pub(super) queue: Option<String>,
}

/// When a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// As soon as it can be.
    Now,
    /// So long after it was accepted.
    After(Span),
    /// Not before this instant.
    At(Timestamp),
}

/// How a message is known again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dedup {
    /// By a name that its sender gave it.
    Id(String),
    /// By what it says, and where it goes.
    Content,
}

/// When a message is sent again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CronDraft {
    /// As it was written.
    pub(super) text: String,
    /// What it means, in its zone.
    pub(super) cron: Cron,
}

impl fmt::Debug for Draft {
    /// Headers hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Draft {
    /// The message that headers describe. Of a header that is there several times, the first counts.
    pub(super) fn read(target: Target, headers: &[Pair]) -> Result<Self, DraftError> {
        Self::read_with(target, headers, RETRIES_DEFAULT)
    }

    /// The message that tells of another, from that one's words for it. It is tried again as often as
    /// the other, unless those say so.
    pub(super) fn of_callback(
        url: &str,
        headers: &[Pair],
        retries: u32,
    ) -> Result<Self, DraftError> {
        let mut headers = headers.to_vec();
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        Self::read_with(Target::Url(url.to_owned()), &headers, retries)
    }

    fn read_with(target: Target, headers: &[Pair], retries: u32) -> Result<Self, DraftError> {
        let sorted = Sorted::new(headers)?;
        let bytes = sorted.bytes();
        if bytes > HEADER_BYTES_MAX {
            return Err(DraftError::HeaderBytes { most: HEADER_BYTES_MAX, bytes });
        }
        let mut draft = Self {
            delivery: read_delivery(&target, &sorted, retries)?,
            target,
            callback_headers: Vec::new(),
            failure_callback_headers: Vec::new(),
            start: read_start(&sorted)?,
            dedup: read_dedup(&sorted)?,
            keys: keys::read(&sorted)?,
            labels: read_labels(&sorted)?,
            redact: redact::read(sorted.setting("redact-fields"))?,
            priority: read_priority(&sorted)?,
            cron: sorted.setting("cron").map(read_cron).transpose()?,
            schedule: read_name(&sorted, "schedule-id", "schedule")?,
            queue: read_name(&sorted, "queue-name", "queue")?,
        };
        check(&draft.delivery)?;
        if let Some(callback) = &draft.delivery.callback {
            draft.callback_headers = sorted.callback;
            check_callback("Upstash-Callback", callback, &draft.callback_headers)?;
        }
        if let Some(callback) = &draft.delivery.failure_callback {
            draft.failure_callback_headers = sorted.failure_callback;
            check_callback("Upstash-Failure-Callback", callback, &draft.failure_callback_headers)?;
        }
        Ok(draft)
    }

    /// The same to one address.
    pub(super) fn to(&self, url: &str) -> Self {
        let target = Target::Url(url.to_owned());
        let delivery = Delivery { destination: Some(url.to_owned()), ..self.delivery.clone() };
        Self { target, delivery, ..self.clone() }
    }

    /// How often it is tried again.
    pub(super) fn retries(&self) -> u32 {
        self.delivery.retries.unwrap_or(RETRIES_DEFAULT)
    }

    /// From when on it is sent, if it was accepted then.
    pub(super) fn not_before(&self, accepted: Timestamp) -> Timestamp {
        match self.start {
            Start::Now => accepted,
            Start::After(delay) => accepted.plus(delay),
            Start::At(instant) => instant.max(accepted),
        }
    }

    /// What it is known again by when it goes to this address with this body.
    pub(super) fn dedup_key(&self, destination: &str, body: &[u8]) -> Option<String> {
        match self.dedup.as_ref()? {
            Dedup::Id(id) => Some(id.clone()),
            Dedup::Content => Some(self.content_key(destination, body)),
        }
    }

    fn content_key(&self, destination: &str, body: &[u8]) -> String {
        let mut headers: Vec<(String, &str)> = self
            .delivery
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
            .collect();
        // In which order a client writes them means nothing.
        headers.sort();
        let pairs = headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
        sha256_hex_of([destination.as_bytes(), body].into_iter().chain(pairs))
    }
}

fn read_delivery(
    target: &Target,
    sorted: &Sorted<'_>,
    retries: u32,
) -> Result<Delivery, DraftError> {
    Ok(Delivery {
        destination: match target {
            Target::Url(url) => Some(url.clone()),
            Target::Group(_) => None,
        },
        method: Some(read_method(sorted)?),
        headers: sorted.forwarded.clone(),
        timeout: read_span(sorted, "timeout", "Upstash-Timeout")?,
        retries: Some(read_retries(sorted)?.unwrap_or(retries)),
        retry_delay: sorted.setting("retry-delay").map(str::to_owned),
        callback: read_callback(sorted, "callback", "Upstash-Callback")?,
        failure_callback: read_callback(sorted, "failure-callback", "Upstash-Failure-Callback")?,
        ..Delivery::default()
    })
}

fn read_retries(sorted: &Sorted<'_>) -> Result<Option<u32>, DraftError> {
    let retries = read_number(sorted, "retries", "Upstash-Retries", RETRIES_MAX.into())?;
    Ok(retries.and_then(|retries| u32::try_from(retries).ok()))
}

fn read_method(sorted: &Sorted<'_>) -> Result<String, DraftError> {
    let given = sorted.setting("method").unwrap_or("POST");
    let known = METHODS.iter().find(|method| method.eq_ignore_ascii_case(given));
    known.map(|method| (*method).to_owned()).ok_or_else(|| {
        DraftError::value("Upstash-Method", given, "GET, POST, PUT, PATCH or DELETE")
    })
}

fn read_callback(
    sorted: &Sorted<'_>,
    name: &str,
    header: &'static str,
) -> Result<Option<Box<Delivery>>, DraftError> {
    let Some(url) = sorted.setting(name) else { return Ok(None) };
    Destination::parse(url)
        .map_err(|error| DraftError::Wrong { header, why: error.to_string() })?;
    Ok(Some(Box::new(Delivery { destination: Some(url.to_owned()), ..Delivery::default() })))
}

/// What is wrong with a callback is said now, and not when it is to be sent.
fn check_callback(
    header: &'static str,
    callback: &Delivery,
    headers: &[Pair],
) -> Result<(), DraftError> {
    let url = callback.destination.as_deref().unwrap_or_default();
    let wrong = |source| DraftError::Callback { header, source: Box::new(source) };
    let draft = Draft::of_callback(url, headers, 0).map_err(wrong)?;
    // What it would wait at may be gone by then, and nobody would be told.
    let bare = draft.keys.iter().find(|key| key.limit().is_none());
    bare.map_or(Ok(()), |key| {
        let wanted = "with a value: rate=…, parallelism=…, or both";
        Err(wrong(DraftError::value("Upstash-Flow-Control-Key", &key.key, wanted)))
    })
}

fn read_start(sorted: &Sorted<'_>) -> Result<Start, DraftError> {
    let header = "Upstash-Not-Before";
    // The most is checked below, where the reason is known.
    if let Some(seconds) = read_number(sorted, "not-before", header, u64::MAX)? {
        let nanos = seconds.checked_mul(NANOS_PER_SECOND).ok_or_else(|| {
            DraftError::value(
                header,
                &seconds.to_string(),
                "a time in unix seconds, not milliseconds",
            )
        })?;
        return Ok(Start::At(Timestamp::from_nanos(nanos)));
    }
    match read_span(sorted, "delay", "Upstash-Delay")? {
        None => Ok(Start::Now),
        Some(delay) if delay > DELAY_MAX => {
            Err(DraftError::value("Upstash-Delay", &delay.to_string(), "up to ten years"))
        }
        Some(delay) if delay.is_zero() => Ok(Start::Now),
        Some(delay) => Ok(Start::After(delay)),
    }
}

fn read_dedup(sorted: &Sorted<'_>) -> Result<Option<Dedup>, DraftError> {
    if let Some(id) = sorted.setting("deduplication-id") {
        check_length("Upstash-Deduplication-Id", id, DEDUP_BYTES_MAX)?;
        if id.chars().any(char::is_control) {
            let wanted = "without control characters";
            return Err(DraftError::value("Upstash-Deduplication-Id", id, wanted));
        }
        return Ok(Some(Dedup::Id(id.to_owned())));
    }
    let by_content = "Upstash-Content-Based-Deduplication";
    let is_set = sorted.is_set("content-based-deduplication", by_content)?;
    Ok(is_set.then_some(Dedup::Content))
}

fn read_labels(sorted: &Sorted<'_>) -> Result<Vec<String>, DraftError> {
    let header = "Upstash-Label";
    let mut labels: Vec<String> = Vec::new();
    let given = sorted.all("label").iter().flat_map(|list| list.split(',')).map(str::trim);
    for label in given.filter(|label| !label.is_empty()) {
        check_length(header, label, LABEL_BYTES_MAX)?;
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    if labels.len() > LABELS_MAX {
        return Err(DraftError::TooMany { header, most: LABELS_MAX, given: labels.len() });
    }
    Ok(labels)
}

fn read_priority(sorted: &Sorted<'_>) -> Result<Priority, DraftError> {
    let header = "Upstash-Priority";
    let level = read_number(sorted, "priority", header, PRIORITY_MAX)?.unwrap_or_default();
    Priority::new(level).map_err(|error| DraftError::Wrong { header, why: error.to_string() })
}

fn read_cron(text: &str) -> Result<CronDraft, DraftError> {
    let (zone, expression) = match text.strip_prefix("CRON_TZ=").or(text.strip_prefix("TZ=")) {
        Some(rest) => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        None => ("UTC", text),
    };
    let wrong = |why: String| DraftError::Wrong { header: "Upstash-Cron", why };
    let cron = Cron::new(expression, zone).map_err(|error| wrong(error.to_string()))?;
    Ok(CronDraft { text: text.to_owned(), cron })
}

fn read_name(
    sorted: &Sorted<'_>,
    setting: &str,
    kind: &'static str,
) -> Result<Option<String>, DraftError> {
    let Some(name) = sorted.setting(setting) else { return Ok(None) };
    check_name(kind, name)?;
    Ok(Some(name.to_owned()))
}

fn read_span(
    sorted: &Sorted<'_>,
    name: &str,
    header: &'static str,
) -> Result<Option<Span>, DraftError> {
    let wrong = |error: tollgate::SpanError| DraftError::Wrong { header, why: error.to_string() };
    sorted.setting(name).map(|text| text.parse().map_err(wrong)).transpose()
}

fn read_number(
    sorted: &Sorted<'_>,
    name: &str,
    header: &'static str,
    most: u64,
) -> Result<Option<u64>, DraftError> {
    let Some(text) = sorted.setting(name) else { return Ok(None) };
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(number) if is_plain && number <= most => Ok(Some(number)),
        _ if most == u64::MAX => Err(DraftError::value(header, text, "a whole number, 0 or more")),
        _ => Err(DraftError::value(header, text, format!("a whole number from 0 to {most}"))),
    }
}

fn check_length(header: &'static str, text: &str, most: usize) -> Result<(), DraftError> {
    if (1..=most).contains(&text.len()) {
        return Ok(());
    }
    Err(DraftError::Length { header, most, bytes: text.len() })
}
