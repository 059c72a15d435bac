//! Runs over HTTP: looking at them, waiting for them, and what they are told.

use super::client::{Answer, request};
use super::holders::admin_of;
use super::started::{Kept, PATIENCE, Started};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::timeout;
use tollgate::flows::{
    Machine, NewRun, Step, StepError, StepOutcome, TaskFailure, TaskJob, done, wait_for,
};
use tollgate::{Span, Tollgate};
use tollgate_server::{Settings, routes};

/// Asks to be approved, and gives what it was told.
struct Approval;

impl Machine for Approval {
    const NAME: &'static str = "approval";
    type State = Value;

    async fn step(&self, step: Step<Value>) -> Result<StepOutcome, StepError> {
        Ok(match step.name.as_str() {
            "ask" => wait_for(["approved", "refused"], "decide", step.state),
            _ => done(json!({"by": step.signals[0].read::<Value>()?})),
        })
    }
}

/// A server with workflows `w` and `v` of two tasks, one after the other.
async fn with_workflows() -> Started {
    let server = Started::kept().await;
    define(&server).await;
    server
}

async fn define(server: &Started) {
    for name in ["w", "v"] {
        let tasks = json!([{"name": "a", "type": "t"}, {"name": "b", "type": "t", "after": ["a"]}]);
        server.put(&format!("/v1/workflows/{name}"), &json!({"tasks": tasks})).await.success();
    }
}

async fn begin(server: &Started, workflow: &str) -> String {
    let begun = server.post(&format!("/v1/workflows/{workflow}/runs"), &json!({"n": 1})).await;
    begun.field("run").as_str().unwrap().to_owned()
}

/// Does tasks until the test ends.
fn serve(
    gate: &Tollgate,
    made: impl Fn(TaskJob) -> Result<Value, TaskFailure> + Send + Sync + 'static,
) {
    let worker = gate.flows().tasks("t");
    tokio::spawn(worker.run(move |job| {
        let made = made(job);
        async move { made }
    }));
}

fn echo(job: TaskJob) -> Result<Value, TaskFailure> {
    Ok(json!({ job.task.as_str(): job.read::<Value>()? }))
}

/// How a run ended, as soon as it has.
async fn result(server: &Started, run: &str) -> Value {
    server.get(&format!("/v1/runs/{run}/result?wait=10m")).await.success()
}

/// A run of the machine that waits to be told something.
async fn awaiting(server: &Started) -> String {
    let flows = server.gate.flows();
    let new = NewRun::new::<Approval>("ask", json!({})).correlation("order-42");
    let run = flows.start(new).await.unwrap().run;
    let worker = server.gate.flows().worker(Approval);
    tokio::spawn(worker.run());
    let wait = async {
        while server.get(&format!("/v1/runs/{run}")).await.success()["state"] != "awaiting" {}
    };
    timeout(PATIENCE, wait).await.expect("it does not come to wait");
    run
}

async fn signal(server: &Started, run: &str, signal: &Value) -> Answer {
    server.post(&format!("/v1/runs/{run}/signals"), signal).await
}

#[tokio::test]
async fn a_run_says_how_far_it_is_and_how_it_ended() {
    let server = with_workflows().await;
    let run = begin(&server, "w").await;
    let live = server.get(&format!("/v1/runs/{run}")).await.success();
    let tasks = json!([{"task": "a", "state": "running"}, {"task": "b", "state": "waiting"}]);
    assert_eq!((&live["name"], &live["version"]), (&json!("w"), &json!(1)));
    assert_eq!((&live["state"], &live["tasks"]), (&json!("working"), &tasks));
    serve(&server.gate, echo);
    let ended = result(&server, &run).await;
    let ending = json!({"outcome": "done", "value": {"b": {"a": {"n": 1}}}});
    assert_eq!((&ended["state"], &ended["ending"]), (&json!("ended"), &ending));
    assert_eq!(server.get(&format!("/v1/runs/{run}")).await.success(), ended);
    assert!(ended["began_at"].is_string() && ended["ended_at"].is_string());
}

#[tokio::test]
async fn a_run_that_failed_says_why_and_at_which_task() {
    let server = with_workflows().await;
    serve(&server.gate, |_| Err(TaskFailure::fatal("the card is blocked")));
    let run = begin(&server, "w").await;
    let ending = &result(&server, &run).await["ending"];
    assert_eq!((&ending["outcome"], &ending["step"]), (&json!("failed"), &json!("a")));
    assert_eq!(ending["reason"], "the card is blocked");
}

#[tokio::test]
async fn the_wait_for_a_result_is_over_when_it_was_long_enough() {
    let server = with_workflows().await;
    let run = begin(&server, "w").await;
    let at_once = server.get(&format!("/v1/runs/{run}/result")).await;
    let expected = json!({"run": run, "ended": false});
    assert_eq!((at_once.status, at_once.json()), (202, expected.clone()));
    let mut client = server.client().await;
    client.send(&request("GET", &format!("/v1/runs/{run}/result?wait=30s"), &[], "")).await;
    let answer = async {
        tokio::select! {
            biased;
            answer = client.answer() => answer.unwrap(),
            () = async { loop { server.clock.advance(Span::from_secs(1)); yield_now().await; } } => unreachable!(),
        }
    };
    let answer = timeout(PATIENCE, answer).await.expect("it waits on");
    assert_eq!((answer.status, answer.json()), (202, expected));
}

#[tokio::test]
async fn the_wait_for_a_result_is_over_when_the_server_ends() {
    let hour = Duration::from_secs(3600);
    let settings = Settings { leave: hour, ..Settings::new(([127, 0, 0, 1], 0).into()) };
    let mut server = Started::on(Kept::InFolder, settings).await;
    define(&server).await;
    let run = begin(&server, "w").await;
    let mut client = server.client().await;
    client.send(&request("GET", &format!("/v1/runs/{run}/result?wait=10m"), &[], "")).await;
    server.begin_stop();
    // The hour goes by at once, when nobody has anything left to do.
    tokio::time::pause();
    assert_eq!(client.answer().await.unwrap().status, 202);
}

#[tokio::test]
async fn a_wait_that_cannot_be_is_refused() {
    let server = with_workflows().await;
    for query in ["wait=11m", "wait=soon", "wait=-1", "for=1s"] {
        let answer = server.get(&format!("/v1/runs/r/result?{query}")).await;
        answer.problem(400, "invalid_query");
    }
}

#[tokio::test]
async fn a_signal_lets_a_run_go_on_once() {
    let server = Started::kept().await;
    let run = awaiting(&server).await;
    let state = server.get(&format!("/v1/runs/{run}")).await.success();
    assert_eq!(state["names"], json!(["approved", "refused"]));
    assert_eq!((&state["then"], &state["correlation"]), (&json!("decide"), &json!("order-42")));
    let kept = signal(&server, &run, &json!({"name": "other", "dedupe": "k"})).await.success();
    assert_eq!(kept, json!({"run": run, "signalled": "kept"}));
    let known = signal(&server, &run, &json!({"name": "other", "dedupe": "k"})).await.success();
    assert_eq!(known["signalled"], "known");
    let approved = json!({"name": "approved", "payload": "ana"});
    assert_eq!(signal(&server, &run, &approved).await.success()["signalled"], "woken");
    assert_eq!(result(&server, &run).await["ending"]["value"], json!({"by": "ana"}));
    let told = signal(&server, &run, &approved).await.problem(409, "run_has_ended");
    assert!(told.contains("takes no signals"), "{told}");
}

#[tokio::test]
async fn a_signal_that_cannot_be_is_refused() {
    let server = Started::kept().await;
    let run = awaiting(&server).await;
    for (wrong, field) in [
        (json!({"name": ""}), "name"),
        (json!({"name": "x".repeat(513)}), "name"),
        (json!({"name": "a", "dedupe": ""}), "dedupe"),
        (json!({"name": "a", "key": "k"}), "key"),
    ] {
        let answer = signal(&server, &run, &wrong).await;
        answer.problem(400, "invalid_body");
        assert_eq!(answer.field("field"), field);
    }
    let large = json!({"name": "other", "payload": "x".repeat(700_000)});
    signal(&server, &run, &large).await.success();
    let full = signal(&server, &run, &large).await;
    full.problem(429, "inbox_full");
    assert_eq!(full.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn a_run_of_a_workflow_takes_no_signals() {
    let server = with_workflows().await;
    let run = begin(&server, "w").await;
    signal(&server, &run, &json!({"name": "go"})).await.problem(409, "run_of_workflow");
}

#[tokio::test]
async fn a_run_that_is_taken_back_ends_so_and_stays_so() {
    let server = with_workflows().await;
    let run = begin(&server, "w").await;
    let path = format!("/v1/runs/{run}/cancel");
    assert_eq!(server.post(&path, &json!({})).await.success(), json!({"cancelled": true}));
    assert_eq!(result(&server, &run).await["ending"], json!({"outcome": "cancelled"}));
    assert_eq!(server.post(&path, &json!({})).await.success(), json!({"cancelled": false}));
}

#[tokio::test]
async fn a_run_that_ended_begins_again_from_a_task() {
    let server = with_workflows().await;
    let run = begin(&server, "w").await;
    let path = format!("/v1/runs/{run}/rerun");
    server.post(&path, &json!({"from": "a"})).await.problem(409, "run_has_not_ended");
    server.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await.success();
    let told = server.post(&path, &json!({"from": "x"})).await.problem(422, "run_workflow");
    assert!(told.contains("no task x"), "{told}");
    server.post(&path, &json!({"task": "a"})).await.problem(400, "invalid_body");
    let told = server.post(&path, &json!({})).await.problem(409, "run_not_rerun");
    assert!(told.contains("did not fail"), "{told}");
    let again = server.post(&path, &json!({"from": "a"})).await.success();
    assert_eq!(again["state"], "working");
    serve(&server.gate, echo);
    assert_eq!(result(&server, &run).await["ending"]["outcome"], "done");
}

#[tokio::test]
async fn what_is_no_run_is_unknown_everywhere() {
    let server = Started::kept().await;
    for path in ["", "/timeline", "/picture", "/result?wait=10m"] {
        server.get(&format!("/v1/runs/nobody{path}")).await.problem(404, "unknown_run");
    }
    for (path, body) in
        [("signals", json!({"name": "go"})), ("cancel", json!({})), ("rerun", json!({"from": "a"}))]
    {
        server.post(&format!("/v1/runs/nobody/{path}"), &body).await.problem(404, "unknown_run");
    }
}

#[tokio::test]
async fn runs_are_listed_by_name_and_by_whether_they_ended() {
    let server = with_workflows().await;
    let mut runs = Vec::new();
    for workflow in ["w", "v", "w", "v", "w"] {
        runs.push(begin(&server, workflow).await);
        // They stand in the order of the milliseconds in which they began.
        server.clock.advance(Span::from_millis(1));
    }
    server.post(&format!("/v1/runs/{}/cancel", runs[1]), &json!({})).await.success();
    let listed = async |query: &str| {
        let page = server.get(&format!("/v1/runs?{query}")).await.success();
        let names = page["runs"].as_array().unwrap().iter();
        let names = names.map(|run| run["run"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        (names, page.get("next").map(|next| next.as_str().unwrap().to_owned()))
    };
    let of = |places: &[usize]| places.iter().map(|at| runs[*at].clone()).collect::<Vec<_>>();
    assert_eq!(listed("").await, (of(&[0, 2, 3, 4]), None));
    assert_eq!(listed("ended=true").await, (of(&[1]), None));
    assert_eq!(listed("name=v").await, (of(&[3]), None));
    assert_eq!(listed("limit=2").await, (of(&[0, 2]), Some(runs[2].clone())));
    let after = format!("limit=2&after={}", runs[2]);
    assert_eq!(listed(&after).await, (of(&[3, 4]), None));
    assert_eq!(listed("name=w&limit=1").await, (of(&[0]), Some(runs[0].clone())));
    for query in ["ended=yes", "limit=0", "state=going"] {
        server.get(&format!("/v1/runs?{query}")).await.problem(400, "invalid_query");
    }
}

#[tokio::test]
async fn the_timeline_of_a_run_has_each_attempt() {
    let server = with_workflows().await;
    serve(&server.gate, echo);
    let run = begin(&server, "w").await;
    result(&server, &run).await;
    let path = format!("/v1/runs/{run}/timeline");
    let timeline = server.get(&path).await.success();
    let attempts = timeline["attempts"].as_array().unwrap();
    let steps: Vec<_> = attempts.iter().map(|it| (&it["step"], &it["outcome"])).collect();
    assert_eq!(steps, [(&json!("a"), &json!("done")), (&json!("b"), &json!("done"))]);
    assert_eq!((&attempts[0]["attempt"], &attempts[0]["settlement"]), (&json!(1), &json!("done")));
    let call = attempts[0]["call"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/calls/{call}")).await.success()["state"], "done");
}

#[tokio::test]
async fn a_run_is_drawn_with_how_far_it_is() {
    let server = Started::kept().await;
    define(&server).await;
    let run = begin(&server, "w").await;
    let answer = server.get(&format!("/v1/runs/{run}/picture")).await;
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(answer.text.starts_with("flowchart TD\n    t0[\"a<br/>t\"]:::running\n"));
    let run = awaiting(&server).await;
    let drawn = server.get(&format!("/v1/runs/{run}/picture")).await.text;
    assert!(drawn.contains("[\"ask\"]"), "{drawn}");
}

#[tokio::test]
async fn what_a_run_gave_is_kept_from_those_who_look_where_bodies_are() {
    let settings = Settings::new(([127, 0, 0, 1], 0).into());
    let settings = Settings { redact_bodies: true, ..settings };
    let server = Started::on(Kept::InFolder, settings).await;
    define(&server).await;
    serve(&server.gate, |_| Ok(json!("secret")));
    let run = begin(&server, "w").await;
    assert_eq!(result(&server, &run).await["ending"]["value"], "secret");
    let hidden = json!({"outcome": "done", "value_bytes": 8});
    assert_eq!(server.get(&format!("/v1/runs/{run}")).await.success()["ending"], hidden);
    assert_eq!(server.get("/v1/runs?ended=true").await.success()["runs"][0]["ending"], hidden);
}

#[tokio::test]
async fn who_is_bound_to_a_namespace_is_told_that_runs_are_in_none() {
    let server = Started::kept_with(vec![admin_of("acme")]).await;
    let is_of_flows =
        |path: &str| path.starts_with("/v1/workflows") || path.starts_with("/v1/runs");
    let routes = routes().into_iter().filter(|route| is_of_flows(route.path));
    let mut asked = 0;
    for route in routes {
        let at = (route.method, route.path);
        let answer = server.ask_as("acme", at, &json!({"name": "x"})).await;
        let told = answer.problem(403, "namespace_bound");
        assert!(told.contains("namespace acme: use one that is bound to no namespace"), "{told}");
        asked += 1;
    }
    assert_eq!(asked, 13);
}
