//! Limits that come along with calls, and go with them. One that is there for no call and as new is not
//! there for anyone, whether or not it was forgotten yet: so nobody can tell when it was.

use super::Scheduler;
use super::calls::MeterSlot;
use super::limits::{Home, Known, LimitSlot};
use super::meters::Meters;
use crate::contract::{LimitTotals, Tally};
use crate::lanes::act::Act;
use crate::lanes::effect::Effect;
use crate::limit::Definition;
use crate::name::{LimitName, Partition};
use crate::time::Now;

impl Known<'_> {
    /// Whether it was defined in its own right.
    fn stands(self) -> bool {
        self.definition().is_some() && !self.is_transient()
    }
}

impl Meters {
    /// Whether nobody defined the limit of a meter, or it was removed.
    pub(super) fn is_unknown(&self, meter: MeterSlot) -> bool {
        self.book(self[meter].limit).definition().is_none()
    }

    /// Leaves a limit as one that nobody ever defined. Its meters are as new.
    pub(super) fn forget_rules(&mut self, name: &str) {
        let Some(limit) = self.limit(name) else { return };
        self.count_anew(limit);
        if let Home::Book(at) = limit.home() {
            self.limits[at].forget_rules();
        }
        for meter in self.of(limit) {
            (self[meter].rules, self[meter].meter) = (None, None);
        }
    }

    /// What was counted at a limit counts for nobody.
    fn count_anew(&mut self, limit: LimitSlot) {
        if let Home::Book(at) = limit.home() {
            self.limits[at].totals = LimitTotals::default();
        }
        for meter in self.of(limit) {
            (self[meter].admitted, self[meter].waited_ns) = (Tally::default(), 0);
        }
    }

    /// Whether a limit went with its calls.
    pub(super) fn has_gone(&self, book: Known<'_>, now: Now) -> bool {
        let is_left = || book.meters().all(|meter| self.is_forgettable(meter, now));
        book.goes_with_calls() && is_left()
    }
}

impl Scheduler {
    /// A limit that is there, also one that was removed and is known; not one that nobody ever defined
    /// and calls wait for.
    pub(super) fn there(&self, limit: &str, now: Now) -> Option<LimitSlot> {
        let slot = self.meters.limit(limit)?;
        let book = self.meters.book(slot);
        (book.last().is_some() && !self.meters.has_gone(book, now)).then_some(slot)
    }

    /// Whether a limit is there and not removed.
    pub(super) fn is_defined(&self, book: Known<'_>, now: Now) -> bool {
        book.definition().is_some() && !self.meters.has_gone(book, now)
    }

    /// The rules that a limit's meter for a partition follows; `None` if there is no such limit.
    pub(super) fn rules(
        &self,
        limit: &str,
        partition: Option<&Partition>,
        now: Now,
    ) -> Option<&Definition> {
        self.meters.book(self.there(limit, now)?).definition_of(partition)
    }

    /// The same, once these limits have come along.
    pub(super) fn coming_rules<'a>(
        &'a self,
        coming: &'a [(LimitName, Definition)],
        limit: &LimitName,
        partition: Option<&Partition>,
    ) -> Option<&'a Definition> {
        let Some((_, new)) = coming.iter().rfind(|(name, _)| name == limit) else {
            return self.rules(limit, partition, self.present);
        };
        let known = self.there(limit, self.present).map(|limit| self.meters.book(limit));
        match known {
            Some(book) if book.stands() => book.definition_of(partition),
            Some(book) => partition.and_then(|it| book.overrides()?.get(it)).or(Some(new)),
            None => Some(new),
        }
    }

    /// Defines a limit that comes along with calls, unless it stands in its own right.
    pub(super) fn come(&mut self, name: LimitName, definition: Definition, now: Now) {
        let known = self.there(&name, now).map(|limit| self.meters.book(limit));
        // Said again if no call owes there: a checkpoint may be of when it had gone.
        let is_owed = |book: Known<'_>| book.meters().any(|it| self.meters[it].owed > 0);
        let is_said = |book: Known<'_>| {
            let is_same = book.definition() == Some(&definition);
            book.stands() || is_same && is_owed(book)
        };
        if known.is_some_and(is_said) {
            return;
        }
        self.begin_anew(&name, now);
        let definition = Box::new(definition);
        self.emit(Effect::LimitCame { name, definition, now });
    }

    /// What is left of a limit that has gone counts for nobody.
    pub(super) fn begin_anew(&mut self, limit: &str, now: Now) {
        if self.there(limit, now).is_none()
            && let Some(limit) = self.meters.limit(limit)
        {
            self.meters.count_anew(limit);
        }
    }

    /// Forgets the limits of an act's calls, which may wait for them, where they have gone: whether or not they were
    /// forgotten before, nobody defined them.
    pub(super) fn let_go(&mut self, act: &Act, now: Now) {
        for limit in act.new_calls().flat_map(|call| &call.tolls).map(|toll| &toll.limit) {
            // Also one of which nothing is left: where effects are applied again, something may be.
            let is_awaited = |slot| self.meters.book(slot).last().is_none();
            let is_gone = self.there(limit, now).is_none()
                && !self.meters.limit(limit).is_some_and(is_awaited);
            let comes = || act.define.iter().any(|(name, _)| name == limit);
            if is_gone && !comes() {
                self.emit(Effect::LimitWent(limit.clone()));
            }
        }
    }

    /// One that goes with its calls is looked at in time, also if there is none.
    pub(super) fn look_later(&mut self, limit: LimitSlot) {
        if self.meters.book(limit).goes_with_calls() {
            let meter = self.meters.at(limit, None);
            self.used(meter);
        }
    }

    pub(super) fn came(&mut self, name: &LimitName, definition: &Definition, now: Now) {
        let limit = self.meters.come(name, definition, now);
        self.look_later(limit);
        self.limit_changed(limit, true);
    }
}
