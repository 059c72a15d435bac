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
    // Invariant: no row is empty.
    rows: SmallVec<[(Priority, VecDeque<CallSlot>); 1]>,
}

impl Waiting {
    pub(super) fn insert(&mut self, call: CallSlot, calls: &Calls) {
        let priority = calls[call].priority;
        let place = self.rows.partition_point(|(other, _)| *other > priority);
        match self.rows.get_mut(place) {
            Some((other, row)) if *other == priority => {
                let arrival = calls[call].arrival;
                let is_last = row.back().is_none_or(|last| calls[*last].arrival < arrival);
                let before = |other: &CallSlot| calls[*other].arrival < arrival;
                let at = if is_last { row.len() } else { row.partition_point(before) };
                row.insert(at, call);
            }
            _ => self.rows.insert(place, (priority, VecDeque::from([call]))),
        }
    }

    /// Says whether it was there.
    pub(super) fn remove(&mut self, call: CallSlot, calls: &Calls) -> bool {
        let (priority, arrival) = (calls[call].priority, calls[call].arrival);
        let found = self.rows.iter().position(|(other, _)| *other == priority);
        let Some(place) = found else { return false };
        let (_, row) = &mut self.rows[place];
        // Most are the first, or started and are ahead of it: nothing is searched for those.
        let is_behind = row.front().is_some_and(|first| calls[*first].arrival < arrival);
        let at = match is_behind {
            true => row.partition_point(|other| calls[*other].arrival < arrival),
            false => 0,
        };
        if row.get(at) != Some(&call) {
            return false;
        }
        row.remove(at);
        if row.is_empty() {
            self.rows.remove(place);
        }
        true
    }

    pub(super) fn first(&self) -> Option<CallSlot> {
        self.rows.first()?.1.front().copied()
    }

    /// The first of each priority.
    pub(super) fn firsts(&self) -> impl Iterator<Item = CallSlot> {
        self.rows.iter().filter_map(|(_, row)| row.front().copied())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = CallSlot> {
        self.rows.iter().flat_map(|(_, row)| row.iter().copied())
    }
}
