//! Machines and workflows in memory, on a clock that jumps from one instant to the next.

use super::*;
use std::sync::{Arc, Mutex};
use tollgate::flows::{Ended, Retry, Signal, Task, TaskFailure, TaskJob, Workflow, children};
use tollgate::test_kit::{KitError, TestKit, WaitsFor};
use tollgate::{Clock, Limit, global, toll};

/// When something was made, in milliseconds since the kit was.
type Instants = Arc<Mutex<Vec<(String, u64)>>>;

/// A kit with a machine of these steps, and when each is begun.
async fn kit_of(
    steps: impl Fn(Step<Value>) -> Result<StepOutcome, StepError> + Send + Sync + 'static,
) -> (TestKit, Instants) {
    let (kit, instants) = (TestKit::new().await.unwrap(), Instants::default());
    let (told, _) = mpsc::unbounded_channel();
    let (began, at) = (kit.now(), instants.clone());
    let steps = move |step: Step<Value>| {
        let millis = step.started.since(began).as_nanos() / 1_000_000;
        at.lock().unwrap().push((step.name.clone(), millis));
        steps(step)
    };
    kit.machine(Scripted { steps: Box::new(steps), failed: None, told });
    (kit, instants)
}

fn value(ended: &Ended) -> Value {
    ended.ending.value().expect("it did not fail").unwrap()
}

fn made(instants: &Instants, what: &str) -> Vec<u64> {
    let instants = instants.lock().unwrap();
    instants.iter().filter(|made| made.0 == what).map(|made| made.1).collect()
}

/// What a run waits for that does not end.
async fn waits(kit: &TestKit, run: &str) -> WaitsFor {
    match kit.finish(run).await {
        Err(KitError::Waits { what, .. }) => what,
        other => panic!("it does not wait: {other:?}"),
    }
}

#[tokio::test]
async fn steps_start_at_the_very_instants_that_their_limit_says() {
    let (kit, instants) = kit_of(|step| {
        let left = step.state.as_u64().unwrap();
        let tenant = if left % 2 == 0 { "even" } else { "odd" };
        Ok(match left {
            0 => done(()),
            _ if step.name == "keyed" => next("keyed", json!(left - 2)).pays(toll("k", tenant)),
            _ => next("paid", json!(left - 1)).pays(global("l")),
        })
    })
    .await;
    kit.gate().limit("l", Limit::per_second(2).burst(1)).await.unwrap();
    kit.gate().limit("k", Limit::per_minute(3).burst(2)).await.unwrap();
    let run = begin(&kit.flows(), run("begin", json!(5))).await;
    kit.finish(&run).await.unwrap();
    assert_eq!(made(&instants, "paid"), [0, 500, 1_000, 1_500, 2_000]);
    assert_eq!(kit.elapsed(), Span::from_secs(2));
    let even = begin(&kit.flows(), super::run("keyed", json!(8))).await;
    kit.finish(&even).await.unwrap();
    assert_eq!(made(&instants, "keyed"), [2_000, 2_000, 2_000, 22_000, 42_000]);
}

#[tokio::test]
async fn the_time_of_a_wait_is_over_at_its_instant_unless_a_signal_comes() {
    let (kit, instants) = kit_of(|step| {
        Ok(match step.name.as_str() {
            "begin" => wait_for(["paid"], "end", json!(0)).timeout(Span::from_days(30)),
            _ => done(step.timed_out),
        })
    })
    .await;
    let late = begin(&kit.flows(), run("begin", json!(0))).await;
    let paid = begin(&kit.flows(), run("begin", json!(0))).await;
    kit.advance(Span::from_days(29)).await.unwrap();
    kit.flows().signal(&paid, Signal::new("paid", 1).unwrap()).await.unwrap();
    kit.advance(Span::ZERO).await.unwrap();
    let paid = kit.flows().ended(&paid).await.unwrap().expect("without any time");
    assert_eq!((value(&paid), kit.elapsed()), (json!(false), Span::from_days(29)));
    assert_eq!(value(&kit.finish(&late).await.unwrap()), json!(true));
    assert_eq!(made(&instants, "end"), [29, 30].map(|days| days * 86_400_000));
}

#[tokio::test]
async fn retries_and_delays_take_the_time_they_say_and_no_more() {
    let (kit, instants) = kit_of(|step| {
        Ok(match step.name.as_str() {
            "begin" => next("later", json!(0)).delay(Span::from_hours(1)),
            _ if step.attempt < 3 => retry(Span::from_secs(7)),
            _ => done(()),
        })
    })
    .await;
    let run = begin(&kit.flows(), run("begin", json!(0))).await;
    kit.finish(&run).await.unwrap();
    assert_eq!(made(&instants, "later"), [3_600_000, 3_607_000, 3_614_000]);
}

#[tokio::test]
async fn children_and_their_parent_end_in_their_own_time() {
    let (kit, _) = kit_of(|step| {
        Ok(match step.name.as_str() {
            "spread" => {
                let child = |n: u64| run("child", json!(n)).delay(Span::from_secs(n));
                children([3, 1, 2].map(child), "collect", json!(0))
            }
            "child" => done(step.state),
            _ => {
                let values = step.children.iter().map(|child| child.ending.value::<u64>());
                done(values.map(|value| value.unwrap().unwrap()).collect::<Vec<_>>())
            }
        })
    })
    .await;
    let run = begin(&kit.flows(), run("spread", json!(0))).await;
    assert_eq!(value(&kit.finish(&run).await.unwrap()), json!([3, 1, 2]));
    assert_eq!(kit.elapsed(), Span::from_secs(3));
}

/// A machine whose runs of the first version go on in the second, where no queue was made for them.
struct Spreads;

impl Machine for Spreads {
    const NAME: &'static str = "spreads";
    const VERSION: u32 = 2;
    const OLDEST: u32 = 1;
    type State = Value;

    async fn step(&self, step: Step<Value>) -> Result<StepOutcome, StepError> {
        Ok(match step.name.as_str() {
            "spread" => children([run("child", json!(1)), run("child", json!(2))], "collect", 0),
            _ => done(step.children.len()),
        })
    }

    fn upgrade(_: u32, step: &str, state: Value) -> Option<(String, Value)> {
        Some((step.to_owned(), state))
    }
}

#[tokio::test]
async fn children_tell_a_parent_that_goes_on_in_a_version_without_a_queue() {
    let (kit, instants) = kit_of(|step| Ok(done(step.state))).await;
    kit.machine(Spreads);
    let parent = begin(&kit.flows(), NewRun::named("spreads", 1, "spread", json!(0))).await;
    assert_eq!(value(&kit.finish(&parent).await.unwrap()), json!(2));
    assert_eq!(made(&instants, "child").len(), 2, "each step is made once");
}

/// A workflow with a map under a limit, a task that fails twice, and one that is skipped.
fn workflow() -> Workflow {
    let retry = Retry::exponential(5, Span::from_secs(1), Span::from_minutes(1));
    let workflow = Workflow::new("w")
        .task(Task::new("each", "square").map("items").rate_limit(2, Span::from_secs(1)).burst(1))
        .task(Task::new("sum", "sum").after("each").retry(retry));
    workflow.build().unwrap()
}

async fn workflow_kit() -> (TestKit, Instants) {
    let (kit, instants) = (TestKit::new().await.unwrap(), Instants::default());
    kit.flows().register(workflow()).await.unwrap();
    let tell = || {
        let (clock, began, instants) = (kit.clock().clone(), kit.now(), instants.clone());
        move |job: &TaskJob| {
            let millis = clock.now().since(began).as_nanos() / 1_000_000;
            instants.lock().unwrap().push((job.task.clone(), millis));
        }
    };
    let told = tell();
    kit.tasks("square", move |job| {
        told(&job);
        async move {
            let number: u64 = job.read()?;
            // Others go on meanwhile, and the clock does not.
            tokio::task::yield_now().await;
            Ok(number * number)
        }
    });
    let told = tell();
    kit.tasks("sum", move |job| {
        told(&job);
        async move {
            match job.attempt {
                1 | 2 => Err(TaskFailure::retry("not yet")),
                _ => Ok(job.read::<Vec<u64>>()?.iter().sum::<u64>()),
            }
        }
    });
    (kit, instants)
}

#[tokio::test]
async fn a_workflow_with_a_map_obeys_its_limit_and_its_retries_to_the_instant() {
    let mut ways = Vec::new();
    for _ in 0..2 {
        let (kit, instants) = workflow_kit().await;
        let begun = kit.flows().start_workflow("w", json!({ "items": [1, 2, 3, 4] })).await;
        let ended = kit.finish(&begun.unwrap().run).await.unwrap();
        assert_eq!(value(&ended), json!(30));
        assert_eq!(made(&instants, "each"), [0, 500, 1_000, 1_500]);
        assert_eq!(made(&instants, "sum"), [1_500, 2_500, 4_500], "after one second, and two");
        assert_eq!(kit.elapsed(), Span::from_millis(4_500));
        ways.push(instants.lock().unwrap().clone());
    }
    assert_eq!(ways[0], ways[1], "the same way each time");
}

#[tokio::test]
async fn a_run_that_can_never_end_is_told_with_what_it_waits_for() {
    let (kit, _) = kit_of(|step| {
        Ok(match step.name.as_str() {
            "signal" => wait_for(["go", "stop"], "end", json!(0)),
            "limit" => next("end", json!(0)).pays(global("nobody-s")),
            "family" => children([run("signal", json!(0))], "end", json!(0)),
            _ => done(()),
        })
    })
    .await;
    let flows = kit.flows();
    let signal = begin(&flows, run("signal", json!(0))).await;
    let names = ["go", "stop"].map(str::to_owned).to_vec();
    assert_eq!(waits(&kit, &signal).await, WaitsFor::Signal { names: names.clone() });
    let limit = begin(&flows, run("limit", json!(0))).await;
    let unknown = WaitsFor::UnknownLimit { limit: "nobody-s".to_owned() };
    assert_eq!(waits(&kit, &limit).await, unknown);
    let family = begin(&flows, run("family", json!(0))).await;
    let WaitsFor::Child { what, .. } = waits(&kit, &family).await else { panic!() };
    assert_eq!(*what, WaitsFor::Signal { names });
    let other = begin(&flows, NewRun::named("other", 2, "a", json!(0))).await;
    let worker = WaitsFor::Worker { queue: "machine/other@2".to_owned() };
    assert_eq!(waits(&kit, &other).await, worker);
    kit.gate().limit("nobody-s", Limit::per_second(1)).await.unwrap();
    kit.finish(&limit).await.unwrap();
    flows.signal(&signal, Signal::new("go", 0).unwrap()).await.unwrap();
    kit.finish(&signal).await.unwrap();
    assert_eq!(kit.elapsed(), Span::ZERO, "nobody waited for time");
}

#[tokio::test]
async fn tasks_without_a_handler_and_runs_beyond_a_cap_are_told() {
    let kit = TestKit::new().await.unwrap();
    let workflow = Workflow::new("w").task(Task::new("a", "t")).runs_max(1);
    kit.flows().register(workflow.build().unwrap()).await.unwrap();
    let first = kit.flows().start_workflow("w", json!(1)).await.unwrap().run;
    let second = kit.flows().start_workflow("w", json!(2)).await.unwrap().run;
    assert_eq!(waits(&kit, &first).await, WaitsFor::Worker { queue: "task/t".to_owned() });
    assert_eq!(waits(&kit, &second).await, WaitsFor::OtherRuns { workflow: "w".to_owned() });
    kit.tasks("t", async |job: TaskJob| Ok(job.read::<u64>()?));
    assert_eq!(value(&kit.finish(&second).await.unwrap()), json!(2));
    let unknown = kit.finish("nobody").await.unwrap_err();
    assert!(unknown.to_string().contains("there is no run \"nobody\""), "{unknown}");
}

#[tokio::test]
async fn a_run_that_goes_on_and_on_is_given_up() {
    let (kit, _) = kit_of(|_| Ok(retry(Span::from_secs(1)))).await;
    kit.steps_max(1_000);
    let run = begin(&kit.flows(), run("again", json!(0))).await;
    let goes_on = kit.finish(&run).await;
    assert!(matches!(goes_on, Err(KitError::GoesOn { .. })), "{goes_on:?}");
}

#[tokio::test]
async fn a_handler_that_panics_is_one_that_failed() {
    let kit = TestKit::new().await.unwrap();
    let retry = Retry::fixed(2, Span::from_secs(5));
    let workflow = Workflow::new("w").task(Task::new("a", "t").retry(retry));
    kit.flows().register(workflow.build().unwrap()).await.unwrap();
    kit.tasks("t", async |job: TaskJob| {
        assert!(job.attempt > 1, "the first one fails");
        Ok(job.attempt)
    });
    let run = kit.flows().start_workflow("w", json!(1)).await.unwrap().run;
    assert_eq!(value(&kit.finish(&run).await.unwrap()), json!(2));
    assert_eq!(kit.elapsed(), Span::from_secs(5));
}

/// A machine whose step is made once another run has ended, if it is given one.
struct Follows(Flows);

impl Machine for Follows {
    const NAME: &'static str = "follows";
    type State = Option<String>;

    async fn step(&self, step: Step<Self::State>) -> Result<StepOutcome, StepError> {
        while let Some(other) = &step.state
            && self.0.ended(other).await.unwrap().is_none()
        {
            tokio::task::yield_now().await;
        }
        Ok(done(0))
    }
}

#[tokio::test]
async fn no_step_is_under_way_when_a_run_has_ended() {
    let kit = TestKit::new().await.unwrap();
    let flows = kit.flows();
    kit.machine(Follows(flows.clone()));
    let new = |after: Option<&str>| NewRun::named("follows", 1, "step", json!(after));
    let first = begin(&flows, new(None)).await;
    let second = begin(&flows, new(Some(&first))).await;
    kit.finish(&first).await.unwrap();
    assert!(flows.ended(&second).await.unwrap().is_some(), "it was claimed with the first");
}
