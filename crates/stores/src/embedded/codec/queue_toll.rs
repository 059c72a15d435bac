//! What a queue asks of its calls: fixed, or a path into their bodies.

use super::error::CodecError;
use super::input::{Input, newer};
use super::output::Output;
use super::queue::read_priority;
use tollgate_core::lanes::{BodyPath, QueueToll, Scalar, TollPartition, TollWeight, TollWhen};
use tollgate_core::{LimitName, Partition};

/// Flags and a name.
pub(super) const BYTES_MIN: usize = 3;

// For good, as the tags are.
const TEXT: u8 = 0;
const NUMBER: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;

pub(super) fn write(toll: &QueueToll, out: &mut Output<'_>) {
    let QueueToll { limit, like, priority, partition, weight, when } = toll;
    out.flags([
        like.is_some(),
        priority.is_some(),
        matches!(partition, TollPartition::Fixed(_)),
        matches!(partition, TollPartition::Body { .. }),
        matches!(weight, TollWeight::Fixed(weight) if *weight != 1),
        matches!(weight, TollWeight::Body { .. }),
        when.is_some(),
        matches!(weight, TollWeight::Learned { .. }),
    ]);
    out.text(limit);
    if let Some(like) = like {
        out.text(like);
    }
    if let Some(priority) = priority {
        out.byte(priority.level());
    }
    match partition {
        TollPartition::Global => {}
        TollPartition::Fixed(partition) => out.text(partition),
        TollPartition::Body { path, default } => {
            out.flags([default.is_some()]);
            out.text(path.as_str());
            if let Some(default) = default {
                out.text(default);
            }
        }
    }
    match weight {
        TollWeight::Fixed(1) => {}
        TollWeight::Fixed(weight) => out.number(*weight),
        TollWeight::Body { path, default, max } => {
            out.flags([default.is_some(), max.is_some()]);
            out.text(path.as_str());
            default.iter().chain(max).for_each(|bound| out.number(*bound));
        }
        TollWeight::Learned { default, max } => {
            out.flags([max.is_some()]);
            out.number(*default);
            max.iter().for_each(|max| out.number(*max));
        }
    }
    if let Some(TollWhen { path, is }) = when {
        out.text(path.as_str());
        write_scalar(is, out);
    }
}

pub(super) fn read(input: &mut Input<'_>) -> Result<QueueToll, CodecError> {
    let [has_like, has_priority, is_fixed, is_read, has_weight, reads_weight, has_when, learns] =
        input.flags()?;
    let weights = [has_weight, reads_weight, learns].into_iter().filter(|it| *it).count();
    if is_fixed && is_read || weights > 1 {
        return Err(input.damaged("a toll that is both fixed and read"));
    }
    Ok(QueueToll {
        limit: input.name(LimitName::new)?,
        like: input.when(has_like, |input| input.name(LimitName::new))?,
        priority: input.when(has_priority, |input| read_priority(input.byte()?, input))?,
        partition: match (is_fixed, is_read) {
            (true, _) => TollPartition::Fixed(input.name(Partition::new)?),
            (_, true) => read_partition(input)?,
            _ => TollPartition::Global,
        },
        weight: match (has_weight, reads_weight, learns) {
            (true, ..) => read_fixed(input)?,
            (_, true, _) => read_weight(input)?,
            (.., true) => read_learned(input)?,
            _ => TollWeight::default(),
        },
        when: input.when(has_when, |input| {
            Ok(TollWhen { path: read_path(input)?, is: read_scalar(input)? })
        })?,
    })
}

fn read_partition(input: &mut Input<'_>) -> Result<TollPartition, CodecError> {
    let [has_default] = input.flags()?;
    let path = read_path(input)?;
    let default = input.when(has_default, |input| input.name(Partition::new))?;
    Ok(TollPartition::Body { path, default })
}

fn read_fixed(input: &mut Input<'_>) -> Result<TollWeight, CodecError> {
    match input.number()? {
        1 => Err(input.damaged("a usual number that is written out")),
        weight => Ok(TollWeight::Fixed(weight)),
    }
}

fn read_weight(input: &mut Input<'_>) -> Result<TollWeight, CodecError> {
    let [has_default, has_max] = input.flags()?;
    let path = read_path(input)?;
    let default = input.when(has_default, Input::number)?;
    Ok(TollWeight::Body { path, default, max: input.when(has_max, Input::number)? })
}

fn read_learned(input: &mut Input<'_>) -> Result<TollWeight, CodecError> {
    let [has_max] = input.flags()?;
    let default = input.number()?;
    Ok(TollWeight::Learned { default, max: input.when(has_max, Input::number)? })
}

fn read_path(input: &mut Input<'_>) -> Result<BodyPath, CodecError> {
    BodyPath::new(input.text()?).map_err(|_| input.damaged("a path that is none"))
}

fn write_scalar(scalar: &Scalar, out: &mut Output<'_>) {
    match scalar {
        Scalar::Text(text) => {
            out.byte(TEXT);
            out.text(text);
        }
        Scalar::Number(number) => {
            out.byte(NUMBER);
            // Few bytes also for small ones below zero.
            out.number(((number << 1) ^ (number >> 63)).cast_unsigned());
        }
        Scalar::Truth(false) => out.byte(FALSE),
        Scalar::Truth(true) => out.byte(TRUE),
    }
}

fn read_scalar(input: &mut Input<'_>) -> Result<Scalar, CodecError> {
    Ok(match input.byte()? {
        TEXT => Scalar::Text(input.text()?.into()),
        NUMBER => {
            let folded = input.number()?;
            Scalar::Number(((folded >> 1) ^ (folded & 1).wrapping_neg()).cast_signed())
        }
        FALSE => Scalar::Truth(false),
        TRUE => Scalar::Truth(true),
        other => return Err(newer("value", other)),
    })
}
