//! Slices: how much may be consumed at a meter before that is on disk.
//!
//! Who consumes is answered at once, not after the sync, while all that is not on disk yet stays
//! within a slice that is. After a crash the whole slice counts as consumed: never over, and at most one
//! slice a meter is lost. A slice is given to a meter that is busy and large enough for it not to
//! matter, and taken back when it is idle or the store is closed.

use std::collections::{HashMap, VecDeque};
use tollgate_core::contract::{Ask, AskError, MeterName, Paid};
use tollgate_core::lanes::Scheduler;
use tollgate_core::{LimitName, Now, Span, Timestamp};

/// A slice is this part of what a meter holds.
const PART: u64 = 16;
/// The largest slice: more than a busy meter has on the way to the disk.
const UNITS_MAX: u64 = 4_096;
/// A meter that is asked twice within this time is busy.
const BUSY: Span = Span::from_secs(1);
/// A meter that is not asked for so long is idle.
const IDLE: Span = Span::from_secs(10);
/// Most asks that are answered ahead of the disk: their receipts' names are not given again after a
/// crash, and twice as many are skipped.
const ASKS_MAX: usize = 1 << 19;
/// Most meters that are watched.
const METERS_MAX: usize = 100_000;

#[derive(Default)]
pub(crate) struct Slices {
    /// There are none.
    is_off: bool,
    meters: HashMap<MeterName, Slice>,
    /// All of them, in the order in which they are looked at for being idle.
    round: VecDeque<MeterName>,
    /// How many slices there ever were.
    made: u64,
    /// What is answered and not on disk, since this was taken last, and of which slice.
    consumed: Vec<(MeterName, u64, u64)>,
    /// Slices that were recorded since this was taken last.
    recorded: Vec<(MeterName, u64)>,
    /// How many asks were covered since this was taken last, and how many of all are not on disk.
    asks: usize,
    outstanding: usize,
}

#[derive(Default)]
struct Slice {
    /// One that was taken back may be on its way to the disk still, when there is another at its meter.
    number: u64,
    /// What may be consumed ahead; 0 until that is on disk.
    units: u64,
    /// What was recorded.
    recorded: u64,
    /// What was consumed and is not on disk.
    ahead: u64,
    used: Timestamp,
}

impl Slices {
    /// No slices: all waits until it is safe.
    #[cfg(any(test, feature = "postgres"))]
    pub(crate) fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// Whether what was answered may be told at once: what was refused is paid by nobody, and what was
    /// paid is covered, or it waits until it is on disk.
    pub(crate) fn covers(
        &mut self,
        asks: &[Ask],
        answers: &[Result<Paid, AskError>],
        scheduler: &mut Scheduler,
        now: Now,
    ) -> bool {
        if self.is_off {
            return false;
        }
        let mut covers = true;
        for (ask, answer) in asks.iter().zip(answers) {
            if let Ok(paid) = answer {
                covers &= self.cover(ask, paid, scheduler, now);
            }
        }
        covers
    }

    fn cover(&mut self, ask: &Ask, paid: &Paid, scheduler: &mut Scheduler, now: Now) -> bool {
        let lines = &paid.receipt.lines;
        // A slot that is held, and a start that is promised, must not be forgotten.
        if ask.delay_max.is_some() || lines.iter().any(|line| line.payment.hold.is_some()) {
            return false;
        }
        let owed = || {
            let each = lines.iter();
            each.map(|line| ((line.limit.clone(), line.partition.clone()), line.payment.weight))
        };
        let has_room = |(meter, weight): (MeterName, u64)| {
            let slice = self.meters.get(&meter);
            slice.is_some_and(|slice| slice.ahead.saturating_add(weight) <= slice.units)
        };
        if self.outstanding < ASKS_MAX && owed().all(has_room) {
            self.outstanding += 1;
            self.asks += 1;
            for (meter, weight) in owed() {
                if let Some(slice) = self.meters.get_mut(&meter) {
                    slice.ahead += weight;
                    slice.used = now.at;
                    self.consumed.push((meter, slice.number, weight));
                }
            }
            return true;
        }
        owed().for_each(|(meter, _)| self.used(meter, scheduler, now));
        false
    }

    /// Notes that a meter without a slice was asked, and gives it one if it is busy.
    fn used(&mut self, meter: MeterName, scheduler: &mut Scheduler, now: Now) {
        if !self.meters.contains_key(&meter) {
            if self.meters.len() < METERS_MAX {
                self.made += 1;
                let slice = Slice { number: self.made, used: now.at, ..Slice::default() };
                self.round.push_back(meter.clone());
                self.meters.insert(meter, slice);
            }
            return;
        }
        let Some(slice) = self.meters.get_mut(&meter) else { return };
        let is_busy = now.at.since(slice.used) < BUSY;
        slice.used = now.at;
        if slice.recorded > 0 || !is_busy {
            return;
        }
        let units = scheduler.capacity(&meter).unwrap_or(0) / PART;
        if units > 0 {
            slice.recorded = units.min(UNITS_MAX);
            scheduler.allow(meter.clone(), slice.recorded);
            self.recorded.push((meter, slice.number));
        }
    }

    /// Takes back slices of meters that are idle, of up to so many that are looked at.
    pub(crate) fn take_back(&mut self, most: usize, scheduler: &mut Scheduler, now: Now) {
        for _ in 0..most.min(self.round.len()) {
            let Some(meter) = self.round.pop_front() else { return };
            let Some(slice) = self.meters.get(&meter) else { continue };
            let is_idle = now.at.since(slice.used) > IDLE && slice.ahead == 0;
            if !is_idle || slice.recorded != slice.units {
                self.round.push_back(meter);
                continue;
            }
            if slice.recorded > 0 {
                scheduler.allow(meter.clone(), 0);
            }
            self.meters.remove(&meter);
        }
    }

    /// Takes back those of a limit: it may hold less from now on. What was consumed ahead is before that
    /// in the journal, and lasts if that does.
    pub(crate) fn take_back_of(&mut self, limit: &LimitName, scheduler: &mut Scheduler) {
        self.round.retain(|(of, _)| of != limit);
        let taken = self.meters.extract_if(|(of, _), _| of == limit);
        for (meter, slice) in taken {
            if slice.recorded > 0 {
                scheduler.allow(meter, 0);
            }
        }
    }

    /// Takes back all of them: nothing is consumed any more, and all of it is on its way to the disk.
    pub(crate) fn take_back_all(&mut self, scheduler: &mut Scheduler) {
        self.round.clear();
        for (meter, slice) in self.meters.drain() {
            if slice.recorded > 0 {
                scheduler.allow(meter, 0);
            }
        }
    }

    /// What is to be told to [`Self::lasts`] once all that was done so far is on disk.
    pub(crate) fn take_ahead(&mut self) -> Unsynced {
        Unsynced {
            asks: std::mem::take(&mut self.asks),
            consumed: std::mem::take(&mut self.consumed),
            recorded: std::mem::take(&mut self.recorded),
        }
    }

    /// Notes what is on disk.
    pub(crate) fn lasts(&mut self, ahead: Unsynced) {
        self.outstanding -= ahead.asks.min(self.outstanding);
        for (meter, number, units) in ahead.consumed {
            if let Some(slice) = self.slice(&meter, number) {
                slice.ahead = slice.ahead.saturating_sub(units);
            }
        }
        for (meter, number) in ahead.recorded {
            if let Some(slice) = self.slice(&meter, number) {
                slice.units = slice.recorded;
            }
        }
    }

    fn slice(&mut self, meter: &MeterName, number: u64) -> Option<&mut Slice> {
        self.meters.get_mut(meter).filter(|slice| slice.number == number)
    }
}

/// What was done ahead of the disk.
#[derive(Default)]
pub(crate) struct Unsynced {
    asks: usize,
    consumed: Vec<(MeterName, u64, u64)>,
    recorded: Vec<(MeterName, u64)>,
}

impl Unsynced {
    /// With what was done after it.
    pub(crate) fn and(&mut self, later: Self) {
        self.asks += later.asks;
        self.consumed.extend(later.consumed);
        self.recorded.extend(later.recorded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Definition, Limit};

    #[test]
    fn a_limit_that_changes_again_and_again_leaves_nothing_behind() {
        let (mut slices, mut scheduler) = (Slices::default(), Scheduler::new());
        let limit = LimitName::new("api").unwrap();
        for _ in 0..10_000 {
            slices.used((limit.clone(), None), &mut scheduler, Now::default());
            slices.take_back_of(&limit, &mut scheduler);
        }
        assert_eq!((slices.meters.len(), slices.round.len()), (0, 0));
    }

    #[test]
    fn a_slice_may_be_used_once_it_is_on_disk_and_not_when_the_one_before_is() {
        let (mut slices, mut scheduler) = (Slices::default(), Scheduler::new());
        let (limit, now) = (LimitName::new("api").unwrap(), Now::default());
        let definition = Definition::new(Limit::per_second(1_000)).unwrap();
        scheduler.define_limit(&limit, Some(definition), now);
        let meter = (limit.clone(), None);
        let mut recorded = || {
            slices.used(meter.clone(), &mut scheduler, now);
            slices.used(meter.clone(), &mut scheduler, now);
            let ahead = slices.take_ahead();
            assert_eq!(ahead.recorded.len(), 1);
            slices.take_back_of(&limit, &mut scheduler);
            ahead
        };
        let before = recorded();
        slices.used(meter.clone(), &mut scheduler, now);
        slices.used(meter.clone(), &mut scheduler, now);
        let after = slices.take_ahead();
        slices.lasts(before);
        assert_eq!(slices.meters[&meter].units, 0, "only the slice before is on disk");
        slices.lasts(after);
        assert!(slices.meters[&meter].units > 0);
    }
}
