//! Lists with an end: reading stops where there are too many, not after all were read.

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Most items of one list: they are one write, held in memory whole.
pub(in crate::http) const ITEMS_MAX: usize = 10_000;

/// Up to [`ITEMS_MAX`] of something.
#[derive(Debug)]
pub(in crate::http) struct Items<T>(pub(in crate::http) Vec<T>);

struct ItemsVisitor<T>(PhantomData<T>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == ITEMS_MAX {
                return Err(A::Error::custom(format_args!(
                    "there are more than the {ITEMS_MAX} of one request: split it"
                )));
            }
            items.push(item);
        }
        Ok(Items(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_too_long_is_not_read_to_its_end() {
        let fits = format!("[{}1]", "1,".repeat(ITEMS_MAX - 1));
        assert_eq!(serde_json::from_str::<Items<u8>>(&fits).unwrap().0.len(), ITEMS_MAX);
        // What comes behind is not even looked at.
        let too_many = format!("[{}1,!", "1,".repeat(ITEMS_MAX));
        let error = serde_json::from_str::<Items<u8>>(&too_many).unwrap_err().to_string();
        assert!(error.contains("split it"), "{error}");
    }
}
