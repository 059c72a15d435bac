//! Runs that ended and live again.

use super::*;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tollgate::flows::{Ended, Retry, Signal, Task, TaskFailure, TaskJob, Workflow, children};
use tollgate::test_kit::TestKit;
use tollgate::{Limit, global};

/// A machine whose step of this name fails until it is mended.
struct Broken {
    kit: TestKit,
    is_mended: Arc<AtomicBool>,
}

impl Broken {
    async fn at(
        name: &'static str,
        steps: impl Fn(Step<Value>) -> StepOutcome + Send + Sync + 'static,
    ) -> Self {
        let kit = TestKit::new().await.unwrap();
        let (is_mended, (told, _)) = (Arc::new(AtomicBool::new(false)), mpsc::unbounded_channel());
        let mended = is_mended.clone();
        let steps = move |step: Step<Value>| {
            if step.name == name && !mended.load(Ordering::Relaxed) {
                return Err("out of order".into());
            }
            Ok(steps(step))
        };
        kit.machine(Scripted { steps: Box::new(steps), failed: None, told });
        Self { kit, is_mended }
    }

    fn flows(&self) -> Flows {
        self.kit.flows()
    }

    fn mend(&self) {
        self.is_mended.store(true, Ordering::Relaxed);
    }

    async fn fails(&self, run: &str) {
        let Ended { ending, .. } = self.kit.finish(run).await.unwrap();
        let Ending::Failed { reason, .. } = ending else { panic!("{ending:?}") };
        assert_eq!(reason, "out of order");
    }

    async fn gives(&self, run: &str) -> Value {
        self.kit.finish(run).await.unwrap().ending.value().expect("it is mended").unwrap()
    }
}

/// Why something is refused.
async fn refused<T: std::fmt::Debug>(
    done: impl Future<Output = Result<T, tollgate::Error>>,
) -> String {
    done.await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_run_that_failed_goes_on_from_that_step_with_its_state_and_pays_again() {
    let broken = Broken::at("charge", |step| match step.name.as_str() {
        "prepare" => next("charge", json!({ "cents": 42 })).pays(global("stripe")),
        _ => done(json!([step.state["cents"], step.attempt])),
    })
    .await;
    broken.kit.gate().limit("stripe", Limit::per_minute(1)).await.unwrap();
    let flows = broken.flows();
    let new = || run("prepare", json!(0)).correlation("order-1");
    let id = begin(&flows, new()).await;
    broken.fails(&id).await;
    broken.mend();
    flows.rerun(&id).await.unwrap();
    let known = flows.start(new()).await.unwrap();
    assert_eq!((known.run.as_str(), known.is_known), (id.as_str(), true), "the key is its own");
    assert_eq!(broken.gives(&id).await, json!([42, 1]));
    assert_eq!(broken.kit.elapsed(), Span::from_minutes(1), "it paid a second time");
    let timeline = flows.timeline(&id).await.unwrap();
    let steps: Vec<_> = timeline.iter().map(|it| (it.step.as_str(), it.outcome.as_str())).collect();
    assert_eq!(steps, [("prepare", "next"), ("charge", "stop"), ("charge", "done")]);
    assert!(!flows.start(new()).await.unwrap().is_known, "and free again");
}

#[tokio::test]
async fn what_a_failed_step_was_given_is_given_again() {
    let broken = Broken::at("last", |step| match step.name.as_str() {
        "signal" => wait_for(["go"], "last", json!(0)),
        "time" => wait_for(["go"], "last", json!(0)).timeout(Span::from_secs(9)),
        "spread" => children([1, 2].map(|n| run("child", json!(n))), "last", json!(0)),
        "child" => done(step.state),
        _ => {
            let signals: Vec<_> = step.signals.iter().map(|it| it.name.clone()).collect();
            let given = step.children.iter().map(|it| it.ending.value::<u64>());
            let given: Vec<_> = given.map(|value| value.unwrap().unwrap()).collect();
            done(json!([signals, step.timed_out, given]))
        }
    })
    .await;
    let flows = broken.flows();
    let mut ids = Vec::new();
    for step in ["signal", "time", "spread"] {
        ids.push(begin(&flows, run(step, json!(0))).await);
    }
    flows.signal(&ids[0], Signal::new("go", 1).unwrap()).await.unwrap();
    for id in &ids {
        broken.fails(id).await;
    }
    broken.mend();
    for id in &ids {
        flows.rerun_from(id, "last").await.unwrap();
    }
    let expected = [json!([["go"], false, []]), json!([[], true, []]), json!([[], false, [1, 2]])];
    for (id, expected) in ids.iter().zip(expected) {
        assert_eq!(broken.gives(id).await, expected);
    }
}

#[tokio::test]
async fn signals_that_a_failed_run_had_not_asked_for_are_there_in_its_second_life() {
    let broken = Broken::at("first", |step| match step.name.as_str() {
        "first" => wait_for(["go"], "last", json!(0)),
        _ => done(step.signals.len()),
    })
    .await;
    let flows = broken.flows();
    let id = begin(&flows, run("first", json!(0))).await;
    let signal = || Signal::new("go", 1).unwrap().dedupe("once");
    flows.signal(&id, signal()).await.unwrap();
    broken.fails(&id).await;
    broken.mend();
    flows.rerun(&id).await.unwrap();
    flows.signal(&id, signal()).await.unwrap();
    assert_eq!(broken.gives(&id).await, json!(1), "heard once, in both lives");
}

#[tokio::test]
async fn a_key_that_another_run_has_is_not_taken_from_it() {
    let broken = Broken::at("charge", |_| done(1)).await;
    let flows = broken.flows();
    let new = |step| run(step, json!(0)).correlation("order-1");
    let id = begin(&flows, new("charge")).await;
    broken.fails(&id).await;
    let other = begin(&flows, new("charge")).await;
    let reason = refused(flows.rerun(&id)).await;
    assert!(reason.contains(&other) && reason.contains("order-1"), "{reason}");
    assert!(flows.ended(&id).await.unwrap().is_some(), "nothing was changed");
    broken.fails(&other).await;
    broken.mend();
    flows.rerun(&id).await.unwrap();
    assert_eq!(broken.gives(&id).await, json!(1));
}

#[tokio::test]
async fn any_other_step_takes_a_state_that_is_handed_in() {
    let broken = Broken::at("charge", |step| match step.name.as_str() {
        "wait" => wait_for(["go"], "end", json!(0)),
        _ => done(step.state),
    })
    .await;
    broken.kit.gate().limit("l", Limit::per_minute(1)).await.unwrap();
    let flows = broken.flows();
    let (failed, ended) =
        (begin(&flows, run("charge", json!(1))).await, begin(&flows, run("end", json!(2))).await);
    let cancelled = begin(&flows, run("wait", json!(3))).await;
    broken.fails(&failed).await;
    broken.gives(&ended).await;
    let live = refused(flows.rerun_with(&cancelled, next("end", 1))).await;
    assert!(live.contains("has not ended"), "{live}");
    flows.cancel(&cancelled).await.unwrap();
    let reason = refused(flows.rerun_from(&failed, "end")).await;
    assert!(reason.contains("of step \"end\" is not kept; that of charge is;"), "{reason}");
    let reason = refused(flows.rerun_from(&ended, "end")).await;
    assert!(reason.contains("is not kept; hand one in"), "{reason}");
    let reason = refused(flows.rerun(&cancelled)).await;
    assert!(reason.contains("did not fail"), "{reason}");
    let reason = refused(flows.rerun_with(&ended, done(1))).await;
    assert!(reason.contains("hand in what `next` gives"), "{reason}");
    let reason = refused(flows.rerun_with(&ended, next("end", 7).pays(global("none")))).await;
    assert!(reason.contains("none"), "{reason}");
    for (id, state) in [(&failed, 7), (&ended, 8), (&cancelled, 9)] {
        flows.rerun_with(id, next("end", state).pays(global("l"))).await.unwrap();
    }
    for (id, state) in [(&failed, 7), (&ended, 8), (&cancelled, 9)] {
        assert_eq!(broken.gives(id).await, json!(state));
    }
    assert_eq!(broken.kit.elapsed(), Span::from_minutes(2), "each of them paid");
    assert!(refused(flows.rerun("nobody")).await.contains("there is no run"));
}

#[tokio::test]
async fn a_child_lives_again_when_its_parent_has_ended_and_tells_nobody() {
    let broken = Broken::at("child", |step| match step.name.as_str() {
        "spread" => {
            let slow = run("slow", json!(0)).delay(Span::from_hours(1));
            children([run("child", json!(1)), slow], "collect", json!(0))
        }
        "collect" => done(step.children.len()),
        _ => done(step.state),
    })
    .await;
    let flows = broken.flows();
    let parent = begin(&flows, run("spread", json!(0))).await;
    broken.kit.advance(Span::ZERO).await.unwrap();
    let child = format!("{parent}.1.0");
    broken.fails(&child).await;
    broken.mend();
    let reason = refused(flows.rerun(&child)).await;
    assert!(reason.contains(&format!("is a child of {parent}, which lives")), "{reason}");
    assert_eq!(broken.gives(&parent).await, json!(2));
    flows.rerun(&child).await.unwrap();
    assert_eq!(broken.gives(&child).await, json!(1));
    let made = flows.timeline(&parent).await.unwrap();
    assert_eq!(made.iter().filter(|it| it.step == "collect").count(), 1, "it heard of one end");
}

#[tokio::test]
async fn a_parent_is_given_its_children_again_only_while_they_are_kept_as_they_ended() {
    let broken = Broken::at("collect", |step| match step.name.as_str() {
        "spread" => children([run("child", json!(1))], "collect", json!(0)),
        "collect" => done(step.children.len()),
        _ => done(step.state),
    })
    .await;
    let flows = broken.flows();
    let parent = begin(&flows, run("spread", json!(0))).await;
    broken.fails(&parent).await;
    broken.mend();
    let child = format!("{parent}.1.0");
    flows.rerun_with(&child, next("child", 2)).await.unwrap();
    let reason = refused(flows.rerun(&parent)).await;
    assert!(reason.contains(&child) && reason.contains("lives again"), "{reason}");
    assert_eq!(broken.gives(&child).await, json!(2));
    flows.rerun(&parent).await.unwrap();
    assert_eq!(broken.gives(&parent).await, json!(1));
}

#[tokio::test]
async fn a_step_that_is_still_being_made_does_not_go_on_in_a_second_life() {
    let broken = Broken::at("none", |step| done(step.state)).await;
    let flows = broken.flows();
    let id = begin(&flows, run("end", json!(1))).await;
    die_at(broken.kit.gate(), 1).await;
    flows.cancel(&id).await.unwrap();
    let again = || flows.rerun_with(&id, next("end", 2));
    let reason = refused(again()).await;
    assert!(reason.contains("is still being made"), "{reason}");
    broken.kit.advance(Span::from_minutes(1)).await.unwrap();
    again().await.unwrap();
    assert_eq!(broken.gives(&id).await, json!(2));
}

#[tokio::test]
async fn a_workflow_goes_on_from_the_task_that_failed() {
    let kit = TestKit::new().await.unwrap();
    let is_mended = Arc::new(AtomicBool::new(false));
    let task = |name| Task::new(name, "t").retry(Retry::none());
    let workflow = Workflow::new("w").task(task("a")).task(task("b").after("a"));
    kit.flows().register(workflow.build().unwrap()).await.unwrap();
    let mended = is_mended.clone();
    kit.tasks("t", move |job: TaskJob| {
        let fails = job.task == "b" && !mended.load(Ordering::Relaxed);
        async move { if fails { Err(TaskFailure::fatal("no")) } else { Ok(job.task) } }
    });
    let run = kit.flows().start_workflow("w", json!(1)).await.unwrap().run;
    assert!(matches!(kit.finish(&run).await.unwrap().ending, Ending::Failed { .. }));
    is_mended.store(true, Ordering::Relaxed);
    kit.flows().rerun(&run).await.unwrap();
    assert_eq!(kit.finish(&run).await.unwrap().ending.value::<String>().unwrap().unwrap(), "b");
    let reason = refused(kit.flows().rerun_with(&run, next("a", 1))).await;
    assert!(reason.contains("that of a workflow"), "{reason}");
}
