//! Calls that carry a card: sent in the words of another API, and judged by it.

use super::upstream::{Upstream, status};
use super::{Pushed, settings, to};
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use std::sync::Arc;
use tollgate::lanes::act::REPORT_BYTES_MAX;
use tollgate::lanes::{End, Outcome as Came, QueueName, QueueSpec, What};
use tollgate::push::{Answered, Attempt, Manner, Preparing, PushSettings, Sent};
use tollgate::{Call, Outcome};

/// Takes 418 for success, reports what it saw, and tells of it by a call without a card.
#[derive(Debug)]
struct Teapot;

impl Manner for Teapot {
    fn ready<'a>(&'a self, _: &'a QueueName) -> Preparing<'a> {
        Box::pin(std::future::ready(()))
    }

    fn dress(&self, sent: &Sent<'_>, headers: &mut HeaderMap) -> Result<(), String> {
        if *sent.job.envelope.card == *b"unfit" {
            return Err("it cannot be sent".to_owned());
        }
        let card = HeaderValue::from_bytes(&sent.job.envelope.card);
        headers.insert("x-card", card.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn judge(&self, attempt: &Attempt<'_>, answered: &Answered) -> Outcome {
        let answer = match &answered.answer {
            Ok(answer) => answer,
            Err(why) => return Outcome::dead().report(why.as_bytes()),
        };
        if answer.status.as_u16() != 418 {
            return Outcome::dead().report(vec![7; REPORT_BYTES_MAX + 1]);
        }
        let sent = String::from_utf8_lossy(attempt.body);
        let report = format!("sent {sent}, got {} bytes", answer.body.len());
        let told = Call::new(attempt.job.lane.as_str()).body("told");
        Outcome::done().report(report).enqueue(attempt.queue.as_str(), told)
    }
}

fn mannered() -> PushSettings {
    PushSettings { manner: Some(Arc::new(Teapot)), ..settings() }
}

/// What came of attempts, with what was said about them.
fn told(history: &[What]) -> Vec<(Came, &[u8])> {
    let settled = |what| match what {
        &What::Settled { outcome, ref report, .. } => Some((outcome, &**report)),
        _ => None,
    };
    history.iter().filter_map(settled).collect()
}

#[tokio::test]
async fn a_call_with_a_card_is_sent_and_judged_in_the_manner_of_another_api() {
    let long = "x".repeat(100 << 10);
    let mut upstream = Upstream::new(move |_| status(418, &[], &long)).await;
    let pushed = Pushed::with(mannered()).await;
    pushed.queue("q", to(upstream.url("/")), QueueSpec::default()).await;
    let call = Call::new("a").body("tea").card(*b"one cup");
    let id = pushed.gate.enqueue("q", call).await.unwrap();
    let asked = upstream.next().await;
    assert_eq!((asked.header("x-card"), &*asked.body), (Some("one cup"), &b"tea"[..]));
    assert_eq!(["tollgate-call", "tollgate-attempt"].map(|name| asked.header(name)), [None; 2]);
    let history = pushed.ended(id).await;
    let said = &b"sent tea, got 102400 bytes"[..];
    assert_eq!(told(&history), [(Came::Done, said)], "all of the answer was read");
    let followed = upstream.next().await;
    assert_eq!(followed.body, b"told");
    pushed.close().await;
}

#[tokio::test]
async fn a_call_without_a_card_is_sent_and_judged_as_ever() {
    let mut upstream = Upstream::new(|_| status(200, &[], "")).await;
    let pushed = Pushed::with(mannered()).await;
    pushed.queue("q", to(upstream.url("/")), QueueSpec::default()).await;
    let id = pushed.gate.enqueue("q", Call::new("a").body("tea")).await.unwrap();
    let asked = upstream.next().await;
    assert_eq!((asked.header("x-card"), asked.header("tollgate-attempt")), (None, Some("1")));
    let history = pushed.ended(id).await;
    assert_eq!(told(&history)[0].0, Came::Done);
    assert_eq!(super::reports(&history)[0]["status"], 200);
    pushed.close().await;
}

#[tokio::test]
async fn a_report_that_is_too_long_and_a_request_that_cannot_be_made_settle_the_call_all_the_same()
{
    let upstream = Upstream::new(|_| status(200, &[], "")).await;
    let pushed = Pushed::with(mannered()).await;
    pushed.queue("q", to(upstream.url("/")), QueueSpec::default()).await;
    for (card, report) in [("coffee", ""), ("unfit", "it cannot be sent")] {
        let call = Call::new("a").body("tea").card(card.as_bytes());
        let id = pushed.gate.enqueue("q", call).await.unwrap();
        let history = pushed.ended(id).await;
        assert_eq!(told(&history), [(Came::Dead, report.as_bytes())], "{card}");
        let ends = history.iter().filter(|what| matches!(what, What::Ended { end: End::Dead, .. }));
        assert_eq!(ends.count(), 1);
    }
    pushed.close().await;
}
