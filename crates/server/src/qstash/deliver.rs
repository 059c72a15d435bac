//! How messages are delivered, and what answers mean for them.

use super::callback::Attempted;
use super::card::{Accepted, Card, millis};
use super::draft::{Draft, Pair, RETRY_DELAY_DEFAULT};
use super::face::Shared;
use super::letter::{Letter, Posting, Through};
use super::names::{Names, dead_id, message_id};
use super::shape::{Kept, Response};
use axum::http::header::USER_AGENT;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use tollgate::lanes::{Definition, LimitName, QueueName};
use tollgate::push::expression::Expression;
use tollgate::push::feedback::{self, PAUSE_MAX};
use tollgate::push::signature::{Delivery as Signed, Parties, jwt};
use tollgate::push::{Answer, Answered, Attempt, Manner, Preparing, Sent};
use tollgate::{Delivery, Now, Outcome, Span, Tollgate};

/// Who signs, as receivers know it.
const ISSUER: &str = "Upstash";
/// Who sends, as receivers know it.
const AGENT: HeaderValue = HeaderValue::from_static("Upstash-QStash");
/// The status of an answer after which a message is not tried again, if the answer says so.
const NOT_RETRIED: u16 = 489;
const NOT_RETRIED_SAID: &str = "upstash-nonretryable-error";

const MESSAGE_ID: HeaderName = HeaderName::from_static("upstash-message-id");
const RETRIED: HeaderName = HeaderName::from_static("upstash-retried");
const SIGNATURE: HeaderName = HeaderName::from_static("upstash-signature");
const CALLER_IP: HeaderName = HeaderName::from_static("upstash-caller-ip");
const GROUP: HeaderName = HeaderName::from_static("upstash-topic-name");
const SCHEDULE: HeaderName = HeaderName::from_static("upstash-schedule-id");

/// The manner of QStash.
#[derive(Debug)]
pub(crate) struct QstashManner {
    shared: Arc<Shared>,
    gate: Tollgate,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Becomes {
    Done,
    Again,
    Dead,
}

impl QstashManner {
    /// With what the face of a gate shares.
    pub(crate) fn new(shared: Arc<Shared>, gate: Tollgate) -> Self {
        Self { shared, gate }
    }
}

impl Manner for QstashManner {
    fn ready<'a>(&'a self, queue: &'a QueueName) -> Preparing<'a> {
        Box::pin(async move {
            let names = Names::around(queue).unwrap_or_default();
            // Made at another server, it is not known here yet.
            if let Err(fault) = self.shared.keys.get(&self.gate, &names).await {
                tracing::warn!(%queue, %fault, "the signing key of a message cannot be had");
            }
        })
    }

    fn dress(&self, sent: &Sent<'_>, headers: &mut HeaderMap) -> Result<(), String> {
        let card = read_card(&sent.job.envelope.card)?;
        let names = Names::around(sent.queue).unwrap_or_default();
        let keys = self.shared.keys.known(&names).ok_or("its namespace has no signing key")?;
        let id = message_id(sent.job.id);
        let parties = Parties { issuer: ISSUER, destination: sent.destination };
        let signed = Signed { id: &id, wall: sent.wall, body: sent.body };
        let token = jwt(&keys.signing, parties, signed);
        headers.insert(USER_AGENT, AGENT);
        headers.insert(MESSAGE_ID, value(&id)?);
        headers.insert(RETRIED, HeaderValue::from(retried(sent.job.tried)));
        headers.insert(SIGNATURE, value(&token)?);
        let told = [(CALLER_IP, &card.caller_ip), (GROUP, &card.group), (SCHEDULE, &card.schedule)];
        for (name, text) in told {
            if let Some(text) = text {
                headers.insert(name, value(text)?);
            }
        }
        Ok(())
    }

    fn judge(&self, attempt: &Attempt<'_>, answered: &Answered) -> Outcome {
        let Ok(card) = read_card(&attempt.job.envelope.card) else { return Outcome::retry() };
        let (outcome, becomes) = verdict(attempt, &card, answered);
        let outcome = outcome.report(answered.report(None));
        let told = told(attempt, &card, answered, becomes);
        let (mut outcome, mut define) = (outcome, Vec::new());
        for (place, draft, body) in told {
            match post(attempt, &card, place, (&draft, &body)) {
                Ok((letter, limits)) => {
                    define.extend(limits);
                    let Letter { call, .. } = letter;
                    outcome = outcome.enqueue_new(call);
                }
                // What was done is not done again for it.
                Err(why) => {
                    let call = attempt.job.id.0;
                    tracing::error!(call, why, "a callback cannot be enqueued");
                }
            }
        }
        outcome.define(define).standing_alone()
    }
}

/// What an answer means for a message.
fn verdict(attempt: &Attempt<'_>, card: &Card, answered: &Answered) -> (Outcome, Becomes) {
    let failures = attempt.job.tried.failures;
    let answer = match &answered.answer {
        Ok(answer) if answer.status.is_success() => return (Outcome::done(), Becomes::Done),
        Ok(answer) if is_final(answer) => return (Outcome::dead(), Becomes::Dead),
        Ok(answer) => Some(answer),
        Err(_) => None,
    };
    let has_feedback = card.keys.iter().any(|key| key.has_feedback);
    let asked = answer.filter(|_| has_feedback);
    if let Some(pause) = asked.and_then(|it| feedback::pause(it.status, &it.headers, attempt.wall))
    {
        let is_last = attempt.job.tried.limited.saturating_add(1) >= attempt.spec.limited_max;
        let becomes = if is_last { Becomes::Dead } else { Becomes::Again };
        return (Outcome::limited(pause.span.max(feedback::PAUSE_UNTOLD)), becomes);
    }
    if failures >= card.max_retries {
        return (Outcome::dead(), Becomes::Dead);
    }
    let told = answer.and_then(|it| feedback::come_again(&it.headers, attempt.wall));
    let after = told.filter(|span| *span <= PAUSE_MAX);
    let after = after.unwrap_or_else(|| backoff(attempt.delivery, failures));
    (Outcome::retry_after(after), Becomes::Again)
}

/// How long a message waits that was tried again so often.
fn backoff(delivery: &Delivery, failures: u32) -> Span {
    let text = delivery.retry_delay.as_deref().unwrap_or(RETRY_DELAY_DEFAULT);
    let expression = Expression::parse(text).or_else(|_| Expression::parse(RETRY_DELAY_DEFAULT));
    expression.map_or(PAUSE_MAX, |expression| expression.delay(failures))
}

fn is_final(answer: &Answer) -> bool {
    let said = answer.headers.get(NOT_RETRIED_SAID);
    answer.status.as_u16() == NOT_RETRIED
        && said.is_some_and(|said| said.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// The messages that tell of an attempt: where each waits, and what it is.
fn told(
    attempt: &Attempt<'_>,
    card: &Card,
    answered: &Answered,
    becomes: Becomes,
) -> Vec<(Through, Draft, Vec<u8>)> {
    let failed = attempt.delivery.failure_callback.as_deref();
    let failed = failed.filter(|_| becomes == Becomes::Dead);
    let asked = [
        (attempt.delivery.callback.as_deref(), &card.callback_headers),
        (failed, &card.failure_callback_headers),
    ];
    // The next message of a queue waits for what is told in the end; what is told before cannot wait
    // in the queue, for the message itself holds it.
    let place = match (&card.queue, becomes) {
        (Some(queue), Becomes::Done | Becomes::Dead) => Through::QueueFirst(queue.clone()),
        _ => Through::Flow,
    };
    let drafts = asked.into_iter().enumerate().filter_map(|(at, (callback, headers))| {
        let url = callback?.destination.as_deref()?;
        let draft = Draft::of_callback(url, headers, card.max_retries).ok()?;
        Some((place.clone(), draft, body(attempt, card, answered, at == 1)))
    });
    drafts.collect()
}

/// What is told of an attempt; with where it is among the dead, if that is what is told.
fn body(attempt: &Attempt<'_>, card: &Card, answered: &Answered, tells_death: bool) -> Vec<u8> {
    let id = message_id(attempt.job.id);
    let headers = answered.answer.as_ref().map(|answer| pairs(&answer.headers));
    let headers = headers.unwrap_or_default();
    let response = match &answered.answer {
        Ok(answer) => {
            Response { status: answer.status.as_u16(), headers: &headers, body: &answer.body }
        }
        Err(why) => Response { status: 0, headers: &[], body: why.as_bytes() },
    };
    let created_ms = attempt.job.envelope.accepted.map(millis);
    let (delivery, body) = (attempt.delivery, Some(attempt.body));
    let kept = Kept { id: &id, card, delivery, body, created_ms };
    let dead = tells_death.then(|| dead_id(kept.created_ms(), attempt.job.id));
    let retried = retried(attempt.job.tried);
    Attempted { kept, retried, response, dlq_id: dead.as_deref() }.body()
}

/// A message that tells of another, ready to be handed in, and the limits that come along.
fn post(
    attempt: &Attempt<'_>,
    card: &Card,
    place: Through,
    (draft, body): (&Draft, &[u8]),
) -> Result<(Letter, Vec<(LimitName, Definition)>), String> {
    let names = Names::around(attempt.queue).unwrap_or_default();
    let queue = match &place {
        Through::Flow => None,
        Through::Queue(queue) | Through::QueueFirst(queue) => Some(queue.clone()),
    };
    let accepted = Accepted {
        at: attempt.wall,
        caller_ip: card.caller_ip.clone(),
        queue,
        source: Some(message_id(attempt.job.id)),
        ..Accepted::default()
    };
    let now = Now::both(attempt.wall);
    let posting = Posting { names: &names, now, place, accepted, source: Some(card) };
    let mut letter = Letter::new(draft, body, posting).map_err(|fault| fault.to_string())?;
    let limits = std::mem::take(&mut letter.limits).into_iter().map(|(name, limit)| {
        let name = LimitName::new(&name).map_err(|error| error.to_string())?;
        Ok((name, Definition::new(limit).map_err(|error| error.to_string())?))
    });
    let limits = limits.collect::<Result<_, String>>()?;
    Ok((letter, limits))
}

fn read_card(bytes: &[u8]) -> Result<Card, String> {
    Card::from_bytes(bytes).map_err(|error| error.to_string())
}

/// How often it was tried again, before this attempt.
fn retried(tried: tollgate::lanes::Attempts) -> u32 {
    tried.failures.saturating_add(tried.crashes)
}

fn pairs(headers: &HeaderMap) -> Vec<Pair> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

/// A header's value: QStash's clients send what is not ASCII as it is.
fn value(text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|error| error.to_string())
}
