//! What a call owes at all of its meters.

use crate::toll::Toll;
use smallvec::SmallVec;
use std::fmt::{self, Debug, Formatter};
use std::ops::{Deref, DerefMut};

/// Tolls in the order in which they were named: a list that takes no memory of its own for one toll.
///
/// Most calls owe one, and memory that the thread which hands in a call takes and the store's gives back is a
/// noticeable part of what such a call costs: the allocator lets the one wait for the other.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tolls(SmallVec<[Toll; 1]>);

impl Tolls {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one behind the others.
    pub fn push(&mut self, toll: Toll) {
        self.0.push(toll);
    }
}

impl Deref for Tolls {
    type Target = [Toll];

    fn deref(&self) -> &[Toll] {
        &self.0
    }
}

impl DerefMut for Tolls {
    fn deref_mut(&mut self) -> &mut [Toll] {
        &mut self.0
    }
}

impl Debug for Tolls {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<const COUNT: usize> From<[Toll; COUNT]> for Tolls {
    fn from(tolls: [Toll; COUNT]) -> Self {
        tolls.into_iter().collect()
    }
}

impl From<Vec<Toll>> for Tolls {
    fn from(tolls: Vec<Toll>) -> Self {
        tolls.into_iter().collect()
    }
}

impl FromIterator<Toll> for Tolls {
    fn from_iter<I: IntoIterator<Item = Toll>>(tolls: I) -> Self {
        Self(tolls.into_iter().collect())
    }
}

impl Extend<Toll> for Tolls {
    fn extend<I: IntoIterator<Item = Toll>>(&mut self, tolls: I) {
        self.0.extend(tolls);
    }
}

impl IntoIterator for Tolls {
    type Item = Toll;
    type IntoIter = smallvec::IntoIter<[Toll; 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Tolls {
    type Item = &'a Toll;
    type IntoIter = std::slice::Iter<'a, Toll>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::LimitName;

    fn toll(weight: u64) -> Toll {
        let limit = LimitName::new("l").unwrap();
        Toll { limit, partition: None, weight, hears_feedback: false }
    }

    #[test]
    fn one_takes_no_memory_of_its_own_however_it_came() {
        let (mut pushed, mut roomy) = (Tolls::new(), Vec::with_capacity(9));
        pushed.push(toll(1));
        roomy.push(toll(1));
        for tolls in [pushed, [toll(1)].into(), roomy.into()] {
            assert!(!tolls.0.spilled());
            assert_eq!(*tolls, [toll(1)]);
        }
    }

    #[test]
    fn more_stay_in_their_order() {
        let mut tolls = Tolls::from(vec![toll(3), toll(1)]);
        tolls.extend([toll(2)]);
        assert_eq!((&tolls).into_iter().map(|toll| toll.weight).collect::<Vec<_>>(), [3, 1, 2]);
        assert_eq!(tolls.into_iter().collect::<Vec<_>>(), [toll(3), toll(1), toll(2)]);
    }
}
