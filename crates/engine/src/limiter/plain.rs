//! The common case, decided in place: one toll at a plain meter.

use super::Inner;
use crate::ask::{Named, Toll};
use crate::limits::{Address, Entry};
use crate::stand::{Decided, Stand};
use crate::table::{Kept, Shard, Spot};
use tollgate_core::meter::plain::{Plain, PlainRule};
use tollgate_core::name::NAME_BYTES_MAX;
use tollgate_core::{Now, Span, Timestamp};

impl Inner {
    /// One toll at a global meter whose word is lent, decided without a lock; `None` otherwise.
    #[inline(always)]
    pub(super) fn decide_lent<T>(
        &self,
        toll: &Toll<'_>,
        then: impl FnOnce(Stand, Result<(), Span>) -> T,
    ) -> Option<T> {
        match (toll.limit, toll.partition) {
            (Named::Ref(limit), None) => {
                limit.entry.direct.admit(toll.weight, || self.dial.now(), then)
            }
            _ => None,
        }
    }

    /// The common case: one toll at a plain meter, decided in place; `None` otherwise.
    #[inline]
    pub(super) fn decide(&self, toll: &Toll<'_>) -> Option<Decided> {
        match toll.limit {
            Named::Ref(limit) => self.decide_at(&limit.entry, toll),
            Named::Name(name) => {
                self.limits.with(name, |entry| self.decide_at(entry, toll)).flatten()
            }
        }
    }

    #[inline]
    fn decide_at(&self, entry: &Entry, toll: &Toll<'_>) -> Option<Decided> {
        let now = || self.dial.now();
        let lent = || entry.direct.admit(toll.weight, now, |stand, decided| (stand, decided));
        match toll.partition {
            None => lent().or_else(|| self.decide_locked(entry, toll)),
            // Only a name that is too short or too long never finds its meter below.
            Some(_) => self.decide_locked(entry, toll),
        }
    }

    #[inline]
    fn decide_locked(&self, entry: &Entry, toll: &Toll<'_>) -> Option<Decided> {
        // Read while the name is hashed: behind a lock the processor would wait for it.
        let read = self.dial.now();
        let address = entry.address(toll.partition);
        let mut shard = entry.lock(address);
        let now = shard.moment(read);
        let spot = shard.find(address.hash, address.key);
        let decided = self.decide_in(&mut shard, (address, spot), toll.weight, now);
        if toll.partition.is_none() {
            shard.lend(&entry.direct);
        }
        decided
    }

    /// Decides at one plain meter of a locked shard; where it is, if that is known.
    // Inlined by force: as calls its parts take a quarter longer.
    #[inline(always)]
    pub(super) fn decide_in(
        &self,
        shard: &mut Shard,
        (address, spot): (Address<'_>, Option<Spot>),
        weight: u64,
        now: Timestamp,
    ) -> Option<Decided> {
        let spot = match spot {
            Some(spot) => spot,
            None => self.make(shard, (address, weight), now)?,
        };
        let definition = shard.definition(address.key)?;
        if weight == 0 || weight > definition.capacity() {
            return None;
        }
        let rule = definition.plain()?;
        let Kept::Plain(mut plain) = shard.kept(spot) else { return None };
        let decided = rule.admit(&mut plain, weight, now).map_err(|opens| opens.since(now));
        let stand = stand(rule, plain, now);
        if decided.is_ok() {
            shard.keep_plain(spot, address.key, plain, Now::both(now));
        }
        Some((stand, decided))
    }

    /// Makes a meter for a key that is in order, if its limit's meters are plain and there is room.
    #[cold]
    fn make(
        &self,
        shard: &mut Shard,
        (address, weight): (Address<'_>, u64),
        now: Timestamp,
    ) -> Option<Spot> {
        if let Some(spot) = shard.find(address.hash, address.key) {
            return Some(spot);
        }
        let definition = shard.definition(address.key)?;
        let can_pass = (1..=definition.capacity()).contains(&weight);
        definition.plain().filter(|_| can_pass)?;
        let has_room = self.limits.meters() < self.settings.meters_max;
        if !has_room || address.key.len() > NAME_BYTES_MAX {
            return None;
        }
        // A shard's whole meters may follow the wall clock, and are cleared by it.
        let now = Now { at: now, wall: self.settings.clock.wall() };
        Some(shard.insert(address.hash, address.key, now))
    }
}

impl Shard {
    /// The instant of a decision whose clock was read before the lock was taken: not before one that was made meanwhile.
    #[inline]
    pub(crate) fn moment(&mut self, read: Timestamp) -> Timestamp {
        self.latest = self.latest.max(read);
        self.latest
    }
}

/// How a plain meter stands, worked out now only if it cannot be later.
// Inlined by force, too: what it returns through memory is not there yet when it is read.
#[inline(always)]
fn stand(rule: PlainRule<'_>, plain: Plain, now: Timestamp) -> Stand {
    if let PlainRule::Bucket(bucket) = rule
        && let Some((step, _)) = bucket.whole_nanos()
    {
        let (limit, burst) = (bucket.limit(), bucket.burst());
        let refilling = plain.instant.since(now).as_nanos();
        return Stand::Refilling { limit, burst, step, refilling };
    }
    Stand::Known(rule.standing(plain, now))
}

#[cfg(test)]
mod tests {
    use crate::ask::toll;
    use crate::clock::{Bell, Clock};
    use crate::limiter::{Limiter, Settings};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tollgate_core::{Limit, Span, Timestamp};

    /// Reads whatever it is set to, as one does who read before others and was locked out meanwhile.
    #[derive(Default)]
    struct Reading(AtomicU64);

    impl Clock for Reading {
        fn now(&self) -> Timestamp {
            Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
        }

        fn wall(&self) -> Timestamp {
            self.now()
        }

        fn wait(&self, _: &Arc<Bell>, _: Option<Timestamp>) {}
    }

    #[test]
    fn a_clock_that_was_read_before_the_lock_is_not_before_what_was_decided_meanwhile() {
        let clock = Arc::new(Reading::default());
        let limiter = Limiter::new(Settings { clock: clock.clone(), ..Settings::default() });
        let api = limiter.define("api", Limit::fixed_window(2, Span::from_secs(1))).unwrap();
        let admits = |nanos| {
            clock.0.store(nanos, Ordering::Relaxed);
            limiter.try_consume(toll(&api, "acme")).is_ok()
        };
        assert!(admits(105), "the window opens");
        assert!(admits(100), "it is open, also for who read the clock before");
        assert!(!admits(101));
    }
}
