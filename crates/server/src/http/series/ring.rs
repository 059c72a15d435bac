//! The last points of a series, in little memory: as many as are alike and follow each other are one.

use std::collections::VecDeque;

/// For how many more there is room made at once.
const ROOM: usize = 32;

/// A point: what each of N values was; nothing, if the store did not answer.
pub(super) type Point<const N: usize> = Option<[u32; N]>;

/// The last points, up to so many.
#[derive(Debug)]
pub(super) struct Ring<const N: usize> {
    runs: VecDeque<Run<N>>,
    // Invariant: what the runs have together, and no more than `most`.
    length: usize,
    most: usize,
}

/// Points that are alike. 36 bytes for 8 values, 24 for 5.
#[derive(Debug, Clone, Copy)]
struct Run<const N: usize> {
    values: [u32; N],
    is_gap: bool,
    times: u16,
}

impl<const N: usize> Run<N> {
    fn of(point: Point<N>) -> Self {
        Self { values: point.unwrap_or([0; N]), is_gap: point.is_none(), times: 1 }
    }

    fn point(&self) -> Point<N> {
        Some(self.values).filter(|_| !self.is_gap)
    }
}

impl<const N: usize> Ring<N> {
    pub(super) const fn new(most: usize) -> Self {
        Self { runs: VecDeque::new(), length: 0, most }
    }

    /// Adds the newest, and drops the oldest if there are too many.
    pub(super) fn push(&mut self, point: Point<N>) {
        if self.length >= self.most {
            self.drop_oldest();
        }
        let last = self.runs.back_mut().filter(|run| run.point() == point && run.times < u16::MAX);
        match last {
            Some(run) => run.times += 1,
            None => {
                // Growing twofold would take half as much again as there may be.
                if self.runs.len() == self.runs.capacity() {
                    self.runs.reserve_exact(ROOM);
                }
                self.runs.push_back(Run::of(point));
            }
        }
        self.length += 1;
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.runs.front_mut() else { return };
        oldest.times -= 1;
        self.length -= 1;
        if oldest.times == 0 {
            self.runs.pop_front();
        }
    }

    /// All of them, the oldest first.
    pub(super) fn points(&self) -> impl Iterator<Item = Point<N>> {
        self.runs.iter().flat_map(|run| std::iter::repeat_n(run.point(), run.times.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_last_are_kept_as_a_list_keeps_them(
            points in prop::collection::vec(prop::option::of(0..3_u32), 0..200),
            most in 1..40_usize,
        ) {
            let points: Vec<Point<1>> = points.into_iter().map(|it| it.map(|it| [it])).collect();
            let mut ring = Ring::new(most);
            points.iter().for_each(|point| ring.push(*point));
            let last = &points[points.len().saturating_sub(most)..];
            prop_assert_eq!(ring.points().collect::<Vec<_>>(), last);
        }
    }

    #[test]
    fn what_stays_as_it_is_takes_no_room() {
        let mut ring = Ring::new(600);
        (0..1_000).for_each(|_| ring.push(Some([7; 8])));
        assert_eq!((ring.points().count(), ring.runs.len()), (600, 1));
    }

    #[test]
    fn a_series_takes_as_much_memory_as_is_said() {
        assert_eq!((size_of::<Run<8>>(), size_of::<Run<5>>()), (36, 24));
        let mut ring = Ring::new(600);
        (0..1_000).for_each(|n| ring.push(Some([n; 8])));
        assert!(ring.runs.capacity() <= 600 + ROOM, "{}", ring.runs.capacity());
    }
}
