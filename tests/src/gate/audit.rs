//! The audit log: what was changed, by whom, and what was before.

use tollgate::lanes::{Key, QueueSpec, Revision, Write};
use tollgate::{Altered, Limit, Tollgate};

const SPAN: tollgate::Span = tollgate::Span::from_secs(7);

/// What is told of each change, the newest first: who, of what, and whether it was and is there.
async fn told(gate: &Tollgate) -> Vec<(String, String, [bool; 2])> {
    let changes = gate.audit(None, 100).await.unwrap().into_iter();
    let told = changes.map(|change| {
        let name = change.what.name().to_owned();
        let (what, was_and_is) = match &change.what {
            Altered::Limit { before, after, .. } => ("limit", [before, after].map(Option::is_some)),
            Altered::Pin { before, after, .. } => ("pin", [before, after].map(Option::is_some)),
            Altered::Override { before, after, .. } => {
                ("override", [before, after].map(Option::is_some))
            }
            Altered::Queue { before, after, .. } => ("queue", [before, after].map(Option::is_some)),
            other => panic!("{other:?}"),
        };
        (change.who, format!("{what} {name}"), was_and_is)
    });
    told.collect()
}

fn row(who: &str, what: &str, was_and_is: [bool; 2]) -> (String, String, [bool; 2]) {
    (who.to_owned(), what.to_owned(), was_and_is)
}

#[tokio::test]
async fn every_change_is_in_the_audit_log_and_stays_there() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Tollgate::open(folder.path()).await.unwrap();
    gate.limit_as("ana", "l", Limit::per_hour(1)).await.unwrap();
    // Nothing changes, and nothing is told.
    gate.limit_as("ben", "l", Limit::per_hour(1)).await.unwrap();
    gate.pin("ben", "l", Some(Limit::per_hour(2))).await.unwrap();
    gate.override_partition_as("cem", "l", "big", Some(Limit::per_hour(3))).await.unwrap();
    gate.override_partition_as("cem", "l", "big", None).await.unwrap();
    gate.queue_as("dia", "q", QueueSpec::default()).await.unwrap();
    gate.queue_as("eva", "q", QueueSpec::default()).await.unwrap();
    gate.queue_as("eva", "q", QueueSpec { lease: SPAN, ..QueueSpec::default() }).await.unwrap();
    gate.remove("ana", "l").await.unwrap();
    let all = [
        row("ana", "limit l", [true, false]),
        row("eva", "queue q", [true, true]),
        row("dia", "queue q", [false, true]),
        row("cem", "override l", [true, false]),
        row("cem", "override l", [false, true]),
        row("ben", "pin l", [false, true]),
        row("ana", "limit l", [false, true]),
    ];
    assert_eq!(told(&gate).await, all);
    gate.shut_down().await;
    let gate = Tollgate::open(folder.path()).await.unwrap();
    assert_eq!(told(&gate).await, all);
    gate.limit_as("ana", "m", Limit::per_hour(1)).await.unwrap();
    assert_eq!(told(&gate).await[0], row("ana", "limit m", [false, true]));
}

#[tokio::test]
async fn a_change_that_is_refused_is_not_in_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Tollgate::open(folder.path()).await.unwrap();
    gate.limit("l", Limit::per_hour(0)).await.unwrap_err();
    gate.pin("ana", "l", None).await.unwrap_err();
    gate.queue("q", QueueSpec { depth_max: 0, ..QueueSpec::default() }).await.unwrap_err();
    assert_eq!(told(&gate).await, []);
}

#[tokio::test]
async fn pages_of_the_audit_log_go_back() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Tollgate::open(folder.path()).await.unwrap();
    for limit in 1..=5 {
        gate.limit("l", Limit::per_hour(limit)).await.unwrap();
    }
    let (mut before, mut numbers) = (None, Vec::new());
    loop {
        let page = gate.audit(before, 2).await.unwrap();
        numbers.extend(page.iter().map(|change| change.number));
        before = page.last().map(|change| change.number);
        if page.len() < 2 {
            break;
        }
    }
    assert_eq!(numbers, [4, 3, 2, 1, 0]);
}

#[tokio::test]
async fn the_audit_log_keeps_the_latest_ten_thousand() {
    let folder = tempfile::tempdir().unwrap();
    let gate = Tollgate::open(folder.path()).await.unwrap();
    gate.limit("l", Limit::per_hour(1)).await.unwrap();
    let key = |number: u64| Key::new(&format!("tollgate/audit/{:020}", u64::MAX - number)).unwrap();
    let first = gate.record(&key(0)).await.unwrap().unwrap();
    // As if 9,999 more had been made.
    let newest = Write { key: key(9_999), expected: Revision(0), bytes: Some(first.bytes) };
    let _ = gate.keep(newest).await.unwrap();
    gate.shut_down().await;
    let gate = Tollgate::open(folder.path()).await.unwrap();
    gate.limit("l", Limit::per_hour(2)).await.unwrap();
    let numbers = gate.audit(None, 100).await.unwrap().into_iter().map(|change| change.number);
    assert_eq!(numbers.collect::<Vec<_>>(), [10_000, 9_999]);
}
