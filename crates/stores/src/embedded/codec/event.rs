//! Events as history keeps them. Their tags are for good, as those of effects are, and their own.

use super::call::{read_end, read_id, write_end};
use super::error::CodecError;
use super::input::{Input, newer};
use super::meter;
use super::output::Output;
use tollgate_core::lanes::{CallId, End, Event, Outcome, Payload, Waits, What};
use tollgate_core::{LaneName, LimitName, Now, QueueName, Timestamp};

const ENQUEUED: u8 = 1;
const STARTED: u8 = 2;
const SETTLED: u8 = 3;
const ENDED: u8 = 4;
/// A start that was settled, and its call ended with it.
const SETTLED_ENDED: u8 = 5;
const REVIVED: u8 = 6;
// The same with something said about the start, behind all else.
const SETTLED_REPORTED: u8 = 7;
const SETTLED_ENDED_REPORTED: u8 = 8;
/// That a call was accepted, with its envelope behind all else.
const ENQUEUED_IN_ENVELOPE: u8 = 9;
/// That a call was started, where that is told.
const STARTED_TOLD: u8 = 10;
/// That a call waits for a limit which nobody had defined.
const UNKNOWN: u8 = 11;
const THROTTLED: u8 = 12;

const DONE: u8 = 0;
const FAILED: u8 = 1;
const RELEASED: u8 = 2;
const DEAD: u8 = 3;
const LIMITED: u8 = 4;
const CRASHED: u8 = 5;
const CANCELLED: u8 = 6;

/// A name of one byte and its length, and a number.
const WAIT_BYTES_MIN: usize = 3;

/// An event, and the end that came with it if it [goes with it](ends_with).
pub(super) fn write(event: &Event, end: Option<End>, out: &mut Output<'_>) {
    let Event { at, call: CallId(id), queue, lane, what } = event;
    out.byte(match (what, end) {
        (What::Enqueued { payload }, _) if payload.envelope().is_empty() => ENQUEUED,
        (What::Enqueued { .. }, _) => ENQUEUED_IN_ENVELOPE,
        (What::Started { is_told: false, .. }, _) => STARTED,
        (What::Started { is_told: true, .. }, _) => STARTED_TOLD,
        (What::Settled { report, .. }, None) if report.is_empty() => SETTLED,
        (What::Settled { report, .. }, Some(_)) if report.is_empty() => SETTLED_ENDED,
        (What::Settled { .. }, None) => SETTLED_REPORTED,
        (What::Settled { .. }, Some(_)) => SETTLED_ENDED_REPORTED,
        (What::Ended { .. }, _) => ENDED,
        (What::Revived, _) => REVIVED,
        (What::Unknown { .. }, _) => UNKNOWN,
        (What::Throttled { .. }, _) => THROTTLED,
    });
    out.number(*id);
    out.now(*at);
    out.text(queue);
    out.text(lane);
    match what {
        What::Enqueued { payload } => {
            if !payload.envelope().is_empty() {
                out.bytes(payload.as_kept());
            }
        }
        What::Revived => {}
        What::Unknown { limit, partition, begins } => {
            meter::write_name(limit, partition.as_ref(), out);
            out.bytes(begins);
        }
        What::Throttled { limit, partition, wanted, granted } => {
            meter::write_name(limit, partition.as_ref(), out);
            out.number(*wanted);
            out.number(*granted);
        }
        What::Started { token, attempt, waits, is_told: _ } => {
            out.number(*token);
            out.number(u64::from(*attempt));
            write_waits(waits, out);
        }
        What::Settled { token, attempt, started, waits, outcome, report } => {
            out.number(*token);
            out.number(u64::from(*attempt));
            out.instant_from(at.at, started.at);
            out.instant_from(started.at, started.wall);
            write_waits(waits, out);
            write_outcome(at.at, *outcome, out);
            if let Some(end) = end {
                write_end(end, out);
            }
            if !report.is_empty() {
                out.bytes(report);
            }
        }
        What::Ended { end, attempts } => {
            write_end(*end, out);
            out.number(u64::from(*attempts));
        }
    }
}

/// Fields are read in the order in which they stand in the code, which is that of [`write`].
pub(super) fn read(input: &mut Input<'_>) -> Result<(Event, Option<Event>), CodecError> {
    let tag = input.byte()?;
    let (call, at) = (read_id(input)?, input.now()?);
    let (queue, lane) = (input.name(QueueName::new)?, input.name(LaneName::new)?);
    let mut ended = None;
    let what = match tag {
        ENQUEUED => What::Enqueued { payload: Payload::default() },
        ENQUEUED_IN_ENVELOPE => What::Enqueued { payload: read_payload(input)? },
        STARTED | STARTED_TOLD => {
            let (token, attempt) = (input.number()?, input.number_u32()?);
            let (waits, is_told) = (read_waits(input)?, tag == STARTED_TOLD);
            What::Started { token, attempt, waits, is_told }
        }
        SETTLED | SETTLED_ENDED | SETTLED_REPORTED | SETTLED_ENDED_REPORTED => {
            let (token, attempt) = (input.number()?, input.number_u32()?);
            let started = input.instant_from(at.at)?;
            let started = Now { at: started, wall: input.instant_from(started)? };
            let waits = read_waits(input)?;
            let outcome = read_outcome(at.at, input)?;
            if matches!(tag, SETTLED_ENDED | SETTLED_ENDED_REPORTED) {
                ended = Some(What::Ended { end: read_end(input)?, attempts: attempt });
            }
            let is_reported = matches!(tag, SETTLED_REPORTED | SETTLED_ENDED_REPORTED);
            let report = input.when(is_reported, Input::report)?.unwrap_or_default();
            What::Settled { token, attempt, started, waits, outcome, report }
        }
        ENDED => What::Ended { end: read_end(input)?, attempts: input.number_u32()? },
        REVIVED => What::Revived,
        UNKNOWN => {
            let (limit, partition) = meter::read_name(input)?;
            What::Unknown { limit, partition, begins: input.bytes()?.into() }
        }
        THROTTLED => {
            let (limit, partition) = meter::read_name(input)?;
            let (wanted, granted) = (input.number()?, input.number()?);
            What::Throttled { limit, partition, wanted, granted }
        }
        0 => return Err(input.damaged("no tag")),
        other => return Err(newer("tag", other)),
    };
    let event = Event { at, call, queue, lane, what };
    let ended = ended.map(|what| Event { what, ..event.clone() });
    Ok((event, ended))
}

/// How a call ended, if the second event is the end that came with what the first says.
pub(super) fn ends_with(settled: &Event, ended: &Event) -> Option<End> {
    let (What::Settled { attempt, .. }, What::Ended { end, attempts }) =
        (&settled.what, &ended.what)
    else {
        return None;
    };
    let is_same = settled.call == ended.call && settled.at == ended.at && attempt == attempts;
    is_same.then_some(*end)
}

fn write_waits(waits: &Waits, out: &mut Output<'_>) {
    out.list(waits, |out, (limit, span)| {
        out.text(limit);
        out.span(*span);
    });
}

fn read_waits(input: &mut Input<'_>) -> Result<Waits, CodecError> {
    let wait = |input: &mut Input<'_>| Ok((input.name(LimitName::new)?, input.span()?));
    input.list(WAIT_BYTES_MIN, wait).map(Vec::into_boxed_slice)
}

fn write_outcome(first: Timestamp, outcome: Outcome, out: &mut Output<'_>) {
    let (kind, instant) = match outcome {
        Outcome::Done => (DONE, None),
        Outcome::Failed { again_at } => (FAILED, Some(again_at)),
        Outcome::Released => (RELEASED, None),
        Outcome::Dead => (DEAD, None),
        Outcome::Limited { until } => (LIMITED, Some(until)),
        Outcome::Crashed => (CRASHED, None),
        Outcome::Cancelled => (CANCELLED, None),
    };
    out.byte(kind);
    if let Some(instant) = instant {
        out.instant_from(first, instant);
    }
}

fn read_outcome(first: Timestamp, input: &mut Input<'_>) -> Result<Outcome, CodecError> {
    Ok(match input.byte()? {
        DONE => Outcome::Done,
        FAILED => Outcome::Failed { again_at: input.instant_from(first)? },
        RELEASED => Outcome::Released,
        DEAD => Outcome::Dead,
        LIMITED => Outcome::Limited { until: input.instant_from(first)? },
        CRASHED => Outcome::Crashed,
        CANCELLED => Outcome::Cancelled,
        other => return Err(newer("outcome", other)),
    })
}

fn read_payload(input: &mut Input<'_>) -> Result<Payload, CodecError> {
    let payload = Payload::from_kept(input.bytes()?);
    let payload = payload.filter(|payload| !payload.envelope().is_empty());
    payload.ok_or_else(|| input.damaged("no envelope where there is one"))
}
