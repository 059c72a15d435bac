//! Caps: tasks of a type, tasks of a run, runs of a workflow at a time.

use super::*;

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
