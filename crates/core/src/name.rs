//! Names of limits, partitions, queues and lanes: any UTF-8 from 1 to 512 bytes.

use smol_str::SmolStr;
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// Longest name in bytes: room for a URL or a composite key, small enough to keep by the million.
pub const NAME_BYTES_MAX: usize = 512;
/// Longest key in bytes: a name, and what it is the name of.
pub const KEY_BYTES_MAX: usize = 1024;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It has no bytes.
    #[error("a {kind} needs 1 to {most} bytes, and this one is empty")]
    Empty {
        /// What was to be named.
        kind: &'static str,
        /// How many bytes there may be.
        most: usize,
    },
    /// It has too many bytes.
    #[error(
        "a {kind} may have up to {most} bytes, and this one has {bytes}: shorten it, or use a hash of it"
    )]
    TooLong {
        /// What was to be named.
        kind: &'static str,
        /// How many bytes were given.
        bytes: usize,
        /// How many there may be.
        most: usize,
    },
}

/// Whether `text` may name a `kind` of thing.
pub fn check_name(kind: &'static str, text: &str) -> Result<(), NameError> {
    check_up_to(NAME_BYTES_MAX, kind, text)
}

fn check_up_to(most: usize, kind: &'static str, text: &str) -> Result<(), NameError> {
    match text.len() {
        0 => Err(NameError::Empty { kind, most }),
        bytes if bytes > most => Err(NameError::TooLong { kind, bytes, most }),
        _ => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $most:ident) => {
        $(#[$doc])*
        // Invariant: 1 to so many bytes. Up to 23 need no memory of their own, longer ones
        // are shared by their copies.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks the length.
            pub fn new(text: &str) -> Result<Self, NameError> {
                check_up_to($most, $kind, text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// The name of a limit.
    LimitName,
    "limit name",
    NAME_BYTES_MAX
);
name!(
    /// The part of the world that one meter counts: a tenant, an address, a key.
    Partition,
    "partition",
    NAME_BYTES_MAX
);
name!(
    /// The name of a queue.
    QueueName,
    "queue name",
    NAME_BYTES_MAX
);
name!(
    /// The key of a lane inside a queue: calls of one lane keep their order.
    LaneName,
    "lane name",
    NAME_BYTES_MAX
);
name!(
    /// A caller's own key: of a record, of a join, of what is not to be done twice.
    Key,
    "key",
    KEY_BYTES_MAX
);

/// Names that a meter has: kept as text, for a meter has the one or the other.
macro_rules! label {
    ($name:ident) => {
        impl $name {
            /// From the text of a name.
            pub(crate) fn of(text: SmolStr) -> Self {
                Self(text)
            }

            /// Its text, shared.
            pub(crate) fn text(&self) -> &SmolStr {
                &self.0
            }
        }
    };
}

label!(LimitName);
label!(Partition);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_any_text_of_1_to_512_bytes() {
        for text in ["a", "a@b.com", "[1 2 3]", "a:b/c", "naïve ☃", &"x".repeat(512)] {
            assert_eq!(Partition::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn refuses_empty_and_too_long_with_the_cure() {
        assert_eq!(Partition::new(""), Err(NameError::Empty { kind: "partition", most: 512 }));
        let error = LimitName::new(&"x".repeat(513)).unwrap_err();
        assert!(error.to_string().contains("513: shorten it"), "{error}");
    }
}
