//! The power goes again and again: each run of a workflow ends with the same result, no task's effect is left out,
//! the limit of a type holds, and nothing is left behind.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tollgate::flows::Comparison;
use tollgate::lanes::QueueState;
use tollgate::{ManualClock, RESERVED_QUEUE, Tollgate};
use tollgate_stores::embedded::disk::simulated::{Fault, Host};

/// Runs that are begun; one of them fails.
const RUNS: u64 = 6;
const FAILS: u64 = 3;
/// The limit of tasks of type `each`.
const PER_SECOND: u64 = 20;
const BURST: u64 = 5;
/// How often the power goes at most.
const CUTS: u64 = 12;
/// All types of tasks.
const TYPES: [&str; 5] = ["fetch", "each", "flaky", "bonus", "sum"];

/// What was made, which no crash takes back: it is outside.
#[derive(Default)]
struct World {
    /// By run, which tasks and items.
    made: BTreeMap<String, BTreeSet<String>>,
    /// When tasks that pay were started.
    paid: Vec<Timestamp>,
}

fn orders() -> Workflow {
    let often = Retry::fixed(100, Span::from_millis(100)).crashes_max(1_000);
    let task = |name: &str| Task::new(name, name).retry(often);
    let each = task("each").after("fetch").map("items");
    let workflow = Workflow::new("orders")
        .task(task("fetch"))
        .task(each.rate_limit(PER_SECOND, Span::from_secs(1)).burst(BURST))
        .task(task("flaky").after("fetch"))
        .task(task("bonus").after("fetch").when("is_even", Comparison::Eq, true))
        .task(task("sum").after("each").after("flaky").after("bonus"))
        .idempotency("order")
        .timeout(Span::from_hours(1))
        .runs_max(2);
    workflow.build().unwrap()
}

/// What a task gives; a flaky one fails twice.
fn gives_of(world: &Mutex<World>, job: &TaskJob) -> Result<Value, TaskFailure> {
    let mut world = world.lock().unwrap();
    let made = world.made.entry(job.run.clone()).or_default();
    let before = made.iter().filter(|made| made.starts_with("flaky")).count();
    made.insert(match (job.item, job.task.as_str()) {
        (Some(item), task) => format!("{task} {item}"),
        (None, "flaky") if before < 3 => format!("flaky {before}"),
        (None, task) => task.to_owned(),
    });
    let input: Value = job.read()?;
    let is_failing = input["order"] == json!(FAILS);
    match job.task.as_str() {
        "fetch" => {
            let order = input["order"].as_u64().unwrap();
            let is_even = order.is_multiple_of(2);
            Ok(json!({ "order": order, "items": [1, 2, 3, 4], "is_even": is_even }))
        }
        "each" => {
            world.paid.push(job.started);
            Ok(json!(input.as_u64().unwrap() * 10))
        }
        "flaky" if before < 2 => Err(TaskFailure::retry("not yet")),
        "flaky" if is_failing => Err(TaskFailure::fatal("never")),
        "flaky" => Ok(json!(1)),
        "bonus" => Ok(json!(1_000)),
        _ => {
            let each: u64 =
                input["each"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
            let others = ["flaky", "bonus"].map(|task| input[task].as_u64().unwrap_or_default());
            Ok(json!(each + others.iter().sum::<u64>()))
        }
    }
}

/// Works until the power goes, or all runs have ended and nothing is left of them to do.
async fn work_a_while(
    host: &Host,
    clock: &ManualClock,
    world: &Arc<Mutex<World>>,
    begun: &mut BTreeMap<u64, String>,
) -> Option<BTreeMap<u64, Ending>> {
    let builder = Tollgate::builder().clock(clock.clone());
    let gate = builder.open_on(host.open().unwrap()).await.ok()?;
    let flows = gate.flows();
    flows.register(orders()).await.ok()?;
    let worker = |type_name: &&str| {
        let (worker, world) = (flows.tasks(type_name), world.clone());
        let worker = worker.concurrency(4).lease(Span::from_secs(5));
        tokio::spawn(worker.run(move |job| {
            let given = gives_of(&world, &job);
            async move { given }
        }))
    };
    let workers: Vec<_> = TYPES.iter().map(worker).collect();
    let ended = patiently(async {
        for number in 0..RUNS {
            let run = flows.start_workflow("orders", json!({ "order": number })).await.ok()?.run;
            let known = begun.entry(number).or_insert_with(|| run.clone());
            assert_eq!(*known, run, "one run of a key, also when nobody heard of its beginning");
        }
        loop {
            if workers.iter().any(JoinHandle::is_finished) {
                return None;
            }
            clock.advance(Span::from_millis(50));
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            let mut ended = BTreeMap::new();
            for (number, run) in begun.iter() {
                ended.extend(flows.ended(run).await.ok()?.map(|it| (*number, it.ending)));
            }
            if ended.len() == begun.len() && is_quiet(&gate).await? {
                return Some(ended);
            }
        }
    })
    .await;
    for worker in workers {
        worker.abort();
        drop(worker.await);
    }
    gate.shut_down().await;
    ended
}

/// Whether no call of a task or of the keeper is left, but for those that wait for the time of a run to be over.
async fn is_quiet(gate: &Tollgate) -> Option<bool> {
    for queue in gate.queues(None, 10).await.ok()? {
        assert_eq!(queue.dead, 0, "in {}", queue.name);
        let is_keepers = queue.name.starts_with(RESERVED_QUEUE);
        if queue.in_flight > 0 || (queue.waiting > 0 && !is_keepers) {
            return Some(false);
        }
    }
    Some(true)
}

fn is_empty(queue: &QueueState) -> bool {
    queue.waiting + queue.in_flight == 0
}

/// What is left when the times of all runs are over: the runs as they ended, and no more.
async fn nothing_is_left(host: &Host, clock: &ManualClock, begun: &BTreeMap<u64, String>) {
    let builder = Tollgate::builder().clock(clock.clone());
    let gate = builder.open_on(host.open().unwrap()).await.unwrap();
    let worker = tokio::spawn(gate.flows().tasks("sum").run(|job| async move { Ok(job.attempt) }));
    clock.advance(Span::from_hours(2));
    patiently(async {
        while !gate.queues(None, 10).await.unwrap().iter().all(is_empty) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    worker.abort();
    drop(worker.await);
    for prefix in ["tollgate/run/", "tollgate/live/", "tollgate/pending/", "tollgate/join/"] {
        assert_eq!(gate.records_of(prefix, None, 10).await.unwrap(), [], "{prefix}");
    }
    for run in begun.values() {
        let given = gate.records_of(&format!("tollgate/output/{run}/"), None, 100).await.unwrap();
        let is_item =
            |key: &str| key.trim_start_matches("tollgate/output/").matches('/').count() > 1;
        let items = given.iter().filter(|(key, _)| is_item(key.as_str())).count();
        assert!(items == 0 || *run == begun[&FAILS], "items of {run}: {given:?}");
    }
    gate.shut_down().await;
    let mut lines = Vec::new();
    tollgate::embedded::export(&host.look(), &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let facts = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let is_left = |fact: &Value| fact["fact"] == json!("call") || fact["fact"] == json!("join");
    assert_eq!(facts.filter(is_left).collect::<Vec<_>>(), Vec::<Value>::new());
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

/// Each run ended as it must, with every effect, within the limit.
fn as_it_should_be(
    seed: u64,
    world: &World,
    begun: &BTreeMap<u64, String>,
    ended: &BTreeMap<u64, Ending>,
) {
    for (number, ending) in ended {
        match ending {
            Ending::Failed { reason, step, .. } if *number == FAILS => {
                assert_eq!((reason.as_str(), step.as_str()), ("never", "flaky"));
            }
            other => {
                let sum = if number.is_multiple_of(2) { 1_101 } else { 101 };
                assert_eq!(other.value::<u64>().unwrap().unwrap(), sum, "seed {seed}: {number}");
            }
        }
    }
    for (number, run) in begun.iter().filter(|(number, _)| **number != FAILS) {
        let all = ["fetch", "each 0", "each 1", "each 2", "each 3", "flaky 2", "sum"];
        let bonus = number.is_multiple_of(2).then_some("bonus");
        let is_made = |task: &str| world.made[run].contains(task);
        assert!(all.into_iter().chain(bonus).all(is_made), "seed {seed}: {:?}", world.made[run]);
        assert_eq!(is_made("bonus"), bonus.is_some(), "seed {seed}: {number}");
    }
    within_the_limit(&world.paid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_the_power_goes_each_run_of_a_workflow_ends_the_same_and_leaves_nothing_behind() {
    for seed in 0..10 {
        let (host, clock) = (Host::new(seed), ManualClock::new());
        let (world, mut begun) = (Arc::new(Mutex::new(World::default())), BTreeMap::new());
        let mut cuts = 0;
        let ended = loop {
            if cuts < CUTS {
                host.plan(Fault::PowerCut(5 + (seed * 7 + cuts * 13) % 40));
            }
            if let Some(ended) = work_a_while(&host, &clock, &world, &mut begun).await {
                break ended;
            }
            cuts += 1;
            host.crash();
            clock.advance(Span::from_secs(6));
        };
        assert!(cuts > 2, "seed {seed}: the power went {cuts} times");
        as_it_should_be(seed, &world.lock().unwrap(), &begun, &ended);
        // What was planned and did not happen is forgotten with it.
        host.crash();
        nothing_is_left(&host, &clock, &begun).await;
    }
}
