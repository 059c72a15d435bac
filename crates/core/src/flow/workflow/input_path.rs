//! Paths into the input of a task or a run.

use crate::lanes::BodyPath;
use crate::lanes::path::PathError;
use std::fmt;

/// Where in an input something is: `config.provider.name`, `items[0].price`, `items.length`; `.` is all of
/// it.
///
/// It is the path of a queue without the word in front, for a task has nothing but its input.
// Invariant: the text is that of the path, and not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPath {
    text: Box<str>,
    path: BodyPath,
}

impl InputPath {
    /// The path that a text says.
    pub fn new(text: &str) -> Result<Self, PathError> {
        let path = match text {
            "." => BodyPath::new("body"),
            _ if text.starts_with('[') => BodyPath::new(&format!("body{text}")),
            _ => BodyPath::new(&format!("body.{text}")),
        }?;
        Ok(Self { text: text.into(), path })
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// As a body is read.
    pub(super) fn in_body(&self) -> &BodyPath {
        &self.path
    }

    /// The field that it begins with; `None` if it does not begin with one.
    pub(super) fn first_field(&self) -> Option<&str> {
        let end = self.text.find(['.', '[']).unwrap_or(self.text.len());
        Some(&self.text[..end]).filter(|field| !field.is_empty())
    }

    /// Whether it leads into an item of the list at another path.
    pub(super) fn is_in_item_of(&self, list: &Self) -> bool {
        let rest = if &*list.text == "." {
            Some(&*self.text)
        } else {
            self.text.strip_prefix(&*list.text)
        };
        rest.is_some_and(|rest| rest.starts_with('['))
    }
}

impl fmt::Display for InputPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> InputPath {
        InputPath::new(text).unwrap()
    }

    #[test]
    fn a_path_needs_no_word_in_front() {
        for (text, body) in [
            ("config.provider.name", "body.config.provider.name"),
            ("[3].price", "body[3].price"),
            (".", "body"),
            ("body.tenant", "body.body.tenant"),
        ] {
            assert_eq!(path(text).in_body().as_str(), body);
            assert_eq!(path(text).as_str(), text);
        }
        for text in ["", "..", ".a", "a.", "a..b", "a[", "a[-1]", "a]"] {
            assert!(InputPath::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_a_path_begins_with_is_known() {
        assert_eq!(path("fetch.status").first_field(), Some("fetch"));
        assert_eq!(path("fetch[0]").first_field(), Some("fetch"));
        assert_eq!(path("[0].a").first_field(), None);
        assert_eq!(path(".").first_field(), None);
        assert!(path("items[0].price").is_in_item_of(&path("items")));
        assert!(path("[0]").is_in_item_of(&path(".")));
        assert!(!path("items.length").is_in_item_of(&path("items")));
        assert!(!path("itemsize[0]").is_in_item_of(&path("items")));
    }
}
