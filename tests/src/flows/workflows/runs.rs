//! One run: inputs and outputs, conditions, retries, ends, and beginning again.

use super::*;
use tollgate::flows::{Cancelled, Comparison, FlowError};

#[tokio::test]
async fn tasks_get_what_the_ones_before_gave_and_the_run_gives_what_the_last_one_did() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let workflow = Workflow::new("w")
        .task(Task::new("a", "t"))
        .task(Task::new("b", "t").after("a"))
        .task(Task::new("c", "t").after("a"))
        .task(Task::new("d", "t").after("b").after("c"));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let tasks = serve(&opened, "t", echo);
    let id = start(&flows, "w", json!(1)).await;
    let a = json!({ "a": 1 });
    let expected = json!({ "d": { "b": { "b": a }, "c": { "c": a } } });
    assert_eq!(gives(&flows, &id).await, expected);
    tasks.stop().await;
}

#[tokio::test]
async fn a_task_whose_condition_is_false_is_skipped_and_what_only_needs_it_too() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let workflow = Workflow::new("w")
        .task(Task::new("a", "t"))
        .task(Task::new("large", "t").after("a").when("a.sum", Comparison::Gt, 10))
        .task(Task::new("mail", "t").after("large"))
        .task(Task::new("small", "t").after("a").when("a.sum", Comparison::Le, 10));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let tasks = serve(&opened, "t", echo);
    let id = start(&flows, "w", json!({ "sum": 7 })).await;
    let expected = json!({ "small": { "small": { "a": { "sum": 7 } } } });
    assert_eq!(gives(&flows, &id).await, expected);
    tasks.stop().await;
}

#[tokio::test]
async fn a_task_is_tried_again_as_it_says_and_fails_its_run_with_its_reason() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let retry = Retry::fixed(3, Span::from_secs(5));
    let workflow = Workflow::new("w").task(Task::new("a", "t").retry(retry));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let mut tasks = serve(&opened, "t", |_| Err(TaskFailure::retry("no")));
    let id = start(&flows, "w", json!(1)).await;
    for attempt in 1..=3 {
        tasks.hears().await;
        if attempt < 3 {
            quiet(&opened).await;
            opened.clock.advance(Span::from_secs(5));
        }
    }
    assert_eq!(fails(&flows, &id).await, "no");
    tasks.stop().await;
}

#[tokio::test]
async fn what_is_not_to_be_tried_again_is_not() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let workflow = Workflow::new("w").task(Task::new("a", "t"));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let mut tasks = serve(&opened, "t", |_| Err(TaskFailure::fatal("never")));
    let id = start(&flows, "w", json!(1)).await;
    assert_eq!(fails(&flows, &id).await, "never");
    tasks.hears().await;
    assert!(tasks.heard.try_recv().is_err());
    tasks.stop().await;
}

#[tokio::test]
async fn a_run_that_failed_is_begun_again_from_a_task_and_keeps_what_others_gave() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let workflow = Workflow::new("w")
        .task(Task::new("a", "t"))
        .task(Task::new("b", "t").after("a").retry(Retry::none()));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let tasks = serve(&opened, "t", |job| match job.task.as_str() {
        "b" => Err(TaskFailure::fatal("not yet")),
        _ => echo(job),
    });
    let id = start(&flows, "w", json!(1)).await;
    assert_eq!(fails(&flows, &id).await, "not yet");
    tasks.stop().await;
    let mut tasks = serve(&opened, "t", echo);
    flows.rerun_from(&id, "b").await.unwrap();
    assert_eq!(gives(&flows, &id).await, json!({ "b": { "a": 1 } }));
    assert_eq!(tasks.hears().await.0, "b", "what a gave is kept");
    tasks.stop().await;
    let refused = flows.rerun_from("nobody", "a").await;
    assert_eq!(refused, Err(FlowError::UnknownRun { run: "nobody".to_owned() }.into()));
}

#[tokio::test]
async fn a_run_that_is_cancelled_ends_and_its_tasks_do_not_start() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let workflow = Workflow::new("w").task(Task::new("a", "t")).task(Task::new("b", "t"));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let id = start(&flows, "w", json!(1)).await;
    assert_eq!(flows.cancel(&id).await.unwrap(), Cancelled::Now);
    assert_eq!(ending(&flows, &id).await, Ending::Cancelled);
    let left = opened.gate().queue_state("task/t").await.unwrap().unwrap();
    assert_eq!((left.waiting, left.in_flight), (0, 0));
    assert_eq!(flows.cancel(&id).await.unwrap(), Cancelled::HadEnded);
}

#[tokio::test]
async fn a_run_that_takes_longer_than_its_workflow_allows_has_failed() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let workflow = Workflow::new("w")
        .task(Task::new("a", "t").retry(Retry::fixed(100, Span::from_secs(60))))
        .timeout(Span::from_secs(20));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let mut tasks = serve(&opened, "t", |_| Err(TaskFailure::retry("no")));
    let id = start(&flows, "w", json!(1)).await;
    tasks.hears().await;
    quiet(&opened).await;
    opened.clock.advance(Span::from_secs(20));
    assert_eq!(fails(&flows, &id).await, "it took longer than its workflow allows");
    tasks.stop().await;
}

#[tokio::test]
async fn a_second_run_of_an_idempotency_key_is_the_first_also_after_that_has_ended() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let workflow = Workflow::new("w").task(Task::new("a", "t")).idempotency("order.id");
    flows.register(workflow.build().unwrap()).await.unwrap();
    let order = |id: &str| json!({ "order": { "id": id } });
    let first = start(&flows, "w", order("1")).await;
    let again = Begun { run: first.clone(), is_known: true };
    assert_eq!(flows.start_workflow("w", order("1")).await.unwrap(), again);
    let tasks = serve(&opened, "t", echo);
    gives(&flows, &first).await;
    assert_eq!(flows.start_workflow("w", order("1")).await.unwrap(), again);
    assert_ne!(start(&flows, "w", order("2")).await, first);
    assert!(
        flows.start_workflow("w", json!({})).await.is_err(),
        "a run without its key is refused"
    );
    tasks.stop().await;
}

#[tokio::test]
async fn a_run_goes_on_as_it_began_when_its_workflow_is_changed() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let first = Workflow::new("w").task(Task::new("a", "t")).task(Task::new("b", "t").after("a"));
    assert_eq!(flows.register(first.clone().build().unwrap()).await.unwrap().version, 1);
    let old = start(&flows, "w", json!(1)).await;
    let second = Workflow::new("w").task(Task::new("a", "t"));
    assert_eq!(flows.register(second.clone().build().unwrap()).await.unwrap().version, 2);
    assert_eq!(flows.register(second.build().unwrap()).await.unwrap().version, 2);
    let new = start(&flows, "w", json!(1)).await;
    let tasks = serve(&opened, "t", echo);
    assert_eq!(gives(&flows, &old).await, json!({ "b": { "a": 1 } }));
    assert_eq!(gives(&flows, &new).await, json!({ "a": 1 }));
    tasks.stop().await;
    drop(flows);
    let opened = opened.reopen().await;
    let kept = opened.gate().flows().workflow("w").await.unwrap().unwrap();
    assert_eq!((kept.version, kept.workflow.tasks().len()), (2, 1));
}

/// Waits until no task is being made.
async fn quiet(opened: &Opened) {
    patiently(async {
        let queue = || opened.gate().queue_state("task/t");
        while queue().await.unwrap().is_some_and(|queue| queue.in_flight > 0) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_dropped_and_tried_again() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let (retry, moment) = (Retry::fixed(2, Span::ZERO), Span::from_millis(1));
    let workflow = Workflow::new("w").task(Task::new("a", "t").timeout(moment).retry(retry));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let (told, mut heard) = mpsc::unbounded_channel();
    // The clock is moved until the next attempt has begun: no lease is to end by that.
    let worker = flows.tasks("t").lease(Span::from_hours(20));
    let worker = worker.until(async move { drop(stopped.await) });
    let worker = tokio::spawn(worker.run(move |job: TaskJob| {
        let _ = told.send(job.attempt);
        async move {
            match job.attempt {
                1 => std::future::pending().await,
                _ => Ok(json!("in time")),
            }
        }
    }));
    let id = start(&flows, "w", json!(1)).await;
    assert_eq!(patiently(heard.recv()).await, Some(1));
    // Whoever sleeps may begin to only now.
    patiently(async {
        while heard.is_empty() {
            opened.clock.advance(moment);
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(gives(&flows, &id).await, json!("in time"));
    drop(stop);
    patiently(worker).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_task_whose_workers_die_as_often_as_it_says_fails_its_run() {
    for (retry, deaths) in [(Retry::default(), 3), (Retry::default().crashes_max(5), 5)] {
        let opened = Opened::new().await;
        let flows = opened.gate().flows();
        let workflow = Workflow::new("w").task(Task::new("a", "t").retry(retry)).build().unwrap();
        flows.register(workflow.clone()).await.unwrap();
        let kept = flows.workflow("w").await.unwrap().unwrap().workflow;
        assert_eq!(kept.spec(), workflow.spec(), "as it is written down");
        for (times, is_made) in [(deaths - 1, true), (deaths, false)] {
            let id = start(&flows, "w", json!(1)).await;
            for _ in 0..times {
                assert_eq!(flows.claim_tasks("t", 1, Span::ZERO, None).await.unwrap().len(), 1);
                opened.clock.advance(Span::from_secs(31));
            }
            let mut tasks = serve(&opened, "t", echo);
            if is_made {
                assert_eq!(gives(&flows, &id).await, json!({ "a": 1 }));
            } else {
                let reason = format!("its worker died {deaths} times");
                assert_eq!(fails(&flows, &id).await, reason);
                assert!(tasks.heard.try_recv().is_err(), "it was not made once more");
            }
            tasks.stop().await;
        }
    }
}
