//! Joins go with the runs that wait for them.

use super::*;
use tollgate::flows::{Cancelled, Retry, Task, TaskFailure, TaskJob, Workflow, children};
use tollgate::{ManualClock, Tollgate};
use tollgate_stores::embedded::disk::simulated::Host;

async fn opened(host: &Host) -> Tollgate {
    let builder = Tollgate::builder().clock(ManualClock::new());
    builder.open_on(host.open().unwrap()).await.unwrap()
}

/// The joins that a host has on its disk.
fn joins(host: &Host) -> Vec<Value> {
    let mut lines = Vec::new();
    tollgate::embedded::export(&host.look(), &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let facts = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    facts.filter(|fact| fact["fact"] == json!("join")).collect()
}

#[tokio::test]
async fn a_map_that_failed_leaves_no_join() {
    let host = Host::new(1);
    let gate = opened(&host).await;
    let flows = gate.flows();
    let each = Task::new("each", "t").map(".").retry(Retry::none());
    flows.register(Workflow::new("w").task(each).build().unwrap()).await.unwrap();
    let id = flows.start_workflow("w", json!([1, 2, 13])).await.unwrap().run;
    let worker = tokio::spawn(flows.tasks("t").run(async |job: TaskJob| match job.read()? {
        13 => Err(TaskFailure::fatal("unlucky")),
        number => Ok(number),
    }));
    assert_eq!(fails(&flows, &id).await, "unlucky");
    worker.abort();
    drop(worker.await);
    drop(flows);
    gate.shut_down().await;
    assert_eq!(joins(&host), Vec::<Value>::new());
}

#[tokio::test]
async fn a_run_that_is_taken_back_leaves_no_join() {
    let host = Host::new(1);
    let gate = opened(&host).await;
    let flows = gate.flows();
    let (told, _) = mpsc::unbounded_channel();
    let steps = |step: Step<Value>| {
        Ok(match step.name.as_str() {
            "spread" => {
                let late = run("child", json!(2)).delay(Span::from_days(1));
                children([run("child", json!(1)), late], "collect", json!(0))
            }
            _ => done(step.state),
        })
    };
    let machine = Scripted { steps: Box::new(steps), failed: None, told };
    let worker = tokio::spawn(flows.worker(machine).run());
    let id = begin(&flows, run("spread", json!(0))).await;
    until(&flows, &id, |state| matches!(state, RunState::Joining { .. })).await;
    assert_eq!(gives(&flows, &format!("{id}.1.0")).await, json!(1));
    assert_eq!(flows.cancel(&id).await.unwrap(), Cancelled::Now);
    worker.abort();
    drop(worker.await);
    drop(flows);
    gate.shut_down().await;
    assert_eq!(joins(&host), Vec::<Value>::new());
}
