//! A sorted set to which most is added at its end, and from which most is taken at its front: leases, of which
//! the next one nearly always ends last, and the oldest is settled first.

use std::collections::{BTreeSet, VecDeque};

/// So many of what is gone are kept whatever the rest is.
const GONE_MIN: usize = 64;

/// In order, each once. What comes and goes in order costs a push and a pop, not two walks through a tree.
#[derive(Debug, Clone)]
pub(super) struct Ascending<T> {
    // Invariant: in order, and the first is not gone.
    row: VecDeque<Entry<T>>,
    /// How many of the row are gone.
    gone: usize,
    /// What came when a later one was there.
    others: BTreeSet<T>,
}

#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    item: T,
    is_gone: bool,
}

impl<T> Default for Ascending<T> {
    fn default() -> Self {
        Self { row: VecDeque::new(), gone: 0, others: BTreeSet::new() }
    }
}

impl<T: Ord + Copy> Ascending<T> {
    /// Adds one that is not there.
    pub(super) fn insert(&mut self, item: T) {
        match self.row.back() {
            Some(last) if last.item >= item => {
                self.others.insert(item);
            }
            _ => self.row.push_back(Entry { item, is_gone: false }),
        }
    }

    pub(super) fn remove(&mut self, item: T) {
        let found = match self.row.front() {
            Some(first) if first.item == item => Ok(0),
            _ => self.row.binary_search_by_key(&item, |entry| entry.item),
        };
        match found.ok().and_then(|place| self.row.get_mut(place)).filter(|found| !found.is_gone) {
            Some(found) => {
                found.is_gone = true;
                self.gone += 1;
                self.tidy();
            }
            None => {
                self.others.remove(&item);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.row.len() - self.gone + self.others.len()
    }

    pub(super) fn first(&self) -> Option<T> {
        let first = self.row.front().map(|entry| entry.item);
        match self.others.first() {
            None => first,
            Some(other) => first.into_iter().chain([*other]).min(),
        }
    }

    /// Takes the first out, if that is to be.
    pub(super) fn pop_if(&mut self, is_due: impl FnOnce(&T) -> bool) -> Option<T> {
        let first = self.first().filter(is_due)?;
        self.remove(first);
        Some(first)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> {
        let row = self.row.iter().filter(|entry| !entry.is_gone).map(|entry| entry.item);
        let (mut row, mut others) = (row.peekable(), self.others.iter().copied().peekable());
        std::iter::from_fn(move || match (row.peek(), others.peek()) {
            (Some(one), Some(other)) if other < one => others.next(),
            (None, _) => others.next(),
            _ => row.next(),
        })
    }

    /// Forgets what is gone at the front at once, and elsewhere before it is more than the rest.
    fn tidy(&mut self) {
        while self.row.front().is_some_and(|first| first.is_gone) {
            self.row.pop_front();
            self.gone -= 1;
        }
        if self.gone > GONE_MIN && self.gone > self.row.len() / 2 {
            self.row.retain(|entry| !entry.is_gone);
            self.gone = 0;
        }
        if self.row.capacity() > GONE_MIN.max(4 * self.row.len()) {
            self.row.shrink_to(2 * self.row.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Two in three come in order, as leases do, and any may go.
        #[test]
        fn keeps_what_a_set_keeps(steps in prop::collection::vec((0..6_u32, 0..400_u32), 0..800)) {
            let (mut ascending, mut set, mut last) = (Ascending::default(), BTreeSet::new(), 0);
            for (step, any) in steps {
                let item = if step < 2 { last + any % 3 } else { any };
                last = last.max(item);
                let first = set.first().copied();
                match step {
                    0..3 if set.insert(item) => ascending.insert(item),
                    3 => {
                        ascending.remove(item);
                        set.remove(&item);
                    }
                    4 => {
                        let popped = ascending.pop_if(|item| *item < any);
                        prop_assert_eq!(popped, first.filter(|item| *item < any));
                        popped.inspect(|item| { set.remove(item); });
                    }
                    _ => {
                        first.inspect(|item| { set.remove(item); ascending.remove(*item); });
                    }
                }
                prop_assert!(ascending.iter().eq(set.iter().copied()));
                prop_assert_eq!(ascending.first(), set.first().copied());
                prop_assert_eq!(ascending.len(), set.len());
            }
        }
    }

    #[test]
    fn one_that_stays_keeps_no_memory_for_all_that_came_and_went_behind_it() {
        let mut ascending = Ascending::default();
        ascending.insert(0_u32);
        for item in 1..100_000 {
            ascending.insert(item);
            ascending.remove(item);
        }
        assert!(ascending.row.capacity() < 1_000, "{}", ascending.row.capacity());
        ascending.remove(0);
        assert_eq!((ascending.first(), ascending.len()), (None, 0));
    }
}
