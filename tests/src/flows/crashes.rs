//! The power goes again and again: each run ends with the same result, no step is left out, and the limit holds.

use super::*;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tollgate::flows::children;
use tollgate::{Limit, ManualClock, Tollgate, global};
use tollgate_stores::embedded::disk::simulated::{Fault, Host};

/// Runs that are begun.
const RUNS: u64 = 6;
/// The limit of `work`.
const PER_SECOND: u64 = 20;
const BURST: u64 = 5;
/// How often the power goes at most.
const CUTS: u64 = 12;

/// What was made, which no crash takes back: it is outside.
#[derive(Default)]
struct World {
    /// By run, which steps with which state.
    made: BTreeMap<String, BTreeSet<String>>,
    /// When steps that pay were started.
    paid: Vec<Timestamp>,
}

struct Order(Arc<Mutex<World>>);

impl Machine for Order {
    const NAME: &'static str = "order";
    /// The power may go at the same step each time.
    const CRASHES_MAX: u32 = u32::MAX;
    type State = u64;

    async fn step(&self, step: Step<u64>) -> Result<StepOutcome, StepError> {
        let left = step.state;
        {
            let mut world = self.0.lock().unwrap();
            let made = world.made.entry(step.run.clone()).or_default();
            made.insert(format!("{} {left}", step.name));
            if step.name == "work" {
                world.paid.push(step.started);
            }
        }
        let work = |left| next("work", left).pays(global("l"));
        Ok(match step.name.as_str() {
            "begin" => work(left),
            "work" if left > 1 => work(left - 1),
            "work" => wait_for(["go"], "spread", left).timeout(Span::from_secs(1)),
            "spread" => {
                let child = |n| NewRun::new::<Self>("child", n);
                children([1, 2, 3].map(child), "collect", left)
            }
            "child" => done(left * 10),
            _ => {
                let values = step.children.iter().map(|it| it.ending.value::<u64>());
                done(values.map(|value| value.unwrap().unwrap()).sum::<u64>())
            }
        })
    }
}

/// Works until the power goes, or all runs have ended.
async fn work_a_while(
    host: &Host,
    clock: &ManualClock,
    world: &Arc<Mutex<World>>,
    begun: &mut BTreeMap<u64, String>,
) -> Option<BTreeMap<u64, u64>> {
    let builder = Tollgate::builder().clock(clock.clone());
    let gate = builder.open_on(host.open().unwrap()).await.ok()?;
    gate.limit("l", Limit::per_second(PER_SECOND).burst(BURST)).await.ok()?;
    let flows = gate.flows();
    let worker = flows.worker(Order(world.clone())).concurrency(4).lease(Span::from_secs(5));
    let worker = tokio::spawn(worker.run());
    let ended = patiently(async {
        for number in 0..RUNS {
            if let Entry::Vacant(place) = begun.entry(number) {
                let new = NewRun::new::<Order>("begin", 3).correlation(format!("order-{number}"));
                place.insert(flows.start(new).await.ok()?.run);
            }
        }
        let mut ended = BTreeMap::new();
        while ended.len() < begun.len() {
            if worker.is_finished() {
                return None;
            }
            clock.advance(Span::from_millis(50));
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            for (number, run) in begun.iter() {
                if let Some(end) = flows.ended(run).await.ok()? {
                    let value = end.ending.value::<u64>().expect("no run fails");
                    ended.insert(*number, value.unwrap());
                }
            }
        }
        Some(ended)
    })
    .await;
    worker.abort();
    drop(worker.await);
    ended
}

fn within_the_limit(paid: &[Timestamp]) {
    let mut paid = paid.to_vec();
    paid.sort_unstable();
    for (from, first) in paid.iter().enumerate() {
        for (to, last) in paid.iter().enumerate().skip(from) {
            let nanos = u128::from(last.since(*first).as_nanos());
            let most = u128::from(BURST) + nanos * u128::from(PER_SECOND) / 1_000_000_000;
            assert!((to - from + 1) as u128 <= most, "{} within {nanos} ns", to - from + 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_the_power_goes_each_run_ends_the_same_no_step_is_left_out_and_the_limit_holds() {
    let mut cuts_in_all = 0;
    for seed in 0..10 {
        let (host, clock) = (Host::new(seed), ManualClock::new());
        let (world, mut begun) = (Arc::new(Mutex::new(World::default())), BTreeMap::new());
        let mut cuts = 0;
        let ended = loop {
            if cuts < CUTS {
                host.plan(Fault::PowerCut(10 + (seed * 7 + cuts * 13) % 60));
            }
            if let Some(ended) = work_a_while(&host, &clock, &world, &mut begun).await {
                break ended;
            }
            cuts += 1;
            host.crash();
            clock.advance(Span::from_secs(6));
        };
        cuts_in_all += cuts;
        assert!(
            ended.len() as u64 == RUNS && ended.values().all(|sum| *sum == 60),
            "seed {seed}: {ended:?}"
        );
        let world = world.lock().unwrap();
        for run in begun.values() {
            let made = &world.made[run];
            let all = ["begin 3", "work 3", "work 2", "work 1", "spread 1", "collect 1"];
            assert!(all.iter().all(|step| made.contains(*step)), "seed {seed}: {made:?}");
        }
        within_the_limit(&world.paid);
    }
    assert!(cuts_in_all > 20, "the power went {cuts_in_all} times");
}
