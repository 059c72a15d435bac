//! Meters: their names, and what was paid at them.

use super::error::CodecError;
use super::input::Input;
use super::output::Output;
use tollgate_core::contract::{MeterName, PaidLine, Receipt};
use tollgate_core::rule::slots::HoldId;
use tollgate_core::{LimitName, Now, Partition, Payment, Timestamp};

/// Flags and a name.
pub(super) const NAME_BYTES_MIN: usize = 3;
/// Flags, promises and five numbers.
pub(super) const PAYMENT_BYTES_MIN: usize = 7;
/// What was owed: a meter and a number.
pub(super) const OWED_BYTES_MIN: usize = NAME_BYTES_MIN + 1;
const LINE_BYTES_MIN: usize = NAME_BYTES_MIN + PAYMENT_BYTES_MIN;

pub(super) fn write_name(limit: &LimitName, partition: Option<&Partition>, out: &mut Output<'_>) {
    out.flags([partition.is_some()]);
    out.text(limit);
    if let Some(partition) = partition {
        out.text(partition);
    }
}

pub(super) fn read_name(input: &mut Input<'_>) -> Result<MeterName, CodecError> {
    let [has_partition] = input.flags()?;
    let limit = input.name(LimitName::new)?;
    Ok((limit, input.when(has_partition, |input| input.name(Partition::new))?))
}

/// What was paid, its instants told from `near`.
pub(super) fn write_payment(near: Timestamp, payment: &Payment, out: &mut Output<'_>) {
    let Payment { weight, paid_at, starts: Now { at, wall }, hold, sequence, promised } = *payment;
    out.flags([hold.is_some()]);
    out.byte(promised);
    out.number(weight);
    out.instant_from(near, paid_at);
    out.instant_from(near, at);
    out.instant_from(near, wall);
    out.number(sequence);
    if let Some(HoldId(id)) = hold {
        out.number(id);
    }
}

pub(super) fn read_payment(near: Timestamp, input: &mut Input<'_>) -> Result<Payment, CodecError> {
    let [has_hold] = input.flags()?;
    let promised = input.byte()?;
    Ok(Payment {
        weight: input.number()?,
        paid_at: input.instant_from(near)?,
        starts: Now { at: input.instant_from(near)?, wall: input.instant_from(near)? },
        sequence: input.number()?,
        hold: input.when(has_hold, |input| input.number().map(HoldId))?,
        promised,
    })
}

pub(super) fn write_receipt(first: Timestamp, receipt: &Receipt, out: &mut Output<'_>) {
    let Receipt { id, expires, lines } = receipt;
    out.number(*id);
    out.instant_from(first, *expires);
    out.list(lines, |out, line| {
        let PaidLine { limit, partition, payment } = line;
        write_name(limit, partition.as_ref(), out);
        write_payment(first, payment, out);
    });
}

pub(super) fn read_receipt(first: Timestamp, input: &mut Input<'_>) -> Result<Receipt, CodecError> {
    let (id, expires) = (input.number()?, input.instant_from(first)?);
    let lines = input.list(LINE_BYTES_MIN, |input| {
        let (limit, partition) = read_name(input)?;
        Ok(PaidLine { limit, partition, payment: read_payment(first, input)? })
    })?;
    Ok(Receipt { id, expires, lines })
}
