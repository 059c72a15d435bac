//! Events: a life as it is told, and as it is found later.

use super::*;
use std::pin::pin;
use std::task::{Context, Waker};
use tollgate::lanes::{End, Event, HistoryQuery, Outcome, Payload, QueueName, What};
use tollgate::{Builder, Events, Span, Told};

/// The next event, with none missed before it.
async fn hears(events: &mut Events) -> Event {
    match patiently(events.next()).await.unwrap() {
        Told::Event(_, event) => event,
        Told::Missed => panic!("nothing was missed"),
    }
}

/// Runs a worker that does the same with each call.
fn run(gate: &Tollgate, outcome: fn() -> tollgate::Outcome) -> Running {
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = gate.worker("q").until(async move { drop(stopped.await) });
    Running { stop, task: tokio::spawn(worker.run(move |_| std::future::ready(outcome()))) }
}

/// Makes the one call that waits.
async fn attempt(gate: &Tollgate, outcome: tollgate::Outcome) {
    let claimed = gate.claim("q", 1, Span::ZERO).await.unwrap();
    let _ = gate.settle(claimed[0].started.lease, outcome).await.unwrap();
}

#[tokio::test]
async fn a_life_is_told_in_order_with_what_it_waited_for() {
    let opened = Opened::with(Limit::per_second(1)).await;
    let mut events = opened.gate().events(None);
    events.place().await.unwrap();
    let ids = opened.gate().enqueue_all("q", ["x", "y"].map(|b| paying("a", b))).await.unwrap();
    let running = run(opened.gate(), tollgate::Outcome::done);
    opened.is_so(ids[1], |found| matches!(found.reasons[..], [Reason::Meter { .. }])).await;
    // A wait is counted from when someone asked for it in vain.
    assert_eq!(opened.gate().claim("q", 1, Span::ZERO).await.unwrap(), []);
    opened.clock.advance(Span::from_secs(1));
    opened.ends(ids[1]).await;
    let _ = running.stop().await;
    let mut told = Vec::new();
    for _ in 0..9 {
        let event = hears(&mut events).await;
        told.push((event.call, event.what));
    }
    let second = told.iter().filter(|(call, _)| *call == ids[1]).map(|(_, what)| what);
    let [
        What::Enqueued { .. },
        What::Throttled { wanted: 1, granted: 0, .. },
        What::Started { waits, .. },
        What::Settled { outcome, .. },
        ended,
    ] = second.collect::<Vec<_>>()[..]
    else {
        panic!("{told:?}")
    };
    let (waits, outcome) = (waits.iter().map(|(limit, wait)| (limit.as_str(), *wait)), *outcome);
    assert_eq!(waits.collect::<Vec<_>>(), [("l", Span::from_secs(1))]);
    assert_eq!((outcome, ended), (Outcome::Done, &What::Ended { end: End::Done, attempts: 1 }));
    assert!(told.is_sorted_by_key(|(call, what)| (!matches!(what, What::Enqueued { .. }), *call)));
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_no_event() {
    let opened = Opened::with(Limit::per_second(1)).await;
    let mut events = opened.gate().events(None);
    events.place().await.unwrap();
    {
        let mut waiting = pin!(events.next());
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    let id = opened.gate().enqueue("q", call("a", "x")).await.unwrap();
    let told = hears(&mut events).await;
    assert_eq!((told.call, told.what), (id, What::Enqueued { payload: Payload::default() }));
}

#[tokio::test]
async fn history_is_found_by_id_and_by_filter_after_a_restart() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let done = opened.gate().enqueue("q", call("a", "x")).await.unwrap();
    attempt(opened.gate(), tollgate::Outcome::done()).await;
    let dead = opened.gate().enqueue("q", call("b", "y")).await.unwrap();
    attempt(opened.gate(), tollgate::Outcome::dead()).await;
    assert!(opened.gate().cancel(dead).await.unwrap());
    let place = opened.gate().events(None).place().await.unwrap();
    opened.clock.advance(Span::from_secs(1));
    let opened = opened.reopen().await;
    let gate = opened.gate();
    let ends = |events: &[Event]| events.iter().filter_map(Event::end).collect::<Vec<_>>();
    assert_eq!(ends(&gate.history_of(done).await.unwrap()), [End::Done]);
    assert_eq!(ends(&gate.history_of(dead).await.unwrap()), [End::Dead, End::Cancelled]);
    let queue = Some(QueueName::new("q").unwrap());
    let query = HistoryQuery { queue, end: Some(End::Dead), most: 1, ..HistoryQuery::default() };
    let page = gate.history(query).await.unwrap();
    assert_eq!(page.events.iter().map(|event| event.call).collect::<Vec<_>>(), [dead]);
    let mut events = gate.events(Some(place));
    assert_eq!(patiently(events.next()).await.unwrap(), Told::Missed, "it was another run");
}

#[tokio::test]
async fn a_gate_that_is_to_keep_no_history_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let open = |builder: Builder| builder.open(folder.path());
    let gate = open(Tollgate::builder().history(Span::from_hours(1), 0)).await.unwrap();
    gate.queue("q", QueueSpec::default()).await.unwrap();
    let id = gate.enqueue("q", call("a", "x")).await.unwrap();
    attempt(&gate, tollgate::Outcome::done()).await;
    assert_eq!(gate.history_of(id).await.unwrap(), []);
    assert!(Tollgate::memory().events(None).next().await.is_err(), "there are no calls");
}

#[tokio::test]
async fn who_hears_that_a_call_ended_finds_it_in_the_history() {
    let opened = Opened::with(Limit::per_second(1)).await;
    let gate = opened.gate();
    let mut events = gate.events(None);
    events.place().await.unwrap();
    let running = run(gate, tollgate::Outcome::done);
    // Often: those who tell are on another thread, and an order that is wrong shows now and then.
    for _ in 0..1_000 {
        let id = gate.enqueue("q", call("a", "x")).await.unwrap();
        while !matches!(hears(&mut events).await.what, What::Ended { .. }) {}
        let history = gate.history_of(id).await.unwrap();
        assert!(history.iter().any(|event| event.end().is_some()), "{history:?}");
    }
    let _ = running.stop().await;
}
