//! Workflows and runs over the network.

use super::served::{PATIENCE, Served};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;
use tollgate::flows::{
    Machine, NewRun, Step, StepError, StepOutcome, TaskFailure, TaskJob, done, wait_for,
};
use tollgate_client::{
    Cancelled, Client, Ending, RunState, RunView, RunsQuery, Signal, Signalled, Span, Task,
    Workflow,
};

/// Waits to be told something, and gives that.
struct Approval;

impl Machine for Approval {
    const NAME: &'static str = "approval";
    type State = Value;

    async fn step(&self, step: Step<Value>) -> Result<StepOutcome, StepError> {
        Ok(match step.name.as_str() {
            "ask" => wait_for(["approved"], "decide", step.state),
            _ => done(step.signals[0].read::<Value>()?),
        })
    }
}

fn workflow(name: &str) -> Workflow {
    let tasks = [Task::new("a", "t"), Task::new("b", "t").after("a")];
    let [a, b] = tasks.map(|task| task.rate_limit(9, Span::from_minutes(1)));
    Workflow::new(name).task(a).task(b).idempotency("id").build().unwrap()
}

async fn with_workflow() -> (Served, Client) {
    let served = Served::in_real_time().await;
    let client = served.client();
    client.register_workflow(&workflow("w")).await.unwrap();
    (served, client)
}

/// Does tasks until the test ends.
fn serve<F>(served: &Served, made: F)
where
    F: Fn(TaskJob) -> Result<Value, TaskFailure> + Send + Sync + 'static,
{
    let (worker, made) = (served.gate.flows().tasks("t"), Arc::new(made));
    tokio::spawn(worker.run(move |job| {
        let made = made.clone();
        async move { made(job) }
    }));
}

fn echo(job: TaskJob) -> Result<Value, TaskFailure> {
    Ok(json!({ job.task.as_str(): job.read::<Value>()? }))
}

async fn ending(client: &Client, run: &str) -> Ending {
    let result = timeout(PATIENCE, client.result(run, Span::from_minutes(5))).await;
    let ended = result.expect("it does not end").unwrap().unwrap();
    let RunState::Ended { ending, .. } = ended.state else { panic!("{ended:?}") };
    ending
}

#[tokio::test]
async fn a_workflow_comes_back_as_it_was_registered() {
    let (_served, client) = with_workflow().await;
    let again = client.register_workflow(&workflow("w")).await.unwrap();
    assert_eq!((&again.workflow, again.version, again.is_new), (&workflow("w"), 1, Some(false)));
    client.register_workflow(&workflow("v")).await.unwrap();
    let listed = client.workflows(None).await.unwrap();
    let names: Vec<_> = listed.items.iter().map(|it| it.workflow.name().to_owned()).collect();
    assert_eq!((names, listed.next), (vec!["v".to_owned(), "w".to_owned()], None));
    assert_eq!(client.workflow("w").await.unwrap().unwrap().workflow, workflow("w"));
    assert_eq!(client.workflow("x").await.unwrap(), None);
    let picture = client.workflow_picture("w").await.unwrap().unwrap();
    assert_eq!(picture, workflow("w").mermaid(None));
    assert_eq!(client.workflow_picture("x").await.unwrap(), None);
}

#[tokio::test]
async fn a_run_is_begun_once_waited_for_and_looked_at() {
    let (served, client) = with_workflow().await;
    let begun = client.start_workflow("w", json!({"id": 7})).await.unwrap();
    assert!(!begun.is_known);
    let again = client.start_workflow("w", json!({"id": 7})).await.unwrap();
    assert_eq!((&again.run, again.is_known), (&begun.run, true));
    let run = begun.run;
    assert_eq!(client.result(&run, Span::ZERO).await.unwrap(), None);
    let view: RunView = client.run(&run).await.unwrap().unwrap();
    let tasks = [("a", "running"), ("b", "waiting")];
    let tasks = tasks.map(|(task, state)| (task.to_owned(), state.to_owned())).to_vec();
    assert_eq!(view.state, RunState::Working { tasks, is_pending: false });
    assert_eq!((&*view.name, view.correlation.as_deref()), ("w", Some("7")));
    let drawn = client.run_picture(&run).await.unwrap().unwrap();
    assert!(drawn.contains(":::running"), "{drawn}");
    serve(&served, echo);
    let value = ending(&client, &run).await.value::<Value>().unwrap().unwrap();
    assert_eq!(value, json!({"b": {"a": {"id": 7}}}));
    let timeline = client.timeline(&run).await.unwrap();
    let steps: Vec<_> = timeline.iter().map(|it| (it.step.as_deref(), it.attempt)).collect();
    assert_eq!(steps, [(Some("a"), 1), (Some("b"), 1)]);
    let query = RunsQuery { have_ended: true, name: Some("w"), ..RunsQuery::default() };
    assert_eq!(client.runs(query).await.unwrap().items[0].run, run);
    assert!(client.runs(RunsQuery::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_run_is_taken_back_and_begun_again() {
    let (served, client) = with_workflow().await;
    let run = client.start_workflow("w", json!({"id": 7})).await.unwrap().run;
    assert_eq!(client.cancel_run(&run).await.unwrap(), Cancelled::Now);
    assert_eq!(client.cancel_run(&run).await.unwrap(), Cancelled::HadEnded);
    assert_eq!(client.cancel_run("nobody").await.unwrap(), Cancelled::Unknown);
    assert_eq!(ending(&client, &run).await, Ending::Cancelled);
    let again = client.rerun_from(&run, "a").await.unwrap();
    assert!(matches!(again.state, RunState::Working { .. }), "{again:?}");
    let refused = client.rerun_from(&run, "a").await.unwrap_err();
    assert_eq!(refused.code(), Some("run_has_not_ended"));
    let is_first = AtomicBool::new(true);
    serve(&served, move |job| match is_first.swap(false, Ordering::Relaxed) {
        true => Err(TaskFailure::fatal("never")),
        false => echo(job),
    });
    let Ending::Failed { reason, step, .. } = ending(&client, &run).await else { panic!() };
    assert_eq!((&*reason, &*step), ("never", "a"));
    // The worker may be through with it before the answer tells how it stands.
    assert_eq!(client.rerun(&run).await.unwrap().run, run);
    let value = ending(&client, &run).await.value::<Value>().unwrap().unwrap();
    assert_eq!(value, json!({"b": {"a": {"id": 7}}}));
    assert_eq!(client.run("nobody").await.unwrap(), None);
    assert_eq!(client.result("nobody", Span::ZERO).await.unwrap_err().code(), Some("unknown_run"));
}

#[tokio::test]
async fn a_run_of_a_machine_is_told_something_once() {
    let served = Served::in_real_time().await;
    let (client, flows) = (served.client(), served.gate.flows());
    let run = flows.start(NewRun::new::<Approval>("ask", json!({}))).await.unwrap().run;
    let view = client.run(&run).await.unwrap().unwrap();
    let RunState::Going { step, call } = view.state else { panic!("{view:?}") };
    assert_eq!(step.as_deref(), Some("ask"));
    assert_eq!(client.call(&call.unwrap()).await.unwrap().unwrap().state, "waiting");
    let approved = Signal::new("approved", "ana").unwrap().dedupe("mail-1");
    assert_eq!(client.signal(&run, &approved).await.unwrap(), Signalled::Kept);
    assert_eq!(client.signal(&run, &approved).await.unwrap(), Signalled::Known);
    tokio::spawn(flows.worker(Approval).run());
    assert_eq!(ending(&client, &run).await, Ending::Done(Some(b"\"ana\"".as_slice().into())));
}

#[tokio::test]
async fn a_worker_over_the_network_makes_tasks_and_tells_what_they_gave() {
    let (_served, client) = with_workflow().await;
    let worker = client.tasks("t").concurrency(2);
    tokio::spawn(worker.run(|job| async move {
        let input: Value = job.read()?;
        match (input["id"].as_u64(), job.attempt) {
            (Some(7), 1) => Err(TaskFailure::retry_after(Span::ZERO, "not yet")),
            (Some(8), _) => Err(TaskFailure::fatal("never")),
            _ => Ok(json!({ job.of.name: job.attempt })),
        }
    }));
    let run = client.start_workflow("w", json!({"id": 7})).await.unwrap().run;
    let value: Value = ending(&client, &run).await.value().unwrap().unwrap();
    assert_eq!(value, json!({"b": 1}));
    let steps = client.timeline(&run).await.unwrap();
    let steps: Vec<_> = steps.iter().map(|it| (it.step.as_deref(), it.attempt)).collect();
    assert_eq!(steps, [(Some("a"), 1), (Some("a"), 2), (Some("b"), 1)]);
    let run = client.start_workflow("w", json!({"id": 8})).await.unwrap().run;
    let Ending::Failed { reason, .. } = ending(&client, &run).await else { panic!("it failed") };
    assert_eq!(reason, "never");
}
