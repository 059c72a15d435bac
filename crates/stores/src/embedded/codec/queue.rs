//! Queues: how their lanes behave, checked again when it is read; and what can be held back.

use super::error::CodecError;
use super::input::{Input, newer};
use super::output::Output;
use super::queue_toll;
use tollgate_core::lanes::queue::DEAD_MAX_DEFAULT;
use tollgate_core::lanes::{Backoff, OnDead, Order, QueueSpec, Scope};
use tollgate_core::{LaneName, LimitName, Priority, QueueName};

// For good, as the tags are.
const ORDER_STRICT: u8 = 0;
const ORDER_PARALLEL: u8 = 1;
const ON_DEAD_SKIP: u8 = 0;
const ON_DEAD_HOLD: u8 = 1;
/// Set if the number of dead calls that are kept is not the usual one: it stands behind all else.
const ON_DEAD_BOUND: u8 = 2;
/// Set if there is chance in waits after failures: it stands behind that.
const ON_DEAD_JITTER: u8 = 4;
/// Set if the queue's calls are delivered: how stands behind that.
const ON_DEAD_DELIVERY: u8 = 8;
/// Set if history keeps which of its calls were accepted.
const ON_DEAD_TELLS: u8 = 16;
const SCOPE_QUEUE: u8 = 0;
const SCOPE_LANE: u8 = 1;
const SCOPE_LIMIT: u8 = 2;

pub(super) fn write(spec: &QueueSpec, out: &mut Output<'_>) {
    let QueueSpec {
        order,
        lease,
        failures_max,
        crashes_max,
        limited_max,
        backoff: Backoff { first, most, jitter },
        on_dead,
        depth_max,
        dead_max,
        dedupe,
        tolls,
        delivery,
        tells_accepted,
    } = spec;
    let more = [
        (*dead_max != DEAD_MAX_DEFAULT, ON_DEAD_BOUND),
        (*jitter != 0, ON_DEAD_JITTER),
        (delivery.is_some(), ON_DEAD_DELIVERY),
        (*tells_accepted, ON_DEAD_TELLS),
    ];
    let more = more.iter().filter(|(is_there, _)| *is_there).fold(0, |bits, (_, bit)| bits | bit);
    match order {
        Order::Strict => out.byte(ORDER_STRICT),
        Order::Parallel(count) => {
            out.byte(ORDER_PARALLEL);
            out.number(u64::from(*count));
        }
    }
    out.span(*lease);
    out.number(u64::from(*failures_max));
    out.number(u64::from(*crashes_max));
    out.number(u64::from(*limited_max));
    out.span(*first);
    out.span(*most);
    let on_dead = match on_dead {
        OnDead::Skip => ON_DEAD_SKIP,
        OnDead::Hold => ON_DEAD_HOLD,
    };
    out.byte(on_dead | more);
    out.number(*depth_max);
    out.span(*dedupe);
    out.list(tolls, |out, toll| queue_toll::write(toll, out));
    if more & ON_DEAD_BOUND != 0 {
        out.number(*dead_max);
    }
    if *jitter != 0 {
        out.byte(*jitter);
    }
    if let Some(delivery) = delivery {
        out.bytes(delivery);
    }
}

pub(super) fn read(name: &QueueName, input: &mut Input<'_>) -> Result<QueueSpec, CodecError> {
    let more;
    let mut spec = QueueSpec {
        order: read_order(input)?,
        lease: input.span()?,
        failures_max: input.number_u32()?,
        crashes_max: input.number_u32()?,
        limited_max: input.number_u32()?,
        backoff: Backoff::doubling(input.span()?, input.span()?),
        on_dead: {
            let byte = input.byte()?;
            more = byte & (ON_DEAD_BOUND | ON_DEAD_JITTER | ON_DEAD_DELIVERY | ON_DEAD_TELLS);
            match byte & !more {
                ON_DEAD_SKIP => OnDead::Skip,
                ON_DEAD_HOLD => OnDead::Hold,
                _ => return Err(newer("way with the dead", byte)),
            }
        },
        depth_max: input.number()?,
        dead_max: DEAD_MAX_DEFAULT,
        dedupe: input.span()?,
        tolls: input.list(queue_toll::BYTES_MIN, queue_toll::read)?,
        delivery: None,
        tells_accepted: more & ON_DEAD_TELLS != 0,
    };
    if more & ON_DEAD_BOUND != 0 {
        spec.dead_max = input.number()?;
        if spec.dead_max == DEAD_MAX_DEFAULT {
            return Err(input.damaged("a usual number that is written out"));
        }
    }
    if more & ON_DEAD_JITTER != 0 {
        spec.backoff.jitter = input.byte()?;
        if spec.backoff.jitter == 0 {
            return Err(input.damaged("no chance where there is one"));
        }
    }
    if more & ON_DEAD_DELIVERY != 0 {
        spec.delivery = Some(input.bytes()?.into());
    }
    spec.check().map_err(|source| CodecError::Queue { name: name.clone(), source })?;
    Ok(spec)
}

pub(super) fn write_scope(scope: &Scope, out: &mut Output<'_>) {
    match scope {
        Scope::Queue(queue) => {
            out.byte(SCOPE_QUEUE);
            out.text(queue);
        }
        Scope::Lane(queue, lane) => {
            out.byte(SCOPE_LANE);
            out.text(queue);
            out.text(lane);
        }
        Scope::Limit(limit) => {
            out.byte(SCOPE_LIMIT);
            out.text(limit);
        }
    }
}

pub(super) fn read_scope(input: &mut Input<'_>) -> Result<Scope, CodecError> {
    Ok(match input.byte()? {
        SCOPE_QUEUE => Scope::Queue(input.name(QueueName::new)?),
        SCOPE_LANE => Scope::Lane(input.name(QueueName::new)?, input.name(LaneName::new)?),
        SCOPE_LIMIT => Scope::Limit(input.name(LimitName::new)?),
        other => return Err(newer("scope", other)),
    })
}

pub(super) fn read_priority(level: u8, input: &Input<'_>) -> Result<Priority, CodecError> {
    Priority::new(u64::from(level)).map_err(|_| input.damaged("a priority over 9"))
}

fn read_order(input: &mut Input<'_>) -> Result<Order, CodecError> {
    match input.byte()? {
        ORDER_STRICT => Ok(Order::Strict),
        ORDER_PARALLEL => input.number_u32().map(Order::Parallel),
        other => Err(newer("order", other)),
    }
}
