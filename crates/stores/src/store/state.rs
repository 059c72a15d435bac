//! All that commands see and change: the scheduler, and what the store knows beside it.

use super::bodies::RecentBodies;
use super::ends::Ends;
use super::slices::Slices;
use tollgate_core::contract::{Ask, AskError, Paid, StoreTotals};
#[cfg(feature = "postgres")]
use tollgate_core::lanes::Effect;
use tollgate_core::lanes::{CallId, End, Payload, Scheduler};
use tollgate_core::{LimitName, Now, Span, Timestamp};

/// How many slices are looked at for being idle with each command, and when nothing else is done.
const LOOKED_AT: usize = 2;
const LOOKED_AT_LONG: usize = 1_000;

/// All that commands see and change.
pub(crate) struct State {
    pub(crate) scheduler: Scheduler,
    pub(crate) totals: StoreTotals,
    /// When something is due next, as it was told last.
    pub(crate) due_told: Option<Timestamp>,
    /// How long it takes, on the limits' clock, until what was done lasts and is answered.
    pub(crate) answered_after: Span,
    pub(crate) slices: Slices,
    /// What was consumed last may be told at once.
    pub(crate) is_covered: bool,
    pub(crate) bodies: RecentBodies,
    ends: Ends,
}

/// Where a body is.
#[derive(Debug)]
pub(crate) enum BodyAt {
    /// In memory.
    Here(Payload),
    /// At home, there.
    Home(u64),
    /// Nowhere: the call has ended.
    Gone,
}

impl State {
    pub(crate) fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            totals: StoreTotals::default(),
            due_told: None,
            answered_after: Span::ZERO,
            slices: Slices::default(),
            is_covered: false,
            bodies: RecentBodies::default(),
            ends: Ends::default(),
        }
    }

    /// A state in which nothing is consumed before that lasts.
    #[cfg(any(test, feature = "postgres"))]
    pub(crate) fn without_slices() -> Self {
        Self { slices: Slices::off(), ..Self::new(Scheduler::new()) }
    }

    /// Goes on with another scheduler: what is known beside it is of calls that have not changed.
    #[cfg(feature = "postgres")]
    pub(crate) fn begin_with(&mut self, scheduler: Scheduler) {
        let totals = std::mem::take(&mut self.totals);
        *self = Self { totals, scheduler, ..Self::without_slices() };
    }

    /// Lets happen what was decided elsewhere.
    #[cfg(feature = "postgres")]
    pub(crate) fn follow(&mut self, effect: &Effect, now: Now) {
        self.scheduler.follow(effect, now);
        if let Effect::Ended { id, end } = effect {
            self.note_end(*id, *end);
        }
    }

    pub(crate) fn body(&self, id: CallId) -> BodyAt {
        if let Some(body) = self.bodies.find(id) {
            return BodyAt::Here(body.clone());
        }
        let located = self.scheduler.located(id);
        located.map_or(BodyAt::Gone, BodyAt::Home)
    }

    pub(crate) fn consume(&mut self, asks: &[Ask], now: Now) -> Vec<Result<Paid, AskError>> {
        let Self { scheduler, slices, .. } = self;
        let answers: Vec<_> = asks.iter().map(|ask| scheduler.consume(ask, now)).collect();
        self.is_covered = slices.covers(asks, &answers, scheduler, now);
        slices.take_back(LOOKED_AT, scheduler, now);
        answers
    }

    /// Takes back the slices of limits that may be smaller now.
    pub(crate) fn limits_changed<'a>(&mut self, limits: impl Iterator<Item = &'a LimitName>) {
        limits.for_each(|limit| self.slices.take_back_of(limit, &mut self.scheduler));
    }

    /// Takes back slices that nobody uses.
    pub(crate) fn take_back_slices(&mut self, now: Now) {
        self.slices.take_back(LOOKED_AT_LONG, &mut self.scheduler, now);
    }

    pub(crate) fn end(&self, id: CallId) -> Option<End> {
        let is_dead = self.scheduler.is_among_dead(id);
        is_dead.then_some(End::Dead).or_else(|| self.ends.find(id))
    }

    pub(crate) fn note_end(&mut self, id: CallId, end: End) {
        // The scheduler knows the dead, and they keep their bodies.
        if end == End::Dead {
            return;
        }
        self.bodies.remove(id);
        self.ends.note(id, end);
    }
}
