//! A forecast: what becomes of all that waits, by the scheduler itself, on a time that goes from one
//! instant at which something is due to the next.

use super::{LaneSurvey, Scheduler};
use crate::lanes::act::{Act, Settle, Settlement};
use crate::lanes::call::{Lease, Started};
use crate::lanes::claim::{CLAIM_MAX, Claim};
use crate::lanes::event::Watch;
use crate::name::{LaneName, QueueName};
use crate::time::{Now, Span, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// At how many instants is looked for each start that may be.
const INSTANTS_A_START: u64 = 4;

/// How calls are thought to be worked on: all succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// How long one takes, from its start to its end.
    pub takes: Span,
    /// How many of one queue are in flight at most.
    pub hands: u64,
    /// How far is looked ahead.
    pub within: Span,
    /// After how many starts it is enough.
    pub starts_max: u64,
    /// Into how many steps the time is cut, for a picture.
    pub steps: usize,
}

/// What becomes of what waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// How many calls wait.
    pub waiting: u64,
    /// How many of them start within the time.
    pub started: u64,
    /// How long it takes until the last of those has started.
    pub takes: Span,
    /// There was more than is looked at: the rest is not known.
    pub is_cut: bool,
    /// Each lane that has something waiting, by queue and name.
    pub lanes: Vec<LaneForecast>,
    /// When calls start, each a span from now, in order.
    starts: Vec<Span>,
    steps: usize,
}

/// What becomes of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneForecast {
    /// Its queue.
    pub queue: QueueName,
    /// Its name.
    pub lane: LaneName,
    /// How many calls wait.
    pub waiting: u64,
    /// How many of them start.
    pub started: u64,
    /// How long the first that starts waits for it, from now.
    pub first: Option<Span>,
    /// How long the last that starts waits for it.
    pub last: Option<Span>,
}

impl Forecast {
    /// How many calls start in each of equal steps, and how long a step is.
    pub fn steps(&self) -> (Span, Vec<u64>) {
        let steps = self.steps.max(1) as u64;
        let step = Span::from_nanos(self.takes.as_nanos() / steps + 1);
        let mut counts = vec![0; self.steps.max(1)];
        for start in &self.starts {
            let place = usize::try_from(start.as_nanos() / step.as_nanos()).unwrap_or(usize::MAX);
            if let Some(count) = counts.get_mut(place) {
                *count += 1;
            }
        }
        (step, counts)
    }
}

impl Scheduler {
    /// What becomes of all that waits if it is worked on so from now, and nothing else is handed in.
    #[must_use]
    pub fn forecast(mut self, work: &Work, now: Now) -> Forecast {
        self.watch(Watch::Nothing);
        self.gather(Self::GATHER);
        // There are no others on paper.
        self.shares_asks = false;
        Rehearsal::new(self, *work, now).run()
    }

    /// How many calls wait in each lane where some do.
    fn waiting_by_lane(&self) -> impl Iterator<Item = (QueueName, LaneName, u64)> {
        let slots = self.lanes.queues().flat_map(|queue| &queue.lanes);
        slots.map(|slot| self.lane_survey(*slot)).filter_map(
            |LaneSurvey { queue, state, .. }| {
                (state.waiting > 0).then_some((queue, state.name, state.waiting))
            },
        )
    }

    /// All calls in flight, with their queues.
    fn leases(&self) -> impl Iterator<Item = (&QueueName, Lease)> {
        self.timers.leases.iter().map(|(_, token, slot)| {
            let call = &self.calls[slot];
            let queue = &self.lanes.queue(self.lanes[call.lane].queue).name;
            (queue, Lease { call: call.id, token })
        })
    }
}

/// A scheduler on its way through what is to come.
struct Rehearsal {
    scheduler: Scheduler,
    work: Work,
    began: Now,
    /// What waited in the beginning, and what became of it.
    lanes: BTreeMap<(QueueName, LaneName), LaneForecast>,
    /// And how many are in flight of each.
    queues: Vec<(QueueName, u64)>,
    /// Those of which something may start.
    woken: BTreeSet<usize>,
    /// What is in flight, of which of them, and when it ends.
    flights: VecDeque<(Timestamp, usize, Lease)>,
    /// How many that waited have not started.
    left: u64,
    starts: Vec<Span>,
    started: u64,
}

impl Rehearsal {
    fn new(mut scheduler: Scheduler, work: Work, began: Now) -> Self {
        scheduler.advance(began);
        let waiting = scheduler.waiting_by_lane().map(|(queue, lane, waiting)| {
            let key = (queue.clone(), lane.clone());
            (key, LaneForecast { queue, lane, waiting, started: 0, first: None, last: None })
        });
        let lanes: BTreeMap<_, _> = waiting.collect();
        let queues = scheduler.queues(None, usize::MAX).into_iter();
        let mut queues: Vec<_> = queues.map(|queue| (queue.name, 0)).collect();
        // What is in flight now has begun at some time, and ends as if it began now.
        let ends = began.at.plus(work.takes);
        let mut flights = VecDeque::new();
        for (queue, lease) in scheduler.leases() {
            // They are sorted by name.
            let Ok(place) = queues.binary_search_by(|(name, _)| name.cmp(queue)) else { continue };
            queues[place].1 += 1;
            flights.push_back((ends, place, lease));
        }
        let leases: Vec<_> = flights.iter().map(|(_, _, lease)| *lease).collect();
        let _ = scheduler.renew(&leases, lease(&work), began);
        let left = lanes.values().map(|lane| lane.waiting).sum();
        Self {
            scheduler,
            work,
            began,
            lanes,
            woken: (0..queues.len()).collect(),
            queues,
            flights,
            left,
            starts: Vec::new(),
            started: 0,
        }
    }

    fn run(mut self) -> Forecast {
        let mut now = self.began;
        let until = now.at.plus(self.work.within);
        // More instants than starts are those at which somebody tries in vain: they have an end, too.
        for _ in 0..self.work.starts_max.saturating_mul(INSTANTS_A_START) {
            while self.end_flights(now) | self.start(now) {}
            let due = [self.scheduler.next_due(now), self.flights.front().map(|(ends, ..)| *ends)];
            let next = due.into_iter().flatten().min().filter(|next| *next <= until);
            match next {
                Some(next) if self.left > 0 && !self.is_cut() => {
                    // What is due and did not happen is nobody's turn: time goes on all the same.
                    now = now.moved_to(next.max(now.at.plus(Span::from_nanos(1))));
                }
                _ => return self.told(false),
            }
        }
        self.told(true)
    }

    fn is_cut(&self) -> bool {
        self.started >= self.work.starts_max
    }

    /// Ends what is over by now; says whether something was.
    fn end_flights(&mut self, now: Now) -> bool {
        let over = self.flights.partition_point(|(ends, ..)| *ends <= now.at);
        for (_, place, lease) in self.flights.drain(..over) {
            self.queues[place].1 -= 1;
            self.woken.insert(place);
            let settle = vec![Settle::new(lease, Settlement::Done)];
            // One that is not in flight any more has ended by itself.
            let _ = self.scheduler.act(Act { settle, ..Act::default() }, now);
        }
        drop(self.scheduler.take_effects());
        over > 0
    }

    /// Starts what may start; says whether something did.
    fn start(&mut self, now: Now) -> bool {
        let before = self.started;
        self.scheduler.advance(now);
        for queue in self.scheduler.take_woken() {
            self.woken.extend(self.queues.binary_search_by(|(name, _)| name.cmp(&queue)));
        }
        while let Some(place) = self.woken.pop_first() {
            while self.claim(place, now) && !self.is_cut() {}
        }
        drop(self.scheduler.take_effects());
        self.started > before
    }

    /// Starts calls of a queue; says whether there may be more.
    fn claim(&mut self, place: usize, now: Now) -> bool {
        let (queue, in_flight) = self.queues[place].clone();
        let enough = self.work.starts_max.saturating_sub(self.started);
        let free = self.work.hands.saturating_sub(in_flight).min(enough);
        let most = usize::try_from(free).unwrap_or(CLAIM_MAX).min(CLAIM_MAX);
        // Who has no hand free does not ask.
        if most == 0 {
            self.scheduler.ask(&queue, now.at, now);
            return false;
        }
        let (lease, asks) = (Some(lease(&self.work)), self.work.within);
        let claim = Claim { queue: queue.clone(), most, lease, asks };
        let started = self.scheduler.claim(&claim, now);
        self.queues[place].1 += started.len() as u64;
        for started in &started {
            self.flights.push_back((now.at.plus(self.work.takes), place, started.lease));
            self.note(&queue, started, now);
        }
        started.len() == most
    }

    fn note(&mut self, queue: &QueueName, started: &Started, now: Now) {
        self.started += 1;
        let lane = self.lanes.get_mut(&(queue.clone(), started.lane.clone()));
        // One that began to wait since is another's news.
        let Some(lane) = lane.filter(|lane| lane.started < lane.waiting) else { return };
        let after = now.at.since(self.began.at);
        lane.started += 1;
        lane.first.get_or_insert(after);
        lane.last = Some(after);
        self.left -= 1;
        self.starts.push(after);
    }

    fn told(self, is_worn_out: bool) -> Forecast {
        let is_cut = (self.is_cut() || is_worn_out) && self.left > 0;
        let steps = self.work.steps;
        let lanes: Vec<_> = self.lanes.into_values().collect();
        Forecast {
            waiting: lanes.iter().map(|lane| lane.waiting).sum(),
            started: self.starts.len() as u64,
            takes: self.starts.last().copied().unwrap_or_default(),
            is_cut,
            lanes,
            starts: self.starts,
            steps,
        }
    }
}

/// Nobody loses a lease before the end.
fn lease(work: &Work) -> Span {
    work.takes.plus(Span::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{NewCall, QueueSpec, Scope};
    use crate::limit::{Definition, Limit};
    use crate::name::LimitName;
    use crate::toll::Toll;

    const WORK: Work = Work {
        takes: Span::ZERO,
        hands: u64::MAX,
        within: Span::from_hours(1),
        starts_max: 1_000_000,
        steps: 10,
    };

    fn begun() -> Now {
        Now::both(Timestamp::from_nanos(1 << 60))
    }

    fn queue() -> QueueName {
        QueueName::new("q").unwrap()
    }

    fn name() -> LimitName {
        LimitName::new("l").unwrap()
    }

    fn limited(scheduler: &mut Scheduler, limit: Limit) {
        scheduler.define_limit(&name(), Some(Definition::new(limit).unwrap()), begun());
    }

    /// A queue with so many calls in each of these lanes, which all pay at one meter.
    fn waiting(limit: Limit, lanes: &[(&str, usize)]) -> Scheduler {
        let mut scheduler = Scheduler::new();
        let spec =
            QueueSpec { order: crate::lanes::Order::Parallel(1_000), ..QueueSpec::default() };
        scheduler.define_queue(&queue(), spec, begun()).unwrap();
        limited(&mut scheduler, limit);
        for (lane, calls) in lanes {
            let toll = Toll { limit: name(), partition: None, weight: 1, hears_feedback: false };
            let call = NewCall::new(queue(), LaneName::new(lane).unwrap());
            let call = NewCall { tolls: [toll].into(), ..call };
            let enqueue = vec![call; *calls];
            let _ = scheduler.act(Act { enqueue, ..Act::default() }, begun()).unwrap();
        }
        scheduler
    }

    fn lasts(forecast: &Forecast) -> Vec<(u64, Option<Span>)> {
        forecast.lanes.iter().map(|lane| (lane.started, lane.last)).collect()
    }

    #[test]
    fn what_waits_starts_as_fast_as_its_limit_allows() {
        let slow = waiting(Limit::per_second(10).burst(10), &[("a", 110)]).forecast(&WORK, begun());
        assert_eq!((slow.waiting, slow.started, slow.is_cut), (110, 110, false));
        assert_eq!(slow.takes, Span::from_secs(10));
        assert_eq!(slow.lanes[0].first, Some(Span::ZERO));
        let (step, steps) = slow.steps();
        assert!(step > Span::from_secs(1) && step < Span::from_millis(1_001), "{step:?}");
        assert_eq!((steps[0], steps.iter().sum::<u64>()), (20, 110));
        let fast = waiting(Limit::per_second(20).burst(10), &[("a", 110)]).forecast(&WORK, begun());
        assert_eq!(fast.takes, Span::from_secs(5));
    }

    #[test]
    fn lanes_share_what_there_is() {
        let lanes = [("a", 100), ("b", 10)];
        let told = waiting(Limit::per_second(10).burst(1), &lanes).forecast(&WORK, begun());
        let [(100, Some(first)), (10, Some(second))] = lasts(&told)[..] else { panic!("{told:?}") };
        assert_eq!(first, Span::from_millis(10_900));
        assert!(
            second <= Span::from_secs(2),
            "the short lane is not behind the long one: {second:?}"
        );
    }

    #[test]
    fn many_queues_at_one_meter_all_have_their_turn() {
        let mut scheduler = waiting(Limit::per_second(10).burst(1), &[("a", 20)]);
        for name in ["r", "s", "empty"] {
            let queue = QueueName::new(name).unwrap();
            scheduler.define_queue(&queue, QueueSpec::default(), begun()).unwrap();
            let toll =
                Toll { limit: self::name(), partition: None, weight: 1, hears_feedback: false };
            let call = NewCall::new(queue, LaneName::new("b").unwrap());
            let enqueue =
                vec![NewCall { tolls: [toll].into(), ..call }; 20 * usize::from(name != "empty")];
            let _ = scheduler.act(Act { enqueue, ..Act::default() }, begun()).unwrap();
        }
        let work = Work { takes: Span::from_millis(50), hands: 1, ..WORK };
        let told = scheduler.forecast(&work, begun());
        assert_eq!((told.started, told.takes), (60, Span::from_millis(5_900)));
        let firsts: Vec<_> = told.lanes.iter().map(|lane| lane.first.unwrap()).collect();
        assert!(firsts.iter().all(|first| *first <= Span::from_millis(200)), "{firsts:?}");
    }

    #[test]
    fn hands_and_how_long_a_call_takes_count() {
        let work = Work { takes: Span::from_secs(2), hands: 5, ..WORK };
        let told = waiting(Limit::concurrency(1_000), &[("a", 20)]).forecast(&work, begun());
        assert_eq!(told.takes, Span::from_secs(6), "five at a time, two seconds each");
        let told = waiting(Limit::concurrency(2), &[("a", 20)]).forecast(&work, begun());
        assert_eq!(told.takes, Span::from_secs(18), "two at a time");
    }

    #[test]
    fn what_is_in_flight_ends_and_makes_room() {
        let mut scheduler = waiting(Limit::concurrency(2), &[("a", 4)]);
        let claim = Claim { queue: queue(), most: 2, lease: None, asks: Span::ZERO };
        assert_eq!(scheduler.claim(&claim, begun()).len(), 2);
        let work = Work { takes: Span::from_secs(40), ..WORK };
        let told = scheduler.forecast(&work, begun());
        assert_eq!((told.waiting, told.started, told.takes), (2, 2, Span::from_secs(40)));
    }

    #[test]
    fn what_does_not_start_is_left_and_what_is_too_much_is_cut() {
        let mut scheduler = waiting(Limit::per_second(1), &[("a", 5), ("b", 5)]);
        let lane = LaneName::new("b").unwrap();
        scheduler.pause(&Scope::Lane(queue(), lane), begun());
        let told = scheduler.forecast(&WORK, begun());
        assert_eq!(lasts(&told).iter().map(|(started, _)| *started).collect::<Vec<_>>(), [5, 0]);
        assert_eq!((told.started, told.is_cut), (5, false));
        let soon = Work { within: Span::from_secs(2), ..WORK };
        let told = waiting(Limit::per_second(1), &[("a", 5)]).forecast(&soon, begun());
        assert_eq!((told.started, told.is_cut), (3, false));
        let some = Work { starts_max: 2, ..WORK };
        let told = waiting(Limit::per_second(9), &[("a", 5)]).forecast(&some, begun());
        assert_eq!((told.started, told.is_cut), (2, true));
    }
}
