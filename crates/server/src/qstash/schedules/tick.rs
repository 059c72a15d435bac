//! Ticks of schedules to URL groups: each becomes one message for each endpoint that the group has then.
//!
//! Such a tick is a call that a worker of the server's own takes, for who gets its messages is known only
//! when it comes. The messages are handed in with its settlement, and so once.

use crate::clock;
use crate::qstash::card::{Card, millis};
use crate::qstash::draft::{Draft, Start};
use crate::qstash::error::Fault;
use crate::qstash::face::Shared;
use crate::qstash::groups::{self, GroupRecord};
use crate::qstash::letter::{Letter, Posting};
use crate::qstash::names::{GROUPS, Names};
use crate::qstash::publish::Room;
use crate::qstash::remembered::Message;
use crate::shutdown::Shutdown;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tollgate::lanes::{Backoff, NewCall, Order, QueueName, QueueSpec};
use tollgate::{Call, Delivery, Error, Job, Now, Outcome, Priority, Span, Timestamp, Tollgate};

/// How many ticks are seen to at a time.
const TICKS_AT_ONCE: usize = 16;
/// How often a tick is tried whose messages cannot be handed in: for a day or so.
const FAILURES_MAX: u32 = 30;
const AGAIN: Span = Span::from_secs(1);
const AGAIN_MAX: Span = Span::from_hours(1);
/// How long ticks are left alone once they could not be seen to.
const REST: Duration = Duration::from_secs(1);
/// How often it is looked for the queue that another server may have made.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// What a tick carries: the message, but for its card.
#[derive(Serialize, Deserialize)]
pub(super) struct TickRecord {
    /// What stands in front of the names that it means.
    prefix: String,
    /// The group.
    pub(super) group: String,
    priority: u8,
    delivery: String,
    body: String,
}

impl TickRecord {
    /// The call that carries a message to a group.
    pub(super) fn call(
        draft: &Draft,
        body: &[u8],
        (names, group, card): (&Names, &str, Card),
    ) -> Result<NewCall, Fault> {
        let delivery = draft.delivery.to_bytes().map_err(Fault::unavailable)?;
        let record = Self {
            prefix: names.prefix().to_owned(),
            group: group.to_owned(),
            priority: draft.priority.level(),
            delivery: STANDARD_NO_PAD.encode(delivery),
            body: STANDARD_NO_PAD.encode(body),
        };
        let bytes = serde_json::to_vec(&record).map_err(Fault::unavailable)?;
        let card = card.to_bytes(&draft.delivery)?;
        let queue = QueueName::new(GROUPS).map_err(Fault::invalid)?;
        let call = Call::new(names.inner(group)).body(bytes).card(card);
        call.into_new(queue, Now::both(Timestamp::default())).map_err(Fault::invalid)
    }

    /// From what a call carries.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// How the message is delivered.
    pub(super) fn delivery(&self) -> Option<Delivery> {
        Delivery::from_bytes(&STANDARD_NO_PAD.decode(&self.delivery).ok()?).ok()
    }

    /// What is sent.
    pub(super) fn body(&self) -> Option<Vec<u8>> {
        STANDARD_NO_PAD.decode(&self.body).ok()
    }
}

/// The queue of ticks.
pub(super) fn spec() -> QueueSpec {
    QueueSpec {
        order: Order::Parallel(u32::try_from(TICKS_AT_ONCE).unwrap_or(1)),
        failures_max: FAILURES_MAX,
        backoff: Backoff::doubling(AGAIN, AGAIN_MAX),
        ..QueueSpec::default()
    }
}

/// Sees to ticks until the server ends. Waits until there is somebody who schedules to a group.
pub(crate) async fn run(gate: Tollgate, shared: Arc<Shared>, shutdown: Shutdown) {
    loop {
        let mut made = pin!(shared.groups_made.notified());
        made.as_mut().enable();
        let there = gate.queue_state(GROUPS).await;
        if matches!(there, Ok(None)) {
            tokio::select! {
                () = shutdown.begun() => return,
                () = made => continue,
                // Another server may have made it.
                () = clock::rest(LOOK_AGAIN) => continue,
            }
        }
        let worked = match there {
            Ok(_) => work(&gate, &shutdown).await,
            Err(error) => Err(error),
        };
        let Err(error) = worked else { return };
        tracing::error!(%error, "ticks of schedules to groups are not seen to: tried again");
        if timeout(REST, shutdown.begun()).await.is_ok() {
            return;
        }
    }
}

async fn work(gate: &Tollgate, shutdown: &Shutdown) -> Result<(), Error> {
    let (publishing, shutdown) = (gate.clone(), shutdown.clone());
    let stop = async move { shutdown.begun().await };
    let worker = gate.worker(GROUPS).concurrency(TICKS_AT_ONCE).until(stop);
    let handler = move |job: Job| {
        let gate = publishing.clone();
        async move { publish(&gate, &job).await }
    };
    worker.run(handler).await.map(|_| ())
}

/// Publishes a tick to each endpoint of its group.
async fn publish(gate: &Tollgate, job: &Job) -> Outcome {
    match messages(gate, job).await {
        Ok(outcome) => outcome,
        Err(fault) => {
            let call = job.id.0;
            tracing::warn!(call, %fault, "a tick of a schedule to a group is tried again");
            Outcome::retry().report(fault.body())
        }
    }
}

async fn messages(gate: &Tollgate, job: &Job) -> Result<Outcome, Fault> {
    let unreadable = || Fault::invalid("a tick that cannot be read");
    let card = Card::from_bytes(&job.envelope.card)?;
    let record = TickRecord::read(&job.body).ok_or_else(unreadable)?;
    let (delivery, body) = record.delivery().zip(record.body()).ok_or_else(unreadable)?;
    let names = Names::behind(&record.prefix);
    let Some(group) = group(gate, &names, &record.group).await? else {
        let fault = Fault::missing(format!("there is no URL group {}", record.group));
        return Ok(Outcome::done().report(fault.body()));
    };
    let tick = match job.envelope.accepted {
        Some(tick) => tick,
        None => gate.now().await.map_err(Fault::unavailable)?.wall,
    };
    let message = Message { card, delivery, created_ms: Some(millis(tick)), body: None };
    let mut draft = message.draft(Priority::new(record.priority.into()).unwrap_or_default());
    if let Some(delay) = message.card.delay_ms {
        draft.start = Start::After(Span::from_millis(delay));
    }
    if let Err(fault) = Room::default().take(group.endpoints.len(), body.len()) {
        // It will be too much each time.
        tracing::error!(group = record.group, %fault, "a tick of a schedule to a group sends nothing");
        return Ok(Outcome::dead().report(fault.body()));
    }
    let (mut outcome, mut limits) = (Outcome::done(), Vec::new());
    for endpoint in group.endpoints {
        let mut accepted = message.accepted_again(tick);
        accepted.group = Some((record.group.clone(), endpoint.name));
        let (now, place) = (Now::both(tick), message.place());
        let posting = Posting { names: &names, now, place, accepted, source: None };
        let letter = Letter::new(&draft.to(&endpoint.url), &body, posting)?;
        limits.extend(letter.limits);
        outcome = outcome.enqueue_new(letter.call);
    }
    let define = gate.coming_along(Some("schedule"), limits).await.map_err(Fault::unavailable)?;
    Ok(outcome.define(define))
}

async fn group(gate: &Tollgate, names: &Names, name: &str) -> Result<Option<GroupRecord>, Fault> {
    let record = gate.record(&groups::key(names, name)).await.map_err(Fault::unavailable)?;
    record.map(|it| serde_json::from_slice(&it.bytes).map_err(Fault::unavailable)).transpose()
}
