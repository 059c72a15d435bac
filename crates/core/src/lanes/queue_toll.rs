//! What a queue asks of all its calls, once: fixed, read from each call's body when it is enqueued, or
//! learned from what calls before it cost.

use super::call::NewCall;
use super::path::{BodyPath, Found, read};
use super::queue::{QueueError, QueueSpec};
use crate::name::{LimitName, Partition};
use crate::toll::{Toll, TollError};
use crate::turn::Priority;
use smallvec::SmallVec;
use std::borrow::Cow;

/// Longest text that a body is compared with: it is kept with the queue, and with each change of it.
pub(super) const WHEN_BYTES_MAX: usize = 512;

/// What the calls of a queue owe at a limit, besides their own tolls. With [`like`](Self::like) it is a
/// share: a smaller limit that the calls of this queue pay at, too, so that the rest of the larger one
/// is free for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueToll {
    /// Which limit.
    pub limit: LimitName,
    /// Only calls that owe at this limit owe here, for the same partition and as much: so the toll has
    /// neither of its own. `None`: all calls owe.
    pub like: Option<LimitName>,
    /// Only calls of this priority owe here.
    pub priority: Option<Priority>,
    /// At which of its meters.
    pub partition: TollPartition,
    /// How much.
    pub weight: TollWeight,
    /// Only calls whose body says so owe here.
    pub when: Option<TollWhen>,
}

/// At which meter of its limit the calls of a queue owe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TollPartition {
    /// The global one.
    #[default]
    Global,
    /// That of one partition.
    Fixed(Partition),
    /// That of the partition that the body says: a text of 1 to 512 bytes, or a whole number.
    Body {
        /// Where.
        path: BodyPath,
        /// If there is no such thing; `None`: the call is refused.
        default: Option<Partition>,
    },
}

/// How much the calls of a queue owe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TollWeight {
    /// So much; at least 1.
    Fixed(u64),
    /// As much as the body says: a whole number from 1 on.
    Body {
        /// Where.
        path: BodyPath,
        /// If there is no such number; `None`: the call is refused.
        default: Option<u64>,
        /// What is more counts as this much; `None`: what is more than the limit holds is refused.
        max: Option<u64>,
    },
    /// As much as 95 of 100 of the last calls of the queue cost there in truth, where that was settled:
    /// an estimate, for calls that bring none of their own. Calls that owe at the limit anyway do not owe
    /// here.
    Learned {
        /// While too little is known.
        default: u64,
        /// At most so much; `None`: as much as the limit holds.
        max: Option<u64>,
    },
}

impl Default for TollWeight {
    fn default() -> Self {
        Self::Fixed(1)
    }
}

/// A field of the body, and the value with which a call owes. A call whose body has another value
/// there, or none, does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TollWhen {
    /// Where.
    pub path: BodyPath,
    /// What.
    pub is: Scalar,
}

/// A value in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// A text.
    Text(Box<str>),
    /// A whole number.
    Number(i64),
    /// True or false.
    Truth(bool),
}

impl QueueToll {
    /// One unit at the global meter of a limit, of every call.
    pub fn new(limit: LimitName) -> Self {
        Self {
            limit,
            like: None,
            priority: None,
            partition: TollPartition::default(),
            weight: TollWeight::default(),
            when: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), QueueError> {
        let limit = || self.limit.clone();
        let has_own =
            (&self.partition, &self.weight) != (&TollPartition::Global, &TollWeight::Fixed(1));
        if self.like.is_some() && has_own {
            return Err(QueueError::TollLike { limit: limit() });
        }
        if let Some(TollWhen { is: Scalar::Text(text), .. }) = &self.when
            && text.len() > WHEN_BYTES_MAX
        {
            return Err(QueueError::TollWhen { limit: limit(), bytes: text.len() });
        }
        let is_right = match &self.weight {
            TollWeight::Fixed(weight) => *weight > 0,
            TollWeight::Body { default, max, path: _ } => {
                let most = max.unwrap_or(u64::MAX);
                most > 0 && default.is_none_or(|default| (1..=most).contains(&default))
            }
            TollWeight::Learned { default, max } => (1..=max.unwrap_or(u64::MAX)).contains(default),
        };
        if is_right { Ok(()) } else { Err(QueueError::TollWeight { limit: limit() }) }
    }

    /// Where in the body it is told who owes, where and how much.
    fn paths(&self) -> impl Iterator<Item = &BodyPath> {
        let when = self.when.as_ref().map(|when| &when.path);
        let partition = match &self.partition {
            TollPartition::Body { path, .. } => Some(path),
            TollPartition::Global | TollPartition::Fixed(_) => None,
        };
        let weight = match &self.weight {
            TollWeight::Body { path, .. } => Some(path),
            TollWeight::Fixed(_) | TollWeight::Learned { .. } => None,
        };
        [when, partition, weight].into_iter().flatten()
    }

    /// Whether a call may owe here, whatever its body says.
    fn may_concern(&self, call: &NewCall) -> bool {
        let owes = |limit: &LimitName| call.tolls.iter().any(|own| own.limit == *limit);
        self.priority.is_none_or(|priority| priority == call.priority)
            && self.like.as_ref().is_none_or(owes)
            && !(self.is_learned() && owes(&self.limit))
    }

    /// Whether what calls cost is remembered for it.
    pub(super) fn is_learned(&self) -> bool {
        matches!(self.weight, TollWeight::Learned { .. })
    }

    /// What a call owes here.
    fn owed(
        &self,
        call: &NewCall,
        body: &Body<'_>,
        estimate: Estimate<'_>,
    ) -> Result<SmallVec<[Toll; 1]>, TollError> {
        if self.when.as_ref().is_some_and(|when| !when.holds(body)) {
            return Ok(SmallVec::new());
        }
        let (limit, hears_feedback) = (|| self.limit.clone(), false);
        if let Some(like) = &self.like {
            let alike = call.tolls.iter().filter(|own| own.limit == *like);
            let owed = alike.map(|own| Toll { limit: limit(), hears_feedback, ..own.clone() });
            return Ok(owed.collect());
        }
        let partition = self.partition_in(body)?;
        let weight = match self.weight {
            TollWeight::Learned { default, max } => {
                let learned = estimate(&self.limit, partition.as_ref()).unwrap_or(default);
                learned.min(max.unwrap_or(u64::MAX))
            }
            _ => self.weight_in(body)?,
        };
        Ok([Toll { limit: limit(), partition, weight, hears_feedback }].into_iter().collect())
    }

    fn partition_in(&self, body: &Body<'_>) -> Result<Option<Partition>, TollError> {
        let (path, default) = match &self.partition {
            TollPartition::Global => return Ok(None),
            TollPartition::Fixed(partition) => return Ok(Some(partition.clone())),
            TollPartition::Body { path, default } => (path, default),
        };
        let found = body.at(path);
        let named = match found {
            Found::Text(text) => Partition::new(text).ok(),
            Found::Whole(number) => Partition::new(&number.to_string()).ok(),
            _ => None,
        };
        let (limit, path) = (self.limit.clone(), path.clone());
        let unread = || TollError::NoPartition { limit, path, found: found.to_string() };
        named.or_else(|| default.clone()).map(Some).ok_or_else(unread)
    }

    fn weight_in(&self, body: &Body<'_>) -> Result<u64, TollError> {
        let (path, default, max) = match &self.weight {
            TollWeight::Fixed(weight) => return Ok(*weight),
            TollWeight::Learned { default, .. } => return Ok(*default),
            TollWeight::Body { path, default, max } => (path, default, max),
        };
        let found = body.at(path);
        let told = match *found {
            Found::Whole(number) if number > 0 => match (u64::try_from(number), max) {
                (Ok(weight), None) => Some(weight),
                (Ok(weight), Some(max)) => Some(weight.min(*max)),
                (Err(_), max) => *max,
            },
            _ => None,
        };
        let (limit, path) = (self.limit.clone(), path.clone());
        let unread = || TollError::NoWeight { limit, path, found: found.to_string() };
        told.or(*default).ok_or_else(unread)
    }
}

impl TollWhen {
    fn holds(&self, body: &Body<'_>) -> bool {
        match (body.at(&self.path), &self.is) {
            (Found::Text(found), Scalar::Text(text)) => **found == **text,
            (Found::Whole(found), Scalar::Number(number)) => *found == i128::from(*number),
            (Found::Truth(found), Scalar::Truth(is_true)) => found == is_true,
            _ => false,
        }
    }
}

/// What was read from a body.
#[derive(Default)]
struct Body<'a> {
    paths: SmallVec<[&'a BodyPath; 4]>,
    found: Vec<Found<'a>>,
}

impl<'a> Body<'a> {
    /// Reads what these tolls need, if they need anything.
    fn read(
        call: &'a NewCall,
        tolls: impl Iterator<Item = &'a QueueToll>,
    ) -> Result<Self, TollError> {
        let needed = tolls.flat_map(|toll| toll.paths().map(|path| (&toll.limit, path)));
        let mut paths: SmallVec<[_; 4]> = SmallVec::new();
        let mut first = None;
        for (limit, path) in needed {
            first.get_or_insert((limit, path));
            paths.push(path);
        }
        let Some((limit, path)) = first else { return Ok(Self::default()) };
        let not_json = |_| TollError::BodyNotJson { limit: limit.clone(), path: path.clone() };
        let found = read(call.payload.body(), &paths).map_err(not_json)?;
        Ok(Self { paths, found })
    }

    fn at(&self, path: &BodyPath) -> &Found<'a> {
        let place = self.paths.iter().position(|read| *read == path);
        place.and_then(|place| self.found.get(place)).unwrap_or(&Found::Nothing)
    }
}

/// What a call is likely to cost at a meter, if that is known.
pub(super) type Estimate<'a> = &'a dyn Fn(&LimitName, Option<&Partition>) -> Option<u64>;

impl QueueSpec {
    /// All that a call owes here: its own tolls, and those that the queue asks for.
    #[inline]
    pub(super) fn tolls_of<'a>(
        &'a self,
        call: &'a NewCall,
        estimate: Estimate<'_>,
    ) -> Result<Cow<'a, [Toll]>, TollError> {
        if self.tolls.is_empty() {
            return Ok(Cow::Borrowed(&call.tolls));
        }
        self.with_own_tolls(call, estimate)
    }

    fn with_own_tolls<'a>(
        &'a self,
        call: &'a NewCall,
        estimate: Estimate<'_>,
    ) -> Result<Cow<'a, [Toll]>, TollError> {
        let mut tolls = Cow::Borrowed(&call.tolls[..]);
        let declared = || self.tolls.iter().filter(|toll| toll.may_concern(call));
        let body = Body::read(call, declared())?;
        for toll in declared() {
            tolls.to_mut().extend(toll.owed(call, &body, estimate)?);
        }
        Ok(tolls)
    }
}
