//! Maps: a task for each item of a list, and the list of what they gave in its order.

use super::*;

fn mapping() -> Workflow {
    let workflow = Workflow::new("w")
        .task(Task::new("each", "t").map("items").retry(Retry::none()))
        .task(Task::new("sum", "t").after("each"));
    workflow.build().unwrap()
}

fn squares(job: TaskJob) -> Result<Value, TaskFailure> {
    match job.task.as_str() {
        "each" => {
            let number: u64 = job.read()?;
            if number == 13 {
                Err(TaskFailure::fatal("unlucky"))
            } else {
                Ok(json!(number * number))
            }
        }
        _ => Ok(json!(job.read::<Vec<u64>>()?)),
    }
}

#[tokio::test]
async fn each_item_is_a_task_and_what_they_gave_is_a_list_in_their_order() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    flows.register(mapping()).await.unwrap();
    let tasks = serve(&opened, "t", squares);
    let id = start(&flows, "w", json!({ "items": [1, 2, 3, 4, 5] })).await;
    assert_eq!(gives(&flows, &id).await, json!([1, 4, 9, 16, 25]));
    let none = start(&flows, "w", json!({ "items": [] })).await;
    assert_eq!(gives(&flows, &none).await, json!([]));
    tasks.stop().await;
}

#[tokio::test]
async fn an_item_that_fails_fails_the_run_and_the_others_stop() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    flows.register(mapping()).await.unwrap();
    let tasks = serve(&opened, "t", squares);
    let id = start(&flows, "w", json!({ "items": [1, 13, 3] })).await;
    assert_eq!(fails(&flows, &id).await, "unlucky");
    patiently(async {
        let queue = || opened.gate().queue_state("task/t");
        while queue().await.unwrap().is_some_and(|it| it.waiting + it.in_flight > 0) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    tasks.stop().await;
}

#[tokio::test]
async fn what_is_no_list_fails_the_task_and_says_what_was_found() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    flows.register(mapping()).await.unwrap();
    let id = start(&flows, "w", json!({ "items": "many" })).await;
    let reason = fails(&flows, &id).await;
    assert!(reason.contains("items") && reason.contains("each"), "{reason}");
}

#[tokio::test]
async fn a_map_goes_on_over_a_restart() {
    let opened = Opened::new().await;
    opened.gate().flows().register(mapping()).await.unwrap();
    let items: Vec<u64> = (0..10).collect();
    let id = start(&opened.gate().flows(), "w", json!({ "items": items })).await;
    let mut tasks = serve(&opened, "t", squares);
    tasks.hears().await;
    tasks.stop().await;
    let opened = opened.reopen().await;
    let tasks = serve(&opened, "t", squares);
    let squares: Vec<u64> = items.iter().map(|it| it * it).collect();
    assert_eq!(gives(&opened.gate().flows(), &id).await, json!(squares));
    tasks.stop().await;
}

#[tokio::test]
async fn what_is_too_much_after_a_map_fails_the_run_and_not_for_ever() {
    let opened = Opened::new().await;
    let flows = opened.gate().flows();
    let again = |name: &str| Task::new(name, "none").after("a").map(".");
    let workflow = Workflow::new("w").task(Task::new("a", "t").map("list"));
    let workflow = workflow.task(again("b")).task(again("c")).task(again("d"));
    flows.register(workflow.build().unwrap()).await.unwrap();
    let list: Vec<u32> = (0..9_000).collect();
    let id = start(&flows, "w", json!({ "list": list })).await;
    let tasks = serve(&opened, "t", |job| Ok(job.read()?));
    let reason = fails(&flows, &id).await;
    assert!(reason.contains("changes"), "{reason}");
    tasks.stop().await;
}
