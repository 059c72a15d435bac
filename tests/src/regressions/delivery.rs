//! How much of a rate reaches those who wait for it.

use crate::world::{PATIENCE, Waiter, World, seconds};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use tollgate::{Bell, Clock, Limit, ManualClock, Span, SystemClock, Timestamp, Tollgate, global};

const RATE: u64 = 2_000;
/// Covers 20 ms of the rate.
const BURST: u64 = 40;

/// A clock whose sleeps end late, as those of an operating system do: at the next multiple of
/// `tick`. Time passes only while the timer sleeps.
#[derive(Clone)]
struct SleepyClock {
    inner: ManualClock,
    tick: Span,
    is_running: Arc<AtomicBool>,
}

impl SleepyClock {
    fn start(&self) {
        self.is_running.store(true, Ordering::SeqCst);
        self.inner.advance(Span::ZERO);
    }
}

impl Clock for SleepyClock {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn wall(&self) -> Timestamp {
        self.inner.wall()
    }

    fn wait(&self, bell: &Arc<Bell>, deadline: Option<Timestamp>) {
        match deadline.filter(|_| self.is_running.load(Ordering::SeqCst)) {
            None => self.inner.wait(bell, None),
            Some(deadline) => {
                let tick = self.tick.as_nanos();
                let wakes = deadline.as_nanos().div_ceil(tick).saturating_mul(tick);
                self.inner.advance(Timestamp::from_nanos(wakes).since(self.now()));
            }
        }
    }
}

/// Rate lost to timer rounding.
#[tokio::test]
async fn sleeps_that_end_late_cost_nothing_that_the_burst_covers() {
    for tick_ms in [1, 10, 15] {
        let (inner, tick) = (ManualClock::new(), Span::from_millis(tick_ms));
        let clock = SleepyClock { inner, tick, is_running: Arc::default() };
        let gate = Tollgate::builder().clock(clock.clone()).memory();
        gate.limit("api", Limit::per_second(RATE).burst(BURST)).await.unwrap();
        drop(gate.consume(global("api").weight(BURST)).await.unwrap());
        let began = clock.now();
        let stand = |_| Waiter::stand(gate.acquire(global("api")));
        let waiters: Vec<_> = (0..RATE).map(stand).collect();
        clock.start();
        for waiter in waiters {
            let _ = waiter.answered().await.unwrap();
        }
        let took = clock.now().since(began);
        assert!(took <= Span::from_millis(1_010), "{took} for a second's calls, ticks of {tick}");
    }
}

/// The same on the machine's own clock and threads, as far as it can be held while other tests keep
/// the machine busy: the burst covers the fifth of a second that a thread may have to wait for its
/// turn. The bench measures it on an idle machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_machines_own_clock_delivers_the_rate_and_no_more() {
    let clock = SystemClock::new();
    let gate = Tollgate::builder().clock(clock.clone()).memory();
    let burst = RATE / 5;
    gate.limit("api", Limit::per_second(RATE).burst(burst)).await.unwrap();
    let began = clock.now();
    drop(gate.consume(global("api").weight(burst)).await.unwrap());
    let stand = |_| {
        let gate = gate.clone();
        tokio::spawn(async move { gate.acquire(global("api")).await.map(drop) })
    };
    let tasks: Vec<_> = (0..RATE).map(stand).collect();
    for task in tasks {
        tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap().unwrap();
    }
    let took = clock.now().since(began);
    assert!(took >= seconds(1), "{took} for a second's calls: too fast");
    assert!(took <= Span::from_millis(1_250), "{took} for a second's calls: too slow");
}

/// A gate on the machine's own clock, and a limit at which nothing passes until so many do at once.
async fn in_one_wave(calls: u64) -> Tollgate {
    let gate = Tollgate::builder().clock(SystemClock::new()).memory();
    gate.limit("api", Limit::fixed_window(calls, seconds(2))).await.unwrap();
    drop(gate.consume(global("api").weight(calls)).await.unwrap());
    gate
}

/// Lets a call wait in a task of its own, and do something as it starts.
fn start(gate: &Tollgate, act: impl FnOnce() + Send + 'static) -> tokio::task::JoinHandle<()> {
    let gate = gate.clone();
    tokio::spawn(async move {
        let _pass = gate.acquire(global("api")).await.unwrap();
        act();
    })
}

async fn all_ended(tasks: impl IntoIterator<Item = tokio::task::JoinHandle<()>>) {
    for task in tasks {
        tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    }
}

/// Also on a worker that would run first whom it woke last.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn calls_that_are_woken_together_start_in_their_order() {
    start_in_their_order().await;
}

#[tokio::test]
async fn calls_that_are_woken_together_start_in_their_order_on_one_thread() {
    start_in_their_order().await;
}

/// More than a runtime does before it looks who was woken from outside.
const WAVE: u64 = 100;

async fn start_in_their_order() {
    let (gate, started) = (in_one_wave(WAVE).await, Arc::new(Mutex::new(Vec::new())));
    let tasks = (0..WAVE).map(|number| {
        let started = started.clone();
        start(&gate, move || started.lock().unwrap().push(number))
    });
    let tasks: Vec<_> = tasks.collect();
    all_ended(tasks).await;
    assert_eq!(*started.lock().unwrap(), (0..WAVE).collect::<Vec<_>>());
}

/// Each keeps a worker until all have started.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_call_that_keeps_its_worker_busy_holds_back_no_other() {
    let (gate, started) = (in_one_wave(3).await, Arc::new((Mutex::new(0), Condvar::new())));
    let tasks = (0..3).map(|_| {
        let started = started.clone();
        start(&gate, move || {
            let (count, changed) = &*started;
            let mut count = count.lock().unwrap();
            *count += 1;
            changed.notify_all();
            let waited = changed.wait_timeout_while(count, PATIENCE, |count| *count < 3);
            assert!(!waited.unwrap().1.timed_out(), "some did not start");
        })
    });
    let tasks: Vec<_> = tasks.collect();
    all_ended(tasks).await;
}

/// Whoever comes next is woken although the first never looks.
#[tokio::test]
async fn a_call_that_is_not_polled_holds_back_no_other() {
    let gate = in_one_wave(2).await;
    let first = Waiter::stand(gate.acquire(global("api")));
    all_ended([start(&gate, || {})]).await;
    drop(first);
}

/// Nothing is lost between two waits, either: one caller after the other.
#[tokio::test]
async fn a_caller_that_asks_one_by_one_gets_the_whole_rate() {
    let world = World::of("api", Limit::per_second(3)).await;
    world.pay(global("api").weight(3)).await;
    let began = world.clock.now();
    for _ in 0..300 {
        let mut waiter = world.stand(global("api"));
        let wait = world.gate.meter("api", None).await.unwrap().next_admission_after.unwrap();
        world.advance(wait).await;
        let _ = waiter.answer().unwrap().unwrap();
    }
    assert_eq!(world.clock.now().since(began), seconds(100));
}
