//! Consuming: pay now or be refused, pay now and start later, or look without paying.

use super::{Inner, Limiter};
use crate::ask::{Ask, Asking, TOLLS_MAX, Toll};
use crate::error::{AskError, Error, Refusal, StoreError, TryError};
use crate::limits::{Address, Entry};
use crate::locked::{Asker, Line, Locked};
use crate::pass::{PaidLine, Pass};
use crate::report;
use crate::stand::Stand;
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate_core::contract::DELAY_MAX;
use tollgate_core::meter::Holding;
use tollgate_core::turn::{Judgement, judge};
use tollgate_core::{Blocker, Cause, Opening, Place, Span, Standing, Timestamp};

/// Whether what is paid can be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// Only if a toll is an estimate or holds slots.
    IfNeeded,
    /// Always.
    Always,
}

/// What was decided under a lock, in a place of its own in memory: what is decided without one needs none then.
struct Apart(Result<Pass, TryError>);

/// A call's tolls, resolved and with those at one meter added up.
pub(crate) struct Resolved<'a> {
    pub(crate) tolls: SmallVec<[(Arc<Entry>, Address<'a>, u64); 2]>,
    is_tracked: bool,
}

impl Limiter {
    /// Pays all tolls now, or none: *refused* says which limit opens last and when. Never overtakes
    /// a call of the same or a higher priority that waits.
    #[inline]
    pub fn consume<'a>(&self, ask: impl Asking<'a>) -> Result<Pass, Error> {
        let lent = ask.single().and_then(|toll| {
            self.inner.decide_lent(toll, |stand, decided| decided.map(|()| Pass::free(stand)).ok())
        });
        lent.flatten().map_or_else(|| self.consume_kept(ask), Ok)
    }

    #[inline(never)]
    fn consume_kept<'a>(&self, ask: impl Asking<'a>) -> Result<Pass, Error> {
        let decided = ask.single().and_then(|toll| Some((*toll, self.inner.decide(toll)?)));
        match decided {
            Some((_, (stand, Ok(())))) => Ok(Pass::free(stand)),
            Some((toll, (stand, Err(wait)))) => Err(refused(&toll, stand, wait)),
            None => self.consume_slowly(&ask.into_ask()),
        }
    }

    /// As [`Limiter::consume`] for one toll, without the names in the refusal, the counter and the
    /// trace: for those who count nanoseconds.
    // Inlined by force, with all that it needs in registers: through memory it takes a quarter longer.
    #[inline(always)]
    pub fn try_consume(&self, toll: Toll<'_>) -> Result<Pass, TryError> {
        let lent = Asking::single(&toll).and_then(|toll| {
            self.inner.decide_lent(toll, |stand, decided| match decided {
                Ok(()) => Ok(Pass::free(stand)),
                Err(wait) => Err(TryError::Refused { retry_after: Some(wait) }),
            })
        });
        match lent {
            Some(decided) => decided,
            None => self.try_consume_kept(toll).0,
        }
    }

    #[inline(never)]
    fn try_consume_kept(&self, toll: Toll<'_>) -> Apart {
        Apart(match Asking::single(&toll).and_then(|toll| self.inner.decide(toll)) {
            Some((stand, Ok(()))) => Ok(Pass::free(stand)),
            Some((_, Err(wait))) => Err(TryError::Refused { retry_after: Some(wait) }),
            None => self.consume_slowly(&toll.into()).map_err(TryError::from),
        })
    }

    #[cold]
    pub(super) fn consume_slowly(&self, ask: &Ask<'_>) -> Result<Pass, Error> {
        self.inner.consume_all(ask, Tracking::IfNeeded, None).inspect_err(report::failed)
    }

    /// Pays all tolls now for a start at the first instant that they allow: the pass says how long
    /// to wait. Later changes of a limit do not reach it. Refused if the delay would be over
    /// `max_wait`, or with a limit that counts calls at a time.
    pub fn consume_delayed<'a>(
        &self,
        ask: impl Asking<'a>,
        max_wait: impl Into<Span>,
    ) -> Result<Pass, Error> {
        let max_wait = max_wait.into().min(DELAY_MAX);
        let outcome = self.inner.consume_all(&ask.into_ask(), Tracking::Always, Some(max_wait));
        outcome.inspect_err(report::failed)
    }

    /// Says what `consume` would, and pays nothing.
    pub fn peek<'a>(&self, ask: impl Asking<'a>) -> Result<Standing, Error> {
        let ask = ask.into_ask();
        let resolved = self.inner.resolve_all(&ask)?;
        let lines = resolved.lines();
        let locked = Locked::new(&lines, || self.clock().both());
        locked.check()?;
        let asker = self.inner.newcomer(&ask);
        match judge(locked.ways(asker)) {
            Judgement::Start => {
                Ok(locked.tightest().map_or(Standing::NOTHING, |(_, standing)| standing))
            }
            Judgement::Stand { at, blocker } => Err(refusal(&locked, at, blocker).into()),
        }
    }
}

impl Inner {
    pub(crate) fn consume_all(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        tracking: Tracking,
        max_delay: Option<Span>,
    ) -> Result<Pass, Error> {
        self.with_room(|| self.try_consume_all(ask, tracking, max_delay))
    }

    fn try_consume_all(
        self: &Arc<Self>,
        ask: &Ask<'_>,
        tracking: Tracking,
        max_delay: Option<Span>,
    ) -> Result<Pass, Error> {
        let resolved = self.resolve_all(ask)?;
        let lines = resolved.lines();
        let mut locked = Locked::new(&lines, || self.settings.clock.both());
        locked.check()?;
        self.make_meters(&mut locked)?;
        let start = match max_delay {
            None => None,
            Some(max_delay) => Some(delayed_start(&locked, max_delay)?),
        };
        let ways = locked.ways(self.newcomer(ask)).into_iter();
        // A reservation waits for rates, but overtakes nobody anywhere.
        let in_the_way = |way: &Blocker| start.is_none() || way.cause == Cause::Turn;
        match judge(ways.map(|way| way.filter(in_the_way))) {
            Judgement::Stand { at, blocker } => Err(refusal(&locked, at, blocker).into()),
            Judgement::Start => {
                let tracking = match tracking {
                    Tracking::IfNeeded if resolved.is_tracked => Tracking::Always,
                    other => other,
                };
                Ok(self.pay(&mut locked, start, tracking))
            }
        }
    }

    /// Takes the tolls of a call whose ways are all open at `start` (`None`: now).
    pub(crate) fn pay(
        self: &Arc<Self>,
        locked: &mut Locked<'_>,
        start: Option<Timestamp>,
        tracking: Tracking,
    ) -> Pass {
        let now = locked.now.at;
        let start = start.unwrap_or(now);
        let delay = start.since(now);
        let has_slots = (0..locked.lines.len())
            .any(|index| locked.definition(index).is_some_and(|d| d.has_slots()));
        if tracking == Tracking::IfNeeded && !has_slots && delay.is_zero() && locked.is_plain() {
            locked.pay_plain();
            return Pass::new(delay, locked.tightest().unwrap_or((0, Standing::NOTHING)));
        }
        let holding = Holding { id: self.next_hold(), expires: Timestamp::MAX };
        let payments = locked.pay(start, holding);
        let pass = Pass::new(delay, locked.tightest().unwrap_or((0, Standing::NOTHING)));
        if tracking == Tracking::IfNeeded && !has_slots {
            return pass;
        }
        let lines = locked.lines.iter().zip(payments);
        pass.with(self, lines.map(|(line, payment)| PaidLine::new(line, payment)))
    }

    /// Checks the tolls, looks up their limits and adds up those at one meter.
    pub(crate) fn resolve_all<'a>(self: &Arc<Self>, ask: &Ask<'a>) -> Result<Resolved<'a>, Error> {
        match ask.tolls.len() {
            0 => return Err(AskError::NoToll.into()),
            1..=TOLLS_MAX => {}
            count => return Err(AskError::TooManyTolls { count }.into()),
        }
        let mut resolved = Resolved { tolls: SmallVec::new(), is_tracked: false };
        for toll in &ask.tolls {
            if toll.weight == 0 {
                return Err(AskError::WeightZero { name: toll.name().to_owned() }.into());
            }
            let entry = self.resolve(toll)?;
            let address = entry.address(toll.partition);
            let same = |(other, at, _): &&mut (Arc<Entry>, Address<'_>, u64)| {
                Arc::ptr_eq(other, &entry) && at.key == address.key
            };
            match resolved.tolls.iter_mut().find(same) {
                Some((_, _, weight)) => *weight = weight.saturating_add(toll.weight),
                None => resolved.tolls.push((entry, address, toll.weight)),
            }
            resolved.is_tracked |= toll.is_estimate;
        }
        Ok(resolved)
    }

    /// Makes the meters that are not there yet, within the bound.
    pub(crate) fn make_meters(&self, locked: &mut Locked<'_>) -> Result<(), StoreError> {
        let missing = locked.missing_meters();
        if missing == 0 {
            return Ok(());
        }
        let meters = self.settings.meters_max;
        let is_full = || self.limits.meters().saturating_add(missing) > meters;
        if is_full() && locked.purge() < missing && is_full() {
            return Err(StoreError::MetersFull { meters });
        }
        locked.make_meters();
        Ok(())
    }

    /// Decides, and once more if there was no room and some could be made.
    pub(crate) fn with_room<T>(&self, decide: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        match decide() {
            Err(Error::Store(StoreError::MetersFull { .. })) => {
                self.limits.reclaim(self.settings.clock.both());
                decide()
            }
            decided => decided,
        }
    }

    /// Someone who came just now: behind all of the same priority who wait.
    fn newcomer(&self, ask: &Ask<'_>) -> Asker {
        let place = Place::new(ask.priority, u64::MAX, u64::MAX);
        Asker { place, is_senior: false }
    }
}

impl<'a> Resolved<'a> {
    pub(crate) fn lines(&self) -> SmallVec<[Line<'_>; 2]> {
        let each = self.tolls.iter();
        each.map(|(entry, address, weight)| Line { entry, address: *address, weight: *weight })
            .collect()
    }
}

#[cold]
fn refused(toll: &Toll<'_>, stand: Stand, wait: Span) -> Error {
    let error = Error::Refused(Refusal {
        limit: toll.name().into(),
        partition: toll.partition.map(Into::into),
        cause: Cause::Spent,
        retry_after: Some(wait),
        standing: stand.standing(),
    });
    report::failed(&error);
    error
}

/// When a call that pays now may start; refused if that is too late or unknown.
fn delayed_start(locked: &Locked<'_>, max_delay: Span) -> Result<Timestamp, Error> {
    for (index, line) in locked.lines.iter().enumerate() {
        if locked.definition(index).is_some_and(|definition| definition.has_slots()) {
            let name = line.entry.name.as_ref().to_owned();
            return Err(AskError::DelayWithSlots { name }.into());
        }
    }
    let latest = locked.now.at.plus(max_delay);
    match locked.opens() {
        Opening::At(start) if start <= latest && locked.takes_promises() => Ok(start),
        _ => {
            let place = Place::new(tollgate_core::Priority::MAX, 0, 0);
            let asker = Asker { place, is_senior: true };
            let Judgement::Stand { at, blocker } = judge(locked.ways(asker)) else {
                return Ok(locked.now.at);
            };
            Err(refusal(locked, at, blocker).into())
        }
    }
}

/// The refusal of a call that would have to stand at its toll number `at`.
pub(crate) fn refusal(locked: &Locked<'_>, at: usize, blocker: tollgate_core::Blocker) -> Refusal {
    let line = &locked.lines[at];
    let retry_after = match blocker.opening {
        // Units are there, and someone else has the turn: no one knows until when.
        Opening::At(opens) if blocker.cause == Cause::Turn && opens <= locked.now.at => None,
        Opening::At(opens) => Some(opens.since(locked.now.at)),
        Opening::OnRelease => None,
    };
    Refusal {
        limit: line.entry.name.clone(),
        partition: Some(line.address.key).filter(|key| !key.is_empty()).map(Into::into),
        cause: blocker.cause,
        retry_after,
        standing: locked.standing_at(at).unwrap_or(Standing::NOTHING),
    }
}
