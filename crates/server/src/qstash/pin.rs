//! What an operator pins at a flow-control key: the parameters of a query.

use super::draft::{DraftError, KeyDraft};
use super::error::Fault;
use super::percent;

/// What a query may say besides.
const TOKEN: &str = "qstash_token";

/// Which of a key's limits follow the messages again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Unpin {
    /// How many calls at a time.
    pub(super) has_parallelism: bool,
    /// How many calls start in a period.
    pub(super) has_rate: bool,
}

/// Why a query pins nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PinError {
    /// A parameter that is not known.
    #[error("unknown query parameter {name:?}: use parallelism, rate or period")]
    Unknown {
        /// Its first characters.
        name: String,
    },
    /// A value that it cannot have.
    #[error("query parameter {name} should be true or false")]
    Value {
        /// Which.
        name: String,
    },
    /// Neither of both.
    #[error("there is nothing to do: say parallelism or rate, or both")]
    Nothing,
    /// A limit that is none.
    #[error(transparent)]
    Limit(#[from] DraftError),
}

impl From<PinError> for Fault {
    fn from(error: PinError) -> Self {
        Self::invalid(error)
    }
}

/// The key with what is to be pinned of it, in the words of a message.
pub(super) fn read_pin(key: &str, query: &str) -> Result<KeyDraft, PinError> {
    let parts = parameters(query, &["parallelism", "rate", "period"])?;
    if !parts.iter().any(|(name, _)| ["parallelism", "rate"].contains(&name.as_str())) {
        return Err(PinError::Nothing);
    }
    let parts = parts.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(KeyDraft::of_parts(key, parts)?)
}

/// What is to be unpinned.
pub(super) fn read_unpin(query: &str) -> Result<Unpin, PinError> {
    let mut unpin = Unpin::default();
    for (name, value) in parameters(query, &["parallelism", "rate"])? {
        let is_meant = match value.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => return Err(PinError::Value { name }),
        };
        let part = if name == "rate" { &mut unpin.has_rate } else { &mut unpin.has_parallelism };
        *part = is_meant;
    }
    if unpin == Unpin::default() { Err(PinError::Nothing) } else { Ok(unpin) }
}

fn parameters(query: &str, known: &[&str]) -> Result<Vec<(String, String)>, PinError> {
    let mut parts = Vec::new();
    for (_, name, value) in percent::parameters(query).filter(|(whole, ..)| !whole.is_empty()) {
        if name == TOKEN {
            continue;
        }
        if !known.contains(&name) {
            return Err(PinError::Unknown { name: name.chars().take(64).collect() });
        }
        let value = percent::decode_parameter(value).unwrap_or_default();
        parts.push((name.to_owned(), value));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::{Limit, Span};

    #[test]
    fn a_pin_is_a_limit_in_the_words_of_a_message() {
        let pin = read_pin("k", "parallelism=2&rate=10&period=60&qstash_token=x").unwrap();
        let limit = Limit::fixed_window(10, Span::from_secs(60)).and(Limit::concurrency(2));
        assert_eq!((pin.key.as_str(), pin.limit()), ("k", Some(limit)));
        assert_eq!(read_pin("k", "parallelism=1").unwrap().limit(), Some(Limit::concurrency(1)));
    }

    #[test]
    fn what_pins_nothing_is_refused() {
        for (query, said) in [
            ("", "nothing to do"),
            ("period=5", "nothing to do"),
            ("rate=0", "rate is 0"),
            ("rate=x", "should be either"),
            ("rate=1&period=8d", "up to 1w"),
            ("rates=1", "\"rates\""),
            ("weight=1", "\"weight\""),
        ] {
            let error = Fault::from(read_pin("k", query).unwrap_err()).to_string();
            assert!(error.contains(said), "{query}: {error}");
        }
        assert!(read_pin("$", "rate=1").is_err());
    }

    #[test]
    fn each_pin_is_taken_off_by_its_name() {
        let unpin = |has_parallelism, has_rate| Ok(Unpin { has_parallelism, has_rate });
        assert_eq!(read_unpin("parallelism=true"), unpin(true, false));
        assert_eq!(read_unpin("parallelism=true&rate=true"), unpin(true, true));
        assert_eq!(read_unpin("parallelism=false&rate=true"), unpin(false, true));
        assert_eq!(read_unpin(""), Err(PinError::Nothing));
        assert_eq!(read_unpin("rate=1"), Err(PinError::Value { name: "rate".to_owned() }));
        assert!(matches!(read_unpin("period=true"), Err(PinError::Unknown { .. })));
    }
}
