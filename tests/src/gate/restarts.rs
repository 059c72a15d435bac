//! What lasts: calls, limits and what was spent, over the end of a process.

use super::*;
use tollgate::lanes::{CallId, Configure, Definition, LimitName, Meters, Partition};
use tollgate::store::Store;
use tollgate::{Clock, Span};

#[tokio::test]
async fn calls_wait_in_their_order_over_a_restart() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let ids = opened.gate().enqueue_all("q", ["x", "y"].map(|body| call("a", body))).await.unwrap();
    let opened = opened.reopen().await;
    for (id, body) in ids.iter().zip(["x", "y"]) {
        let claimed = opened.gate().claim("q", 10, Span::ZERO).await.unwrap();
        let [claimed] = &claimed[..] else { panic!("one at a time") };
        assert_eq!((claimed.started.lease.call, claimed.payload.body()), (*id, body.as_bytes()));
        let done = tollgate::Outcome::done();
        let _ = opened.gate().settle(claimed.started.lease, done).await.unwrap();
    }
}

#[tokio::test]
async fn what_was_spent_stays_spent_over_a_restart() {
    let opened = Opened::with(Limit::per_hour(2)).await;
    let _ = opened.gate().consume(toll("l", "p")).await.unwrap();
    let _ = opened.gate().consume(toll("l", "p")).await.unwrap();
    let opened = opened.reopen().await;
    assert!(opened.gate().consume(toll("l", "p")).await.is_err());
    opened.clock.advance(Span::from_minutes(30));
    assert!(opened.gate().consume(toll("l", "p")).await.is_ok());
}

#[tokio::test]
async fn limits_their_pins_and_their_history_last() {
    let opened = Opened::with(Limit::per_hour(2)).await;
    let gate = opened.gate();
    gate.limit_as("ann", "l", Limit::per_hour(5)).await.unwrap();
    gate.pin("bob", "l", Some(Limit::per_hour(1))).await.unwrap();
    gate.override_partition("l", "big", Some(Limit::per_hour(100))).await.unwrap();
    let before = gate.limit_state("l").await.unwrap().unwrap();
    let opened = opened.reopen().await;
    let gate = opened.gate();
    let state = gate.limit_state("l").await.unwrap().unwrap();
    assert_eq!(state, before);
    assert_eq!(state.defined, Limit::per_hour(5));
    assert_eq!(state.pinned, Some(Limit::per_hour(1)));
    let who: Vec<_> = state.history.iter().map(|change| change.who.as_str()).collect();
    assert_eq!(who, ["library", "ann", "bob"]);
    assert_eq!(gate.meter("l", Some("p")).await.unwrap().standing.limit, 1);
    assert_eq!(gate.meter("l", Some("big")).await.unwrap().standing.limit, 100);
    assert_eq!(gate.limits().await.unwrap().len(), 1);
    gate.remove("ann", "l").await.unwrap();
    assert_eq!(gate.limit_state("l").await.unwrap(), None);
}

#[tokio::test]
async fn a_limit_is_in_force_as_it_was_written_down_by_an_earlier_version() {
    let mut opened = Opened::with(Limit::per_hour(2)).await;
    let gate = opened.gate.take().unwrap();
    gate.override_partition("l", "big", Some(Limit::per_hour(100))).await.unwrap();
    patiently(gate.shut_down()).await;
    let clock = opened.clock.clone();
    let now = std::sync::Arc::new(move || clock.both());
    let store = Store::open(opened.folder.path(), now).unwrap().store;
    let limit = LimitName::new("l").unwrap();
    let definition = Some(Definition::new(Limit::per_hour(1)).unwrap());
    let overrides = vec![(limit.clone(), Partition::new("big").unwrap(), None)];
    let cut_short = Configure { overrides, ..Configure::limit(limit, definition) };
    store.configure(cut_short).await.unwrap().unwrap();
    drop(store);
    let opened = opened.reopen().await;
    assert_eq!(opened.gate().meter("l", None).await.unwrap().standing.limit, 2);
    assert_eq!(opened.gate().meter("l", Some("big")).await.unwrap().standing.limit, 100);
}

#[tokio::test]
async fn a_second_process_is_told_who_has_the_folder() {
    let opened = Opened::new().await;
    let second = Tollgate::open(opened.folder.path()).await.unwrap_err().to_string();
    assert!(second.contains("in use"), "{second}");
}

#[tokio::test]
async fn a_gate_in_memory_says_where_calls_can_be_kept() {
    let gate = Tollgate::memory();
    let error = gate.enqueue("q", call("a", "x")).await.unwrap_err().to_string();
    assert!(error.contains("Tollgate::open"), "{error}");
    let worker = gate.worker("q").concurrency(2).run(async |_| ());
    assert!(worker.await.is_err());
    assert!(gate.explain(CallId(1)).await.is_err());
}

#[tokio::test]
async fn a_limit_that_was_removed_takes_its_overrides_with_it() {
    let opened = Opened::with(Limit::per_hour(2)).await;
    let gate = opened.gate();
    gate.override_partition("l", "big", Some(Limit::per_hour(100))).await.unwrap();
    assert_eq!(gate.meter("l", Some("big")).await.unwrap().standing.limit, 100);
    gate.remove("ann", "l").await.unwrap();
    gate.limit("l", Limit::per_hour(3)).await.unwrap();
    assert_eq!(gate.meter("l", Some("big")).await.unwrap().standing.limit, 3);
}

#[tokio::test]
async fn records_of_tollgates_own_are_not_the_callers() {
    let opened = Opened::new().await;
    let key = tollgate::lanes::Key::new("tollgate/limit/x").unwrap();
    let bytes = Some(b"not a limit"[..].into());
    let write = vec![tollgate::lanes::Write { key, expected: tollgate::lanes::Revision(0), bytes }];
    let act = tollgate::lanes::Act { write, ..tollgate::lanes::Act::default() };
    let refused = opened.gate().act(act).await.unwrap_err().to_string();
    assert!(refused.contains("tollgate/"), "{refused}");
}
