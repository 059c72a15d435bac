//! Concurrency: so many at a time, counted as live holds.

use super::Opening;
use crate::limit::{LimitError, checked_limit};
use crate::meter::{Words, earlier};
use crate::time::{Now, Span, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// `limit` units at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotsRule {
    limit: u64,
}

/// Names one hold of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(pub u64);

/// State of a concurrency rule: who holds how much, and until when at the latest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slots {
    // Invariant: `held` is the sum of the weights, and `expiries` names each hold that has an end.
    holds: BTreeMap<HoldId, Hold>,
    expiries: BTreeSet<(Timestamp, HoldId)>,
    held: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hold {
    weight: u64,
    /// `Timestamp::MAX`: held until it is let go.
    expires: Timestamp,
}

impl SlotsRule {
    pub(super) fn new(limit: u64) -> Result<Self, LimitError> {
        checked_limit(limit)?;
        Ok(Self { limit })
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Now, at the expiry that frees enough, or when someone lets go.
    pub fn opens(&self, state: &Slots, weight: u64, now: Now) -> Opening {
        let mut held = state.held;
        let mut expiries = state.expiries.iter();
        let mut opens = now.at;
        loop {
            if held.saturating_add(weight) <= self.limit {
                return Opening::At(opens);
            }
            let Some((expires, hold)) = expiries.next() else { return Opening::OnRelease };
            held -= state.holds.get(hold).map_or(0, |hold| hold.weight);
            opens = opens.max(*expires);
        }
    }

    /// Slots are not paid for: they are held, see [`Slots::hold`].
    pub fn pay(&self, _state: &mut Slots, _weight: u64, _at: Now) {}

    /// Units held.
    pub fn missing(&self, state: &Slots, now: Now) -> u64 {
        let expired = state.expiries.iter().take_while(|(expires, _)| *expires <= now.at);
        let gone = expired.filter_map(|(_, hold)| state.holds.get(hold));
        state.held - gone.map(|hold| hold.weight).sum::<u64>()
    }

    /// When the last hold ends.
    pub fn fresh_at(&self, state: &Slots, _now: Now) -> Opening {
        if state.holds.len() > state.expiries.len() {
            return Opening::OnRelease;
        }
        Opening::At(state.expiries.last().map_or(Timestamp::default(), |(expires, _)| *expires))
    }
}

impl Slots {
    pub(crate) fn to_words(&self, words: &mut Vec<u64>) {
        words.push(self.holds.len() as u64);
        let each = self.holds.iter();
        words.extend(each.flat_map(|(id, hold)| [id.0, hold.weight, hold.expires.as_nanos()]));
    }

    /// Dates the ends of holds earlier by so much.
    pub(super) fn set_back(&mut self, by: Span) {
        for (id, hold) in std::mem::take(self).holds {
            self.hold(id, hold.weight, earlier(hold.expires, by));
        }
    }

    /// Until when slots are held under this name.
    pub(crate) fn held_until(&self, hold: HoldId) -> Option<Timestamp> {
        self.holds.get(&hold).map(|hold| hold.expires)
    }

    pub(crate) fn from_words(words: &mut Words<'_>) -> Option<Self> {
        let holds =
            words.list(|words| Some((HoldId(words.take()?), words.take()?, words.timestamp()?)))?;
        let mut slots = Self::default();
        for (id, weight, expires) in holds {
            slots.hold(id, weight, expires);
        }
        Some(slots)
    }

    /// Holds `weight` under a name that was not used before, up to `expires` (`Timestamp::MAX`:
    /// until it is let go).
    pub fn hold(&mut self, hold: HoldId, weight: u64, expires: Timestamp) {
        self.release(hold);
        self.holds.insert(hold, Hold { weight, expires });
        if expires < Timestamp::MAX {
            self.expiries.insert((expires, hold));
        }
        self.held = self.held.saturating_add(weight);
    }

    /// Lets go; says whether it was still held.
    pub fn release(&mut self, hold: HoldId) -> bool {
        let Some(Hold { weight, expires }) = self.holds.remove(&hold) else { return false };
        self.expiries.remove(&(expires, hold));
        self.held -= weight;
        true
    }

    /// Holds on until `expires`; says whether it was still held at `now`.
    pub fn renew(&mut self, hold: HoldId, expires: Timestamp, now: Timestamp) -> bool {
        self.expire(now);
        let Some(Hold { weight, .. }) = self.holds.get(&hold).copied() else { return false };
        self.hold(hold, weight, expires);
        true
    }

    /// Holds on until `expires`, or as long as it was held if that is longer; says whether it was
    /// still held at `now`.
    pub fn extend(&mut self, hold: HoldId, expires: Timestamp, now: Timestamp) -> bool {
        let held = self.holds.get(&hold).map_or(expires, |hold| hold.expires);
        self.renew(hold, expires.max(held), now)
    }

    /// Whether it is held at `now`.
    pub fn holds(&self, hold: HoldId, now: Timestamp) -> bool {
        self.holds.get(&hold).is_some_and(|hold| hold.expires > now)
    }

    /// Drops the holds whose time is over: what a dead holder kept comes back by itself.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some(&(_, hold)) = self.expiries.first().filter(|(expires, _)| *expires <= now) {
            self.release(hold);
        }
    }

    /// The next instant at which a hold expires by itself.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.first().map(|(expires, _)| *expires)
    }
}
