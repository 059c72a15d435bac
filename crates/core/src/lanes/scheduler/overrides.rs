//! Partitions of a limit with rules of their own. Few limits have any, and those without pay a word for it.

use super::Hashing;
use crate::limit::Definition;
use crate::name::Partition;
use std::collections::HashMap;

// Invariant: `None` or not empty.
#[expect(clippy::box_collection, reason = "of a million limits hardly one has any")]
#[derive(Debug, Clone, Default)]
pub(super) struct Overrides(Option<Box<HashMap<Partition, Definition, Hashing>>>);

impl Overrides {
    #[inline]
    pub(super) fn get(&self, partition: &str) -> Option<&Definition> {
        self.0.as_ref()?.get(partition)
    }

    pub(super) fn set(&mut self, partition: &Partition, definition: Option<Definition>) {
        let all = self.0.get_or_insert_default();
        match definition {
            Some(definition) => all.insert(partition.clone(), definition),
            None => all.remove(partition),
        };
        if all.is_empty() {
            self.0 = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.len())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Partition, &Definition)> {
        self.0.iter().flat_map(|all| all.iter())
    }
}
