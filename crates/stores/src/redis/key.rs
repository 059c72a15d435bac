//! The keys of Redis under which cells are, and the entries of the lists of their names.

use crate::shared::cells::{CellKey, Kind};
use std::fmt::Write as _;
use tollgate_core::contract::StoreError;

/// Longest prefix, in bytes: it is a part of every key.
const PREFIX_MAX: usize = 64;

/// The keys of one prefix.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    /// In braces: a cluster places a key by what stands in them.
    prefix: Box<str>,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Result<Self, StoreError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if prefix.is_empty() || prefix.len() > PREFIX_MAX || !prefix.chars().all(is_plain) {
            let reason = format!(
                "{prefix:?} is no prefix for Redis: use 1 to {PREFIX_MAX} letters, digits and -_.:"
            );
            return Err(StoreError::Failed { reason });
        }
        Ok(Self { prefix: format!("{{{prefix}}}").into() })
    }

    /// Of a cell: the length of the name says where the part begins.
    pub(super) fn cell(&self, cell: &CellKey) -> String {
        let mut key = String::new();
        self.write_cell(cell, &mut key);
        key
    }

    /// The same, at the end of a text.
    pub(super) fn write_cell(&self, cell: &CellKey, key: &mut String) {
        let CellKey { kind, name, part } = cell;
        match (kind, part) {
            (Kind::SpreadMeter, _) => {
                key.push_str(&self.tag(cell));
                return key.push_str(":m");
            }
            (Kind::SpreadSettled, Some(part)) => {
                key.push_str(&self.tag(cell));
                key.push_str(":s:");
                return key.push_str(id(part));
            }
            _ => {}
        }
        key.push_str(&self.prefix);
        key.extend([':', kind.letter(), ':']);
        // Memory has room, and nothing else can fail.
        let _ = write!(key, "{}", name.len());
        key.push(':');
        key.push_str(name);
        if let Some(part) = part {
            key.push(':');
            key.push_str(part);
        }
    }

    /// What the keys of all cells of a kind begin with.
    pub(super) fn start(&self, kind: Kind) -> String {
        format!("{}:{}:", self.prefix, kind.letter())
    }

    /// Of the list of a kind's names.
    pub(super) fn list(&self, kind: Kind) -> String {
        format!("{}:n:{}", self.prefix, kind.letter())
    }

    /// Of the cells that someone means to change, where one of them lies.
    pub(super) fn intents(&self, cell: Option<&CellKey>) -> String {
        match cell.filter(|cell| cell.kind.is_spread()) {
            Some(cell) => format!("{}:i", self.tag(cell)),
            None => format!("{}:i", self.prefix),
        }
    }

    /// What the key of a cell begins with, and all that lie together with it: a cluster places a key by
    /// what stands in braces. Up to the first that closes, whatever a name has in it, these are alike.
    pub(super) fn tag(&self, cell: &CellKey) -> String {
        let CellKey { kind, name, part } = cell;
        // No prefix has a slash, so this is nobody else's.
        let start = self.prefix.trim_end_matches('}');
        let length = name.len();
        let partition = match (kind, part) {
            (Kind::SpreadMeter, part) => part.as_deref(),
            (Kind::SpreadSettled, Some(part)) => {
                part.split_once(':').map(|(_, partition)| partition)
            }
            _ => return self.prefix.to_string(),
        };
        match partition {
            Some(partition) => format!("{start}/{length}:{name}:{partition}}}"),
            None => format!("{start}/{length}:{name}}}"),
        }
    }
}

/// Whether the names of a kind are listed: not of those that come and go by themselves.
pub(super) fn is_listed(kind: Kind) -> bool {
    match kind {
        Kind::Epoch | Kind::Limit | Kind::Own | Kind::Record => true,
        Kind::Settled | Kind::Meter | Kind::SpreadSettled | Kind::SpreadMeter => false,
    }
}

/// The id of a settled receipt, of the part of its cell: before the partition.
fn id(part: &str) -> &str {
    part.split_once(':').map_or(part, |(id, _)| id)
}

/// A cell's entry in the list of its kind: sorted by name, and then by part. A zero byte in a name is
/// followed by 255, so that the zero byte that ends it comes before all that goes on.
pub(super) fn entry(cell: &CellKey) -> Vec<u8> {
    let mut entry = escaped(&cell.name);
    entry.extend([0, u8::from(cell.part.is_some())]);
    entry.extend(cell.part.iter().flat_map(|part| part.bytes()));
    entry
}

/// What comes after all entries of a name, and before those of the next.
pub(super) fn behind(name: &str) -> Vec<u8> {
    let mut entry = escaped(name);
    entry.extend([0, 2]);
    entry
}

fn escaped(name: &str) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len() + 2);
    for byte in name.bytes() {
        escaped.push(byte);
        if byte == 0 {
            escaped.push(u8::MAX);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(name: &str, part: Option<&str>) -> CellKey {
        CellKey { kind: Kind::Limit, name: name.into(), part: part.map(Into::into) }
    }

    #[test]
    fn a_prefix_that_would_break_keys_is_refused() {
        for prefix in ["", "a b", "a}b", "{a", "ü", &"a".repeat(65)] {
            assert!(Keys::new(prefix).is_err(), "{prefix:?}");
        }
        assert!(Keys::new("tollgate-2.eu_1:a").is_ok());
    }

    /// Names that begin alike, with the bytes that matter.
    fn name() -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(vec!['\0', '\u{1}', '1', ':', 'ÿ']), 0..4)
            .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn different_cells_have_different_keys_and_entries(
            one in (name(), prop::option::of(name())),
            other in (name(), prop::option::of(name())),
        ) {
            let [first, second] = [&one, &other].map(|(name, part)| cell(name, part.as_deref()));
            let keys = Keys::new("a").unwrap();
            prop_assert_eq!(first == second, keys.cell(&first) == keys.cell(&second));
            prop_assert_eq!(first == second, entry(&first) == entry(&second));
        }

        #[test]
        fn what_is_spread_lies_with_its_receipts_and_apart_from_all_else(
            one in (name(), prop::option::of(name())),
            other in (name(), prop::option::of(name())),
        ) {
            let keys = Keys::new("a").unwrap();
            let meter = |(name, part): &(String, Option<String>)| CellKey {
                kind: Kind::SpreadMeter, ..cell(name, part.as_deref())
            };
            let settled = |(name, part): &(String, Option<String>), id: u64| {
                let part = part.as_ref().map_or(id.to_string(), |part| format!("{id}:{part}"));
                CellKey { kind: Kind::SpreadSettled, ..cell(name, Some(&part)) }
            };
            prop_assert_eq!(one == other, keys.cell(&meter(&one)) == keys.cell(&meter(&other)));
            prop_assert_eq!(keys.tag(&meter(&one)), keys.tag(&settled(&one, 7)));
            prop_assert_ne!(keys.cell(&settled(&one, 7)), keys.cell(&settled(&one, 8)));
            prop_assert_eq!(
                one == other,
                keys.cell(&settled(&one, 7)) == keys.cell(&settled(&other, 7))
            );
            prop_assert_ne!(keys.tag(&meter(&one)), keys.tag(&cell(&other.0, None)));
        }

        #[test]
        fn entries_are_in_the_order_of_names(
            one in (name(), prop::option::of(name())),
            other in (name(), prop::option::of(name())),
        ) {
            let [first, second] = [&one, &other].map(|(name, part)| cell(name, part.as_deref()));
            if one.0 < other.0 {
                prop_assert!(entry(&first) < entry(&second));
                prop_assert!(behind(&one.0) < entry(&second));
            }
            prop_assert!(entry(&first) < behind(&one.0));
        }
    }
}
