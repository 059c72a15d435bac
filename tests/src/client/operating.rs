//! What operators do over the network: dead letters, schedules, history, events, holding back.

use super::served::{PATIENCE, Served};
use tokio::time::timeout;
use tollgate_client::{
    Backoff, Call, CallId, Client, ClientError, CostPath, Cron, Delivery, Event, Events,
    EventsQuery, HistoryQuery, Job, Outcome, QueueSpec, Reason, Span, Told, When,
};

async fn with_queue() -> (Served, Client) {
    let served = Served::in_real_time().await;
    let client = served.client();
    client.queue("q", QueueSpec::default()).await.unwrap();
    (served, client)
}

/// Makes all calls of the queue, each to this end.
async fn make_all(client: &Client, outcome: fn() -> Outcome) -> u64 {
    let worker = client.worker("q").until_drained();
    let run = worker.run(move |_: Job| async move { outcome() });
    timeout(PATIENCE, run).await.expect("the worker did not end").unwrap().started
}

async fn next(events: &mut Events) -> Event {
    let told = timeout(PATIENCE, events.next()).await.expect("nothing was told").unwrap();
    let Told::Event(event) = told else { panic!("{told:?}") };
    *event
}

#[tokio::test]
async fn dead_calls_are_looked_at_revived_and_deleted() {
    let (_served, client) = with_queue().await;
    let calls = ["x", "y", "z"].map(|body| Call::new("a").body(body));
    let ids = client.enqueue_all("q", calls).await.unwrap();
    assert_eq!(make_all(&client, Outcome::dead).await, 3);
    let dead = client.dead("q", Some("a"), None).await.unwrap();
    let names: Vec<CallId> = dead.items.iter().map(|call| call.id.clone()).collect();
    assert_eq!((names, dead.items[0].died_of.as_deref()), (ids.clone(), Some("given_up")));
    assert_eq!(client.revive(&ids[..1]).await.unwrap(), 1);
    assert_eq!(client.call(&ids[0]).await.unwrap().unwrap().state, "waiting");
    assert_eq!(client.revive_all("q", Some("a"), Span::ZERO).await.unwrap(), 2);
    assert_eq!(make_all(&client, Outcome::dead).await, 3);
    assert_eq!(client.delete_dead("q", None).await.unwrap(), 3);
    assert!(client.dead("q", None, None).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn schedules_are_made_paused_and_removed() {
    let (_served, client) = with_queue().await;
    let cron = Cron::new("0 9 * * 1-5", "Europe/Berlin").unwrap();
    let call = || Call::new("a").body("tick").expires_after(Span::from_hours(1));
    let made = client.schedule("report", "q", When::Cron(cron), call()).await.unwrap();
    assert_eq!(
        (made.cron.as_deref(), made.zone.as_deref()),
        (Some("0 9 * * 1-5"), Some("Europe/Berlin"))
    );
    assert_eq!(made.call["expires_after"], "1h");
    assert!(client.pause_schedule("report").await.unwrap());
    let state = client.schedule_state("report").await.unwrap().unwrap();
    assert!(state.is_paused);
    assert!(client.resume_schedule("report").await.unwrap());
    assert_eq!(client.schedules(None).await.unwrap().items.len(), 1);
    assert!(client.unschedule("report").await.unwrap());
    assert!(!client.unschedule("report").await.unwrap());
    assert_eq!(client.schedule_state("report").await.unwrap(), None);
}

#[tokio::test]
async fn what_is_held_back_says_so() {
    let (_served, client) = with_queue().await;
    let id = client.enqueue("q", Call::new("a")).await.unwrap();
    assert_eq!(client.lanes("q", None).await.unwrap().items[0].head.as_ref(), Some(&id));
    client.pause_lane("q", "a").await.unwrap();
    client.weigh("q", "a", 7).await.unwrap();
    let found = client.explain(&id).await.unwrap().unwrap();
    assert_eq!(found.reasons, [Reason::LanePaused]);
    let lane = &client.lanes("q", None).await.unwrap().items[0];
    assert_eq!((lane.is_paused, lane.weight), (true, 7));
    client.resume_lane("q", "a").await.unwrap();
    assert_eq!(make_all(&client, Outcome::done).await, 1);
}

#[tokio::test]
async fn history_tells_what_came_of_calls() {
    let (_served, client) = with_queue().await;
    let id = client.enqueue("q", Call::new("a")).await.unwrap();
    make_all(&client, Outcome::done).await;
    let query = HistoryQuery { queue: Some("q"), most: 10, ..HistoryQuery::default() };
    let events = client.history(query).await.unwrap().items;
    let told: Vec<_> = events.iter().map(|it| (&it.call, &*it.event)).collect();
    assert_eq!(told, [(&id, "ended"), (&id, "settled")]);
    let call = client.call(&id).await.unwrap().unwrap();
    assert_eq!((&*call.state, call.history.len()), ("done", 2));
}

#[tokio::test]
async fn a_report_is_found_in_history() {
    let (_served, client) = with_queue().await;
    let ids = client.enqueue_all("q", ["a", "b"].map(Call::new)).await.unwrap();
    let worker = client.worker("q").until_drained();
    let run = worker.run(|job: Job| async move {
        Outcome::done().report(if job.lane == "a" { r#"{"status":200}"# } else { "paid" })
    });
    timeout(PATIENCE, run).await.expect("the worker did not end").unwrap();
    for (id, field, report) in [
        (&ids[0], "report", serde_json::json!({"status": 200})),
        (&ids[1], "report_base64", "cGFpZA==".into()),
    ] {
        let call = client.call(id).await.unwrap().unwrap();
        assert_eq!(call.history[0].more[field], report);
    }
}

#[tokio::test]
async fn a_queue_is_told_where_its_calls_go() {
    let (_served, client) = with_queue().await;
    let delivery = Delivery {
        destination: Some("https://a.example/".to_owned()),
        headers: vec![("x-a".to_owned(), "1".to_owned())],
        timeout: Some(Span::from_secs(3)),
        costs: vec![CostPath { limit: "tpm".to_owned(), from: "body.tokens".to_owned() }],
        ..Delivery::default()
    };
    let backoff = Backoff { jitter: 30, ..QueueSpec::default().backoff };
    let spec =
        QueueSpec { backoff, delivery: Some(delivery.to_bytes().unwrap()), ..QueueSpec::default() };
    client.queue("hooks", spec.clone()).await.unwrap();
    assert_eq!(client.queue_state("hooks").await.unwrap().unwrap().spec, spec);
    client.pause_queue("hooks").await.unwrap();
    let own = Delivery { method: Some("PUT".to_owned()), ..Delivery::default() };
    client.enqueue("hooks", Call::new("a").delivery(own.clone())).await.unwrap();
    let error = client.enqueue("q", Call::new("a").delivery(own)).await.unwrap_err();
    assert!(matches!(&error, ClientError::Problem(it) if it.code == "queue_not_pushed"), "{error}");
    let worker = client.worker("hooks").until_drained();
    let error = timeout(PATIENCE, worker.run(|_: Job| async {})).await.expect("it did not end");
    let error = error.unwrap_err();
    assert!(matches!(&error, ClientError::Problem(it) if it.code == "queue_pushed"), "{error}");
}

#[tokio::test]
async fn events_are_told_in_order_and_a_lost_stream_goes_on_where_it_was() {
    let (mut served, client) = with_queue().await;
    let mut events =
        client.events(EventsQuery { queue: Some("q".to_owned()), ..EventsQuery::default() });
    // It is asked for when it is first polled: what happens from then on is told.
    let first = tokio::spawn(async move {
        let event = next(&mut events).await;
        (events, event)
    });
    let mut ids = Vec::new();
    while !first.is_finished() {
        ids.push(client.enqueue("q", Call::new("a")).await.unwrap());
    }
    let (mut events, event) = first.await.unwrap();
    let mut told = vec![event.call];
    let behind = ids.iter().position(|id| *id == told[0]).unwrap();
    served.stop().await;
    served.start(None).await;
    ids.push(client.enqueue("q", Call::new("a")).await.unwrap());
    while told.len() < ids.len() - behind {
        told.push(next(&mut events).await.call);
    }
    assert_eq!(told, ids[behind..]);
}
