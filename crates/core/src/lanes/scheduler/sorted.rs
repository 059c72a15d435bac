//! A sorted set that is small by the million: a list while it has few, a tree from then on.

use smallvec::SmallVec;
use std::collections::BTreeSet;

/// From how many on a tree is kept.
const MANY: usize = 16;

/// In order, each once. A tree for each meter would cost more than all else that is known of it.
#[derive(Debug, Clone)]
pub(super) enum Sorted<T> {
    Few(SmallVec<[T; 1]>),
    Many(BTreeSet<T>),
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl<T: Ord + Copy> Sorted<T> {
    pub(super) fn insert(&mut self, item: T) {
        match self {
            Self::Many(items) => {
                items.insert(item);
            }
            Self::Few(items) if items.len() < MANY => {
                if let Err(place) = items.binary_search(&item) {
                    items.insert(place, item);
                }
            }
            Self::Few(items) => *self = Self::Many(items.drain(..).chain([item]).collect()),
        }
    }

    /// Says whether it was there.
    pub(super) fn remove(&mut self, item: T) -> bool {
        match self {
            Self::Few(items) => {
                let found = items.binary_search(&item);
                found.map(|place| items.remove(place)).is_ok()
            }
            Self::Many(items) => {
                let was_there = items.remove(&item);
                if items.is_empty() {
                    *self = Self::default();
                }
                was_there
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(items) => items.len(),
            Self::Many(items) => items.len(),
        }
    }

    pub(super) fn first(&self) -> Option<T> {
        match self {
            Self::Few(items) => items.first().copied(),
            Self::Many(items) => items.first().copied(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> {
        let (few, many) = match self {
            Self::Few(items) => (Some(items.iter()), None),
            Self::Many(items) => (None, Some(items.iter())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keeps_what_a_set_keeps(steps in prop::collection::vec((0..40_u32, any::<bool>()), 0..120)) {
            let (mut sorted, mut set) = (Sorted::default(), BTreeSet::new());
            for (item, inserts) in steps {
                if inserts {
                    sorted.insert(item);
                    set.insert(item);
                } else {
                    prop_assert_eq!(sorted.remove(item), set.remove(&item));
                }
                prop_assert!(sorted.iter().eq(set.iter().copied()));
                prop_assert_eq!(sorted.first(), set.first().copied());
                prop_assert_eq!(sorted.len(), set.len());
            }
        }
    }
}
