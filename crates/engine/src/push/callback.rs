//! Callbacks: that a call is done or dead is told by another call, which is enqueued with the settlement.

use super::answer::{Answered, ReportRecord};
use super::destination::Destination;
use super::verdict::Becomes;
use crate::envelope::Delivery;
use crate::lanes::{Call, Job};
use serde::Serialize;
use tollgate_core::lanes::{Order, QueueSpec};

/// Where the callbacks of a queue wait: in a queue of that name with this behind it.
pub(super) const QUEUE_SUFFIX: &str = ":callbacks";
/// Callbacks of one lane that are in flight: nothing is told about their order.
const PARALLEL: u32 = 16;

#[derive(Serialize)]
struct CallbackRecord<'a> {
    call: String,
    queue: &'a str,
    lane: &'a str,
    attempt: u32,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    answer: ReportRecord<'a>,
}

/// The call that tells of this one, if it is to be told.
pub(super) fn callback(
    (queue, job): (&str, &Job),
    delivery: &Delivery,
    answered: &Answered,
    becomes: Becomes,
) -> Option<Call> {
    let (to, outcome) = match becomes {
        Becomes::Done => (delivery.callback.as_ref()?, "done"),
        Becomes::Dead => (delivery.failure_callback.as_ref()?, "dead"),
        Becomes::Again => return None,
    };
    let destination = delivery.destination.as_deref().map(Destination::parse);
    let record = CallbackRecord {
        call: job.id.0.to_string(),
        queue,
        lane: &job.lane,
        attempt: job.attempt,
        outcome,
        destination: destination.and_then(Result::ok).map(|it| it.to_string()),
        answer: answered.record(usize::MAX),
    };
    let body = serde_json::to_vec(&record).unwrap_or_default();
    let call = Call::new(job.lane.as_str()).body(body).delivery((**to).clone());
    Some(match &job.envelope.trace {
        Some(trace) => call.trace(trace.clone()),
        None => call,
    })
}

/// How a queue of callbacks is.
pub(super) fn queue_spec(delivery: Box<[u8]>) -> QueueSpec {
    QueueSpec { order: Order::Parallel(PARALLEL), delivery: Some(delivery), ..QueueSpec::default() }
}
