//! Deciding without the store while it is out of reach: all is admitted, or this process has a part of
//! each limit to itself.

use super::holds::{Doing, Held};
use super::limits::checked;
use super::out_of_reach::OutOfReach;
use super::pulse::Pulse;
use super::{Engine, Parts};
use crate::ask::{Ask, Named, TOLLS_MAX, Toll};
use crate::error::{AskError, Error};
use crate::limiter::Tracking;
use crate::pass::{Pass, Receipt};
use crate::report;
use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use tollgate_core::contract::Meters;
use tollgate_core::{Limit, LimitName, Partition, Span, Standing, Timestamp, UNITS_MAX};

use super::pulse::ended;

/// How an ask wants to be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Now.
    Now,
    /// Paid now, for a start within so long.
    Within(Span),
    /// Now, by one that would wait its turn.
    InTurn,
}

impl<S: Meters + 'static> Engine<S> {
    /// Decides an ask without the store, which failed so.
    pub(super) fn pay_alone(
        &self,
        ask: &Ask<'_>,
        start: Start,
        error: &Error,
    ) -> Result<Pass, Error> {
        let parts = &self.parts;
        let OutOfReach::Share { parts: count } = parts.reach.choice else {
            return parts.admit(ask, start);
        };
        let ask = parts.shared_here(ask, count, error)?;
        let (tracking, delay_max) = match start {
            Start::Now => (Tracking::IfNeeded, None),
            Start::Within(span) => (Tracking::Always, Some(span)),
            Start::InTurn => (Tracking::Always, None),
        };
        let decided = parts.reach.limiter().inner.consume_all(&ask, tracking, delay_max);
        parts.counted(decided, error)
    }

    /// Says what [`Self::pay_alone`] would, and pays nothing.
    pub(super) fn peek_alone(&self, ask: &Ask<'_>, error: &Error) -> Result<Standing, Error> {
        let parts = &self.parts;
        let OutOfReach::Share { parts: count } = parts.reach.choice else {
            return parts.check_alone(ask).map(|()| Standing::NOTHING);
        };
        let ask = parts.shared_here(ask, count, error)?;
        parts.reach.limiter().peek(ask).map_err(|other| or_too_heavy(other, error))
    }

    /// Waits its turn without the store; `None` once the store answers.
    pub(super) async fn wait_alone(
        &self,
        ask: &Ask<'_>,
        until: Option<Timestamp>,
        error: &Error,
    ) -> Result<Option<Pass>, Error> {
        let parts = &self.parts;
        let OutOfReach::Share { parts: count } = parts.reach.choice else {
            return parts.admit(ask, Start::InTurn).map(Some);
        };
        let ask_here = parts.shared_here(ask, count, error)?;
        let mut acquire = parts.reach.limiter().acquire(ask_here);
        if let Some(until) = until {
            acquire = acquire.max_wait(until.since(parts.pulse.clock.now()));
        }
        let mut acquiring = acquire.into_future();
        loop {
            let mut next = pin!(parts.pulse.sleep_until(parts.reach.ask_at()));
            let decided = poll_fn(|context| {
                if let Poll::Ready(decided) = Pin::new(&mut acquiring).poll(context) {
                    return Poll::Ready(Some(decided));
                }
                next.as_mut().poll(context).map(|()| None)
            });
            if let Some(decided) = decided.await {
                return parts.counted(decided, error).map(Some);
            }
            if parts.pulse.has_ended() {
                return Err(ended().into());
            }
            if parts.reach.left_alone().is_some() {
                continue;
            }
            // One of those who wait asks the store; its place here is kept meanwhile.
            match self.pay_in_turn(ask).await {
                Err(error) if error.may_pass() => {}
                Ok(pass) => return Ok(Some(pass)),
                Err(_) => return Ok(None),
            }
        }
    }
}

impl<S: Meters + 'static> Parts<S> {
    /// Grants an ask that could be granted, and counts it.
    fn admit(&self, ask: &Ask<'_>, start: Start) -> Result<Pass, Error> {
        self.check_alone(ask)?;
        self.reach.count_alone();
        report::admitted();
        let pass = Pass::new(Span::ZERO, (0, Standing::NOTHING));
        let is_open = |toll: &&Toll<'_>| toll.is_estimate || start != Start::Now;
        let open: Vec<String> =
            ask.tolls.iter().filter(is_open).map(|toll| toll.name().to_owned()).collect();
        Ok(if open.is_empty() { pass } else { pass.held(Box::new(Unmetered { open })) })
    }

    /// Refuses an ask that no store would grant.
    fn check_alone(&self, ask: &Ask<'_>) -> Result<(), Error> {
        match ask.tolls.len() {
            0 => return Err(AskError::NoToll.into()),
            1..=TOLLS_MAX => {}
            count => return Err(AskError::TooManyTolls { count }.into()),
        }
        for toll in &ask.tolls {
            let limit = LimitName::new(toll.name())?;
            toll.partition().map(Partition::new).transpose()?;
            toll.definition.map(|definition| checked(&limit, definition)).transpose()?;
            if toll.weight == 0 {
                return Err(AskError::WeightZero { name: toll.name().to_owned() }.into());
            }
        }
        Ok(())
    }

    /// An ask as the limiter of this process takes it, which has its part of the limits by then. One that
    /// is not known here is as far away as the store.
    fn shared_here<'a>(&self, ask: &Ask<'a>, parts: u32, error: &Error) -> Result<Ask<'a>, Error> {
        self.check_alone(ask)?;
        let limiter = self.reach.limiter();
        let mut tolls = ask.tolls.clone();
        for toll in &mut tolls {
            let name = LimitName::new(toll.name())?;
            let known = self.known.in_force(&name, toll.definition);
            let part = known.ok_or_else(|| error.clone())?.part_of(parts);
            if !limiter.is_defined_as(&name, &part) {
                // A guard may leave nothing of so small a part.
                limiter.define(&name, part).map_err(|_| error.clone())?;
            }
            if let Some(partition) = toll.partition() {
                let own = self.known.own(&name, partition).map(|own| own.part_of(parts));
                self.give_own(&name, partition, own)?;
            }
            (toll.limit, toll.definition) = (Named::Name(toll.name()), None);
        }
        Ok(Ask { tolls, priority: ask.priority })
    }

    /// Gives a partition rules of its own in this process, or takes them away.
    fn give_own(&self, limit: &str, partition: &str, own: Option<Limit>) -> Result<(), Error> {
        let mut given = self.reach.own.lock();
        let key = (limit.to_owned(), partition.to_owned());
        if given.get(&key) == own.as_ref() {
            return Ok(());
        }
        self.reach.limiter().override_partition(limit, partition, own.clone())?;
        match own {
            Some(own) => given.insert(key, own),
            None => given.remove(&key),
        };
        Ok(())
    }

    /// What was decided here, counted.
    fn counted(&self, decided: Result<Pass, Error>, error: &Error) -> Result<Pass, Error> {
        self.reach.count_alone();
        report::shared();
        let pass = decided.map_err(|other| or_too_heavy(other, error))?;
        let pulse = self.pulse.clone();
        Ok(pass.wrapped(|pass| Box::new(Here { pass: Some(pass), pulse })))
    }
}

/// What is too heavy for a part may pass the whole: that is for the store to say, which failed so.
fn or_too_heavy(decided: Error, error: &Error) -> Error {
    match decided {
        Error::Invalid(AskError::WeightOverCapacity { .. }) => error.clone(),
        other => other,
    }
}

/// What was admitted without being counted anywhere: its true cost is told to nobody.
#[derive(Debug)]
struct Unmetered {
    /// The limits whose true cost can be told.
    open: Vec<String>,
}

impl Held for Unmetered {
    fn settle<'a>(&'a mut self, limit: &'a str, actual: u64) -> Doing<'a, Result<(), Error>> {
        let unpaid = || AskError::NotPaid { name: limit.chars().take(128).collect() };
        let settled = if actual > UNITS_MAX {
            Err(AskError::ActualTooLarge { actual }.into())
        } else if self.open.iter().any(|open| open == limit) {
            Ok(())
        } else {
            Err(unpaid().into())
        };
        Box::pin(async { settled })
    }

    fn holds_slots(&self) -> bool {
        false
    }

    fn hand_back(self: Box<Self>) -> Doing<'static, ()> {
        Box::pin(async {})
    }

    fn into_receipt(self: Box<Self>, _: Span) -> Doing<'static, Option<Receipt>> {
        Box::pin(async { None })
    }
}

/// A pass of this process's own limiter. Its receipt would mean nothing to the store.
struct Here {
    pass: Option<Pass>,
    pulse: Arc<Pulse>,
}

impl fmt::Debug for Here {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Here").field("pass", &self.pass).finish_non_exhaustive()
    }
}

impl Held for Here {
    fn settle<'a>(&'a mut self, limit: &'a str, actual: u64) -> Doing<'a, Result<(), Error>> {
        Box::pin(async move {
            match &mut self.pass {
                Some(pass) => pass.settle(limit, actual).await,
                None => Err(AskError::ReceiptSpent.into()),
            }
        })
    }

    fn holds_slots(&self) -> bool {
        self.pass.as_ref().is_some_and(Pass::holds_slots)
    }

    fn hand_back(mut self: Box<Self>) -> Doing<'static, ()> {
        Box::pin(async move {
            if let Some(pass) = self.pass.take() {
                pass.cancel().await;
            }
        })
    }

    fn into_receipt(mut self: Box<Self>, life: Span) -> Doing<'static, Option<Receipt>> {
        let (pass, pulse) = (self.pass.take(), self.pulse.clone());
        if let Some(pass) = pass.filter(Pass::holds_slots) {
            // There is nothing to let go of them with: they stay held for as long as it would live.
            let over = pulse.sleep(life);
            pulse.go_on_with(async move {
                over.await;
                drop(pass);
            });
        }
        Box::pin(async { None })
    }
}
