//! Forgetting: lanes and meters of which nothing is known that new ones would not have.

use super::Scheduler;
use super::calls::{LaneSlot, MeterSlot};
use crate::time::Now;
use std::collections::VecDeque;

/// How many are looked at with each command, beyond two for each that was made since: so nothing is
/// ever swept, and what is idle does not outgrow what is in use.
const LOOKS: usize = 2;

/// What may be forgotten, in the order in which it is looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Idle {
    lanes: VecDeque<LaneSlot>,
    meters: VecDeque<MeterSlot>,
    /// How many lanes and meters were there at the last look.
    known: usize,
}

impl Idle {
    /// Lanes that are gone are not looked at.
    pub(super) fn forget_lanes(&mut self, is_gone: impl Fn(LaneSlot) -> bool) {
        self.lanes.retain(|lane| !is_gone(*lane));
    }
}

impl Scheduler {
    /// A meter at which nobody stands counts from where its lanes were served farthest: whoever
    /// comes next finds no one ahead, and nothing of its lanes needs to be remembered for it. Says whether that was
    /// news to one.
    pub(super) fn level(&mut self) -> bool {
        let mut is_news = false;
        while let Some(meter) = self.served.pop() {
            let is_left = |book: &super::meters::MeterBook| book.standing() == 0;
            if self.meters.get(meter).is_some_and(is_left) {
                let book = &mut self.meters[meter];
                is_news |= book.vtime < book.farthest;
                book.vtime = book.vtime.max(book.farthest);
            }
        }
        is_news
    }

    /// A meter was used: if no call that waits owes there, it may be forgotten in time.
    pub(super) fn used(&mut self, meter: MeterSlot) {
        let book = &mut self.meters[meter];
        if book.owed == 0 && !book.is_listed {
            book.is_listed = true;
            self.idle.meters.push_back(meter);
        }
    }

    /// A lane has changed: if nothing is in it, it may be forgotten in time.
    pub(super) fn listed(&mut self, lane: LaneSlot) {
        let book = &mut self.lanes[lane];
        if !book.is_listed && book.is_empty() {
            book.is_listed = true;
            self.idle.lanes.push_back(lane);
        }
    }

    /// Forgets some of what can be.
    pub(super) fn forget(&mut self, now: Now) {
        let made = self.kept().saturating_sub(self.idle.known);
        let looks = LOOKS.saturating_add(made.saturating_mul(2));
        for _ in 0..looks.min(self.idle.lanes.len()) {
            self.look_at_lane();
        }
        for _ in 0..looks.min(self.idle.meters.len()) {
            self.look_at_meter(now);
        }
        self.idle.known = self.kept();
    }

    /// How many lanes and meters there are.
    pub fn kept(&self) -> usize {
        self.lanes.count() + self.meters.count()
    }

    fn look_at_lane(&mut self) {
        let Some(lane) = self.idle.lanes.pop_front() else { return };
        let meter = |meter| self.meters.get(meter).map(|book| (book.birth, book.vtime));
        let book = &self.lanes[lane];
        if !book.is_empty() {
            self.lanes[lane].is_listed = false;
        } else if book.is_level(meter) {
            self.lanes.forget(lane);
        } else {
            self.idle.lanes.push_back(lane);
        }
    }

    fn look_at_meter(&mut self, now: Now) {
        let Some(meter) = self.idle.meters.pop_front() else { return };
        if self.meters[meter].owed > 0 {
            self.meters[meter].is_listed = false;
        } else if self.meters.is_forgettable(meter, now) {
            self.forget_meter(meter);
        } else {
            self.idle.meters.push_back(meter);
        }
    }

    fn forget_meter(&mut self, meter: MeterSlot) {
        for at in (0..self.meters[meter].crowds.len()).rev() {
            let queue = self.meters[meter].crowds[at].queue;
            self.withdraw(meter, queue, None);
            self.yielding.remove(&(meter, queue));
        }
        self.meters.forget(meter);
    }
}
