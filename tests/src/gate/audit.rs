//! The audit log: what was changed, by whom, and what was before.

use std::path::Path;
use tollgate::lanes::{
    Key, LaneName, LimitName, MeterName, Partition, QueueName, QueueSpec, Revision, Scope, Write,
};
use tollgate::{Altered, Limit, Operation, Tollgate};

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
            Altered::Operated(operation) => (operation.action(), [true; 2]),
            other => panic!("{other:?}"),
        };
        (change.who, format!("{what} {name}"), was_and_is)
    });
    told.collect()
}

/// What was done, the oldest first.
async fn operated(gate: &Tollgate) -> Vec<(String, Operation)> {
    let changes = gate.audit(None, 100).await.unwrap().into_iter().rev();
    let operated = changes.filter_map(|change| match change.what {
        Altered::Operated(operation) => Some((change.who, operation)),
        _ => None,
    });
    operated.collect()
}

/// A gate with the limit `l` and the queue `q`.
async fn opened(folder: &Path) -> Tollgate {
    let gate = Tollgate::open(folder).await.unwrap();
    gate.limit("l", Limit::per_hour(1)).await.unwrap();
    gate.queue("q", QueueSpec::default()).await.unwrap();
    gate
}

fn meter() -> MeterName {
    (LimitName::new("l").unwrap(), Some(Partition::new("p").unwrap()))
}

/// A limit, a queue and a lane of which nothing is known yet.
fn scopes() -> [Scope; 3] {
    let queue = || QueueName::new("q").unwrap();
    let lane = Scope::Lane(queue(), LaneName::new("a").unwrap());
    [Scope::Limit(meter().0), Scope::Queue(queue()), lane]
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

#[tokio::test]
async fn every_operation_is_in_the_audit_log_and_stays_there() {
    let folder = tempfile::tempdir().unwrap();
    let gate = opened(folder.path()).await;
    let pauses = scopes().map(Operation::Pause).into_iter();
    let resumes = scopes().map(Operation::Resume).into_iter();
    let close = Operation::Close { meter: meter(), span: SPAN, reason: "maintenance".to_owned() };
    let at_meter = [close, Operation::Reset(meter()), Operation::Reopen(meter())];
    let all: Vec<_> = pauses.chain(resumes).chain(at_meter).collect();
    for operation in &all {
        gate.operate("ana", operation.clone()).await.unwrap();
    }
    let told: Vec<_> = all.into_iter().map(|operation| ("ana".to_owned(), operation)).collect();
    assert_eq!(operated(&gate).await, told);
    gate.shut_down().await;
    let gate = Tollgate::open(folder.path()).await.unwrap();
    assert_eq!(operated(&gate).await, told);
}

#[tokio::test]
async fn an_operation_that_changes_nothing_is_not_in_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let gate = opened(folder.path()).await;
    for scope in scopes() {
        gate.operate("ana", Operation::Resume(scope.clone())).await.unwrap();
        gate.operate("ana", Operation::Pause(scope.clone())).await.unwrap();
        gate.operate("ben", Operation::Pause(scope)).await.unwrap();
    }
    gate.operate("ana", Operation::Reopen(meter())).await.unwrap();
    // It stays closed for as long as upstreams asked for.
    gate.close("l", Some("p"), tollgate::Span::from_hours(1), "429").await.unwrap();
    let shorter = Operation::Close { meter: meter(), span: SPAN, reason: String::new() };
    gate.operate("ana", shorter).await.unwrap();
    let nowhere = QueueName::new("nowhere").unwrap();
    gate.operate("ana", Operation::Pause(Scope::Queue(nowhere))).await.unwrap();
    let unknown = LimitName::new("unknown").unwrap();
    gate.operate("ana", Operation::Reset((unknown, None))).await.unwrap_err();
    let pauses = scopes().map(|scope| ("ana".to_owned(), Operation::Pause(scope)));
    assert_eq!(operated(&gate).await, pauses);
}

/// What a program does as an upstream answers would push all else out of the log.
#[tokio::test]
async fn what_upstreams_ask_for_is_not_in_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let gate = opened(folder.path()).await;
    gate.close("l", None, SPAN, "429").await.unwrap();
    gate.reopen("l", None).await.unwrap();
    assert_eq!(operated(&gate).await, []);
    gate.reset("l", None).await.unwrap();
    assert_eq!(operated(&gate).await.len(), 1);
}
