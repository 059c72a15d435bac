//! What the rules of a limit were, since when: a meter that was left under older ones goes along with
//! each change as of the instant at which it was made.

use crate::limit::Definition;
use crate::time::Now;
use std::sync::Arc;

/// Most changes that are remembered. A meter that missed more goes over to the oldest of them at once.
pub const TURNS_MAX: usize = 16;

/// The rules of a limit, or of one partition, oldest first.
// Invariant: numbers ascend, and no two neighbours are alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    turns: Vec<Turn>,
    /// Counts the changes; of a limit, those of its partitions too, so that a meter sees one order.
    pub changed: u64,
    /// Of a limit: how many of its partitions have rules of their own.
    pub own: u64,
    /// Of a limit: a partition has, or had, rules of its own.
    pub has_own: bool,
}

/// From when on something holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Its place among the changes of the limit and its partitions.
    pub number: u64,
    /// Since when.
    pub since: Now,
    /// The rules; `None`: there is no limit, or the partition has none of its own.
    pub definition: Option<Arc<Definition>>,
}

impl Timeline {
    /// Of turns as they were written, oldest first; those out of order are left out.
    pub fn of(turns: Vec<Turn>) -> Self {
        let mut timeline = Self::default();
        for turn in turns {
            if timeline.changed < turn.number {
                timeline.changed = turn.number;
                timeline.turns.push(turn);
            }
        }
        timeline
    }

    /// All that is remembered, oldest first.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// What holds now.
    pub fn in_force(&self) -> Option<&Arc<Definition>> {
        self.turns.last().and_then(|turn| turn.definition.as_ref())
    }

    /// Whether the meters of such a limit may lie apart from each other. So it stays when it is removed
    /// and defined again: its meters are where they were.
    pub fn is_spread(&self) -> bool {
        let mut rules = self.turns.iter().rev().filter_map(|turn| turn.definition.as_ref());
        rules.next().is_some_and(|rules| rules.limit().is_spread())
    }

    /// Whether there were rules at some time.
    pub(super) fn had_rules(&self) -> bool {
        self.turns.iter().any(|turn| turn.definition.is_some())
    }

    /// The last change that a meter under these rules sees, and those of its partition.
    pub fn latest(&self, own: Option<&Self>) -> u64 {
        let latest = |timeline: &Self| timeline.turns.last().map_or(0, |turn| turn.number);
        latest(self).max(own.map_or(0, latest))
    }

    /// Whether it would be a change if this held.
    pub(super) fn is_changed_by(&self, definition: Option<&Definition>) -> bool {
        self.in_force().map(AsRef::as_ref) != definition
    }

    /// From then on this holds: the change of this number.
    pub(super) fn turn(&mut self, number: u64, definition: Option<Definition>, since: Now) {
        self.turns.push(Turn { number, since, definition: definition.map(Arc::new) });
        self.changed = number;
        let surplus = self.turns.len().saturating_sub(TURNS_MAX);
        self.turns.drain(..surplus);
    }

    /// What holds at a partition, of these rules of its limit and of its own, after a change.
    pub(super) fn with_own(&self, own: Option<&Self>, after: u64) -> Vec<Turn> {
        let own_turns = own.into_iter().flat_map(|own| &own.turns);
        let turns = self.turns.iter().chain(own_turns).filter(|turn| turn.number > after);
        let mut turns: Vec<Turn> = turns.cloned().collect();
        turns.sort_by_key(|turn| turn.number);
        for turn in &mut turns {
            let common = self.held_at(turn.number);
            let own = own.and_then(|own| own.held_at(turn.number));
            turn.definition = common.map(|common| own.unwrap_or(common).clone());
        }
        turns
    }

    fn held_at(&self, number: u64) -> Option<&Arc<Definition>> {
        let turn = self.turns.iter().rev().find(|turn| turn.number <= number);
        turn.and_then(|turn| turn.definition.as_ref())
    }
}
