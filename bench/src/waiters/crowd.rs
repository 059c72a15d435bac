//! A crowd of tasks that wait on one limiter, and ask again as soon as they are served.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::order::{Event, Order, count_inversions};
use crate::contender::{Limit, Waiting};
use crate::process;

/// The time before the measurement in which the crowd arrives and spends the burst.
const WARM_UP: Duration = Duration::from_millis(500);
/// Arrivals and grants that fit the diary as it is made: more than there are in a run.
const EVENTS: usize = 1 << 17;

/// How many wait, on how many threads, and for how long.
pub(crate) struct Crowd {
    pub(crate) tasks: usize,
    pub(crate) threads: usize,
    pub(crate) wait_ms: u64,
    pub(crate) limit: Limit,
}

/// What the crowd got.
pub(crate) struct Outcome {
    pub(crate) grants: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) cpu_ns: u64,
    /// Pairs that waited at the same time and of which the later was served first.
    pub(crate) inversions: u64,
    /// Pairs that waited at the same time.
    pub(crate) pairs: u64,
}

impl Crowd {
    /// Lets the crowd wait on the limiter and measures from outside its threads.
    #[expect(clippy::disallowed_methods, reason = "the measurement lasts as long as it says")]
    pub(crate) fn wait_on(&self, limiter: impl Waiting) -> anyhow::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.threads)
            .enable_time()
            .build()?;
        let (limiter, diary) = (Arc::new(limiter), Arc::new(Diary::blank()));
        for _ in 0..self.tasks {
            runtime.spawn(wait_again_and_again(Arc::clone(&limiter), Arc::clone(&diary)));
        }
        thread::sleep(WARM_UP);
        let (begun, cpu_before, grants_before) =
            (Instant::now(), process::cpu_ns()?, diary.grants());
        thread::sleep(Duration::from_millis(self.wait_ms));
        let (elapsed, cpu_after, grants_after) =
            (begun.elapsed(), process::cpu_ns()?, diary.grants());
        runtime.shutdown_background();
        let Order { inversions, pairs } = count_inversions(&diary.pages().events);
        Ok(Outcome {
            grants: grants_after - grants_before,
            elapsed_ns: u64::try_from(elapsed.as_nanos())?,
            cpu_ns: cpu_after - cpu_before,
            inversions,
            pairs,
        })
    }
}

async fn wait_again_and_again(limiter: Arc<impl Waiting>, diary: Arc<Diary>) {
    loop {
        let ticket = diary.arrive();
        limiter.acquire().await;
        diary.grant(ticket);
    }
}

/// Who arrived and who was granted, in the order in which it happened.
struct Diary(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    events: Vec<Event>,
    arrivals: usize,
    grants: u64,
}

impl Diary {
    /// With pages that are in memory already: to get them there is not the limiter's time.
    fn blank() -> Self {
        let mut events = vec![Event::Arrived(usize::MAX); EVENTS];
        events.clear();
        Self(Mutex::new(Pages { events, ..Pages::default() }))
    }

    fn arrive(&self) -> usize {
        let mut pages = self.pages();
        let ticket = pages.arrivals;
        pages.arrivals += 1;
        pages.events.push(Event::Arrived(ticket));
        ticket
    }

    fn grant(&self, ticket: usize) {
        let mut pages = self.pages();
        pages.grants += 1;
        pages.events.push(Event::Granted(ticket));
    }

    fn grants(&self) -> u64 {
        self.pages().grants
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Outcome> for [u64; 5] {
    fn from(outcome: Outcome) -> Self {
        let Outcome { grants, elapsed_ns, cpu_ns, inversions, pairs } = outcome;
        [grants, elapsed_ns, cpu_ns, inversions, pairs]
    }
}

impl From<[u64; 5]> for Outcome {
    fn from([grants, elapsed_ns, cpu_ns, inversions, pairs]: [u64; 5]) -> Self {
        Self { grants, elapsed_ns, cpu_ns, inversions, pairs }
    }
}
