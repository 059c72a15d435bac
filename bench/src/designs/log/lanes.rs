//! The lanes in a node's memory: a stand-in for the scheduler, in step with those of other nodes.

use std::collections::{HashMap, VecDeque};

use anyhow::{Context as _, ensure};

use super::effects::{Effect, Waiting};

/// Lanes, the order in which they have their turn, and how many calls of each parcel live.
#[derive(Default)]
pub(crate) struct Lanes {
    waiting: HashMap<i64, VecDeque<Waiting>>,
    ready: VecDeque<i64>,
    living: HashMap<i64, usize>,
    next_id: i64,
}

impl Lanes {
    pub(crate) fn next_id(&self) -> i64 {
        self.next_id
    }

    /// What starts next: the first call of the lane whose turn it is.
    pub(crate) fn next(&self) -> Option<(i64, Waiting)> {
        let lane = *self.ready.front()?;
        Some((lane, *self.waiting.get(&lane)?.front()?))
    }

    /// Applies an effect; the answer is the parcel whose last call has ended with it.
    pub(crate) fn apply(&mut self, effect: Effect) -> anyhow::Result<Option<i64>> {
        match effect {
            Effect::Enqueued { lane, call } => self.enqueue(lane, call),
            Effect::Started { lane, id } => self.start(lane, id)?,
            Effect::Ended { parcel, .. } => return self.end(parcel),
        }
        Ok(None)
    }

    fn enqueue(&mut self, lane: i64, call: Waiting) {
        let calls = self.waiting.entry(lane).or_default();
        if calls.is_empty() {
            self.ready.push_back(lane);
        }
        calls.push_back(call);
        *self.living.entry(call.parcel).or_default() += 1;
        self.next_id = call.id + 1;
    }

    fn start(&mut self, lane: i64, id: i64) -> anyhow::Result<()> {
        let turn = self.ready.pop_front();
        ensure!(turn == Some(lane), "lane {lane} starts in the turn of {turn:?}");
        let calls = self.waiting.get_mut(&lane).context("a lane is ready without calls")?;
        let first = calls.pop_front().map(|call| call.id);
        ensure!(first == Some(id), "call {id} starts before {first:?}");
        // A lane that is idle costs nothing.
        match calls.is_empty() {
            true => drop(self.waiting.remove(&lane)),
            false => self.ready.push_back(lane),
        }
        Ok(())
    }

    fn end(&mut self, parcel: i64) -> anyhow::Result<Option<i64>> {
        let living = self.living.get_mut(&parcel).context("a call ends that does not live")?;
        *living -= 1;
        if *living > 0 {
            return Ok(None);
        }
        self.living.remove(&parcel);
        Ok(Some(parcel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enqueued(lane: i64, id: i64) -> Effect {
        Effect::Enqueued { lane, call: Waiting { id, parcel: 9, place: 0 } }
    }

    fn with_three_calls() -> Lanes {
        let mut lanes = Lanes::default();
        for effect in [enqueued(1, 0), enqueued(1, 1), enqueued(2, 2)] {
            assert_eq!(lanes.apply(effect).unwrap(), None);
        }
        lanes
    }

    #[test]
    fn lanes_take_turns_and_keep_their_order() {
        let mut lanes = with_three_calls();
        let mut order = Vec::new();
        while let Some((lane, call)) = lanes.next() {
            lanes.apply(Effect::Started { lane, id: call.id }).unwrap();
            order.push(call.id);
        }
        assert_eq!(order, [0, 2, 1]);
    }

    #[test]
    fn a_start_out_of_turn_is_refused() {
        assert!(with_three_calls().apply(Effect::Started { lane: 2, id: 2 }).is_err());
        assert!(with_three_calls().apply(Effect::Started { lane: 1, id: 1 }).is_err());
    }

    #[test]
    fn a_parcel_is_over_with_its_last_call() {
        let mut lanes = with_three_calls();
        let ends = [0, 1, 2].map(|id| lanes.apply(Effect::Ended { id, parcel: 9 }).unwrap());
        assert_eq!(ends, [None, None, Some(9)]);
    }
}
