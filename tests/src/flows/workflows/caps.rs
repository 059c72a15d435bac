//! Caps: tasks of a type, tasks of a run, runs of a workflow at a time.

use super::*;
use tollgate::flows::{Comparison, TaskOutcome};

#[tokio::test]
async fn so_many_tasks_of_a_type_and_of_a_run_are_made_at_a_time() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let wide = |name: &str, type_name: &str| {
        let tasks = (0..4).map(|n| Task::new(&n.to_string(), type_name));
        tasks.fold(Workflow::new(name), |workflow, task| workflow.task(task))
    };
    let typed = wide("typed", "narrow");
    let typed = typed.tasks.into_iter().map(|task| task.concurrency(3));
    let typed = typed.fold(Workflow::new("typed"), |workflow, task| workflow.task(task));
    flows.register(typed.build().unwrap()).await.unwrap();
    flows.register(wide("capped", "t").tasks_max(2).build().unwrap()).await.unwrap();
    for name in ["typed", "typed", "capped", "capped"] {
        start(&flows, name, json!(1)).await;
    }
    let narrow = flows.claim_tasks("narrow", 10, Span::ZERO, None).await.unwrap();
    assert_eq!(narrow.len(), 3, "over both runs");
    let capped = flows.claim_tasks("t", 10, Span::ZERO, None).await.unwrap();
    assert_eq!(capped.len(), 4, "two of each run");
}

#[tokio::test]
async fn runs_beyond_the_cap_wait_and_begin_in_their_order_as_others_end() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let workflow = Workflow::new("w").task(Task::new("a", "t")).runs_max(2);
    flows.register(workflow.build().unwrap()).await.unwrap();
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(start(&flows, "w", json!(number)).await);
        opened.clock.advance(Span::from_millis(1));
    }
    let waiting = opened.gate().queue_state("task/t").await.unwrap().unwrap().waiting;
    assert_eq!(waiting, 2);
    let pends = |state: &RunState| matches!(state, RunState::Working { is_pending: true, .. });
    until(&flows, &ids[2], pends).await;
    flows.cancel(&ids[3]).await.unwrap();
    let mut tasks = serve(&opened, "t", echo);
    for id in [&ids[0], &ids[1], &ids[2], &ids[4]] {
        gives(&flows, id).await;
    }
    for _ in 0..4 {
        tasks.hears().await;
    }
    assert!(tasks.heard.try_recv().is_err(), "the one that was cancelled never began");
    tasks.stop().await;
    let more = start(&flows, "w", json!(9)).await;
    let begun = |state: &RunState| matches!(state, RunState::Working { is_pending: false, .. });
    until(&flows, &more, begun).await;
}

#[tokio::test]
async fn a_run_that_ends_as_it_begins_takes_no_place() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let task = Task::new("a", "t").when("go", Comparison::Eq, true);
    flows.register(Workflow::new("w").task(task).runs_max(1).build().unwrap()).await.unwrap();
    for _ in 0..3 {
        let skipped = start(&flows, "w", json!({"go": false})).await;
        gives(&flows, &skipped).await;
    }
    let tasks = serve(&opened, "t", echo);
    let going = start(&flows, "w", json!({"go": true})).await;
    gives(&flows, &going).await;
    let skipped = start(&flows, "w", json!({"go": false})).await;
    gives(&flows, &skipped).await;
    tasks.stop().await;
}

#[tokio::test]
async fn a_second_life_takes_a_place_and_has_its_own_time() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let task = Task::new("a", "t").retry(Retry::none());
    let workflow = Workflow::new("w").task(task).runs_max(1).timeout(Span::from_hours(1));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let first = start(&flows, "w", json!(1)).await;
    flows.cancel(&first).await.unwrap();
    let second = start(&flows, "w", json!(2)).await;
    let refused = flows.rerun_from(&first, "a").await.unwrap_err().to_string();
    assert!(refused.contains("as many runs of workflow w live as may"), "{refused}");
    opened.clock.advance(Span::from_minutes(40));
    flows.cancel(&second).await.unwrap();
    flows.rerun_from(&first, "a").await.unwrap();
    let third = start(&flows, "w", json!(3)).await;
    let pends = |state: &RunState| matches!(state, RunState::Working { is_pending: true, .. });
    until(&flows, &third, pends).await;
    // The time of its first life is over, and that of its second is not.
    opened.clock.advance(Span::from_minutes(40));
    let elsewhere = serve(&opened, "none", echo);
    flows.sweep().await.unwrap();
    until(&flows, &first, |state| matches!(state, RunState::Working { is_pending: false, .. }))
        .await;
    opened.clock.advance(Span::from_minutes(20));
    assert_eq!(fails(&flows, &first).await, "it took longer than its workflow allows");
    elsewhere.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_one_run_that_end_together_are_each_made_once() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let tasks = (0..200).map(|n| Task::new(&n.to_string(), "t"));
    let wide = tasks.fold(Workflow::new("w"), |workflow, task| workflow.task(task));
    flows.register(wide.build().unwrap()).await.unwrap();
    let id = start(&flows, "w", json!(1)).await;
    let claimed = flows.claim_tasks("t", 200, Span::ZERO, None).await.unwrap();
    assert_eq!(claimed.len(), 200);
    let settles = claimed.into_iter().map(|task| {
        let (flows, lease) = (flows.clone(), task.call.started.lease);
        let done = TaskOutcome::Done((*b"1").into());
        tokio::spawn(async move { flows.settle_task(lease, done, Vec::new()).await })
    });
    for settle in settles.collect::<Vec<_>>() {
        settle.await.unwrap().unwrap();
    }
    assert_eq!(gives(&flows, &id).await.as_object().unwrap().len(), 200);
}
