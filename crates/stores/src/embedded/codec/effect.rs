//! Effects: the tag of each and its fields, in one order for writing and for reading.

use super::error::CodecError;
use super::input::{Input, newer};
use super::meter::{NAME_BYTES_MIN, OWED_BYTES_MIN};
use super::output::Output;
use super::{Form, call, kept, limit, meter, queue, tag};
use tollgate_core::lanes::{CallId, Effect, Lease, LineWaits, Revision};
use tollgate_core::{Key, LaneName, LimitName, Now, Partition, QueueName, Timestamp};

#[expect(clippy::too_many_lines, reason = "one arm for each effect, and nothing else")]
pub(super) fn write(effect: &Effect, out: &mut Output<'_>) {
    match effect {
        Effect::LimitDefined { name, definition, now } => {
            out.byte(tag::LIMIT_DEFINED);
            out.flags([definition.is_some()]);
            out.text(name);
            out.now(*now);
            if let Some(definition) = definition {
                limit::write(definition, out);
            }
        }
        Effect::LimitCame { name, definition, now } => {
            out.byte(tag::LIMIT_CAME);
            out.text(name);
            out.now(*now);
            limit::write(definition, out);
        }
        Effect::LimitWent(name) => {
            out.byte(tag::LIMIT_WENT);
            out.text(name);
        }
        Effect::PartitionDefined { limit, partition, definition, now } => {
            out.byte(tag::PARTITION_DEFINED);
            out.flags([definition.is_some()]);
            out.text(limit);
            out.text(partition);
            out.now(*now);
            if let Some(definition) = definition {
                limit::write(definition, out);
            }
        }
        Effect::ClosedBy { meter: (limit, partition), until, reason, now } => {
            out.byte(tag::CLOSED_BY);
            meter::write_name(limit, partition.as_ref(), out);
            out.now(*now);
            out.instant_from(now.at, *until);
            out.text(reason);
        }
        Effect::Allowed { meter: (limit, partition), units } => {
            out.byte(tag::ALLOWED);
            meter::write_name(limit, partition.as_ref(), out);
            out.number(*units);
        }
        Effect::Reset { meter: (limit, partition), now } => {
            out.byte(tag::RESET);
            meter::write_name(limit, partition.as_ref(), out);
            out.now(*now);
        }
        Effect::QueueDefined { name, spec } => {
            out.byte(tag::QUEUE_DEFINED);
            out.text(name);
            queue::write(spec, out);
        }
        Effect::QueueRemoved(name) => {
            out.byte(tag::QUEUE_REMOVED);
            out.text(name);
        }
        Effect::LaneWeighed { queue, lane, weight } => {
            out.byte(tag::LANE_WEIGHED);
            out.text(queue);
            out.text(lane);
            out.number(u64::from(*weight));
        }
        Effect::Paused(scope) => {
            out.byte(tag::PAUSED);
            queue::write_scope(scope, out);
        }
        Effect::Resumed(scope) => {
            out.byte(tag::RESUMED);
            queue::write_scope(scope, out);
        }
        Effect::Reopened { limit, partition } => {
            out.byte(tag::REOPENED);
            meter::write_name(limit, partition.as_ref(), out);
        }
        Effect::Accepted { id: CallId(id), call, arrival, remembered } => {
            out.payload(&call.payload, tag::ACCEPTED, tag::ACCEPTED_IN_ENVELOPE);
            out.flags([arrival.is_some()]);
            out.number(*id);
            out.instant(*remembered);
            call::write(*remembered, call, out);
            if let Some(arrival) = arrival {
                out.number(*arrival);
            }
        }
        Effect::Joined { id: CallId(id), arrival } => {
            out.byte(tag::JOINED);
            out.number(*id);
            out.number(*arrival);
        }
        Effect::Started { lease, now, expires, waits } => {
            out.byte(if waits.is_empty() { tag::STARTED } else { tag::STARTED_WAITED });
            write_leased(lease, *now, *expires, out);
            if !waits.is_empty() {
                call::write_waits(waits, out);
            }
        }
        Effect::Timed(now) => {
            out.byte(tag::TIMED);
            out.now(*now);
        }
        Effect::Renewed { lease, now, expires } => {
            out.byte(tag::RENEWED);
            write_leased(lease, *now, *expires, out);
        }
        Effect::Settled { lease, actual, now, report } => {
            out.byte(if report.is_empty() { tag::SETTLED } else { tag::SETTLED_REPORTED });
            call::write_lease(lease, out);
            out.now(*now);
            write_units(actual, out);
            if !report.is_empty() {
                out.bytes(report);
            }
        }
        Effect::Closed { id: CallId(id), line, until, now } => {
            out.byte(tag::CLOSED);
            out.number(*id);
            out.number(*line as u64);
            out.now(*now);
            out.instant_from(now.at, *until);
        }
        Effect::CameBack { id: CallId(id), attempts, eligible } => {
            out.byte(tag::CAME_BACK);
            out.number(*id);
            call::write_attempts(attempts, out);
            out.instant(*eligible);
        }
        Effect::CancelAsked(CallId(id)) => {
            out.byte(tag::CANCEL_ASKED);
            out.number(*id);
        }
        Effect::Ended { id: CallId(id), end } => {
            out.byte(tag::ENDED);
            out.number(*id);
            call::write_end(*end, out);
        }
        Effect::Died { id: CallId(id), attempts, cause } => {
            out.byte(tag::DIED);
            out.number(*id);
            call::write_attempts(attempts, out);
            call::write_cause(*cause, out);
        }
        Effect::Revived { id: CallId(id), arrival, not_before } => {
            out.byte(tag::REVIVED);
            out.flags([arrival.is_some(), not_before.is_some()]);
            out.number(*id);
            if let Some(arrival) = arrival {
                out.number(*arrival);
            }
            if let Some(not_before) = not_before {
                out.instant(*not_before);
            }
        }
        Effect::Paid { id, owed, now, starts, expires } => {
            out.byte(tag::PAID);
            out.number(*id);
            out.now(*now);
            out.instant_from(now.at, *starts);
            out.instant_from(now.at, *expires);
            out.list(owed, |out, ((limit, partition), units)| {
                meter::write_name(limit, partition.as_ref(), out);
                out.number(*units);
            });
        }
        Effect::ReceiptRenewed { id, meters, now, expires } => {
            out.byte(tag::RECEIPT_RENEWED);
            out.number(*id);
            out.now(*now);
            out.instant_from(now.at, *expires);
            out.list(meters, |out, (limit, partition)| {
                meter::write_name(limit, partition.as_ref(), out);
            });
        }
        Effect::ReceiptSettled { receipt, actual, now, remembered } => {
            out.byte(tag::RECEIPT_SETTLED);
            out.now(*now);
            out.instant_from(now.at, *remembered);
            meter::write_receipt(now.at, receipt, out);
            write_units(actual, out);
        }
        Effect::Kept(kept) => kept::write(kept, out),
        Effect::Written { key, revision: Revision(revision), bytes } => {
            out.byte(tag::WRITTEN);
            out.flags([bytes.is_some()]);
            out.text(key);
            out.number(*revision);
            if let Some(bytes) = bytes {
                out.bytes(bytes);
            }
        }
        Effect::Counted { key, left } => {
            out.byte(tag::COUNTED);
            out.text(key);
            out.number(*left);
        }
    }
}

/// Fields are read in the order in which they stand in the code, which is that of [`write`].
#[expect(clippy::too_many_lines, reason = "one arm for each effect, and nothing else")]
pub(super) fn read(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    Ok(match input.byte()? {
        tag::LIMIT_DEFINED => read_limit_defined(input)?,
        tag::PARTITION_DEFINED => read_partition_defined(input)?,
        tag::CLOSED_BY => {
            let (meter, now) = (meter::read_name(input)?, input.now()?);
            let until = input.instant_from(now.at)?;
            Effect::ClosedBy { meter, until, reason: input.text()?.into(), now }
        }
        tag::ALLOWED => Effect::Allowed { meter: meter::read_name(input)?, units: input.number()? },
        tag::RESET => Effect::Reset { meter: meter::read_name(input)?, now: input.now()? },
        tag::QUEUE_DEFINED => {
            let name = input.name(QueueName::new)?;
            let spec = Box::new(queue::read(&name, input)?);
            Effect::QueueDefined { name, spec }
        }
        tag::QUEUE_REMOVED => Effect::QueueRemoved(input.name(QueueName::new)?),
        tag::LANE_WEIGHED => {
            let (queue, lane) = (input.name(QueueName::new)?, input.name(LaneName::new)?);
            Effect::LaneWeighed { queue, lane, weight: input.number_u32()? }
        }
        tag::PAUSED => Effect::Paused(queue::read_scope(input)?),
        tag::RESUMED => Effect::Resumed(queue::read_scope(input)?),
        tag::REOPENED => {
            let (limit, partition) = meter::read_name(input)?;
            Effect::Reopened { limit, partition }
        }
        tag::ACCEPTED => read_accepted(Form::Body, input)?,
        tag::ACCEPTED_IN_ENVELOPE => read_accepted(Form::InEnvelope, input)?,
        tag::JOINED => Effect::Joined { id: call::read_id(input)?, arrival: input.number()? },
        tag::STARTED => {
            let (lease, now, expires) = read_leased(input)?;
            Effect::Started { lease, now, expires, waits: LineWaits::default() }
        }
        tag::STARTED_WAITED => {
            let (lease, now, expires) = read_leased(input)?;
            let waits = call::read_waits(input)?;
            if waits.is_empty() {
                return Err(input.damaged("no wait where there is one"));
            }
            Effect::Started { lease, now, expires, waits }
        }
        tag::TIMED => Effect::Timed(input.now()?),
        tag::RENEWED => {
            let (lease, now, expires) = read_leased(input)?;
            Effect::Renewed { lease, now, expires }
        }
        tag::SETTLED => {
            let (lease, now) = (call::read_lease(input)?, input.now()?);
            Effect::Settled { lease, actual: read_units(input)?.into(), now, report: [].into() }
        }
        tag::SETTLED_REPORTED => {
            let (lease, now) = (call::read_lease(input)?, input.now()?);
            Effect::Settled {
                lease,
                actual: read_units(input)?.into(),
                now,
                report: input.report()?,
            }
        }
        tag::CLOSED => {
            let (id, line, now) = (call::read_id(input)?, input.number_usize()?, input.now()?);
            Effect::Closed { id, line, until: input.instant_from(now.at)?, now }
        }
        tag::CAME_BACK => {
            let (id, attempts) = (call::read_id(input)?, call::read_attempts(input)?);
            Effect::CameBack { id, attempts, eligible: input.instant()? }
        }
        tag::CANCEL_ASKED => Effect::CancelAsked(call::read_id(input)?),
        tag::ENDED => Effect::Ended { id: call::read_id(input)?, end: call::read_end(input)? },
        tag::DIED => {
            let (id, attempts) = (call::read_id(input)?, call::read_attempts(input)?);
            Effect::Died { id, attempts, cause: call::read_cause(input)? }
        }
        tag::REVIVED => read_revived(input)?,
        tag::LIMIT_CAME => read_limit_came(input)?,
        tag::LIMIT_WENT => Effect::LimitWent(input.name(LimitName::new)?),
        tag::PAID => read_paid(input)?,
        tag::RECEIPT_RENEWED => read_receipt_renewed(input)?,
        tag::RECEIPT_SETTLED => read_receipt_settled(input)?,
        tag::WRITTEN => read_written(input)?,
        tag::COUNTED => Effect::Counted { key: input.name(Key::new)?, left: input.number()? },
        tag::KEPT_COUNTERS => Effect::Kept(kept::read_counters(input)?),
        tag::KEPT_METER => Effect::Kept(kept::read_meter(input)?),
        tag::KEPT_LANE => Effect::Kept(kept::read_lane(input)?),
        tag::KEPT_CALL => Effect::Kept(kept::read_call(Form::Body, input)?),
        tag::KEPT_CALL_IN_ENVELOPE => Effect::Kept(kept::read_call(Form::InEnvelope, input)?),
        tag::KEPT_START => Effect::Kept(kept::read_start(input)?),
        tag::KEPT_DEDUPE => Effect::Kept(kept::read_dedupe(input)?),
        tag::KEPT_RECEIPT => Effect::Kept(kept::read_receipt(input)?),
        0 => return Err(input.damaged("no tag")),
        other => return Err(newer("tag", other)),
    })
}

fn read_limit_defined(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let [has_definition] = input.flags()?;
    let (name, now) = (input.name(LimitName::new)?, input.now()?);
    let definition = input.when(has_definition, |input| limit::read(&name, input))?;
    let definition = definition.map(Box::new);
    Ok(Effect::LimitDefined { name, definition, now })
}

fn read_limit_came(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let (name, now) = (input.name(LimitName::new)?, input.now()?);
    let definition = Box::new(limit::read(&name, input)?);
    Ok(Effect::LimitCame { name, definition, now })
}

fn read_partition_defined(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let [has_definition] = input.flags()?;
    let (limit, partition) = (input.name(LimitName::new)?, input.name(Partition::new)?);
    let now = input.now()?;
    let definition = input.when(has_definition, |input| limit::read(&limit, input))?;
    let definition = definition.map(Box::new);
    Ok(Effect::PartitionDefined { limit, partition, definition, now })
}

fn read_accepted(form: Form, input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let payload = input.payload(form)?;
    let [has_arrival] = input.flags()?;
    let (id, remembered) = (call::read_id(input)?, input.instant()?);
    let call = call::read(payload, remembered, input)?;
    let arrival = input.when(has_arrival, Input::number)?;
    Ok(Effect::Accepted { id, call, arrival, remembered })
}

fn read_revived(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let [has_arrival, has_instant] = input.flags()?;
    let id = call::read_id(input)?;
    let arrival = input.when(has_arrival, Input::number)?;
    Ok(Effect::Revived { id, arrival, not_before: input.when(has_instant, Input::instant)? })
}

fn read_paid(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let (id, now) = (input.number()?, input.now()?);
    let (starts, expires) = (input.instant_from(now.at)?, input.instant_from(now.at)?);
    let owed =
        input.list(OWED_BYTES_MIN, |input| Ok((meter::read_name(input)?, input.number()?)))?;
    Ok(Effect::Paid { id, owed: owed.into(), now, starts, expires })
}

fn read_receipt_renewed(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let (id, now) = (input.number()?, input.now()?);
    let expires = input.instant_from(now.at)?;
    let meters = input.list(NAME_BYTES_MIN, meter::read_name)?;
    Ok(Effect::ReceiptRenewed { id, meters: meters.into(), now, expires })
}

fn read_receipt_settled(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let now = input.now()?;
    let remembered = input.instant_from(now.at)?;
    let receipt = Box::new(meter::read_receipt(now.at, input)?);
    Ok(Effect::ReceiptSettled { receipt, actual: read_units(input)?.into(), now, remembered })
}

fn read_written(input: &mut Input<'_>) -> Result<Effect, CodecError> {
    let [has_bytes] = input.flags()?;
    let (key, revision) = (input.name(Key::new)?, Revision(input.number()?));
    let bytes = input.when(has_bytes, |input| input.bytes().map(Box::from))?;
    Ok(Effect::Written { key, revision, bytes })
}

/// A lease that lasts until `expires`.
#[inline]
fn write_leased(lease: &Lease, now: Now, expires: Timestamp, out: &mut Output<'_>) {
    call::write_lease(lease, out);
    out.now(now);
    out.instant_from(now.at, expires);
}

#[inline]
fn read_leased(input: &mut Input<'_>) -> Result<(Lease, Now, Timestamp), CodecError> {
    let (lease, now) = (call::read_lease(input)?, input.now()?);
    Ok((lease, now, input.instant_from(now.at)?))
}

fn write_units(units: &[u64], out: &mut Output<'_>) {
    out.list(units, |out, units| out.number(*units));
}

fn read_units(input: &mut Input<'_>) -> Result<Vec<u64>, CodecError> {
    input.list(1, Input::number)
}
