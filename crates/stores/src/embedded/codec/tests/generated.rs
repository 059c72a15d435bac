//! Effects of every kind, with every option, long and foreign names, and numbers at their ends.

pub(super) mod fields;

use super::KINDS;
use fields::{
    attempts, bytes, cause, definition, end, instant, key, lane_name, lease, limit_name, list,
    meter_name, new_call, now, number, partition, payment, queue_name, queue_spec, receipt, scope,
    small, text, waits,
};
use proptest::option::of;
use proptest::prelude::*;
use proptest::strategy::Union;
use tollgate_core::lanes::{CallId, Death, Effect, Kept, KeptFlight, Revision};

pub(in crate::embedded) fn effect() -> impl Strategy<Value = Effect> {
    Union::new((0..KINDS).map(effect_of))
}

/// Effects of one kind, see [`super::kind`].
pub(super) fn effect_of(kind: usize) -> BoxedStrategy<Effect> {
    match kind {
        0..=5 => of_settings(kind),
        6..=14 => of_calls(kind),
        15..=19 => of_receipts_and_records(kind),
        26 | 27 => of_the_dead(kind),
        28..=31 => of_operators(kind),
        32 => now().prop_map(Effect::Timed).boxed(),
        34 => queue_name().prop_map(Effect::QueueRemoved).boxed(),
        35 => (limit_name(), definition().prop_map(Box::new), now())
            .prop_map(|(name, definition, now)| Effect::LimitCame { name, definition, now })
            .boxed(),
        36 => limit_name().prop_map(Effect::LimitWent).boxed(),
        _ => kept_of(kind).prop_map(Effect::Kept).boxed(),
    }
}

fn of_settings(kind: usize) -> BoxedStrategy<Effect> {
    match kind {
        0 => (limit_name(), of(definition().prop_map(Box::new)), now())
            .prop_map(|(name, definition, now)| Effect::LimitDefined { name, definition, now })
            .boxed(),
        1 => (queue_name(), queue_spec().prop_map(Box::new))
            .prop_map(|(name, spec)| Effect::QueueDefined { name, spec })
            .boxed(),
        2 => (queue_name(), lane_name(), small())
            .prop_map(|(queue, lane, weight)| Effect::LaneWeighed { queue, lane, weight })
            .boxed(),
        3 => scope().prop_map(Effect::Paused).boxed(),
        4 => scope().prop_map(Effect::Resumed).boxed(),
        5 => (limit_name(), of(partition()))
            .prop_map(|(limit, partition)| Effect::Reopened { limit, partition })
            .boxed(),
        _ => panic!("no kind {kind}"),
    }
}

fn of_calls(kind: usize) -> BoxedStrategy<Effect> {
    let id = number().prop_map(CallId);
    match kind {
        6 => (id, new_call(), of(number()), instant())
            .prop_map(|(id, call, arrival, remembered)| Effect::Accepted {
                id,
                call: Box::new(call),
                arrival,
                remembered,
            })
            .boxed(),
        7 => (id, number()).prop_map(|(id, arrival)| Effect::Joined { id, arrival }).boxed(),
        8 => (lease(), now(), instant(), waits())
            .prop_map(|(lease, now, expires, waits)| Effect::Started { lease, now, expires, waits })
            .boxed(),
        9 => (lease(), now(), instant())
            .prop_map(|(lease, now, expires)| Effect::Renewed { lease, now, expires })
            .boxed(),
        10 => (lease(), list(number()), now(), bytes())
            .prop_map(|(lease, actual, now, report)| Effect::Settled {
                lease,
                actual: actual.into(),
                now,
                report: report.into(),
            })
            .boxed(),
        11 => (id, prop_oneof![Just(0), Just(usize::MAX), any::<usize>()], instant(), now())
            .prop_map(|(id, line, until, now)| Effect::Closed { id, line, until, now })
            .boxed(),
        12 => (id, attempts(), instant())
            .prop_map(|(id, attempts, eligible)| Effect::CameBack { id, attempts, eligible })
            .boxed(),
        13 => id.prop_map(Effect::CancelAsked).boxed(),
        14 => (id, end()).prop_map(|(id, end)| Effect::Ended { id, end }).boxed(),
        _ => panic!("no kind {kind}"),
    }
}

fn of_the_dead(kind: usize) -> BoxedStrategy<Effect> {
    let id = number().prop_map(CallId);
    match kind {
        26 => (id, attempts(), cause())
            .prop_map(|(id, attempts, cause)| Effect::Died { id, attempts, cause })
            .boxed(),
        27 => (id, of(number()), of(instant()))
            .prop_map(|(id, arrival, not_before)| Effect::Revived { id, arrival, not_before })
            .boxed(),
        _ => panic!("no kind {kind}"),
    }
}

fn of_operators(kind: usize) -> BoxedStrategy<Effect> {
    match kind {
        28 => (limit_name(), partition(), of(definition().prop_map(Box::new)), now())
            .prop_map(|(limit, partition, definition, now)| Effect::PartitionDefined {
                limit,
                partition,
                definition,
                now,
            })
            .boxed(),
        29 => (meter_name(), instant(), text(), now())
            .prop_map(|(meter, until, reason, now)| Effect::ClosedBy {
                meter,
                until,
                reason: reason.into(),
                now,
            })
            .boxed(),
        31 => (meter_name(), 0..=u64::MAX)
            .prop_map(|(meter, units)| Effect::Allowed { meter, units })
            .boxed(),
        30 => (meter_name(), now()).prop_map(|(meter, now)| Effect::Reset { meter, now }).boxed(),
        _ => panic!("no kind {kind}"),
    }
}

fn of_receipts_and_records(kind: usize) -> BoxedStrategy<Effect> {
    match kind {
        15 => (number(), list((meter_name(), number())), now(), instant(), instant())
            .prop_map(|(id, owed, now, starts, expires)| Effect::Paid {
                id,
                owed: owed.into(),
                now,
                starts,
                expires,
            })
            .boxed(),
        16 => (number(), list(meter_name()), now(), instant())
            .prop_map(|(id, meters, now, expires)| Effect::ReceiptRenewed {
                id,
                meters: meters.into(),
                now,
                expires,
            })
            .boxed(),
        17 => (receipt(), list(number()), now(), instant())
            .prop_map(|(receipt, actual, now, remembered)| Effect::ReceiptSettled {
                receipt: Box::new(receipt),
                actual: actual.into(),
                now,
                remembered,
            })
            .boxed(),
        18 => (key(), number(), of(bytes()))
            .prop_map(|(key, revision, bytes)| Effect::Written {
                key,
                revision: Revision(revision),
                bytes: bytes.map(Into::into),
            })
            .boxed(),
        19 => (key(), number()).prop_map(|(key, left)| Effect::Counted { key, left }).boxed(),
        _ => panic!("no kind {kind}"),
    }
}

fn kept_of(kind: usize) -> BoxedStrategy<Kept> {
    match kind {
        20 => ([number(), number(), number(), number()], instant())
            .prop_map(|([ids, tokens, arrivals, revisions], now)| Kept::Counters {
                ids,
                tokens,
                arrivals,
                revisions,
                now,
            })
            .boxed(),
        21 => (meter_name(), list(number()), of((instant(), text())))
            .prop_map(|(name, words, closed)| Kept::Meter {
                name,
                words: words.into(),
                closed: closed.map(|(until, reason)| (until, reason.into())),
            })
            .boxed(),
        22 => (queue_name(), lane_name(), any::<(bool, bool)>(), small())
            .prop_map(|(queue, lane, (is_paused, is_held), weight)| Kept::Lane {
                queue,
                lane,
                is_paused,
                is_held,
                weight,
            })
            .boxed(),
        23 => kept_call().boxed(),
        24 => (queue_name(), key(), number(), instant())
            .prop_map(|(queue, key, id, until)| Kept::Dedupe { queue, key, id: CallId(id), until })
            .boxed(),
        25 => (number(), instant()).prop_map(|(id, until)| Kept::Receipt { id, until }).boxed(),
        33 => (number(), now(), waits())
            .prop_map(|(id, started, waits)| Kept::Start { id: CallId(id), started, waits })
            .boxed(),
        _ => panic!("no kind {kind}"),
    }
}

fn kept_call() -> impl Strategy<Value = Kept> {
    let flight = (number(), instant(), list(payment())).prop_map(|(token, expires, payments)| {
        KeptFlight { token, expires, payments: payments.into() }
    });
    let death = (cause(), instant()).prop_map(|(cause, at)| Death { cause, at });
    let state = (of(number()), of(attempts()), instant(), any::<bool>(), of(flight), of(death));
    (number(), new_call(), state).prop_map(
        |(id, call, (arrival, attempts, rests_until, is_cancelled, flight, death))| Kept::Call {
            id: CallId(id),
            call: Box::new(call),
            arrival,
            attempts,
            rests_until,
            is_cancelled,
            flight,
            death,
        },
    )
}
