//! Two scopes: the limit of a type over all runs, and one for each value in the input.

use super::*;
use tollgate::Limit;
use tollgate::flows::{FlowError, TaskToll};

async fn left(opened: &Opened, limit: &str, partition: Option<&str>) -> i64 {
    opened.gate().meter(limit, partition).await.unwrap().standing.remaining
}

#[tokio::test]
async fn a_global_rate_limit_is_of_the_type_over_all_runs_and_workflows() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let chat = || Task::new("call-llm", "llm.chat").rate_limit(2, Span::from_minutes(1));
    for name in ["one", "two"] {
        flows.register(Workflow::new(name).task(chat()).build().unwrap()).await.unwrap();
    }
    let mut tasks = serve(&opened, "llm.chat", echo);
    let mut ids = Vec::new();
    for name in ["one", "two", "one"] {
        ids.push(start(&flows, name, json!(1)).await);
    }
    gives(&flows, &ids[0]).await;
    gives(&flows, &ids[1]).await;
    assert_eq!(left(&opened, "task/llm.chat", None).await, 0);
    tasks.hears().await;
    tasks.hears().await;
    assert!(tasks.heard.try_recv().is_err(), "the third waits");
    opened.clock.advance(Span::from_secs(30));
    gives(&flows, &ids[2]).await;
    tasks.stop().await;
}

#[tokio::test]
async fn a_keyed_rate_limit_has_a_budget_for_each_value_and_its_units_are_paid() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let task = Task::new("call", "llm").keyed_rate_limit(
        "config.provider.name",
        100,
        Span::from_minutes(1),
        30,
    );
    flows.register(Workflow::new("w").task(task).build().unwrap()).await.unwrap();
    let tasks = serve(&opened, "llm", echo);
    let of = |name: Value| json!({ "config": { "provider": { "name": name } } });
    for (name, partition) in
        [(json!("openai"), "openai"), (json!("a@b.com"), "a@b.com"), (json!(1_234_567), "1234567")]
    {
        gives(&flows, &start(&flows, "w", of(name)).await).await;
        assert_eq!(left(&opened, "task/llm", Some(partition)).await, 70);
    }
    assert_eq!(left(&opened, "task/llm", None).await, 100, "nobody pays at the common one");
    for wrong in
        [json!({}), of(json!(null)), of(json!(1.5)), of(json!([1])), of(json!({})), of(json!(""))]
    {
        let reason = fails(&flows, &start(&flows, "w", wrong).await).await;
        assert!(reason.contains("config.provider.name"), "{reason}");
    }
    tasks.stop().await;
}

#[tokio::test]
async fn retries_and_reruns_ask_the_gate_again() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let task = Task::new("call", "llm")
        .rate_limit(10, Span::from_days(1))
        .retry(Retry::fixed(3, Span::ZERO));
    flows.register(Workflow::new("w").task(task).build().unwrap()).await.unwrap();
    let tasks = serve(&opened, "llm", |_| Err(TaskFailure::retry("no")));
    let id = start(&flows, "w", json!(1)).await;
    assert_eq!(fails(&flows, &id).await, "no");
    assert_eq!(left(&opened, "task/llm", None).await, 7);
    tasks.stop().await;
    let tasks = serve(&opened, "llm", echo);
    flows.rerun_from(&id, "call").await.unwrap();
    gives(&flows, &id).await;
    assert_eq!(left(&opened, "task/llm", None).await, 6);
    tasks.stop().await;
}

#[tokio::test]
async fn several_tolls_are_paid_together() {
    let opened = Opened::new().await;
    opened.gate().limit("tokens", Limit::per_minute(1_000)).await.unwrap();
    opened.gate().limit("tenant", Limit::per_minute(10)).await.unwrap();
    let flows = opened.gate().flows();
    let tolls = [
        TaskToll::new("tokens").weight_at("tokens"),
        TaskToll::new("tenant").partition_at("tenant"),
    ];
    let task = Task::new("call", "llm").tolls(tolls);
    flows.register(Workflow::new("w").task(task).build().unwrap()).await.unwrap();
    let tasks = serve(&opened, "llm", echo);
    let id = start(&flows, "w", json!({ "tokens": 400, "tenant": "acme" })).await;
    gives(&flows, &id).await;
    assert_eq!(left(&opened, "tokens", None).await, 600);
    assert_eq!(left(&opened, "tenant", Some("acme")).await, 9);
    tasks.stop().await;
}

#[tokio::test]
async fn workflows_that_disagree_about_a_type_are_told_when_they_are_registered() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let of = |name: &str, limit| {
        let task = Task::new("call", "llm").rate_limit(limit, Span::from_minutes(1));
        Workflow::new(name).task(task).build().unwrap()
    };
    flows.register(of("one", 10)).await.unwrap();
    let refused = flows.register(of("two", 20)).await;
    let Err(tollgate::Error::Flow(FlowError::Disagrees { limit, workflow, .. })) = refused else {
        panic!("it was taken: {refused:?}");
    };
    assert_eq!((limit.as_str(), workflow.as_str()), ("task/llm", "one"));
    flows.register(of("one", 20)).await.unwrap();
    assert_eq!(left(&opened, "task/llm", None).await, 20, "one that is alone may change it");
    flows.register(of("two", 20)).await.unwrap();
}

#[tokio::test]
async fn an_unknown_limit_of_the_first_task_is_refused_at_the_door() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let task = Task::new("call", "llm").tolls([TaskToll::new("nobody")]);
    flows.register(Workflow::new("w").task(task).build().unwrap()).await.unwrap();
    let refused = flows.start_workflow("w", json!(1)).await.unwrap_err().to_string();
    assert!(refused.contains("there is no limit nobody"), "{refused}");
}
