//! Upstreams that misbehave: each attempt is bounded and explained, and nobody else is affected.

use super::upstream::lying::Lying;
use super::upstream::{Upstream, status};
use super::{Pushed, reports, to};
use tollgate::lanes::{Backoff, End, QueueSpec, What};
use tollgate::{Call, Delivery, Limit, Span};

/// How long an answer may take: much longer than any of those that come.
const TIMEOUT: Span = Span::from_secs(1);
/// What a flood may send until it is cut off: what is read, and what the sockets hold.
const BYTES_SENT_MAX: usize = 4 << 20;

/// What is expected of a path.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// The call is done by an answer of this status.
    Done(u16),
    /// The same by 200, though the body ends too early, which is told with all these words.
    BrokenOff(&'static [&'static str]),
    /// It is dead after answers of this status.
    Status(u16),
    /// It is dead after errors with all these words.
    Error(&'static [&'static str]),
}

use Expected::{BrokenOff, Done, Error, Status};

const LATE: Expected = Error(&["no answer within 1s"]);
const PATHS: [(&str, Expected); 24] = [
    ("/silent", LATE),
    ("/drip-head", LATE),
    ("/drip-body", BrokenOff(&["did not end in time"])),
    ("/close", Error(&["closed before"])),
    ("/reset", Error(&["reset by peer"])),
    ("/reset-in-body", BrokenOff(&["reset by peer"])),
    ("/endless-head", Error(&["head is too large"])),
    ("/continue-storm", Error(&["without end"])),
    ("/gib", Done(200)),
    ("/endless-chunks", Done(200)),
    ("/loop", Status(302)),
    ("/garbage", Error(&["invalid HTTP version"])),
    ("/wrong-chunk", BrokenOff(&["broke off", "chunk size"])),
    ("/cut-chunk", BrokenOff(&["broke off", "end of file"])),
    ("/longer", BrokenOff(&["broke off", "end of file"])),
    ("/shorter", Done(200)),
    ("/two-lengths", Error(&["invalid content-length"])),
    ("/empty-with-body", Done(204)),
    ("/early-hints", Done(200)),
    ("/switching", Status(101)),
    ("/no-such-status", Status(999)),
    ("/status-of-four", Error(&["invalid HTTP status"])),
    ("/old", Done(200)),
    ("/cut-head", Error(&["closed before"])),
];

fn quick() -> QueueSpec {
    let backoff = Backoff::doubling(Span::from_millis(1), Span::from_millis(1));
    QueueSpec { backoff, ..QueueSpec::default() }
}

fn wrong(expected: Expected, history: &[What]) -> Option<String> {
    let reports = reports(history);
    let (end, attempts) = history.iter().find_map(|what| match what {
        What::Ended { end, attempts } => Some((*end, *attempts)),
        _ => None,
    })?;
    let is_dead = end == End::Dead && attempts == 2 && reports.len() == 2;
    let is_so = match expected {
        Done(status) => end == End::Done && attempts == 1 && reports[0]["status"] == status,
        BrokenOff(words) => {
            let error = reports[0]["error"].as_str().unwrap_or_default();
            end == End::Done
                && reports[0]["status"] == 200
                && words.iter().all(|word| error.contains(word))
        }
        Status(status) => is_dead && reports.iter().all(|report| report["status"] == status),
        Error(words) => {
            is_dead
                && reports.iter().all(|report| {
                    let error = report["error"].as_str().unwrap_or_default();
                    words.iter().all(|word| error.contains(word))
                })
        }
    };
    (!is_so).then(|| format!("{expected:?}: {end:?} after {attempts} attempts: {reports:?}"))
}

#[tokio::test]
async fn whatever_an_upstream_does_is_bounded_explained_and_counted() {
    let lying = Lying::new().await;
    let pushed = Pushed::new().await;
    let delivery = Delivery { retries: Some(1), timeout: Some(TIMEOUT), ..Delivery::default() };
    pushed.queue("q", delivery, quick()).await;
    let calls = PATHS.map(|(path, _)| Call::new(path).delivery(to(lying.url(path))));
    let ids = pushed.gate.enqueue_all("q", calls).await.unwrap();
    let mut faults = Vec::new();
    for ((path, expected), id) in PATHS.into_iter().zip(ids) {
        let history = pushed.ended(id).await;
        faults.extend(wrong(expected, &history).map(|fault| format!("{path}: {fault}")));
        let requests = if matches!(expected, Done(_) | BrokenOff(_)) { 1 } else { 2 };
        let seen = lying.seen(path);
        if seen.requests != requests || seen.bytes_sent > BYTES_SENT_MAX {
            faults.push(format!("{path}: {seen:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    pushed.close().await;
}

/// Calls of several lanes to a destination that answers.
fn good(upstream: &Upstream) -> impl Iterator<Item = Call> {
    (0..40).map(|n| Call::new(format!("good-{}", n % 8)).delivery(to(upstream.url("/"))))
}

/// Has calls delivered that go to where it answers, in a queue with others and in one of their own.
async fn deliver_good(pushed: &Pushed) {
    let upstream = Upstream::new(|_| status(200, &[], "")).await;
    pushed.queue("other", Delivery::default(), quick()).await;
    let mut ids = pushed.gate.enqueue_all("q", good(&upstream)).await.unwrap();
    ids.extend(pushed.gate.enqueue_all("other", good(&upstream)).await.unwrap());
    for id in ids {
        let history = pushed.ended(id).await;
        assert!(history.iter().any(|what| matches!(what, What::Ended { end: End::Done, .. })));
    }
}

#[tokio::test]
async fn while_some_hang_or_drip_calls_to_others_are_delivered() {
    let mut lying = Lying::new().await;
    let pushed = Pushed::new().await;
    let patient = Delivery { retries: Some(0), ..Delivery::default() };
    pushed.queue("q", patient, quick()).await;
    let paths = ["/silent", "/drip-head", "/drip-body"];
    let calls = (0..30)
        .map(|n| Call::new(format!("bad-{n}")).delivery(to(lying.url(paths[n % paths.len()]))));
    pushed.gate.enqueue_all("q", calls).await.unwrap();
    assert_eq!(lying.hang(30).await, 30);
    deliver_good(&pushed).await;
    assert_eq!(lying.hanging(), 30, "and those hang still");
    drop(lying);
    pushed.close().await;
}

#[tokio::test]
async fn a_destination_that_hangs_holds_its_share_and_no_more() {
    let mut lying = Lying::new().await;
    let pushed = Pushed::new().await;
    let patient = Delivery { retries: Some(0), ..Delivery::default() };
    pushed.queue("q", patient, quick()).await;
    pushed.gate.limit("tollgate:destinations", Limit::concurrency(4)).await.unwrap();
    let silent = lying.url("/silent");
    let calls = (0..30).map(|n| Call::new(format!("bad-{n}")).delivery(to(&*silent)));
    pushed.gate.enqueue_all("q", calls).await.unwrap();
    assert_eq!(lying.hang(4).await, 4);
    deliver_good(&pushed).await;
    assert_eq!((lying.hanging(), lying.seen("/silent").requests), (4, 4));
    drop(lying);
    pushed.close().await;
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let lying = Lying::new().await;
    let forbidden = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = forbidden.local_addr().unwrap().port();
    let pushed = Pushed::new().await;
    let path = format!("/away/{port}");
    let once = Delivery { retries: Some(0), ..to(lying.url(&path)) };
    pushed.queue("q", once, quick()).await;
    let id = pushed.gate.enqueue("q", Call::new("a")).await.unwrap();
    let report = &reports(&pushed.ended(id).await)[0];
    assert_eq!(report["status"], 302);
    assert_eq!(report["headers"]["location"], format!("http://127.0.0.2:{port}/"));
    assert_eq!(lying.seen(&path).requests, 1);
    let none =
        std::future::poll_fn(|context| std::task::Poll::Ready(forbidden.poll_accept(context)));
    assert!(none.await.is_pending(), "someone connected");
    pushed.close().await;
}
