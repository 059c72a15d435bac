//! Flow control: the keys of a message, and the limits that they stand for.

use super::error::DraftError;
use super::sorted::Sorted;
use tollgate::lanes::Definition;
use tollgate::{Limit, Span};

/// Most keys of a message: a call owes at few limits, and what it owes is kept with it.
pub(in crate::qstash) const KEYS_MAX: usize = 8;
/// Longest key: as long as a limit's name can be.
pub(in crate::qstash) const KEY_BYTES_MAX: usize = 512;
/// Longest period.
pub(in crate::qstash) const PERIOD_MAX: Span = Span::from_days(7);
/// The period, unless it is said.
pub(in crate::qstash) const PERIOD_DEFAULT: Span = Span::from_secs(1);

const KEY: &str = "Upstash-Flow-Control-Key";
const VALUE: &str = "Upstash-Flow-Control-Value";

/// A flow-control key with what a message says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::qstash) struct KeyDraft {
    /// Its name.
    pub(in crate::qstash) key: String,
    /// How many calls at a time.
    pub(in crate::qstash) parallelism: Option<u64>,
    /// How many calls start in a period.
    pub(in crate::qstash) rate: Option<u64>,
    /// The period, as far as it was said.
    pub(in crate::qstash) period: Option<Span>,
    /// How much this message owes.
    pub(in crate::qstash) weight: u64,
    /// An answer that says to come later closes the key, and not the message alone.
    pub(in crate::qstash) has_feedback: bool,
}

impl KeyDraft {
    /// A key with what is said of it, part by part.
    pub(in crate::qstash) fn of_parts<'a>(
        key: &str,
        parts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, DraftError> {
        check_key(key)?;
        let mut draft = Self {
            key: key.to_owned(),
            parallelism: None,
            rate: None,
            period: None,
            weight: 1,
            has_feedback: false,
        };
        for (name, value) in parts {
            set(&mut draft, name, value)?;
        }
        if draft.period.is_some() && draft.limit().is_none() {
            return Err(DraftError::FlowControlValue);
        }
        check_limit(&draft)?;
        Ok(draft)
    }

    /// The limit that is meant: the rate before the parallelism. `None` if nothing is said of it: it is
    /// as it is.
    pub(in crate::qstash) fn limit(&self) -> Option<Limit> {
        let rate = self.rate.map(|rate| Limit::fixed_window(rate, self.window()));
        let parallelism = self.parallelism.map(Limit::concurrency);
        match (rate, parallelism) {
            (Some(rate), Some(parallelism)) => Some(rate.and(parallelism)),
            (rate, parallelism) => rate.or(parallelism),
        }
    }

    /// The period that counts.
    pub(in crate::qstash) fn window(&self) -> Span {
        self.period.unwrap_or(PERIOD_DEFAULT)
    }
}

/// The keys that headers name, each with the value at its place.
pub(super) fn read(sorted: &Sorted<'_>) -> Result<Vec<KeyDraft>, DraftError> {
    let keys = sorted.all("flow-control-key");
    let values = sorted.all("flow-control-value");
    if keys.len() > KEYS_MAX {
        return Err(DraftError::TooMany { header: KEY, most: KEYS_MAX, given: keys.len() });
    }
    if values.len() > keys.len() && values.iter().any(|value| !value.is_empty()) {
        return Err(DraftError::FlowControlPairs { keys: keys.len(), values: values.len() });
    }
    let values = values.iter().copied().chain(std::iter::repeat(""));
    let mut drafts: Vec<KeyDraft> = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().zip(values) {
        if drafts.iter().any(|draft| draft.key == *key) {
            return Err(DraftError::value(KEY, key, "another: each key is named once"));
        }
        drafts.push(KeyDraft::of_parts(key, parts(value)?.into_iter())?);
    }
    Ok(drafts)
}

/// Whether a text may be a key.
pub(in crate::qstash) fn check_key(key: &str) -> Result<(), DraftError> {
    if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Err(DraftError::Length { header: KEY, most: KEY_BYTES_MAX, bytes: key.len() });
    }
    if key.chars().any(char::is_control) {
        return Err(DraftError::value(KEY, key, "without control characters"));
    }
    // The one stands for all that have no key, the other for limits of the server's own.
    if key == "$" || key.starts_with("$ ") || key.starts_with("tollgate:") {
        let wanted = "another: $ and what begins with \"$ \" or tollgate: is the server's own";
        return Err(DraftError::value(KEY, key, wanted));
    }
    Ok(())
}

/// The parts of a value, by their names.
fn parts(text: &str) -> Result<Vec<(&str, &str)>, DraftError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let part = |part| {
        let (name, value) = str::split_once(part, '=').ok_or(DraftError::FlowControlValue)?;
        Ok((name.trim(), value.trim()))
    };
    text.split(',').map(part).collect()
}

fn set(draft: &mut KeyDraft, name: &str, value: &str) -> Result<(), DraftError> {
    let number = || match value.parse::<u64>() {
        Ok(number @ 1..) if value.starts_with(|c: char| c.is_ascii_digit()) => Ok(number),
        Ok(0) => Err(DraftError::Wrong {
            header: VALUE,
            why: format!(
                "{name} is 0, and nothing would ever pass: give at least 1, or pause the key"
            ),
        }),
        _ => Err(DraftError::FlowControlValue),
    };
    match name.to_ascii_lowercase().as_str() {
        "parallelism" => draft.parallelism = Some(number()?),
        "rate" => draft.rate = Some(number()?),
        "weight" => draft.weight = number()?,
        "period" => draft.period = Some(read_period(value)?),
        "feedback" if value.eq_ignore_ascii_case("true") => draft.has_feedback = true,
        "feedback" if value.eq_ignore_ascii_case("false") => draft.has_feedback = false,
        _ => return Err(DraftError::FlowControlValue),
    }
    Ok(())
}

fn read_period(text: &str) -> Result<Span, DraftError> {
    let wrong = |why: String| DraftError::Wrong { header: VALUE, why };
    let period: Span = text.parse().map_err(|error| wrong(format!("period: {error}")))?;
    if period.is_zero() || period > PERIOD_MAX {
        return Err(wrong(format!("period is {period}, and it may be over 0s and up to 1w")));
    }
    Ok(period)
}

/// What no limit can be is found here, and not when it is made.
fn check_limit(draft: &KeyDraft) -> Result<(), DraftError> {
    let Some(limit) = draft.limit() else { return Ok(()) };
    let wrong = |why: String| DraftError::Wrong { header: VALUE, why };
    let definition = Definition::new(limit).map_err(|error| wrong(error.to_string()))?;
    if draft.weight > definition.capacity() {
        let (weight, capacity) = (draft.weight, definition.capacity());
        return Err(wrong(format!(
            "weight is {weight}, and {capacity} is the most that can ever pass"
        )));
    }
    Ok(())
}
