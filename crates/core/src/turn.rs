//! Whose turn it is: the order in which waiting calls pass meters, and when a call stands where.
//!
//! A waiting call stands at one meter, the one that opens last for it. The first there waits for
//! its whole weight and no later call of its priority overtakes it. A call that is admitted where
//! it stands but refused elsewhere moves there; after a second such refusal it becomes senior and
//! has the turn at all its meters, so that nothing starves.

use crate::meter::{Blocker, Cause};
use crate::rule::Opening;
use crate::time::Span;

/// Refusals elsewhere after which a call becomes senior.
const PATIENCE: u8 = 2;
/// How often a call that waits for a calendar looks whether the wall clock was set.
pub const CALENDAR_LOOK: Span = Span::from_minutes(1);

/// 0 to 9, higher first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(u8);

/// Why a number is not a priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a priority is 0 to 9, higher first, and this is {given}")]
pub struct PriorityError {
    given: u64,
}

impl Priority {
    /// The highest.
    pub const MAX: Self = Self(9);

    /// Checks the range.
    pub fn new(level: u64) -> Result<Self, PriorityError> {
        match u8::try_from(level) {
            Ok(level @ 0..=9) => Ok(Self(level)),
            _ => Err(PriorityError { given: level }),
        }
    }

    /// 0 to 9.
    pub fn level(self) -> u8 {
        self.0
    }
}

/// A call's place in the order at its meters: what is less goes first. The same key on every store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// How far it is below the highest priority, in the high four bits; then its virtual start: how
    /// much its lane was served before. One word, for there are as many places as lanes.
    turn: u64,
    /// First come, first served.
    arrival: u64,
}

const TAG_BITS: u32 = 60;
/// From here on all tags are the same, and the first come goes first.
const TAG_MAX: u64 = (1 << TAG_BITS) - 1;

impl Place {
    /// The place of a call of this priority, lane service and arrival.
    pub fn new(priority: Priority, tag: u64, arrival: u64) -> Self {
        let below = u64::from(Priority::MAX.0 - priority.0);
        Self { turn: below << TAG_BITS | tag.min(TAG_MAX), arrival }
    }

    /// Its priority.
    pub fn priority(&self) -> Priority {
        // Four bits, of a number up to nine.
        Priority(Priority::MAX.0 - (self.turn >> TAG_BITS).to_le_bytes()[0])
    }

    /// Its virtual start.
    pub fn tag(&self) -> u64 {
        self.turn & TAG_MAX
    }
}

/// Tags count in parts of a unit, so that lanes of different weights can be told apart.
const TAG_PARTS: u128 = 1024;

/// How far a lane of this weight has been served once a call of `units` that began at `tag` has
/// started.
pub fn finish(tag: u64, units: u64, lane_weight: u32) -> u64 {
    let served = (u128::from(units) * TAG_PARTS).div_ceil(u128::from(lane_weight.max(1)));
    tag.saturating_add(u64::try_from(served).unwrap_or(u64::MAX)).min(TAG_MAX)
}

/// The tag with which a lane comes to stand at a meter: where it was served to, or, if that is behind
/// what is served now, where a newcomer begins.
pub fn start(finish: u64, vtime: u64, round: u64) -> u64 {
    if finish > vtime { finish } else { vtime.max(round) }
}

/// How far lanes are served on average once one of `standing` was served so much: a newcomer begins
/// there. If newcomers began where the last start did, ever new ones would starve who was served once.
pub fn round(from: u64, served: u64, standing: u64) -> u64 {
    from.saturating_add(served / standing.max(1)).min(TAG_MAX)
}

/// Who else is at a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Company {
    /// The first that stands there.
    pub first: Option<Place>,
    /// The call that holds its turn there although it stands elsewhere, or here.
    pub senior: Option<Place>,
}

/// Whether a call must let someone else at a meter go first.
pub fn must_yield(place: Place, is_senior: bool, company: Company) -> bool {
    let others = |other: Option<Place>| other.filter(|other| *other != place);
    if others(company.senior).is_some_and(|senior| senior.priority() >= place.priority()) {
        return true;
    }
    others(company.first).is_some_and(|first| {
        if is_senior { first.priority() > place.priority() } else { first < place }
    })
}

/// What becomes of a waiting call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It starts now.
    Start,
    /// It stands at its toll number `at`, which opens last for it.
    Stand {
        /// Which toll.
        at: usize,
        /// What is in the way there.
        blocker: Blocker,
    },
}

/// Judges a call by what is in its way at each of its meters.
pub fn judge(ways: impl IntoIterator<Item = Option<Blocker>>) -> Judgement {
    let blocked = ways.into_iter().enumerate().filter_map(|(at, way)| Some((at, way?)));
    let last = blocked.fold(None, |last: Option<(usize, Blocker)>, (at, blocker)| match last {
        Some((_, latest)) if latest.opening >= blocker.opening => last,
        _ => Some((at, blocker)),
    });
    last.map_or(Judgement::Start, |(at, blocker)| Judgement::Stand { at, blocker })
}

/// How often a call was admitted where it stood and refused elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Patience {
    refusals: u8,
}

impl Patience {
    /// Notes a refusal elsewhere; says whether the call may now become senior: its patience is at
    /// an end and only waits that can be computed are left.
    pub fn try_on(&mut self, ways: impl IntoIterator<Item = Option<Blocker>>) -> bool {
        self.refusals = self.refusals.saturating_add(1).min(PATIENCE);
        self.refusals == PATIENCE && ways.into_iter().flatten().all(is_computed)
    }
}

fn is_computed(blocker: Blocker) -> bool {
    matches!(blocker.cause, Cause::Spent | Cause::Turn) && blocker.opening != Opening::OnRelease
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn place(priority: u64, arrival: u64) -> Place {
        Place::new(Priority::new(priority).unwrap(), 0, arrival)
    }

    fn blocked(cause: Cause, at: u64) -> Option<Blocker> {
        let opening = Opening::At(Timestamp::from_nanos(at));
        Some(Blocker { cause, rule: 0, opening })
    }

    #[test]
    fn higher_priority_then_earlier_arrival_goes_first() {
        let mut places = [place(0, 1), place(5, 9), place(0, 0), place(5, 3)];
        places.sort_unstable();
        assert_eq!(places, [place(5, 3), place(5, 9), place(0, 0), place(0, 1)]);
    }

    #[test]
    fn a_later_call_yields_to_the_first_and_a_higher_one_does_not() {
        let company = Company { first: Some(place(0, 1)), senior: None };
        assert!(must_yield(place(0, 2), false, company));
        assert!(!must_yield(place(0, 1), false, company));
        assert!(!must_yield(place(1, 2), false, company));
    }

    #[test]
    fn everyone_of_its_priority_yields_to_a_senior() {
        let company = Company { first: Some(place(0, 1)), senior: Some(place(0, 7)) };
        assert!(must_yield(place(0, 1), false, company));
        assert!(!must_yield(place(0, 7), true, company));
        assert!(!must_yield(place(3, 9), false, company));
    }

    #[test]
    fn stands_where_it_opens_last() {
        let ways = [blocked(Cause::Spent, 5), None, blocked(Cause::Closed, 9)];
        assert!(matches!(judge(ways), Judgement::Stand { at: 2, .. }));
        assert_eq!(judge([None, None]), Judgement::Start);
    }

    #[test]
    fn becomes_senior_at_the_second_refusal_with_computed_waits_only() {
        let spent = [blocked(Cause::Spent, 5)];
        let mut patience = Patience::default();
        assert!(!patience.try_on(spent));
        assert!(!patience.try_on([blocked(Cause::Slots, 5)]));
        assert!(!patience.try_on([blocked(Cause::Closed, 5)]));
        assert!(patience.try_on(spent));
    }
}
