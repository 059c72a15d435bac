//! Where cells are written one by one: which requests go together in one change, and which changes are made
//! one after the other.
//!
//! A change of one cell is made or not. One of several can be cut short or taken back, so it has only
//! requests that can bear that: to pay, which is given back, and what can be done again.

use super::batch::Asked;
use super::cells::CellKey;
use super::memory::Memory;
use super::wants::{self, Wants};
use std::collections::{BTreeSet, HashMap};

/// Most cells of a change of several requests: the longer it takes to write them, the sooner somebody
/// else is faster at one of them.
const CELLS_MAX: usize = 16;

/// Requests that go together.
pub(super) type Group = Vec<Box<dyn Asked>>;

/// Requests in rounds, to be made one after the other: no two groups of a round share a cell.
pub(super) fn rounds(requests: Vec<Box<dyn Asked>>) -> Vec<Vec<Group>> {
    rounds_of(requests, |wants| wants.change.into_iter().collect())
}

/// The same where limits are spread: what lies in one place is written together, and stands for one cell.
pub(super) fn rounds_by_place(requests: Vec<Box<dyn Asked>>, memory: &Memory) -> Vec<Vec<Group>> {
    rounds_of(requests, |mut wants| {
        memory.put_apart(&mut wants);
        wants.change.iter().map(wants::place).collect()
    })
}

fn rounds_of(
    requests: Vec<Box<dyn Asked>>,
    changed: impl Fn(Wants) -> BTreeSet<CellKey>,
) -> Vec<Vec<Group>> {
    let (mut first, mut later) = (Round::default(), Vec::new());
    for request in requests {
        let mut wants = Wants::default();
        request.wants(&mut wants);
        let cells = changed(wants);
        if cells.len() > 1 {
            later.push((cells, request));
        } else {
            later.extend(first.place(cells, request));
        }
    }
    let mut rounds = vec![first];
    while !later.is_empty() {
        let mut round = Round::default();
        let left = later.into_iter().filter_map(|(cells, request)| round.place(cells, request));
        later = left.collect();
        rounds.push(round);
    }
    rounds.into_iter().map(Round::into_groups).collect()
}

/// Groups that share no cell.
#[derive(Default)]
struct Round {
    groups: Vec<(usize, Group)>,
    group_of: HashMap<CellKey, usize>,
}

impl Round {
    /// Puts a request to those that share a cell with it; hands it back if that were too many cells.
    fn place(
        &mut self,
        cells: BTreeSet<CellKey>,
        request: Box<dyn Asked>,
    ) -> Option<(BTreeSet<CellKey>, Box<dyn Asked>)> {
        let met = cells.iter().filter_map(|key| self.group_of.get(key).copied());
        let met: BTreeSet<usize> = met.collect();
        let new = cells.iter().filter(|key| !self.group_of.contains_key(*key)).count();
        let count = new + met.iter().map(|at| self.groups[*at].0).sum::<usize>();
        if !met.is_empty() && count > CELLS_MAX {
            return Some((cells, request));
        }
        let mut met = met.into_iter();
        let place = met.next().unwrap_or_else(|| {
            self.groups.push(<_>::default());
            self.groups.len() - 1
        });
        for other in met {
            let (_, moved) = std::mem::take(&mut self.groups[other]);
            self.groups[place].1.extend(moved);
            self.group_of.values_mut().filter(|at| **at == other).for_each(|at| *at = place);
        }
        self.group_of.extend(cells.into_iter().map(|key| (key, place)));
        let group = &mut self.groups[place];
        group.0 = count;
        group.1.push(request);
        None
    }

    fn into_groups(self) -> Vec<Group> {
        let groups = self.groups.into_iter().map(|(_, group)| group);
        groups.filter(|group| !group.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::Request;
    use super::super::command::{Command, Consume, Settle, SettleLine};
    use super::*;
    use tollgate_core::contract::{Ask, Cost, PaidLine, Receipt};
    use tollgate_core::{LimitName, Now, Payment, Priority, Span, Timestamp, Toll};

    fn boxed(command: impl Command) -> Box<dyn Asked> {
        Box::new(Request::new(command).0)
    }

    fn paying(limits: &[&str]) -> Box<dyn Asked> {
        let tolls = limits.iter().map(|limit| {
            let limit = LimitName::new(limit).unwrap();
            Toll { limit, partition: None, weight: 1, hears_feedback: false }
        });
        let (priority, life) = (Priority::default(), Span::ZERO);
        boxed(Consume(vec![Ask { tolls: tolls.collect(), priority, delay_max: None, life }]))
    }

    fn settling(limit: &str) -> Box<dyn Asked> {
        let at = Timestamp::default();
        let (starts, sequence) = (Now::both(at), 0);
        let payment = Payment { weight: 1, paid_at: at, starts, hold: None, sequence, promised: 0 };
        let limit = LimitName::new(limit).unwrap();
        boxed(SettleLine(PaidLine { limit, partition: None, payment }, 0))
    }

    /// The requests and cells of each group of each round.
    fn sizes(rounds: Vec<Vec<Group>>) -> Vec<Vec<(usize, usize)>> {
        let size = |group: &Group| {
            let mut wants = Wants::default();
            group.iter().for_each(|request| request.wants(&mut wants));
            (group.len(), wants.settled().change.len())
        };
        rounds.iter().map(|round| round.iter().map(size).collect()).collect()
    }

    #[test]
    fn what_settles_is_never_in_a_change_that_may_be_taken_back() {
        let requests = vec![paying(&["a", "b"]), settling("a"), settling("a"), settling("c")];
        assert_eq!(sizes(rounds(requests)), [vec![(2, 1), (1, 1)], vec![(1, 2)]]);
    }

    #[test]
    fn what_settles_where_limits_are_spread_lies_in_one_place() {
        let limit = LimitName::new("a").unwrap();
        let mut memory = Memory::new(<_>::default(), <_>::default(), true);
        memory.note_spread(&[(limit.clone(), true)]);
        let whole = |id: u64| {
            let at = Timestamp::default();
            let (starts, sequence) = (Now::both(at), id);
            let payment =
                Payment { weight: 1, paid_at: at, starts, hold: None, sequence, promised: 0 };
            let line = PaidLine { limit: limit.clone(), partition: None, payment };
            let receipt = Receipt { id, expires: at, lines: vec![line] };
            boxed(Settle(vec![(receipt, Cost::Nothing)]))
        };
        let settling = (0..20).map(whole);
        let requests = settling.chain([paying(&["a"]), paying(&["a", "b"])]).collect();
        let rounds = rounds_by_place(requests, &memory);
        let requests: Vec<Vec<usize>> =
            rounds.iter().map(|round| round.iter().map(Vec::len).collect()).collect();
        assert_eq!(requests, [vec![21], vec![1]]);
    }

    #[test]
    fn asks_that_share_a_meter_go_together_and_others_apart() {
        let asks = [["a", "b"], ["c", "d"], ["b", "a"], ["e", "f"], ["f", "c"]];
        let requests = asks.iter().map(|limits| paying(limits)).collect();
        assert_eq!(sizes(rounds(requests)), [vec![], vec![(2, 2), (3, 4)]]);
    }

    #[test]
    fn no_change_grows_with_all_who_share_one_meter() {
        let names: Vec<String> = (0..40).map(|number| format!("tenant{number}")).collect();
        let requests = names.iter().map(|name| paying(&["all", name])).collect();
        let rounds = sizes(rounds(requests));
        assert_eq!(rounds, [vec![], vec![(15, 16)], vec![(15, 16)], vec![(10, 11)]]);
    }
}
