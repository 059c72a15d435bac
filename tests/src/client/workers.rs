//! Workers over the network: every call once and in order, through panics, lost servers and lost leases,
//! and to the end.

use super::cut::Wire;
use super::served::{PATIENCE, Served};
use crate::gate::hang_at_first;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate_client::{
    Call, Client, ClientError, HistoryQuery, Job, Limit, Order, Outcome, QueueSpec, Span,
    TraceParent, Worked, global,
};

type Heard = mpsc::UnboundedReceiver<String>;

/// A worker that runs.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Worked, ClientError>>,
}

impl Running {
    async fn stop(self) -> Worked {
        self.stop.send(()).unwrap();
        timeout(PATIENCE, self.task).await.expect("the worker did not end").unwrap().unwrap()
    }
}

/// Runs a worker whose handler says which bodies it got, and does this with each.
fn run<F>(
    worker: tollgate_client::Worker,
    handle: impl Fn(Job) -> F + Send + Sync + 'static,
) -> (Running, Heard)
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let (told, heard) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = worker.until(async move { drop(stopped.await) });
    let task = tokio::spawn(worker.run(move |job| {
        told.send(String::from_utf8(job.body.to_vec()).unwrap()).unwrap();
        handle(job)
    }));
    (Running { stop, task }, heard)
}

async fn done(_: Job) -> Outcome {
    Outcome::done()
}

async fn hears(heard: &mut Heard) -> String {
    timeout(PATIENCE, heard.recv()).await.expect("nothing was heard").unwrap()
}

async fn with_queue(spec: QueueSpec) -> (Served, Client) {
    let served = Served::in_real_time().await;
    let client = served.client();
    client.limit("api", Limit::per_second(100_000)).await.unwrap();
    client.queue("q", spec).await.unwrap();
    (served, client)
}

async fn enqueue(client: &Client, lane: &str, bodies: impl IntoIterator<Item = String>) {
    let calls = bodies.into_iter().map(|body| Call::new(lane).pays(global("api")).body(body));
    client.enqueue_all("q", calls).await.unwrap();
}

async fn is_empty(served: &Served) -> bool {
    let state = served.gate.queue_state("q").await.unwrap().unwrap();
    (state.waiting, state.in_flight, state.dead) == (0, 0, 0)
}

#[tokio::test]
async fn a_worker_makes_each_call_once_and_in_order_and_ends_when_there_are_none() {
    let (served, client) = with_queue(QueueSpec::default()).await;
    for lane in ["a", "b", "c"] {
        enqueue(&client, lane, (0..100).map(|n| format!("{lane}{n:03}"))).await;
    }
    let worker = client.worker("q").concurrency(8).until_drained();
    let (running, mut heard) = run(worker, done);
    let worked = timeout(PATIENCE, running.task).await.unwrap().unwrap().unwrap();
    assert_eq!((worked.started, worked.lost, worked.late, worked.panicked), (300, 0, 0, 0));
    assert!(is_empty(&served).await);
    let mut bodies = Vec::new();
    while let Ok(body) = heard.try_recv() {
        bodies.push(body);
    }
    for lane in ["a", "b", "c"] {
        let in_order: Vec<_> = bodies.iter().filter(|body| body.starts_with(lane)).collect();
        assert!(in_order.is_sorted() && in_order.len() == 100, "{in_order:?}");
    }
}

#[tokio::test]
async fn a_handler_is_told_of_which_trace_its_call_is() {
    let (_served, client) = with_queue(QueueSpec::default()).await;
    let trace = TraceParent::new("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    client.enqueue("q", Call::new("a").trace(trace.clone().unwrap())).await.unwrap();
    client.enqueue("q", Call::new("a")).await.unwrap();
    let (told, mut heard) = mpsc::unbounded_channel();
    let worker = client.worker("q").until_drained().run(move |job: Job| {
        told.send(job.trace).unwrap();
        async { Outcome::done() }
    });
    timeout(PATIENCE, worker).await.unwrap().unwrap();
    assert_eq!([heard.recv().await, heard.recv().await], [Some(trace), Some(None)]);
}

#[tokio::test]
async fn as_many_are_made_at_a_time_as_there_are_hands_and_no_more() {
    let spec = QueueSpec { order: Order::Parallel(100), ..QueueSpec::default() };
    let (_served, client) = with_queue(spec).await;
    enqueue(&client, "a", (0..20).map(|n| n.to_string())).await;
    let go_on = Arc::new(Notify::new());
    let waits = go_on.clone();
    let (running, mut heard) = run(client.worker("q").concurrency(8), move |_| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Outcome::done()
        }
    });
    for _ in 0..8 {
        hears(&mut heard).await;
    }
    assert_eq!(client.queue_state("q").await.unwrap().unwrap().in_flight, 8);
    for _ in 8..20 {
        go_on.notify_one();
        hears(&mut heard).await;
    }
    go_on.notify_waiters();
    assert_eq!(running.stop().await.started, 20);
}

#[tokio::test]
async fn what_fails_panics_or_follows_is_settled_so() {
    let (served, client) = with_queue(QueueSpec::default()).await;
    client.queue("next", QueueSpec::default()).await.unwrap();
    enqueue(&client, "a", ["fails", "panics", "goes on"].map(str::to_owned)).await;
    let (running, mut heard) = run(client.worker("q"), async |job: Job| match &*job.body {
        b"fails" if job.attempt == 1 => Outcome::retry_after(Span::from_millis(1)),
        b"panics" if job.attempt == 1 => panic!("as it is to"),
        b"goes on" => Outcome::done().actual("api", 5).enqueue("next", Call::new("b").body("n")),
        _ => Outcome::done(),
    });
    for body in ["fails", "fails", "panics", "panics", "goes on"] {
        assert_eq!(hears(&mut heard).await, body);
    }
    served.until(async || is_empty(&served).await).await;
    let worked = running.stop().await;
    assert_eq!((worked.started, worked.panicked), (5, 1));
    assert_eq!(client.queue_state("next").await.unwrap().unwrap().waiting, 1);
}

#[tokio::test]
async fn a_lease_is_renewed_while_the_handler_runs() {
    let spec = QueueSpec { crashes_max: 100, ..QueueSpec::default() };
    let (served, client) = with_queue(spec).await;
    enqueue(&client, "a", ["x".to_owned()]).await;
    let go_on = Arc::new(Notify::new());
    let waits = go_on.clone();
    let worker = client.worker("q").lease(Span::from_secs(1));
    let (running, mut heard) = run(worker, move |_| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Outcome::done()
        }
    });
    assert_eq!(hears(&mut heard).await, "x");
    // Longer than the lease lasts.
    let claimed = served.gate.claim("q", 1, Span::from_millis(2_500)).await.unwrap();
    assert!(claimed.is_empty(), "the lease ended while the handler ran");
    go_on.notify_one();
    served.until(async || is_empty(&served).await).await;
    assert_eq!((running.stop().await.lost, heard.try_recv().is_err()), (0, true));
}

#[tokio::test]
async fn a_handler_that_lost_its_lease_is_dropped_and_the_call_is_made_again() {
    let (mut served, client) = with_queue(QueueSpec::default()).await;
    enqueue(&client, "a", ["x".to_owned()]).await;
    let (told, mut dropped) = mpsc::unbounded_channel();
    let worker = client.worker("q").lease(Span::from_secs(1));
    let (running, mut heard) = run(worker, move |job| {
        let hanging = hang_at_first(job.attempt, told.clone());
        async move {
            hanging.await;
            Outcome::done()
        }
    });
    assert_eq!(hears(&mut heard).await, "x");
    served.stop().await;
    timeout(PATIENCE, dropped.recv()).await.expect("the handler went on without a lease");
    served.start(None).await;
    assert_eq!(hears(&mut heard).await, "x");
    served.until(async || is_empty(&served).await).await;
    let worked = running.stop().await;
    assert_eq!((worked.started, worked.lost), (2, 1));
}

#[tokio::test]
async fn a_server_that_goes_away_is_waited_for_and_nothing_is_made_twice() {
    let (mut served, client) = with_queue(QueueSpec::default()).await;
    enqueue(&client, "a", (0..200).map(|n| format!("{n:03}"))).await;
    let made = Arc::new(AtomicU64::new(0));
    let counted = made.clone();
    let (running, mut heard) = run(client.worker("q").concurrency(4), move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Outcome::done() }
    });
    for at in [20, 80, 140] {
        served.until(async || made.load(Ordering::SeqCst) >= at).await;
        served.stop().await;
        served.start(None).await;
    }
    served.until(async || is_empty(&served).await).await;
    let worked = running.stop().await;
    assert_eq!((worked.started, worked.lost), (200, 0));
    let mut bodies = Vec::new();
    while let Ok(body) = heard.try_recv() {
        bodies.push(body);
    }
    assert_eq!(bodies, (0..200).map(|n| format!("{n:03}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn though_connections_are_cut_every_call_is_made_and_none_twice() {
    let spec = QueueSpec { crashes_max: 1_000, ..QueueSpec::default() };
    let (served, client) = with_queue(spec).await;
    for lane in ["a", "b", "c", "d"] {
        enqueue(&client, lane, (0..50).map(|n| format!("{lane}{n:03}"))).await;
    }
    let wire = Wire::to(served.address).await;
    let client = Client::connect(&format!("http://{}", wire.address)).unwrap();
    let made = Arc::new(AtomicU64::new(0));
    let counted = made.clone();
    // What is lost with an answer waits until its lease ends.
    let worker = client.worker("q").concurrency(4).lease(Span::from_secs(1));
    let (running, mut heard) = run(worker, move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Outcome::done() }
    });
    for at in (10..=190).step_by(20) {
        served.until(async || made.load(Ordering::SeqCst) >= at).await;
        wire.cut();
    }
    served.until(async || is_empty(&served).await).await;
    assert_eq!(running.stop().await.started, 200);
    let mut bodies = Vec::new();
    while let Ok(body) = heard.try_recv() {
        bodies.push(body);
    }
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 200);
}

/// A worker with one call in its hands, which is done when it is told so, at a server that knows it no more.
async fn refused_midway(lease: Span) -> (Served, Running, Heard, Arc<Notify>) {
    let (mut served, client) = with_queue(QueueSpec::default()).await;
    enqueue(&client, "a", ["x".to_owned()]).await;
    let go_on = Arc::new(Notify::new());
    let waits = go_on.clone();
    let (running, mut heard) = run(client.worker("q").lease(lease), move |_| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Outcome::done()
        }
    });
    assert_eq!(hears(&mut heard).await, "x");
    served.stop().await;
    served.start(Some("a-token-that-the-worker-does-not-have")).await;
    (served, running, heard, go_on)
}

#[tokio::test]
async fn what_was_done_stays_done_though_the_server_refuses_to_hear_it() {
    let (mut served, mut running, mut heard, go_on) = refused_midway(Span::from_secs(30)).await;
    go_on.notify_one();
    let ended = timeout(Duration::from_millis(300), &mut running.task).await;
    assert!(ended.is_err(), "it gave up what it had done: {ended:?}");
    served.stop().await;
    served.start(None).await;
    let error = timeout(PATIENCE, running.task).await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.code(), Some("unauthorized"));
    assert!(is_empty(&served).await, "a call that was done is to be made again");
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn who_is_refused_for_good_gives_up_a_lease_after_its_last_handler_ended() {
    let (_served, running, _heard, go_on) = refused_midway(Span::from_millis(500)).await;
    drop(running.stop);
    go_on.notify_one();
    let error = timeout(PATIENCE, running.task).await.expect("it never ends").unwrap();
    assert_eq!(error.unwrap_err().code(), Some("unauthorized"));
}

#[tokio::test]
async fn who_has_stopped_holds_what_it_did_for_as_long_as_it_was_renewed() {
    let (mut served, client) = with_queue(QueueSpec::default()).await;
    enqueue(&client, "a", ["x".to_owned()]).await;
    let client = Client::builder(&served.url()).retries(0).build().unwrap();
    let go_on = Arc::new(Notify::new());
    let waits = go_on.clone();
    let (mut running, mut heard) = run(client.worker("q").lease(Span::from_secs(2)), move |_| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Outcome::done()
        }
    });
    assert_eq!(hears(&mut heard).await, "x");
    running.stop.send(()).unwrap();
    // Longer than a lease lasts.
    assert!(served.gate.claim("q", 1, Span::from_millis(2_200)).await.unwrap().is_empty());
    served.stop().await;
    go_on.notify_one();
    let ended = timeout(Duration::from_millis(200), &mut running.task).await;
    assert!(ended.is_err(), "it gave up what it held: {ended:?}");
    served.start(None).await;
    let worked = timeout(PATIENCE, running.task).await.unwrap().unwrap().unwrap();
    assert_eq!((worked.started, worked.lost), (1, 0));
    assert!(is_empty(&served).await);
}

#[tokio::test]
async fn what_comes_too_late_is_handed_back() {
    let spec = QueueSpec { order: Order::Parallel(10), ..QueueSpec::default() };
    let (served, client) = with_queue(spec).await;
    enqueue(&client, "a", ["x".to_owned()]).await;
    let worker = client.worker("q").start_by(Span::ZERO);
    let (running, mut heard) = run(worker, done);
    let query = || HistoryQuery { queue: Some("q"), most: 1, ..HistoryQuery::default() };
    let is_back = async || !client.history(query()).await.unwrap().items.is_empty();
    served.until(is_back).await;
    let worked = running.stop().await;
    assert_eq!(worked.started, 0);
    assert!(worked.late > 0 && heard.try_recv().is_err());
    let call = &served.gate.calls(all_of_q()).await.unwrap()[0];
    assert_eq!(call.state, tollgate::lanes::CallState::Waiting);
    assert_eq!(call.attempts, tollgate::lanes::Attempts::default(), "no attempt is counted");
}

fn all_of_q() -> tollgate::lanes::CallsQuery {
    let queue = tollgate::lanes::QueueName::new("q").unwrap();
    tollgate::lanes::CallsQuery { queue, lane: None, state: None, after: None, most: 10 }
}

#[tokio::test]
async fn a_worker_that_is_stopped_finishes_what_it_has() {
    let (served, client) = with_queue(QueueSpec::default()).await;
    enqueue(&client, "a", ["x".to_owned(), "y".to_owned()]).await;
    let go_on = Arc::new(Notify::new());
    let waits = go_on.clone();
    let (running, mut heard) = run(client.worker("q"), move |_| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Outcome::done()
        }
    });
    assert_eq!(hears(&mut heard).await, "x");
    let stopping = tokio::spawn(running.stop());
    timeout(Duration::from_millis(50), async {
        while !stopping.is_finished() {
            tokio::task::yield_now().await
        }
    })
    .await
    .expect_err("it ended with a call in its hands");
    go_on.notify_one();
    assert_eq!(stopping.await.unwrap().started, 1);
    let state = served.gate.queue_state("q").await.unwrap().unwrap();
    assert_eq!((state.waiting, state.in_flight), (1, 0));
}
