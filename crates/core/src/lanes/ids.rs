//! The calls that an act enqueued.

use super::call::CallId;
use smallvec::SmallVec;
use std::fmt::{self, Debug, Formatter};
use std::ops::Deref;

/// Held without memory of their own: most acts enqueue one call, and memory that one thread takes and another gives
/// back is a noticeable part of what such an act costs.
const FEW: usize = 2;

/// Ids of calls in their order: a list to be read.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CallIds(SmallVec<[CallId; FEW]>);

impl CallIds {
    /// Makes room for more.
    pub(super) fn reserve(&mut self, more: usize) {
        self.0.reserve_exact(more);
    }

    pub(super) fn push(&mut self, id: CallId) {
        self.0.push(id);
    }
}

impl Deref for CallIds {
    type Target = [CallId];

    fn deref(&self) -> &[CallId] {
        &self.0
    }
}

impl Debug for CallIds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl FromIterator<CallId> for CallIds {
    fn from_iter<I: IntoIterator<Item = CallId>>(ids: I) -> Self {
        Self(ids.into_iter().collect())
    }
}

impl From<Vec<CallId>> for CallIds {
    fn from(ids: Vec<CallId>) -> Self {
        Self(ids.into())
    }
}

impl From<CallIds> for Vec<CallId> {
    fn from(ids: CallIds) -> Self {
        ids.0.into_vec()
    }
}

impl IntoIterator for CallIds {
    type Item = CallId;
    type IntoIter = std::vec::IntoIter<CallId>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'a> IntoIterator for &'a CallIds {
    type Item = &'a CallId;
    type IntoIter = std::slice::Iter<'a, CallId>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
