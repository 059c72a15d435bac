//! What a checkpoint keeps: each thing as it is.

use super::error::CodecError;
use super::input::Input;
use super::meter::{PAYMENT_BYTES_MIN, read_name, read_payment, write_name, write_payment};
use super::output::Output;
use super::{Form, call, tag};
use tollgate_core::lanes::{CallId, Kept, KeptFlight};
use tollgate_core::{Key, LaneName, QueueName, Timestamp};

#[expect(clippy::too_many_lines, reason = "one arm for each fact, and nothing else")]
pub(super) fn write(kept: &Kept, out: &mut Output<'_>) {
    match kept {
        Kept::Counters { ids, tokens, arrivals, revisions, now } => {
            out.byte(tag::KEPT_COUNTERS);
            for count in [ids, tokens, arrivals, revisions] {
                out.number(*count);
            }
            out.instant(*now);
        }
        Kept::Meter { name: (limit, partition), words, closed } => {
            out.byte(tag::KEPT_METER);
            write_name(limit, partition.as_ref(), out);
            out.list(words, |out, word| out.number(*word));
            out.flags([closed.is_some()]);
            if let Some((until, reason)) = closed {
                out.instant(*until);
                out.text(reason);
            }
        }
        Kept::Lane { queue, lane, is_paused, is_held, weight } => {
            out.byte(tag::KEPT_LANE);
            out.flags([*is_paused, *is_held]);
            out.text(queue);
            out.text(lane);
            out.number(u64::from(*weight));
        }
        Kept::Call {
            id: CallId(id),
            call,
            arrival,
            attempts,
            rests_until,
            is_cancelled,
            flight,
            death,
        } => {
            out.payload(&call.payload, tag::KEPT_CALL, tag::KEPT_CALL_IN_ENVELOPE);
            let is_there = [arrival.is_some(), attempts.is_some(), flight.is_some()];
            let [has_arrival, was_tried, is_in_flight] = is_there;
            out.flags([has_arrival, was_tried, *is_cancelled, is_in_flight, death.is_some()]);
            out.number(*id);
            out.instant(*rests_until);
            call::write(*rests_until, call, out);
            if let Some(arrival) = arrival {
                out.number(*arrival);
            }
            if let Some(attempts) = attempts {
                call::write_attempts(attempts, out);
            }
            if let Some(flight) = flight {
                write_flight(*rests_until, flight, out);
            }
            if let Some(death) = death {
                call::write_death(*rests_until, death, out);
            }
        }
        Kept::Start { id: CallId(id), started, waits } => {
            out.byte(tag::KEPT_START);
            out.number(*id);
            out.now(*started);
            call::write_waits(waits, out);
        }
        Kept::Dedupe { queue, key, id: CallId(id), until } => {
            out.byte(tag::KEPT_DEDUPE);
            out.text(queue);
            out.text(key);
            out.number(*id);
            out.instant(*until);
        }
        Kept::Receipt { id, until } => {
            out.byte(tag::KEPT_RECEIPT);
            out.number(*id);
            out.instant(*until);
        }
    }
}

pub(super) fn read_counters(input: &mut Input<'_>) -> Result<Kept, CodecError> {
    let (ids, tokens) = (input.number()?, input.number()?);
    let (arrivals, revisions) = (input.number()?, input.number()?);
    Ok(Kept::Counters { ids, tokens, arrivals, revisions, now: input.instant()? })
}

pub(super) fn read_meter(input: &mut Input<'_>) -> Result<Kept, CodecError> {
    let name = read_name(input)?;
    let words = input.list(1, Input::number)?.into();
    let [is_closed] = input.flags()?;
    let closed = input.when(is_closed, |input| Ok((input.instant()?, input.text()?.into())))?;
    Ok(Kept::Meter { name, words, closed })
}

pub(super) fn read_lane(input: &mut Input<'_>) -> Result<Kept, CodecError> {
    let [is_paused, is_held] = input.flags()?;
    let (queue, lane) = (input.name(QueueName::new)?, input.name(LaneName::new)?);
    Ok(Kept::Lane { queue, lane, is_paused, is_held, weight: input.number_u32()? })
}

pub(super) fn read_call(form: Form, input: &mut Input<'_>) -> Result<Kept, CodecError> {
    let payload = input.payload(form)?;
    let [has_arrival, was_tried, is_cancelled, is_in_flight, is_dead] = input.flags()?;
    let (id, rests_until) = (call::read_id(input)?, input.instant()?);
    Ok(Kept::Call {
        id,
        call: call::read(payload, rests_until, input)?,
        arrival: input.when(has_arrival, Input::number)?,
        attempts: input.when(was_tried, call::read_attempts)?,
        rests_until,
        is_cancelled,
        flight: input.when(is_in_flight, |input| read_flight(rests_until, input))?,
        death: input.when(is_dead, |input| call::read_death(rests_until, input))?,
    })
}

pub(super) fn read_start(input: &mut Input<'_>) -> Result<Kept, CodecError> {
    let (id, started) = (call::read_id(input)?, input.now()?);
    Ok(Kept::Start { id, started, waits: call::read_waits(input)? })
}

pub(super) fn read_dedupe(input: &mut Input<'_>) -> Result<Kept, CodecError> {
    let (queue, key) = (input.name(QueueName::new)?, input.name(Key::new)?);
    Ok(Kept::Dedupe { queue, key, id: call::read_id(input)?, until: input.instant()? })
}

pub(super) fn read_receipt(input: &mut Input<'_>) -> Result<Kept, CodecError> {
    Ok(Kept::Receipt { id: input.number()?, until: input.instant()? })
}

fn write_flight(first: Timestamp, flight: &KeptFlight, out: &mut Output<'_>) {
    let KeptFlight { token, expires, payments } = flight;
    out.number(*token);
    out.instant_from(first, *expires);
    // Not from the first instant: that of a call that never rested is zero, far from all others.
    out.list(payments, |out, payment| write_payment(*expires, payment, out));
}

fn read_flight(first: Timestamp, input: &mut Input<'_>) -> Result<KeptFlight, CodecError> {
    let (token, expires) = (input.number()?, input.instant_from(first)?);
    let payments = input.list(PAYMENT_BYTES_MIN, |input| read_payment(expires, input))?.into();
    Ok(KeptFlight { token, expires, payments })
}
