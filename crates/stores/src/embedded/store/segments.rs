//! Which segments of the journal are still needed: those since the checkpoint, and those with bodies
//! of calls that have not ended.

use crate::embedded::log::{Position, SegmentNumber};
use std::collections::BTreeMap;

/// Bodies move once less than one part in so many of what is kept for their sake is theirs.
const PARTS: u64 = 8;

/// What is in each segment.
#[derive(Debug, Default)]
pub(super) struct Segments {
    bodies: BTreeMap<SegmentNumber, Bodies>,
    /// How many bytes each has, those without bodies too.
    bytes: BTreeMap<SegmentNumber, u64>,
}

/// The bodies that a segment was ever given.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) bodies: u64,
    /// How long their records are; more than a segment holds if that is not known.
    pub(super) bytes: u64,
}

impl Given {
    pub(super) fn add(&mut self, record_bytes: usize) {
        self.bodies += 1;
        self.bytes = self.bytes.saturating_add(record_bytes as u64);
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Bodies {
    all: Given,
    /// Of calls that have not ended.
    live: u64,
}

impl Segments {
    /// Those in which bodies of calls are that have not ended, with what each was ever given, among those on the
    /// disk.
    pub(super) fn of(
        locations: impl Iterator<Item = u64>,
        all: &BTreeMap<SegmentNumber, Given>,
        bytes: BTreeMap<SegmentNumber, u64>,
    ) -> Self {
        let mut segments = Self { bytes, ..Self::default() };
        for body in locations.filter(|bits| *bits != 0).map(Position::from_bits) {
            segments.bodies.entry(body.segment()).or_default().live += 1;
        }
        for (segment, bodies) in &mut segments.bodies {
            let given = all.get(segment).copied();
            let unknown = Given { bodies: bodies.live, bytes: u64::MAX };
            bodies.all = given.filter(|given| given.bodies >= bodies.live).unwrap_or(unknown);
        }
        segments
    }

    /// What each was ever given.
    pub(super) fn given(&self) -> impl Iterator<Item = (SegmentNumber, Given)> {
        self.bodies.iter().map(|(segment, bodies)| (*segment, bodies.all))
    }

    /// So many bytes were written to a segment.
    pub(super) fn grow(&mut self, segment: SegmentNumber, bytes: usize) {
        *self.bytes.entry(segment).or_default() += bytes as u64;
    }

    /// A body is in a record of so many bytes.
    pub(super) fn add(&mut self, body: Position, record_bytes: usize) {
        let bodies = self.bodies.entry(body.segment()).or_default();
        bodies.all.add(record_bytes);
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
        self.bytes = self.bytes.split_off(&first);
        first
    }

    /// The oldest segment after one whose bodies have moved, if most of what is from there to the checkpoint
    /// is dead: its bodies should move, so that it can be dropped, and those behind it. That is so if fewer than
    /// half of the bodies are live, or they are next to nothing beside all else that was written.
    pub(super) fn to_be_moved(
        &self,
        moved: Option<SegmentNumber>,
        checkpoint: SegmentNumber,
    ) -> Option<SegmentNumber> {
        let is_ahead = move |segment: &SegmentNumber| moved.is_none_or(|moved| *segment > moved);
        let before = self.bodies.range(..checkpoint).filter(|(segment, _)| is_ahead(segment));
        let (oldest, _) = before.clone().find(|(_, bodies)| bodies.live > 0)?;
        let (all, live) =
            before.clone().fold((0, 0), |sum, (_, it)| (sum.0 + it.all.bodies, sum.1 + it.live));
        let kept: u64 = self.bytes.range(oldest..&checkpoint).map(|(_, bytes)| bytes).sum();
        let mut theirs = 0_u64;
        before.for_each(|(segment, bodies)| theirs += self.live_bytes(*segment, bodies));
        (live * 2 < all || theirs.saturating_mul(PARTS) < kept).then_some(*oldest)
    }

    /// How many bytes of a segment are those of live bodies, if these are as long as the others there.
    fn live_bytes(&self, segment: SegmentNumber, Bodies { all, live }: &Bodies) -> u64 {
        let bytes = all.bytes.min(self.bytes.get(&segment).copied().unwrap_or(0));
        let live_bytes = u128::from(bytes) * u128::from(*live) / u128::from(all.bodies.max(1));
        u64::try_from(live_bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(segment: u64, offset: u64) -> u64 {
        segment << 32 | offset
    }

    fn of_bodies(bodies: &[u64]) -> Segments {
        let bytes = (1..9).map(|segment| (SegmentNumber::new(segment), 1_000)).collect();
        Segments::of(bodies.iter().copied(), &BTreeMap::new(), bytes)
    }

    #[test]
    fn a_segment_is_needed_while_a_body_in_it_is() {
        let mut segments = of_bodies(&[body(3, 1), body(3, 2), body(5, 1)]);
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

    #[test]
    fn live_bodies_move_when_they_are_next_to_nothing_of_what_is_kept_for_them() {
        let [checkpoint, third] = [9, 3].map(SegmentNumber::new);
        let all = BTreeMap::from([(third, Given { bodies: 1, bytes: 500 })]);
        let kept = |bytes: u64| BTreeMap::from([(third, 1_000), (SegmentNumber::new(4), bytes)]);
        for (bytes, moves) in [(3_000, false), (3_001, true)] {
            let segments = Segments::of([body(3, 1)].into_iter(), &all, kept(bytes));
            assert_eq!(segments.to_be_moved(None, checkpoint).is_some(), moves, "{bytes}");
            assert_eq!(segments.to_be_moved(Some(third), checkpoint), None);
        }
    }
}
