//! Calls as they were handed in, the body aside; and how far they came.

use super::error::CodecError;
use super::input::{Input, newer};
use super::output::{Output, packed};
use super::queue::read_priority;
use tollgate_core::lanes::{
    Attempts, CallId, Death, DeathCause, End, Lease, LineWaits, NewCall, Payload,
};
use tollgate_core::{Key, LaneName, LimitName, Partition, QueueName, Timestamp, Toll, Tolls};

// How a call ended: for good, as the tags are.
const DONE: u8 = 0;
const DEAD: u8 = 1;
const CANCELLED: u8 = 2;
const EXPIRED: u8 = 3;
const SUPERSEDED: u8 = 4;
const DROPPED: u8 = 5;

// Why a call is dead: for good, too.
const FAILED: u8 = 0;
const CRASHED: u8 = 1;
const LIMITED: u8 = 2;
const GIVEN_UP: u8 = 3;

/// Flags, a name and a number.
const TOLL_BYTES_MIN: usize = 4;

/// All of a call but its payload, which stands in front.
pub(super) fn write(first: Timestamp, call: &NewCall, out: &mut Output<'_>) {
    let NewCall {
        queue,
        lane,
        tolls,
        priority,
        not_before,
        expires,
        dedupe,
        supersedes,
        payload: _,
    } = call;
    let options = [not_before.is_some(), expires.is_some(), dedupe.is_some(), supersedes.is_some()];
    // A level has four bits, and the options the other four.
    out.byte(priority.level() | packed(options) << 4);
    out.text(queue);
    out.text(lane);
    out.list(tolls, |out, toll| write_toll(toll, out));
    for instant in [not_before, expires].into_iter().flatten() {
        out.instant_from(first, *instant);
    }
    for key in [dedupe, supersedes].into_iter().flatten() {
        out.text(key);
    }
}

pub(super) fn read(
    payload: Payload,
    first: Timestamp,
    input: &mut Input<'_>,
) -> Result<Box<NewCall>, CodecError> {
    let level_and_options = input.byte()?;
    let has = |option: u8| level_and_options >> (4 + option) & 1 == 1;
    Ok(Box::new(NewCall {
        priority: read_priority(level_and_options & 0x0f, input)?,
        queue: input.name(QueueName::new)?,
        lane: input.name(LaneName::new)?,
        tolls: read_tolls(input)?,
        not_before: input.when(has(0), |input| input.instant_from(first))?,
        expires: input.when(has(1), |input| input.instant_from(first))?,
        dedupe: input.when(has(2), |input| input.name(Key::new))?,
        supersedes: input.when(has(3), |input| input.name(Key::new))?,
        payload,
    }))
}

#[inline]
pub(super) fn read_id(input: &mut Input<'_>) -> Result<CallId, CodecError> {
    input.number().map(CallId)
}

#[inline]
pub(super) fn write_lease(lease: &Lease, out: &mut Output<'_>) {
    let Lease { call: CallId(call), token } = *lease;
    out.number(call);
    out.number(token);
}

#[inline]
pub(super) fn read_lease(input: &mut Input<'_>) -> Result<Lease, CodecError> {
    Ok(Lease { call: read_id(input)?, token: input.number()? })
}

pub(super) fn write_attempts(attempts: &Attempts, out: &mut Output<'_>) {
    let Attempts { failures, crashes, limited } = *attempts;
    for count in [failures, crashes, limited] {
        out.number(u64::from(count));
    }
}

pub(super) fn read_attempts(input: &mut Input<'_>) -> Result<Attempts, CodecError> {
    let (failures, crashes) = (input.number_u32()?, input.number_u32()?);
    Ok(Attempts { failures, crashes, limited: input.number_u32()? })
}

/// How long a call waited at which of its meters.
pub(super) fn write_waits(waits: &LineWaits, out: &mut Output<'_>) {
    out.list(waits, |out, (line, span)| {
        out.number(*line as u64);
        out.span(*span);
    });
}

pub(super) fn read_waits(input: &mut Input<'_>) -> Result<LineWaits, CodecError> {
    let waits = input.list(2, |input| Ok((input.number_usize()?, input.span()?)))?;
    Ok(waits.into_iter().collect())
}

pub(super) fn write_end(end: End, out: &mut Output<'_>) {
    out.byte(match end {
        End::Done => DONE,
        End::Dead => DEAD,
        End::Cancelled => CANCELLED,
        End::Expired => EXPIRED,
        End::Superseded => SUPERSEDED,
        End::Dropped => DROPPED,
    });
}

pub(super) fn read_end(input: &mut Input<'_>) -> Result<End, CodecError> {
    Ok(match input.byte()? {
        DONE => End::Done,
        DEAD => End::Dead,
        CANCELLED => End::Cancelled,
        EXPIRED => End::Expired,
        SUPERSEDED => End::Superseded,
        DROPPED => End::Dropped,
        other => return Err(newer("end of a call", other)),
    })
}

pub(super) fn write_cause(cause: DeathCause, out: &mut Output<'_>) {
    out.byte(match cause {
        DeathCause::Failed => FAILED,
        DeathCause::Crashed => CRASHED,
        DeathCause::Limited => LIMITED,
        DeathCause::GivenUp => GIVEN_UP,
    });
}

pub(super) fn read_cause(input: &mut Input<'_>) -> Result<DeathCause, CodecError> {
    Ok(match input.byte()? {
        FAILED => DeathCause::Failed,
        CRASHED => DeathCause::Crashed,
        LIMITED => DeathCause::Limited,
        GIVEN_UP => DeathCause::GivenUp,
        other => return Err(newer("cause of death", other)),
    })
}

/// How a call died, its instant told from `first`.
pub(super) fn write_death(first: Timestamp, death: &Death, out: &mut Output<'_>) {
    let Death { cause, at } = *death;
    write_cause(cause, out);
    out.instant_from(first, at);
}

pub(super) fn read_death(first: Timestamp, input: &mut Input<'_>) -> Result<Death, CodecError> {
    Ok(Death { cause: read_cause(input)?, at: input.instant_from(first)? })
}

fn write_toll(toll: &Toll, out: &mut Output<'_>) {
    let Toll { limit, partition, weight, hears_feedback } = toll;
    out.flags([partition.is_some(), *hears_feedback]);
    out.text(limit);
    if let Some(partition) = partition {
        out.text(partition);
    }
    out.number(*weight);
}

fn read_tolls(input: &mut Input<'_>) -> Result<Tolls, CodecError> {
    let count = input.count(TOLL_BYTES_MIN)?;
    (0..count).map(|_| read_toll(input)).collect()
}

fn read_toll(input: &mut Input<'_>) -> Result<Toll, CodecError> {
    let [has_partition, hears_feedback] = input.flags()?;
    Ok(Toll {
        limit: input.name(LimitName::new)?,
        partition: input.when(has_partition, |input| input.name(Partition::new))?,
        weight: input.number()?,
        hears_feedback,
    })
}
