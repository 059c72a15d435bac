//! Many threads at once: what they get together is what the rule gives, and nothing wedges.

use crate::world::{PATIENCE, World, seconds};
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate::{Limit, Span, Tollgate, global, toll};

const THREADS: u64 = 8;

/// More than any of the limits here has: a thread that gets so much has seen enough.
const MOST: u64 = 50_000;

/// Runs `ask` on every thread until it has been refused so often; says how often it was granted.
fn granted(ask: impl Fn(u64) -> bool + Sync) -> u64 {
    let granted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (ask, granted) = (&ask, &granted);
            scope.spawn(move || {
                let mut refusals = 0;
                while refusals < 200 && granted.load(Ordering::Relaxed) < MOST {
                    if ask(thread) {
                        granted.fetch_add(1, Ordering::Relaxed);
                    } else {
                        refusals += 1;
                    }
                }
            });
        }
    });
    granted.into_inner()
}

/// Check-then-add race.
#[tokio::test]
async fn racing_threads_get_exactly_what_there_is() {
    for limit in [
        Limit::per_day(5_000),
        Limit::fixed_window(5_000, Span::from_days(1)),
        Limit::sliding_window(5_000, Span::from_days(1)),
        Limit::per_day(5_000).and(Limit::per_hour(9_000)),
    ] {
        let world = World::of("api", limit.clone()).await;
        let limiter = world.gate.limiter().unwrap();
        let at_one_key = granted(|_| limiter.consume(toll("api", "acme")).is_ok());
        assert_eq!(at_one_key, 5_000, "{limit:?}");
        let without_a_key = granted(|_| limiter.consume(global("api")).is_ok());
        assert_eq!(without_a_key, 5_000, "{limit:?}");
    }
}

#[tokio::test]
async fn racing_threads_get_exactly_what_the_scarcer_of_two_limits_has() {
    let world = World::of("a", Limit::per_day(3_000)).await;
    let world = world.limit("b", Limit::per_day(2_000)).await;
    let limiter = world.gate.limiter().unwrap();
    let both = granted(|thread| {
        let [first, second] = if thread % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
        limiter.consume(global(first).and(global(second))).is_ok()
    });
    assert_eq!(both, 2_000);
    assert_eq!((world.left("a").await, world.left("b").await), (1_000, 0));
}

#[tokio::test]
async fn racing_threads_never_hold_more_slots_than_there_are() {
    let world = World::of("api", Limit::concurrency(3)).await;
    let limiter = world.gate.limiter().unwrap();
    let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
    granted(|_| {
        let Ok(pass) = limiter.consume(global("api")) else { return false };
        most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::yield_now();
        held.fetch_sub(1, Ordering::SeqCst);
        drop(pass);
        // As if refused, so that the threads come to an end.
        false
    });
    assert!((1..=3).contains(&most.into_inner()));
    assert_eq!(world.left("api").await, 3);
}

/// A limit that is changed under way mints nothing and loses nothing.
#[tokio::test]
async fn racing_threads_get_exactly_what_there_is_while_the_limit_changes() {
    let world = World::of("api", Limit::per_day(20_000)).await;
    let limiter = world.gate.limiter().unwrap();
    let changes = AtomicU64::new(0);
    let total = granted(|thread| {
        if thread == 0 && changes.fetch_add(1, Ordering::Relaxed).is_multiple_of(50) {
            let days = changes.load(Ordering::Relaxed) % 7 + 1;
            limiter.define("api", Limit::per(20_000, Span::from_days(days))).unwrap();
        }
        limiter.consume(global("api")).is_ok()
    });
    assert_eq!(total, 20_000);
}

/// Wedge after contended try-acquire: calls that wait and give up under load leave no trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_meter_works_on_after_contended_tries_and_abandoned_waits() {
    let world = World::of("api", Limit::per_second(100).and(Limit::concurrency(4))).await;
    let tasks = (0..8).map(|task| {
        let gate = world.gate.clone();
        tokio::spawn(async move { hustle(&gate, task).await })
    });
    let tasks: Vec<_> = tasks.collect();
    while tasks.iter().any(|task| !task.is_finished()) {
        world.advance(Span::from_millis(5)).await;
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    world.advance(seconds(10)).await;
    let meter = world.gate.meter("api", None).await.unwrap();
    assert_eq!((meter.in_flight, meter.waiting), (0, 0));
    assert_eq!(world.pay(global("api").weight(4)).await, 0);
}

/// Tries, waits, gives up, settles, cancels.
async fn hustle(gate: &Tollgate, task: u64) {
    for turn in 0..200 {
        let ask = || global("api").estimate((turn + task) % 3 + 1);
        match turn % 4 {
            0 => drop(gate.consume(ask()).await),
            1 => {
                let acquire = gate.acquire(ask());
                tokio::select! {
                    biased;
                    pass = async { acquire.await } => pass.unwrap().cancel().await,
                    () = tokio::task::yield_now() => {}
                }
            }
            2 => drop(gate.acquire(ask()).max_wait(Span::from_millis(20)).await),
            _ => {
                let waited = tokio::time::timeout(PATIENCE, async { gate.acquire(ask()).await });
                let mut pass = waited.await.expect("the meter is wedged").unwrap();
                pass.settle("api", 2).await.unwrap();
            }
        }
    }
}
