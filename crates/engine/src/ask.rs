//! What a caller asks: the tolls of one call, its priority, how long it would wait.

use crate::limits::Entry;
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::sync::Arc;
use tollgate_core::{Limit, Priority};

pub use tollgate_core::TOLLS_MAX;

/// A limit once looked up: tolls that name it this way skip the search by name.
#[derive(Clone)]
pub struct LimitRef {
    pub(crate) entry: Arc<Entry>,
}

impl LimitRef {
    /// The limit's name.
    pub fn name(&self) -> &str {
        &self.entry.name
    }
}

impl fmt::Debug for LimitRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LimitRef").field(&self.entry.name).finish()
    }
}

/// How a toll names its limit: by text, or by a [`LimitRef`].
#[derive(Debug, Clone, Copy)]
pub enum Named<'a> {
    /// By its name.
    Name(&'a str),
    /// As it was looked up before.
    Ref(&'a LimitRef),
}

impl<'a> Named<'a> {
    /// The limit's name.
    pub fn name(self) -> &'a str {
        match self {
            Self::Name(name) => name,
            Self::Ref(limit) => limit.name(),
        }
    }
}

impl<'a> From<&'a str> for Named<'a> {
    fn from(name: &'a str) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a String> for Named<'a> {
    fn from(name: &'a String) -> Self {
        Self::Name(name)
    }
}

impl<'a> From<&'a LimitRef> for Named<'a> {
    fn from(limit: &'a LimitRef) -> Self {
        Self::Ref(limit)
    }
}

/// What a call owes at one meter.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Toll<'a> {
    pub(crate) limit: Named<'a>,
    pub(crate) partition: Option<&'a str>,
    pub(crate) weight: u64,
    pub(crate) is_estimate: bool,
    pub(crate) definition: Option<&'a Limit>,
}

/// A toll of weight 1 at the limit's meter for a partition.
pub fn toll<'a>(
    limit: impl Into<Named<'a>>,
    partition: &'a (impl AsRef<str> + ?Sized),
) -> Toll<'a> {
    Toll { partition: Some(partition.as_ref()), ..global(limit) }
}

/// A toll of weight 1 at the limit's one global meter.
pub fn global<'a>(limit: impl Into<Named<'a>>) -> Toll<'a> {
    Toll { limit: limit.into(), partition: None, weight: 1, is_estimate: false, definition: None }
}

impl<'a> Toll<'a> {
    /// How many units the call costs.
    pub fn weight(self, units: u64) -> Self {
        Self { weight: units, ..self }
    }

    /// How many units the call may cost: its pass can be settled at the true cost.
    pub fn estimate(self, units: u64) -> Self {
        Self { weight: units, is_estimate: true, ..self }
    }

    /// Defines the limit along with the call: the newest definition wins unless one is pinned.
    pub fn limited_to(self, limit: &'a Limit) -> Self {
        Self { definition: Some(limit), ..self }
    }

    /// Another toll of the same call: all are paid or none.
    pub fn and(self, other: Self) -> Ask<'a> {
        Ask::from(self).and(other)
    }

    /// The limit's name.
    pub fn name(&self) -> &'a str {
        self.limit.name()
    }

    /// The partition; `None` for the global meter.
    pub fn partition(&self) -> Option<&'a str> {
        self.partition
    }

    /// How many units it is of.
    pub fn units(&self) -> u64 {
        self.weight
    }

    /// Whether it may be settled at another cost.
    pub fn is_estimate(&self) -> bool {
        self.is_estimate
    }

    /// What the limit is defined as along with the call.
    pub fn definition(&self) -> Option<&'a Limit> {
        self.definition
    }
}

/// All that one call asks: its tolls and its priority.
#[derive(Debug, Clone)]
#[must_use]
pub struct Ask<'a> {
    pub(crate) tolls: SmallVec<[Toll<'a>; 2]>,
    pub(crate) priority: Priority,
}

impl<'a> Ask<'a> {
    /// Another toll: all are paid or none.
    pub fn and(mut self, toll: Toll<'a>) -> Self {
        self.tolls.push(toll);
        self
    }

    /// Higher goes first; 0 by default.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// The tolls, in the order in which they were given.
    pub fn tolls(&self) -> &[Toll<'a>] {
        &self.tolls
    }

    /// The priority that it was given.
    pub fn given_priority(&self) -> Priority {
        self.priority
    }
}

/// What can be asked: one [`Toll`], or an [`Ask`] of several.
pub trait Asking<'a>: Sized {
    /// The one toll, if it is one that can be decided without looking further: weight and meter
    /// are all there is to it.
    fn single(&self) -> Option<&Toll<'a>>;

    /// All of it.
    fn into_ask(self) -> Ask<'a>;
}

impl<'a> Asking<'a> for Toll<'a> {
    #[inline]
    fn single(&self) -> Option<&Toll<'a>> {
        let is_single = !self.is_estimate
            && self.definition.is_none()
            && self.partition.is_none_or(|partition| !partition.is_empty());
        is_single.then_some(self)
    }

    fn into_ask(self) -> Ask<'a> {
        self.into()
    }
}

impl<'a> Asking<'a> for Ask<'a> {
    #[inline]
    fn single(&self) -> Option<&Toll<'a>> {
        match self.tolls.as_slice() {
            [toll] => toll.single(),
            _ => None,
        }
    }

    fn into_ask(self) -> Self {
        self
    }
}

impl<'a> From<Toll<'a>> for Ask<'a> {
    fn from(toll: Toll<'a>) -> Self {
        Self { tolls: smallvec![toll], priority: Priority::default() }
    }
}

impl<'a> FromIterator<Toll<'a>> for Ask<'a> {
    fn from_iter<I: IntoIterator<Item = Toll<'a>>>(tolls: I) -> Self {
        Self { tolls: tolls.into_iter().collect(), priority: Priority::default() }
    }
}
