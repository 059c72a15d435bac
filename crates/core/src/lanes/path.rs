//! Paths into a JSON body: where a queue reads what its calls owe.

mod read;

pub(crate) use read::{Found, read};

use crate::name::NAME_BYTES_MAX;
use std::fmt;

/// Longest path in bytes.
pub const PATH_BYTES_MAX: usize = NAME_BYTES_MAX;
/// Most steps of a path: deeper than any body that was written by hand.
pub const PATH_STEPS_MAX: usize = 16;

/// Where in the body of a call something is: `body.tenant`, `body.items[0].price`, `body.items.length`.
///
/// At the end, `length` is how many items a list has, or characters a text; of an object it is the
/// field of that name.
// Invariant: the steps are those of the text, and there is one text for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyPath {
    text: Box<str>,
    steps: Box<[Step]>,
}

/// One step further into a body.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(Box<str>),
    Item(usize),
}

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It has too many bytes.
    #[error("a path may have up to {PATH_BYTES_MAX} bytes, and this one has {bytes}")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// It goes too deep.
    #[error("a path may have up to {PATH_STEPS_MAX} steps, and this one has more")]
    TooDeep,
    /// It is not written as a path is.
    #[error(
        "a path is written as body.name, body.name[0].name or body.name.length, and this one is not from byte {offset} on"
    )]
    Malformed {
        /// From where on.
        offset: usize,
    },
}

impl BodyPath {
    /// The path that a text says.
    pub fn new(text: &str) -> Result<Self, PathError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong { bytes: text.len() });
        }
        let mut steps = Vec::new();
        let mut rest = text.strip_prefix("body").ok_or(PathError::Malformed { offset: 0 })?;
        while !rest.is_empty() {
            let malformed = PathError::Malformed { offset: text.len() - rest.len() };
            let (step, after) = Step::first_of(rest).ok_or(malformed)?;
            if steps.len() == PATH_STEPS_MAX {
                return Err(PathError::TooDeep);
            }
            steps.push(step);
            rest = after;
        }
        Ok(Self { text: text.into(), steps: steps.into() })
    }

    /// The whole number from 0 on that a body has there; `None` if it is not JSON, or has something else.
    pub fn whole_number_in(&self, body: &[u8]) -> Option<u64> {
        match read(body, &[self]).ok()?.pop()? {
            Found::Whole(number) => u64::try_from(number).ok(),
            _ => None,
        }
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for BodyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Step {
    /// The step that a text begins with, and what follows.
    fn first_of(text: &str) -> Option<(Self, &str)> {
        if let Some(named) = text.strip_prefix('.') {
            let end = named.find(['.', '[', ']']).unwrap_or(named.len());
            let (name, after) = named.split_at(end);
            return (!name.is_empty()).then(|| (Self::Field(name.into()), after));
        }
        let (digits, after) = text.strip_prefix('[')?.split_once(']')?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        // There is one way to write a number.
        let is_short = digits == "0" || !digits.starts_with('0');
        let item = digits.parse().ok().filter(|_| is_number && is_short)?;
        Some((Self::Item(item), after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_is_what_it_says() {
        let field = |name: &str| Step::Field(name.into());
        let path = BodyPath::new("body.a.länge[12].length").unwrap();
        assert_eq!(*path.steps, [field("a"), field("länge"), Step::Item(12), field("length")]);
        assert_eq!(path.to_string(), "body.a.länge[12].length");
        assert_eq!(*BodyPath::new("body").unwrap().steps, []);
    }

    #[test]
    fn what_is_no_path_is_refused_where_it_goes_wrong() {
        for (text, offset) in [
            ("", 0),
            ("tenant", 0),
            ("bodytenant", 4),
            ("body.", 4),
            ("body.a..b", 6),
            ("body.a]", 6),
            ("body[]", 4),
            ("body[-1]", 4),
            ("body[+1]", 4),
            ("body[01]", 4),
            ("body[1", 4),
            ("body[99999999999999999999]", 4),
            ("body[1]a", 7),
        ] {
            assert_eq!(BodyPath::new(text), Err(PathError::Malformed { offset }), "{text}");
        }
        let deep = format!("body{}", ".a".repeat(PATH_STEPS_MAX));
        assert!(BodyPath::new(&deep).is_ok());
        assert_eq!(BodyPath::new(&format!("{deep}.a")), Err(PathError::TooDeep));
        let long = format!("body.{}", "a".repeat(PATH_BYTES_MAX));
        assert_eq!(BodyPath::new(&long), Err(PathError::TooLong { bytes: long.len() }));
    }

    proptest! {
        #[test]
        fn any_text_is_a_path_or_refused(text in "(body)?[.\\[\\]0-9a-b\u{e4} ]{0,30}|.{0,30}") {
            if let Ok(path) = BodyPath::new(&text) {
                prop_assert_eq!(path.as_str(), text);
            }
        }
    }
}
