//! Which segments of the journal are still needed: those since the checkpoint, and those with bodies
//! of calls that have not ended.

use crate::embedded::log::{Position, SegmentNumber};
use std::collections::BTreeMap;

/// The bodies in each segment.
#[derive(Debug, Default)]
pub(super) struct Segments {
    bodies: BTreeMap<SegmentNumber, Bodies>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Bodies {
    /// Ever noted.
    all: u64,
    /// Of calls that have not ended.
    live: u64,
}

impl Segments {
    /// Those in which bodies of calls are that have not ended, with how many each was ever given.
    pub(super) fn of(
        locations: impl Iterator<Item = u64>,
        all: &BTreeMap<SegmentNumber, u64>,
    ) -> Self {
        let mut segments = Self::default();
        locations
            .filter(|bits| *bits != 0)
            .for_each(|bits| segments.add(Position::from_bits(bits)));
        for (segment, bodies) in &mut segments.bodies {
            bodies.all = all.get(segment).copied().unwrap_or(0).max(bodies.live);
        }
        segments
    }

    /// How many bodies each was ever given.
    pub(super) fn counted(&self) -> impl Iterator<Item = (SegmentNumber, u64)> {
        self.bodies.iter().map(|(segment, bodies)| (*segment, bodies.all))
    }

    pub(super) fn add(&mut self, body: Position) {
        let bodies = self.bodies.entry(body.segment()).or_default();
        bodies.all += 1;
        bodies.live += 1;
    }

    pub(super) fn free(&mut self, body: Position) {
        if let Some(bodies) = self.bodies.get_mut(&body.segment()) {
            bodies.live = bodies.live.saturating_sub(1);
        }
    }

    /// The first segment before `checkpoint` that has a body of a call that has not ended, or the
    /// checkpoint's: all before it can be dropped.
    pub(super) fn first_needed(&mut self, checkpoint: SegmentNumber) -> SegmentNumber {
        let dead = |(_, bodies): &(&SegmentNumber, &Bodies)| bodies.live == 0;
        let first = self.bodies.iter().find(|entry| !dead(entry)).map(|(segment, _)| *segment);
        let first = first.map_or(checkpoint, |first| first.min(checkpoint));
        self.bodies = self.bodies.split_off(&first);
        first
    }

    /// The oldest segment after one whose bodies have moved, if more than half of what is from there
    /// to the checkpoint is dead: its bodies should move, so that it can be dropped, and those behind
    /// it.
    pub(super) fn to_be_moved(
        &self,
        moved: Option<SegmentNumber>,
        checkpoint: SegmentNumber,
    ) -> Option<SegmentNumber> {
        let is_ahead = move |segment: &SegmentNumber| moved.is_none_or(|moved| *segment > moved);
        let before = || self.bodies.range(..checkpoint).filter(|(segment, _)| is_ahead(segment));
        let (all, live) =
            before().fold((0, 0), |sum, (_, bodies)| (sum.0 + bodies.all, sum.1 + bodies.live));
        let oldest = before().next().map(|(segment, _)| *segment);
        oldest.filter(|_| live * 2 < all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(segment: u64, offset: u64) -> u64 {
        segment << 32 | offset
    }

    #[test]
    fn a_segment_is_needed_while_a_body_in_it_is() {
        let mut segments =
            Segments::of([body(3, 1), body(3, 2), body(5, 1)].into_iter(), &BTreeMap::new());
        let [checkpoint, third, fifth] = [9, 3, 5].map(SegmentNumber::new);
        assert_eq!(segments.first_needed(checkpoint), third);
        assert_eq!(segments.to_be_moved(None, checkpoint), None, "all of it is live");
        segments.free(Position::from_bits(body(3, 1)));
        segments.free(Position::from_bits(body(5, 1)));
        assert_eq!(segments.to_be_moved(None, checkpoint), Some(third));
        segments.free(Position::from_bits(body(3, 2)));
        assert_eq!(segments.first_needed(fifth), fifth);
        assert_eq!(segments.first_needed(checkpoint), checkpoint);
    }
}
