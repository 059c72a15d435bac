//! The calls of a lane that never started, in the order in which they go.

use super::calls::{CallSlot, Calls};
use crate::turn::Priority;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A row for each priority, the highest first, each in the order of arrival. Who comes goes to the
/// end of its row, so that a place costs four bytes and nothing is searched; one that takes over the
/// place of another is put there.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    rows: SmallVec<[Row; 1]>,
}

/// Most lanes have one call that waits: it takes no memory of its own.
#[derive(Debug, Clone)]
struct Row {
    priority: Priority,
    first: CallSlot,
    others: VecDeque<CallSlot>,
}

impl Row {
    fn insert(&mut self, call: CallSlot, calls: &Calls) {
        let arrival = calls[call].arrival;
        let before = |other: &CallSlot| calls[*other].arrival < arrival;
        if !before(&self.first) {
            self.others.push_front(std::mem::replace(&mut self.first, call));
        } else if self.others.back().is_none_or(before) {
            self.others.push_back(call);
        } else {
            self.others.insert(self.others.partition_point(before), call);
        }
    }

    /// Takes out another than the first; says whether it was there.
    fn remove(&mut self, call: CallSlot, calls: &Calls) -> bool {
        let arrival = calls[call].arrival;
        // Most that are not there started and are ahead of it: nothing is searched for those.
        if calls[self.first].arrival >= arrival {
            return false;
        }
        let at = self.others.partition_point(|other| calls[*other].arrival < arrival);
        let is_there = self.others.get(at) == Some(&call);
        if is_there {
            self.others.remove(at);
        }
        is_there
    }
}

impl Waiting {
    pub(super) fn insert(&mut self, call: CallSlot, calls: &Calls) {
        let priority = calls[call].priority;
        let place = self.rows.partition_point(|row| row.priority > priority);
        match self.rows.get_mut(place) {
            Some(row) if row.priority == priority => row.insert(call, calls),
            _ => {
                let others = VecDeque::new();
                self.rows.insert(place, Row { priority, first: call, others });
            }
        }
    }

    /// Says whether it was there.
    pub(super) fn remove(&mut self, call: CallSlot, calls: &Calls) -> bool {
        let priority = calls[call].priority;
        let found = self.rows.iter().position(|row| row.priority == priority);
        let Some(place) = found else { return false };
        let row = &mut self.rows[place];
        if row.first != call {
            return row.remove(call, calls);
        }
        match row.others.pop_front() {
            Some(next) => row.first = next,
            None => {
                self.rows.remove(place);
            }
        }
        true
    }

    pub(super) fn first(&self) -> Option<CallSlot> {
        self.rows.first().map(|row| row.first)
    }

    /// The first of each priority.
    pub(super) fn firsts(&self) -> impl Iterator<Item = CallSlot> {
        self.rows.iter().map(|row| row.first)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = CallSlot> {
        self.rows.iter().flat_map(|row| [row.first].into_iter().chain(row.others.iter().copied()))
    }
}
