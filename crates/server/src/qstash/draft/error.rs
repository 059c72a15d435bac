//! Why a request is no draft.

use crate::qstash::destination::TargetError;
use crate::qstash::error::Fault;
use std::borrow::Cow;
use tollgate::push::delivery::DeliveryError;

/// As much of a value as an error shows.
const SHOWN_CHARS_MAX: usize = 64;

/// Why a request is no draft. It shows no address and no value that is sent on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::qstash) enum DraftError {
    /// Where it goes is wrong.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A setting has a value that it cannot have.
    #[error("{header} is {value:?}, and should be {wanted}")]
    Value {
        /// Which.
        header: &'static str,
        /// The first characters of what was given.
        value: String,
        /// What it can be.
        wanted: Cow<'static, str>,
    },
    /// A setting that was refused for a reason of its own.
    #[error("{header}: {why}")]
    Wrong {
        /// Which.
        header: &'static str,
        /// Why.
        why: String,
    },
    /// A value that says no limit.
    #[error(
        "Upstash-Flow-Control-Value should be either rate=X or parallelism=Y, or both as comma-separated values"
    )]
    FlowControlValue,
    /// More values than keys.
    #[error(
        "there are {values} Upstash-Flow-Control-Value for {keys} Upstash-Flow-Control-Key: send one for each key, in the same order"
    )]
    FlowControlPairs {
        /// How many keys.
        keys: usize,
        /// How many values.
        values: usize,
    },
    /// More of something than there may be.
    #[error("{header} takes up to {most}, and there are {given}: leave some out")]
    TooMany {
        /// Of what.
        header: &'static str,
        /// How many there may be.
        most: usize,
        /// How many there are.
        given: usize,
    },
    /// A text that is too long, or empty.
    #[error("{header} takes texts of 1 to {most} bytes, and this one has {bytes}")]
    Length {
        /// Which.
        header: &'static str,
        /// How many bytes it may have.
        most: usize,
        /// How many it has.
        bytes: usize,
    },
    /// All headers together are too long.
    #[error(
        "headers that are sent on, those of callbacks included, may have up to {most} bytes together, and these have {bytes}: move them into the body"
    )]
    HeaderBytes {
        /// How many bytes there may be.
        most: usize,
        /// How many there are.
        bytes: usize,
    },
    /// It cannot be sent so.
    #[error("{0}")]
    Delivery(String),
    /// Something is wrong with how a callback is to be sent.
    #[error("{header}: {source}")]
    Callback {
        /// Which.
        header: &'static str,
        /// What.
        source: Box<Self>,
    },
    /// A batch that is none.
    #[error("{0}")]
    Batch(String),
}

impl DraftError {
    /// A value is not as it should be.
    pub(super) fn value(
        header: &'static str,
        value: &str,
        wanted: impl Into<Cow<'static, str>>,
    ) -> Self {
        let value = value.chars().take(SHOWN_CHARS_MAX).collect();
        Self::Value { header, value, wanted: wanted.into() }
    }
}

impl From<DeliveryError> for DraftError {
    fn from(error: DeliveryError) -> Self {
        // What is wrong with a header says which.
        let is_named = error.field.starts_with("headers.");
        Self::Delivery(if is_named { error.why } else { error.to_string() })
    }
}

impl From<DraftError> for Fault {
    fn from(error: DraftError) -> Self {
        Self::invalid(error)
    }
}
