//! What happened to one thing, second by second and minute by minute.

use super::ring::{Point, Ring};

/// How many seconds and minutes are kept.
pub(super) const SECONDS: usize = 600;
pub(super) const MINUTES: usize = 1_440;

/// The length of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Second,
    Minute,
}

/// A series of N values, of which the first C are counted in each step, and the others are as of its end.
#[derive(Debug)]
pub(super) struct Track<const N: usize, const C: usize> {
    seconds: Ring<N>,
    minutes: Ring<N>,
    /// The minute under way.
    minute: Point<N>,
}

impl<const N: usize, const C: usize> Default for Track<N, C> {
    fn default() -> Self {
        Self { seconds: Ring::new(SECONDS), minutes: Ring::new(MINUTES), minute: None }
    }
}

impl<const N: usize, const C: usize> Track<N, C> {
    /// Adds a second.
    pub(super) fn add(&mut self, point: Point<N>) {
        self.seconds.push(point);
        let Some(mut sum) = point else { return };
        for (value, before) in sum.iter_mut().zip(self.minute.unwrap_or([0; N])).take(C) {
            *value = value.saturating_add(before);
        }
        self.minute = Some(sum);
    }

    /// The minute under way has ended.
    pub(super) fn end_minute(&mut self) {
        self.minutes.push(self.minute.take());
    }

    /// All points, the oldest first.
    pub(super) fn points(&self, step: Step) -> Vec<Point<N>> {
        match step {
            Step::Second => self.seconds.points().collect(),
            Step::Minute => self.minutes.points().collect(),
        }
    }
}

/// Adds series that end together to the longest of them. Where the store did not answer is a gap in all.
pub(super) fn sum<const N: usize>(
    mut sums: Vec<Point<N>>,
    all: impl Iterator<Item = Vec<Point<N>>>,
) -> Vec<Point<N>> {
    for points in all {
        for (sum, point) in sums.iter_mut().rev().zip(points.into_iter().rev()) {
            let values = sum.zip(point);
            *sum = values
                .map(|(one, other)| std::array::from_fn(|at| one[at].saturating_add(other[at])));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_what_was_counted_and_how_it_ended() {
        let mut track = Track::<2, 1>::default();
        for point in [Some([3, 9]), None, Some([4, 5])] {
            track.add(point);
        }
        track.end_minute();
        track.add(None);
        track.end_minute();
        assert_eq!(track.points(Step::Minute), [Some([7, 5]), None]);
        assert_eq!(track.points(Step::Second), [Some([3, 9]), None, Some([4, 5]), None]);
    }

    #[test]
    fn those_that_began_later_are_added_at_the_end() {
        let blank = vec![Some([0]), Some([0]), None, Some([0])];
        let all = [vec![Some([1]), None, Some([3])], vec![Some([5])]];
        assert_eq!(sum(blank, all.into_iter()), [Some([0]), Some([1]), None, Some([8])]);
    }
}
