//! Tasks of workflows that are made by workers over HTTP.

use super::started::Started;
use crate::gate::patiently;
use serde_json::{Value, json};
use tollgate::Span;
use tollgate::flows::{Ending, Retry, Task, TaskToll, Workflow};

/// Claims tasks of the type `t`.
async fn claim(server: &Started) -> Vec<Value> {
    let claimed = server.post("/v1/queues/task%2Ft/claim", &json!({"max": 10})).await.success();
    claimed["calls"].as_array().unwrap().clone()
}

/// Settles so; what the server says of it.
async fn settle(server: &Started, task: &Value, mut how: Value) -> Value {
    how["lease"] = task["lease"].clone();
    let mut answer = server.post("/v1/settle", &json!([how])).await.success();
    answer["settled"][0].take()
}

async fn settled(server: &Started, task: &Value, how: Value) {
    let said = settle(server, task, how).await;
    assert_eq!(said["settled"], true, "{said}");
}

/// A server with a run of the workflow `w`.
async fn with_run(workflow: Workflow, input: Value) -> (Started, String) {
    let server = Started::kept().await;
    let flows = server.gate.flows();
    flows.register(workflow).await.unwrap();
    let run = flows.start_workflow("w", input).await.unwrap().run;
    (server, run)
}

fn two() -> Workflow {
    let (first, second) = (Task::new("a", "t"), Task::new("b", "t").after("a"));
    Workflow::new("w").task(first).task(second).build().unwrap()
}

async fn ending(server: &Started, run: &str) -> Ending {
    let flows = server.gate.flows();
    patiently(flows.result(run, Span::from_hours(1))).await.unwrap().expect("it ends").ending
}

#[tokio::test]
async fn a_run_goes_on_with_what_a_worker_over_http_gave() {
    let (server, run) = with_run(two(), json!({"n": 1})).await;
    let first = claim(&server).await.remove(0);
    let task = json!({"run": run, "workflow": "w", "version": 1, "name": "a"});
    assert_eq!((&first["task"], &first["attempt"]), (&task, &1.into()));
    assert_eq!(first["lane"], run.as_str());
    settled(&server, &first, json!({"outcome": "done", "output": {"n": 2}})).await;
    let said = settle(&server, &first, json!({"outcome": "done", "output": 3})).await;
    assert_eq!(said["problem"]["code"], "lease_lost", "{said}");
    let second = claim(&server).await.remove(0);
    assert_eq!(second["task"]["name"], "b");
    assert_eq!(second["body"], json!({"n": 2}), "{second}");
    // Settled with the next claim, as a worker does that goes on.
    let how = json!({"lease": second["lease"], "outcome": "done"});
    let claimed = server.post("/v1/queues/task%2Ft/claim", &json!({"settle": [how]})).await;
    assert_eq!(claimed.success()["settled"][0]["settled"], true);
    let value: Value = ending(&server, &run).await.value().unwrap().unwrap();
    assert_eq!(value, json!(null));
}

#[tokio::test]
async fn what_a_worker_over_http_says_of_a_failure_is_the_workflows_to_judge() {
    let task = Task::new("a", "t").retry(Retry::fixed(2, Span::from_secs(5)));
    let (server, run) = with_run(Workflow::new("w").task(task).build().unwrap(), json!(1)).await;
    let first = claim(&server).await.remove(0);
    settled(&server, &first, json!({"outcome": "retry", "report": "out of paper"})).await;
    assert_eq!(claim(&server).await, Vec::<Value>::new());
    server.clock.advance(Span::from_secs(5));
    let second = claim(&server).await.remove(0);
    assert_eq!((&second["attempt"], &second["attempts"]["failures"]), (&2.into(), &1.into()));
    settled(&server, &second, json!({"outcome": "release"})).await;
    let again = claim(&server).await.remove(0);
    assert_eq!(again["attempt"], 2, "it was not made");
    settled(&server, &again, json!({"outcome": "retry", "report": {"paper": 0}})).await;
    let Ending::Failed { reason, .. } = ending(&server, &run).await else { panic!("it failed") };
    assert_eq!(reason, "{\"paper\":0}", "two attempts were all");
    let run = server.gate.flows().start_workflow("w", json!(1)).await.unwrap().run;
    let dead = claim(&server).await.remove(0);
    settled(&server, &dead, json!({"outcome": "dead"})).await;
    let Ending::Failed { reason, .. } = ending(&server, &run).await else { panic!("it failed") };
    assert_eq!(reason, "its worker does not say why");
}

#[tokio::test]
async fn a_task_says_what_it_really_cost() {
    let task = Task::new("a", "t").tolls([TaskToll::new("tokens").weight(10)]);
    let workflow = Workflow::new("w").task(task).build().unwrap();
    let server = Started::kept().await;
    let rule = json!({"rule": "token_bucket", "limit": 100, "per": "1h"});
    server.put("/v1/limits/tokens", &rule).await.success();
    server.gate.flows().register(workflow).await.unwrap();
    server.gate.flows().start_workflow("w", json!(1)).await.unwrap();
    let task = claim(&server).await.remove(0);
    let said = settle(&server, &task, json!({"outcome": "done", "actual": {"other": 1}})).await;
    assert_eq!(said["problem"]["code"], "not_paid", "{said}");
    settled(&server, &task, json!({"outcome": "done", "actual": {"tokens": 37}})).await;
    let meter = server.get("/v1/meters/tokens").await.success();
    assert_eq!(meter["global"]["available"], 63, "{meter}");
}

#[tokio::test]
async fn a_task_is_held_no_longer_than_it_may_take() {
    let task = Task::new("a", "t").timeout(Span::from_secs(40));
    let (server, run) = with_run(Workflow::new("w").task(task).build().unwrap(), json!(1)).await;
    let claimed = server.post("/v1/queues/task%2Ft/claim", &json!({"lease": "1h"})).await.success();
    let late = claimed["calls"][0].clone();
    server.clock.advance(Span::from_millis(40_001));
    settled(&server, &late, json!({"outcome": "done"})).await;
    server.clock.advance(Span::from_secs(5));
    let task = claim(&server).await.remove(0);
    assert_eq!(task["attempts"]["failures"], 1, "it took too long");
    server.clock.advance(Span::from_secs(29));
    let renew = json!({"leases": [task["lease"]], "for": "30s"});
    let renewed = server.post("/v1/leases/renew", &renew).await.success();
    assert_eq!(renewed["renewed"], json!([true]));
    server.clock.advance(Span::from_secs(11));
    let renewed = server.post("/v1/leases/renew", &renew).await.success();
    assert_eq!(renewed["renewed"], json!([false]), "for so long it may not be held");
    for crashes in 1..3 {
        let task = claim(&server).await.remove(0);
        assert_eq!(task["attempts"]["crashes"], crashes);
        server.clock.advance(Span::from_secs(31));
    }
    assert_eq!(claim(&server).await, Vec::<Value>::new());
    let Ending::Failed { reason, .. } = ending(&server, &run).await else { panic!("it failed") };
    assert_eq!(reason, "its worker died 3 times");
}

#[tokio::test]
async fn what_needs_no_worker_goes_on_in_the_server() {
    let task = Task::new("a", "t").map("list");
    let workflow = Workflow::new("w").task(task).build().unwrap();
    let (server, run) = with_run(workflow, json!({"list": [1, 2, 3]})).await;
    for (item, task) in claim(&server).await.iter().enumerate() {
        assert_eq!((&task["task"]["item"], &task["body"]), (&item.into(), &(item + 1).into()));
        settled(&server, task, json!({"outcome": "done", "output": item * 10})).await;
    }
    let value: Value = ending(&server, &run).await.value().unwrap().unwrap();
    assert_eq!(value, json!([0, 10, 20]));
}

#[tokio::test]
async fn what_cannot_be_said_of_a_task_is_refused_and_it_stays_the_workers() {
    let (server, _) = with_run(two(), json!(1)).await;
    let task = claim(&server).await.remove(0);
    let call = json!({"queue": "q", "lane": "a"});
    for (how, field) in [
        (json!({"outcome": "done", "enqueue": [call]}), "enqueue"),
        (json!({"outcome": "retry", "output": 1}), "output"),
        (json!({"outcome": "done", "after": "1s"}), "after"),
    ] {
        let said = settle(&server, &task, how).await;
        assert_eq!(
            (&said["problem"]["code"], &said["problem"]["field"]),
            (&"invalid_body".into(), &field.into()),
            "{said}"
        );
    }
    settled(&server, &task, json!({"outcome": "done"})).await;
    server.put("/v1/queues/q", &json!({})).await.success();
    server.enqueue(&json!({"lane": "a"})).await;
    let plain = server.claim(&json!({})).await.remove(0);
    let said = settle(&server, &plain, json!({"outcome": "done", "output": 1})).await;
    assert_eq!(said["problem"]["field"], "output", "{said}");
}

#[tokio::test]
async fn nobody_takes_the_calls_of_runs_but_their_workers() {
    let (server, run) = with_run(two(), json!(1)).await;
    let lane = json!({"lane": "a"});
    server.post("/v1/queues/task%2Ft/calls", &lane).await.problem(409, "queue_of_runs");
    server.put("/v1/queues/task%2Ft", &json!({})).await.problem(409, "queue_of_runs");
    server.delete("/v1/queues/task%2Ft").await.problem(409, "queue_of_runs");
    server.put("/v1/queues/machine%2Fm@1", &json!({})).await.problem(409, "queue_of_runs");
    let schedule = json!({"queue": "task/t", "cron": "* * * * *", "call": {"lane": "a"}});
    server.put("/v1/schedules/s", &schedule).await.problem(409, "queue_of_runs");
    let id = claim(&server).await[0]["id"].clone();
    let told = server.delete(&format!("/v1/calls/{}", id.as_str().unwrap())).await;
    let told = told.problem(409, "call_of_run");
    assert!(told.contains(&run), "{told}");
    server.post("/v1/queues/task%2Ft/pause", &json!({})).await.success();
    server.post("/v1/queues/task%2Ft/resume", &json!({})).await.success();
}
