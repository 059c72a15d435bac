//! All series: of each queue, of each limit, and of all together.

use super::ring::Point;
use super::track::{Step, Track, sum};
use std::collections::HashMap;
use tollgate::lanes::{BusyLimit, BusyQueue, LimitTotals};
use tollgate::{Now, Span, Timestamp};

/// Most queues and most limits that have series of their own, as in `/metrics`. One whose values change each
/// second takes 73 kB as a queue and 49 kB as a limit: with all of them, 123 MB at most.
pub(super) const TRACKS_MAX: usize = 1_000;
const SECOND: Span = Span::from_secs(1);
const MINUTE_SECONDS: u64 = 60;

/// What is told of a queue: enqueued, started, done, failed, died; waiting, in flight, dead.
type QueueTrack = Track<8, 5>;
/// What is told of a limit: admitted, weight, throttled; waiting, in flight.
type LimitTrack = Track<5, 3>;
/// What is told of all limits: admitted, throttled.
type AllLimits = Track<2, 2>;

/// What the store said at the end of a second.
pub(super) struct Sample {
    pub(super) now: Now,
    pub(super) queues: Vec<BusyQueue>,
    pub(super) limits: Vec<BusyLimit>,
    /// What happened at all limits; `None` in memory, where nothing is counted.
    pub(super) totals: Option<LimitTotals>,
}

/// All series.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    /// When the last second and the last minute ended, on the wall clock.
    second_ended: Option<Timestamp>,
    minute_ended: Option<Timestamp>,
    pub(super) all_queues: QueueTrack,
    pub(super) all_limits: AllLimits,
    queues: HashMap<String, QueueTrack>,
    limits: HashMap<String, LimitTrack>,
    /// What was counted until the second before.
    before: Before,
}

#[derive(Debug, Default)]
struct Before {
    queues: HashMap<String, [u64; 5]>,
    limits: HashMap<String, [u64; 3]>,
    all_limits: [u64; 2],
}

impl Tracks {
    /// When the last step ended; `None` if there was none.
    pub(super) fn ended(&self, step: Step) -> Option<Timestamp> {
        match step {
            Step::Second => self.second_ended,
            Step::Minute => self.minute_ended,
        }
    }

    /// Whether a queue has a series of its own.
    pub(super) fn has_queue(&self, name: &str) -> bool {
        self.queues.contains_key(name)
    }

    /// Whether a limit has a series of its own.
    pub(super) fn has_limit(&self, name: &str) -> bool {
        self.limits.contains_key(name)
    }

    /// Adds a second of which nothing is known. What happened in it is counted in the next that is known.
    pub(super) fn add_gap(&mut self) {
        self.all_queues.add(None);
        self.all_limits.add(None);
        self.queues.values_mut().for_each(|track| track.add(None));
        self.limits.values_mut().for_each(|track| track.add(None));
        let ended = self.second_ended.map(|ended| ended.plus(SECOND));
        self.end_second(ended);
    }

    /// Adds a second.
    pub(super) fn add(&mut self, sample: Sample) {
        self.add_queues(sample.queues);
        self.add_limits(sample.limits, sample.totals.unwrap_or_default());
        // Half a second more, and then down: a look is made shortly after the second has ended.
        let nanos = sample.now.wall.plus(Span::from_millis(500)).as_nanos();
        let ended = Timestamp::from_nanos(nanos - nanos % SECOND.as_nanos());
        self.end_second(Some(ended));
    }

    fn end_second(&mut self, ended: Option<Timestamp>) {
        self.second_ended = ended;
        let Some(ended) = ended else { return };
        let seconds = ended.as_nanos() / SECOND.as_nanos();
        let minute = seconds - seconds % MINUTE_SECONDS;
        let minute = Timestamp::from_nanos(minute.saturating_mul(SECOND.as_nanos()));
        // Each ends once, also if two looks fall into one second or none into another.
        let is_over = self.minute_ended.map_or(minute == ended, |before| minute > before);
        if !is_over {
            return;
        }
        self.minute_ended = Some(minute);
        self.all_queues.end_minute();
        self.all_limits.end_minute();
        self.queues.values_mut().for_each(Track::end_minute);
        self.limits.values_mut().for_each(Track::end_minute);
    }

    fn add_queues(&mut self, queues: Vec<BusyQueue>) {
        let mut points = HashMap::with_capacity(queues.len());
        let mut counted = HashMap::with_capacity(queues.len());
        let mut all = [0_u64; 8];
        for queue in queues {
            let name = queue.name.as_str().to_owned();
            let counts = [
                queue.enqueued,
                queue.started,
                queue.ended.done,
                queue.settled.failed + queue.settled.crashed,
                queue.ended.dead,
            ];
            let before = self.before.queues.get(&name).copied().unwrap_or_default();
            let [enqueued, started, done, failed, died] = since(before, counts);
            let now = [queue.waiting, queue.in_flight, queue.dead];
            let point = [enqueued, started, done, failed, died, now[0], now[1], now[2]];
            all.iter_mut().zip(point).for_each(|(sum, value)| *sum = sum.saturating_add(value));
            counted.insert(name.clone(), counts);
            points.insert(name, narrow(point));
        }
        self.before.queues = counted;
        self.all_queues.add(Some(narrow(all)));
        add_to(&mut self.queues, points);
    }

    fn add_limits(&mut self, limits: Vec<BusyLimit>, totals: LimitTotals) {
        // One that is new among them may have been there before, if there are more than have series.
        let had_room = self.before.limits.len() < TRACKS_MAX;
        let mut points = HashMap::with_capacity(limits.len());
        let mut counted = HashMap::with_capacity(limits.len());
        for limit in limits.into_iter().take(TRACKS_MAX) {
            let name = limit.name.as_str().to_owned();
            let LimitTotals { admitted, refused, .. } = limit.totals;
            let counts = [admitted.count, admitted.weight, refused.count];
            let begins = if had_room { [0; 3] } else { counts };
            let before = self.before.limits.get(&name).copied().unwrap_or(begins);
            let [admitted, weight, throttled] = since(before, counts);
            counted.insert(name.clone(), counts);
            let point = [admitted, weight, throttled, limit.waiting, limit.in_flight];
            points.insert(name, narrow(point));
        }
        self.before.limits = counted;
        add_to(&mut self.limits, points);
        let counts = [totals.admitted.count, totals.refused.count];
        self.all_limits.add(Some(narrow(since(self.before.all_limits, counts))));
        self.before.all_limits = counts;
    }

    /// The sum of the series of those queues, from when the server began.
    pub(super) fn of_queues(&self, step: Step, is_one: impl Fn(&str) -> bool) -> Vec<Point<8>> {
        let these = self.queues.iter().filter(|(name, _)| is_one(name));
        sum(self.blank(step), these.map(|(_, track)| track.points(step)))
    }

    /// The sum of the series of those limits, from when the server began.
    pub(super) fn of_limits(&self, step: Step, is_one: impl Fn(&str) -> bool) -> Vec<Point<5>> {
        let these = self.limits.iter().filter(|(name, _)| is_one(name));
        sum(self.blank(step), these.map(|(_, track)| track.points(step)))
    }

    /// A series in which nothing happened.
    fn blank<const N: usize>(&self, step: Step) -> Vec<Point<N>> {
        let points = self.all_queues.points(step).into_iter();
        points.map(|point| point.map(|_| [0; N])).collect()
    }
}

/// What was counted since, where it may have begun anew meanwhile.
fn since<const N: usize>(before: [u64; N], now: [u64; N]) -> [u64; N] {
    std::array::from_fn(|at| now[at].checked_sub(before[at]).unwrap_or(now[at]))
}

/// Larger values than fit are told as the largest.
fn narrow<const N: usize>(values: [u64; N]) -> [u32; N] {
    values.map(|value| u32::try_from(value).unwrap_or(u32::MAX))
}

/// Adds a point to each series, forgets those that are gone, and begins others while there is room.
fn add_to<const N: usize, const C: usize>(
    tracks: &mut HashMap<String, Track<N, C>>,
    mut points: HashMap<String, [u32; N]>,
) {
    tracks.retain(|name, track| match points.remove(name) {
        Some(point) => {
            track.add(Some(point));
            true
        }
        None => false,
    });
    let room = TRACKS_MAX.saturating_sub(tracks.len());
    let mut new: Vec<_> = points.into_iter().collect();
    new.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (name, point) in new.into_iter().take(room) {
        tracks.entry(name).or_default().add(Some(point));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::lanes::{EndCounts, LimitName, OutcomeCounts, QueueName, Tally};

    fn queue(name: &str, enqueued: u64, waiting: u64) -> BusyQueue {
        BusyQueue {
            name: QueueName::new(name).unwrap(),
            is_paused: false,
            waiting,
            in_flight: 0,
            dead: 0,
            oldest: None,
            enqueued,
            started: 0,
            settled: OutcomeCounts::default(),
            ended: EndCounts::default(),
        }
    }

    fn limit(name: &str, admitted: u64) -> BusyLimit {
        let admitted = Tally { count: admitted, weight: 10 * admitted };
        let totals = LimitTotals { admitted, ..LimitTotals::default() };
        BusyLimit { name: LimitName::new(name).unwrap(), totals, waiting: 1, in_flight: 2 }
    }

    fn sample(second: u64, queues: Vec<BusyQueue>, limits: Vec<BusyLimit>) -> Sample {
        let at = Timestamp::from_nanos(second * SECOND.as_nanos() + 2_000_000);
        Sample { now: Now::both(at), queues, limits, totals: Some(LimitTotals::default()) }
    }

    /// What was enqueued and what waits, second by second.
    fn told(points: Vec<Point<8>>) -> Vec<Option<(u32, u32)>> {
        points.into_iter().map(|point| point.map(|values| (values[0], values[5]))).collect()
    }

    #[test]
    fn a_gap_is_told_and_what_happened_in_it_is_counted_next() {
        let mut tracks = Tracks::default();
        tracks.add(sample(100, vec![queue("q", 3, 3)], vec![]));
        tracks.add_gap();
        assert_eq!(tracks.ended(Step::Second), Some(Timestamp::from_nanos(101_000_000_000)));
        tracks.add(sample(102, vec![queue("q", 8, 6)], vec![]));
        let expected = [Some((3, 3)), None, Some((5, 6))];
        assert_eq!(told(tracks.of_queues(Step::Second, |name| name == "q")), expected);
        assert_eq!(told(tracks.all_queues.points(Step::Second)), expected);
    }

    #[test]
    fn a_minute_ends_once_however_the_looks_fall() {
        let mut tracks = Tracks::default();
        for (second, enqueued) in [(59, 1), (60, 2), (60, 3), (61, 4), (119, 5), (121, 6), (180, 7)]
        {
            tracks.add(sample(second, vec![queue("q", enqueued, 0)], vec![]));
        }
        let minutes = told(tracks.of_queues(Step::Minute, |name| name == "q"));
        assert_eq!(minutes, [Some((2, 0)), Some((4, 0)), Some((1, 0))]);
        assert_eq!(tracks.ended(Step::Minute), Some(Timestamp::from_nanos(180_000_000_000)));
    }

    #[test]
    fn what_is_removed_is_forgotten_and_takes_nothing_from_the_sum() {
        let mut tracks = Tracks::default();
        tracks.add(sample(100, vec![queue("a", 3, 3), queue("b", 9, 0)], vec![]));
        tracks.add(sample(101, vec![queue("a", 4, 4)], vec![]));
        assert!(tracks.has_queue("a") && !tracks.has_queue("b"));
        assert_eq!(told(tracks.all_queues.points(Step::Second)), [Some((12, 3)), Some((1, 4))]);
        // Made again, it begins at nothing, and its series when the server did.
        tracks.add(sample(102, vec![queue("a", 4, 4), queue("b", 2, 2)], vec![]));
        let b = told(tracks.of_queues(Step::Second, |name| name == "b"));
        assert_eq!(b, [Some((0, 0)), Some((0, 0)), Some((2, 2))]);
    }

    #[test]
    fn beyond_a_thousand_all_together_are_counted_still() {
        let names: Vec<String> = (0..TRACKS_MAX + 5).map(|name| format!("{name:04}")).collect();
        let mut tracks = Tracks::default();
        let queues = names.iter().map(|name| queue(name, 1, 1)).collect();
        let limits = names.iter().map(|name| limit(name, 1)).collect();
        tracks.add(sample(100, queues, limits));
        assert_eq!((tracks.queues.len(), tracks.limits.len()), (TRACKS_MAX, TRACKS_MAX));
        assert_eq!(told(tracks.all_queues.points(Step::Second)), [Some((1_005, 1_005))]);
        // One that comes among them later may have been there all the time.
        tracks.add(sample(101, vec![], vec![limit("1004", 1)]));
        let later = tracks.of_limits(Step::Second, |name| name == "1004");
        assert_eq!(later, [Some([0; 5]), Some([0, 0, 0, 1, 2])]);
    }

    #[test]
    fn minutes_end_with_those_of_the_wall_clock() {
        let mut tracks = Tracks::default();
        for second in 118..=181 {
            tracks.add(sample(second, vec![queue("q", second, 1)], vec![]));
        }
        let minutes = told(tracks.of_queues(Step::Minute, |name| name == "q"));
        assert_eq!(minutes, [Some((120, 1)), Some((60, 1))]);
        assert_eq!(tracks.ended(Step::Minute), Some(Timestamp::from_nanos(180_000_000_000)));
    }
}
