//! Handing in calls over the network.

use super::served::Served;
use std::collections::BTreeSet;
use tollgate_client::{
    Call, CallId, CallsQuery, Client, Limit, OnDead, Order, QueueSpec, Reason, Span, global,
};

/// A queue whose calls pay at a limit that lets one through.
async fn with_queue() -> (Served, Client) {
    let served = Served::new().await;
    let client = served.client();
    client.limit("api", Limit::per_second(1)).await.unwrap();
    client.queue("q", QueueSpec::default()).await.unwrap();
    (served, client)
}

fn call(lane: &str, body: &str) -> Call {
    Call::new(lane).pays(global("api")).body(body)
}

async fn bodies(client: &Client, ids: &[CallId]) -> Vec<String> {
    let mut bodies = Vec::new();
    for id in ids {
        let body = client.call(id).await.unwrap().unwrap().body().unwrap();
        bodies.push(String::from_utf8(body.into()).unwrap());
    }
    bodies
}

#[tokio::test]
async fn queues_are_defined_looked_at_and_removed() {
    let served = Served::new().await;
    let client = served.client();
    let spec = QueueSpec {
        order: Order::Parallel(7),
        on_dead: OnDead::Hold,
        lease: Span::from_secs(5),
        ..QueueSpec::default()
    };
    client.queue("a b/c", spec.clone()).await.unwrap();
    client.queue("q", QueueSpec::default()).await.unwrap();
    client.pause_queue("q").await.unwrap();
    let queues = client.queues().await.unwrap();
    let found: Vec<_> = queues.iter().map(|it| (it.name.as_str(), it.is_paused)).collect();
    assert_eq!(found, [("a b/c", false), ("q", true)]);
    assert_eq!(queues[0].spec, spec);
    client.resume_queue("q").await.unwrap();
    assert!(!client.queue_state("q").await.unwrap().unwrap().is_paused);
    client.remove_queue("q").await.unwrap();
    assert_eq!(client.queue_state("q").await.unwrap(), None);
}

#[tokio::test]
async fn a_body_comes_back_as_it_went() {
    let (_served, client) = with_queue().await;
    let sent = ["{\"b\":1,  \"a\":1.50}", "charge 42", "null", "\"x\"", "", "ä"];
    let calls = sent.map(|body| call("a", body));
    let ids = client.enqueue_all("q", calls).await.unwrap();
    assert_eq!(bodies(&client, &ids).await, sent);
}

#[tokio::test]
async fn calls_that_are_handed_in_at_once_are_all_there_and_each_has_its_name() {
    let (served, client) = with_queue().await;
    let tasks = (0..500).map(|n| {
        let client = client.clone();
        tokio::spawn(async move {
            let id = client.enqueue("q", call("a", &n.to_string())).await.unwrap();
            (id, n.to_string())
        })
    });
    let mut names = BTreeSet::new();
    for task in tasks.collect::<Vec<_>>() {
        let (id, body) = task.await.unwrap();
        assert_eq!(bodies(&client, std::slice::from_ref(&id)).await, [body]);
        names.insert(id);
    }
    assert_eq!(names.len(), 500);
    assert_eq!(served.gate.queue_state("q").await.unwrap().unwrap().waiting, 500);
}

#[tokio::test]
async fn a_call_that_is_refused_does_not_hurt_those_that_went_with_it() {
    let (_served, client) = with_queue().await;
    let good = (0..50).map(|n| call("a", &n.to_string()));
    let bad = Call::new("a").pays(global("nobody"));
    let calls = good.chain([bad]);
    let tasks = calls.map(|call| {
        let client = client.clone();
        tokio::spawn(async move { client.enqueue("q", call).await })
    });
    let mut answers = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        answers.push(task.await.unwrap());
    }
    let error = answers.pop().unwrap().unwrap_err();
    assert_eq!(error.code(), Some("unknown_limit"));
    assert!(answers.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_call_is_explained_looked_for_and_taken_back() {
    let (_served, client) = with_queue().await;
    let ids = client.enqueue_all("q", ["x", "y"].map(|body| call("a", body))).await.unwrap();
    let found = client.explain(&ids[1]).await.unwrap().unwrap();
    assert_eq!(found.position, Some(1));
    assert!(found.reasons.contains(&Reason::Behind { calls: 1 }), "{found:?}");
    let query = CallsQuery { lane: Some("a"), state: Some("waiting"), after: None, most: 1 };
    let page = client.calls("q", query.clone()).await.unwrap();
    assert_eq!((&page.items[0].id, page.items[0].tolls[0].weight), (&ids[0], 1));
    let next = page.next.as_deref();
    let page = client.calls("q", CallsQuery { after: next, ..query }).await.unwrap();
    assert_eq!(page.items[0].id, ids[1]);
    assert!(client.cancel(&ids[1]).await.unwrap());
    assert!(!client.cancel(&CallId::new("987654")).await.unwrap());
    assert_eq!(client.call(&ids[1]).await.unwrap().unwrap().state, "cancelled");
    let lanes = client.lanes("q", None).await.unwrap();
    assert_eq!((&*lanes.items[0].name, lanes.items[0].waiting), ("a", 1));
}

#[test]
fn a_client_hands_in_calls_though_the_runtime_that_carried_others_has_ended() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client::connect(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let stays = client.clone();
    first.block_on(async {
        let enqueueing = tokio::spawn(async move { stays.enqueue("q", call("a", "1")).await });
        // The server has it, and never answers.
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
        let _ = listener.accept().await.unwrap();
        assert!(!enqueueing.is_finished());
    });
    drop(first);
    drop(listener);
    let second = runtime();
    let answer = second.block_on(async {
        tokio::time::timeout(super::served::PATIENCE, client.enqueue("q", call("a", "2"))).await
    });
    let error = answer.expect("nobody carries it").unwrap_err();
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}
