//! The parts of effects: names, numbers, instants, limits, queues, calls and receipts.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use tollgate_core::contract::{MeterName, PaidLine, Receipt};
use tollgate_core::lanes::queue::{DEAD_MAX_DEFAULT, LEASE_MAX, PARALLEL_MAX};
use tollgate_core::lanes::{
    Attempts, Backoff, BodyPath, CallId, DeathCause, End, Lease, LineWaits, NewCall, OnDead, Order,
    Payload, QueueSpec, QueueToll, Scalar, Scope, TollPartition, TollWeight, TollWhen,
};
use tollgate_core::name::NAME_BYTES_MAX;
use tollgate_core::rule::slots::HoldId;
use tollgate_core::{
    Align, Definition, Key, LaneName, Limit, LimitName, Now, Partition, Payment, Priority,
    QueueName, RuleSpec, Span, TOLLS_MAX, Timestamp, Toll, UNITS_MAX,
};

/// A morning in 2026.
const PRESENT: u64 = 1_780_000_000_123_456_789;

pub(in crate::embedded::codec::tests) fn number() -> BoxedStrategy<u64> {
    let edges = select(vec![0, 1, 127, 128, 16_383, 16_384, 1 << 63, u64::MAX - 1, u64::MAX]);
    prop_oneof![edges, 0..1_000_u64, any::<u64>()].boxed()
}

pub(in crate::embedded::codec::tests) fn small() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), any::<u32>()]
}

pub(in crate::embedded::codec::tests) fn instant() -> impl Strategy<Value = Timestamp> {
    let present = PRESENT - 100_000_000_000..PRESENT + 100_000_000_000;
    prop_oneof![2 => present, 1 => number()].prop_map(Timestamp::from_nanos)
}

pub(in crate::embedded::codec::tests) fn now() -> impl Strategy<Value = Now> {
    (instant(), instant()).prop_map(|(at, wall)| Now { at, wall })
}

pub(in crate::embedded::codec::tests) fn span() -> impl Strategy<Value = Span> {
    number().prop_map(Span::from_nanos)
}

pub(super) fn text() -> impl Strategy<Value = String> {
    let foreign = vec(any::<char>(), 0..60).prop_map(String::from_iter);
    prop_oneof!["[a-z]{0,12}", foreign]
}

pub(in crate::embedded::codec::tests) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

pub(in crate::embedded::codec::tests) fn list<S: Strategy>(
    items: S,
) -> impl Strategy<Value = Vec<S::Value>> {
    vec(items, 0..4)
}

/// 1 to 512 bytes, of characters of one to four bytes.
fn name() -> BoxedStrategy<String> {
    let whole = select(vec!["x", "é", "☃", "🦀"])
        .prop_map(|character| character.repeat(NAME_BYTES_MAX / character.len()));
    let foreign = vec(any::<char>(), 1..NAME_BYTES_MAX).prop_map(|characters| {
        let mut name = String::new();
        for character in characters {
            if name.len() + character.len_utf8() <= NAME_BYTES_MAX {
                name.push(character);
            }
        }
        name
    });
    prop_oneof![6 => "[a-z]{1,12}", 1 => whole, 1 => foreign].boxed()
}

pub(in crate::embedded::codec::tests) fn limit_name() -> impl Strategy<Value = LimitName> {
    name().prop_map(|name| LimitName::new(&name).unwrap())
}

pub(super) fn partition() -> impl Strategy<Value = Partition> {
    name().prop_map(|name| Partition::new(&name).unwrap())
}

pub(in crate::embedded::codec::tests) fn queue_name() -> impl Strategy<Value = QueueName> {
    name().prop_map(|name| QueueName::new(&name).unwrap())
}

pub(in crate::embedded::codec::tests) fn lane_name() -> impl Strategy<Value = LaneName> {
    name().prop_map(|name| LaneName::new(&name).unwrap())
}

pub(super) fn key() -> impl Strategy<Value = Key> {
    name().prop_map(|name| Key::new(&name).unwrap())
}

pub(in crate::embedded::codec::tests) fn meter_name() -> impl Strategy<Value = MeterName> {
    (limit_name(), of(partition()))
}

/// One to three rates, and perhaps a concurrency.
pub(super) fn definition() -> impl Strategy<Value = Definition> {
    let slots = of(units()).prop_map(|limit| limit.map(|limit| RuleSpec::Concurrency { limit }));
    let some = (vec(rate(), 1..4), slots)
        .prop_map(|(rates, slots)| rates.into_iter().chain(slots).collect::<Vec<RuleSpec>>());
    let none = units().prop_map(|limit| vec![RuleSpec::Concurrency { limit }]);
    let ahead = prop_oneof![2 => Just(Span::ZERO), 1 => (1..1_000_u64).prop_map(Span::from_nanos)];
    (prop_oneof![4 => some, 1 => none], ahead, any::<bool>()).prop_map(|(rules, ahead, spread)| {
        let limit = if spread { Limit::of(rules).spread() } else { Limit::of(rules) };
        // Not each limit lends.
        let lent = Definition::new(limit.clone().ahead(ahead));
        lent.unwrap_or_else(|_| Definition::new(limit).unwrap())
    })
}

fn units() -> BoxedStrategy<u64> {
    prop_oneof![Just(1), Just(UNITS_MAX), 1..=UNITS_MAX].boxed()
}

fn rate() -> impl Strategy<Value = RuleSpec> {
    let per = prop_oneof![
        Just(Span::from_nanos(2)),
        Just(Span::from_days(366)),
        (2..Span::from_days(366).as_nanos()).prop_map(Span::from_nanos)
    ];
    let guarded = (units(), per, any::<bool>()).prop_map(|(limit, per, is_guarded)| {
        let guard = if is_guarded { per.as_nanos() / 2 } else { 0 };
        (limit, per, Span::from_nanos(guard))
    });
    let guarded = guarded.boxed();
    let bucket = (guarded.clone(), units()).prop_map(|((limit, per, guard), burst)| {
        RuleSpec::TokenBucket { limit, per, burst, guard }
    });
    // Not each burst fills in time or survives its guard.
    let is_taken = |rule: &RuleSpec| Definition::new(Limit::of(vec![rule.clone()])).is_ok();
    let window = guarded.clone().prop_map(|(limit, per, guard)| RuleSpec::FixedWindow {
        limit,
        per,
        align: Align::FirstCall,
        guard,
    });
    let zones = select(vec!["UTC", "Europe/Berlin", "america/new_york", "Asia/Kathmandu"]);
    let pers = select(vec![Span::from_secs(1), Span::from_hours(1), Span::from_days(7)]);
    let calendar = (units(), pers, zones).prop_map(|(limit, per, zone)| RuleSpec::FixedWindow {
        limit,
        per,
        align: Align::Calendar { zone: zone.to_owned() },
        guard: Span::ZERO,
    });
    let sliding =
        guarded.prop_map(|(limit, per, guard)| RuleSpec::SlidingWindow { limit, per, guard });
    prop_oneof![bucket.prop_filter("a bucket that is taken", is_taken), window, calendar, sliding]
}

pub(super) fn queue_spec() -> impl Strategy<Value = QueueSpec> {
    let order = prop_oneof![Just(Order::Strict), (1..=PARALLEL_MAX).prop_map(Order::Parallel)];
    let lease = (1..=LEASE_MAX.as_nanos()).prop_map(Span::from_nanos);
    let most = prop_oneof![Just(1), Just(u32::MAX), 1..u32::MAX];
    let on_dead = select(vec![OnDead::Skip, OnDead::Hold]);
    let depth = prop_oneof![Just(1), Just(u64::MAX), 1..u64::MAX];
    let tolls = vec(queue_toll(), 0..=TOLLS_MAX);
    let behaviour = (order, lease, [most.clone(), most.clone(), most], on_dead);
    let dead = prop_oneof![Just(DEAD_MAX_DEFAULT), Just(0), number()];
    let jitter = prop_oneof![Just(0), 1..=100_u8];
    let delivery = of(bytes().prop_filter("none is none", |it| !it.is_empty()));
    let more = (tolls, delivery, any::<bool>());
    (behaviour, (span(), span(), jitter), (depth, dead), span(), more).prop_map(
        |(
            (order, lease, [failures, crashes, limited], on_dead),
            (first, most, jitter),
            (depth, dead),
            dedupe,
            (tolls, delivery, tells_accepted),
        )| {
            QueueSpec {
                order,
                lease,
                failures_max: failures,
                crashes_max: crashes,
                limited_max: limited,
                backoff: Backoff { first, most, jitter },
                on_dead,
                depth_max: depth,
                dead_max: dead,
                dedupe,
                tolls,
                delivery: delivery.map(Into::into),
                tells_accepted,
            }
        },
    )
}

fn queue_toll() -> impl Strategy<Value = QueueToll> {
    let own = (partition_of_toll(), weight_of_toll());
    let own = prop_oneof![
        own.prop_map(|(partition, weight)| (None, partition, weight)),
        limit_name().prop_map(|like| (Some(like), <_>::default(), <_>::default())),
    ];
    let when = (path(), scalar()).prop_map(|(path, is)| TollWhen { path, is });
    (limit_name(), of(priority()), own, of(when)).prop_map(
        |(limit, priority, (like, partition, weight), when)| QueueToll {
            limit,
            like,
            priority,
            partition,
            weight,
            when,
        },
    )
}

fn path() -> impl Strategy<Value = BodyPath> {
    let step = prop_oneof![Just(".a"), Just(".länge"), Just("[0]"), Just("[4711]")];
    let steps = vec(step, 0..4);
    steps.prop_map(|steps| BodyPath::new(&format!("body{}", steps.concat())).unwrap())
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        text().prop_map(|text| Scalar::Text(text.into())),
        any::<i64>().prop_map(Scalar::Number),
        any::<bool>().prop_map(Scalar::Truth),
    ]
}

fn partition_of_toll() -> impl Strategy<Value = TollPartition> {
    prop_oneof![
        Just(TollPartition::Global),
        partition().prop_map(TollPartition::Fixed),
        (path(), of(partition())).prop_map(|(path, default)| TollPartition::Body { path, default }),
    ]
}

fn weight_of_toll() -> impl Strategy<Value = TollWeight> {
    let bounds = (of(1..=u64::MAX), of(1..=u64::MAX)).prop_map(|(one, other)| match (one, other) {
        (Some(one), Some(other)) => (Some(one.min(other)), Some(one.max(other))),
        either => either,
    });
    prop_oneof![
        (1..=u64::MAX).prop_map(TollWeight::Fixed),
        Just(TollWeight::default()),
        (path(), bounds).prop_map(|(path, (default, max))| TollWeight::Body { path, default, max }),
        of(number().prop_map(|max| max.max(1)))
            .prop_map(|max| TollWeight::Learned { default: 1, max }),
    ]
}

fn priority() -> impl Strategy<Value = Priority> {
    (0..10_u64).prop_map(|level| Priority::new(level).unwrap())
}

pub(super) fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        queue_name().prop_map(Scope::Queue),
        (queue_name(), lane_name()).prop_map(|(queue, lane)| Scope::Lane(queue, lane)),
        limit_name().prop_map(Scope::Limit)
    ]
}

pub(super) fn lease() -> impl Strategy<Value = Lease> {
    (number(), number()).prop_map(|(call, token)| Lease { call: CallId(call), token })
}

pub(super) fn waits() -> impl Strategy<Value = LineWaits> {
    let line = prop_oneof![Just(0), Just(usize::MAX), any::<usize>()];
    list((line, span())).prop_map(|waits| waits.into_iter().collect())
}

pub(super) fn attempts() -> impl Strategy<Value = Attempts> {
    (small(), small(), small()).prop_map(|(failures, crashes, limited)| Attempts {
        failures,
        crashes,
        limited,
    })
}

pub(in crate::embedded::codec::tests) fn end() -> impl Strategy<Value = End> {
    select(vec![End::Done, End::Dead, End::Cancelled, End::Expired, End::Superseded, End::Dropped])
}

pub(super) fn cause() -> impl Strategy<Value = DeathCause> {
    use DeathCause::{Crashed, Failed, GivenUp, Limited};
    select(vec![Failed, Crashed, Limited, GivenUp])
}

pub(super) fn new_call() -> impl Strategy<Value = NewCall> {
    let toll = (limit_name(), of(partition()), number(), any::<bool>()).prop_map(
        |(limit, partition, weight, hears_feedback)| Toll {
            limit,
            partition,
            weight,
            hears_feedback,
        },
    );
    let place = (queue_name(), lane_name(), vec(toll, 0..=TOLLS_MAX), priority());
    let when = (of(instant()), of(instant()));
    let payload = (bytes(), bytes());
    let payload = payload.prop_map(|(it, body)| Payload::new(&it, &body).unwrap());
    (place, when, of(key()), of(key()), payload).prop_map(
        |((queue, lane, tolls, priority), (not_before, expires), dedupe, supersedes, payload)| {
            NewCall {
                queue,
                lane,
                tolls: tolls.into(),
                priority,
                not_before,
                expires,
                dedupe,
                supersedes,
                payload,
            }
        },
    )
}

pub(super) fn payment() -> impl Strategy<Value = Payment> {
    (number(), instant(), now(), of(number()), number(), any::<u8>()).prop_map(
        |(weight, paid_at, starts, hold, sequence, promised)| Payment {
            weight,
            paid_at,
            starts,
            hold: hold.map(HoldId),
            sequence,
            promised,
        },
    )
}

pub(super) fn receipt() -> impl Strategy<Value = Receipt> {
    let line = (meter_name(), payment()).prop_map(|((limit, partition), payment)| PaidLine {
        limit,
        partition,
        payment,
    });
    (number(), instant(), list(line)).prop_map(|(id, expires, lines)| Receipt {
        id,
        expires,
        lines,
    })
}
