//! Records of limits, queues, receipts and what callers write, and of their checkpoints.

use super::{instant, now};
use tollgate_core::contract::{MeterName, PaidLine, Receipt};
use tollgate_core::lanes::queue::DEAD_MAX_DEFAULT;
use tollgate_core::lanes::{
    Backoff, BodyPath, CallId, Effect, Kept, OnDead, Order, QueueSpec, QueueToll, Revision, Scalar,
    Scope, TollPartition, TollWeight, TollWhen,
};
use tollgate_core::rule::slots::HoldId;
use tollgate_core::{
    Definition, Key, LaneName, Limit, LimitName, Partition, Payment, Priority, QueueName, Span,
};

pub(super) fn golden() -> Vec<(&'static str, Effect)> {
    settings().into_iter().chain(receipts_and_records()).chain(kept()).collect()
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn settings() -> Vec<(&'static str, Effect)> {
    let day = Span::from_days(1);
    let windows = Limit::fixed_window(2, Span::from_secs(1))
        .and(Limit::fixed_window(3, day).on_calendar("Europe/Berlin"));
    let limits = Limit::per_second(5).burst(10).guard(Span::from_nanos(1)).and(windows);
    vec![
        ("01 0006737472697065 8580c8a19b92f5d918 05", limit_defined(None)),
        (
            "01 0106737472697065 8580c8a19b92f5d918 05 03 \
             01058094ebdc030a01 02028094ebdc0300 03038080bc8ac9d213000d4575726f70652f4265726c696e",
            limit_defined(Some(limits)),
        ),
        (
            "01 0106737472697065 8580c8a19b92f5d918 05 02 04078080bc8ac9d21300 0514",
            limit_defined(Some(Limit::sliding_window(7, day).and(Limit::concurrency(20)))),
        ),
        (
            "01 0106737472697065 8580c8a19b92f5d918 05 02 04078080bc8ac9d21300 0680ade204",
            limit_defined(Some(Limit::sliding_window(7, day).ahead(Span::from_millis(10)))),
        ),
        (
            "01 0106737472697065 8580c8a19b92f5d918 05 03 04078080bc8ac9d21300 0680ade204 0701",
            limit_defined(Some(
                Limit::sliding_window(7, day).ahead(Span::from_millis(10)).spread(),
            )),
        ),
        (
            "1e 06737472697065 8580c8a19b92f5d918 05 02 04078080bc8ac9d21300 0514",
            limit_came(Limit::sliding_window(7, day).and(Limit::concurrency(20))),
        ),
        (
            "02 046d61696c 01c801 01 02 03 ffffffff0f 04 05 0d 06 07 00 19 027b7d",
            Effect::QueueDefined {
                name: queue(),
                spec: Box::new(QueueSpec {
                    backoff: Backoff { jitter: 25, ..spec().backoff },
                    delivery: Some((*b"{}").into()),
                    tolls: vec![],
                    ..spec()
                }),
            },
        ),
        (
            "02 046d61696c 00 80d88ee16f 14 03 64 8094ebdc03 80f092cbdd08 00 c0843d 80e0a596bb11 00",
            Effect::QueueDefined { name: queue(), spec: Box::new(QueueSpec::default()) },
        ),
        (
            "02 046d61696c 01c801 01 02 03 ffffffff0f 04 05 01 06 07 02 \
             020673747269706509 010673747269706503616c6c",
            Effect::QueueDefined { name: queue(), spec: Box::new(spec()) },
        ),
        (
            "02 046d61696c 01c801 01 02 03 ffffffff0f 04 05 03 06 07 02 \
             020673747269706509 010673747269706503616c6c 00",
            Effect::QueueDefined {
                name: queue(),
                spec: Box::new(QueueSpec { dead_max: 0, ..spec() }),
            },
        ),
        (
            "02 046d61696c 01c801 01 02 03 ffffffff0f 04 05 11 06 07 00",
            Effect::QueueDefined {
                name: queue(),
                spec: Box::new(QueueSpec { tolls: vec![], tells_accepted: true, ..spec() }),
            },
        ),
        (
            "02 046d61696c 01c801 01 02 03 ffffffff0f 04 05 0d 06 07 00 19 027b7d",
            Effect::QueueDefined {
                name: queue(),
                spec: Box::new(QueueSpec {
                    backoff: Backoff { jitter: 25, ..spec().backoff },
                    delivery: Some((*b"{}").into()),
                    tolls: vec![],
                    ..spec()
                }),
            },
        ),
        (
            "02 046d61696c 00 80d88ee16f 14 03 64 8094ebdc03 80f092cbdd08 00 c0843d 80e0a596bb11 02 \
             68 06737472697065 0106626f64792e70026575 0306626f64792e770205 04626f6479000178 \
             54 06737472697065 026575 07 06626f64792e6b0101",
            Effect::QueueDefined {
                name: queue(),
                spec: Box::new(QueueSpec { tolls: tolls_in_bodies(), ..QueueSpec::default() }),
            },
        ),
        ("1b 046d61696c", Effect::QueueRemoved(queue())),
        ("22 06737472697065", Effect::LimitWent(limit())),
        ("03 046d61696c016164", Effect::LaneWeighed { queue: queue(), lane: lane(), weight: 100 }),
        ("04 00046d61696c", Effect::Paused(Scope::Queue(queue()))),
        ("04 01046d61696c0161", Effect::Paused(Scope::Lane(queue(), lane()))),
        ("05 0206737472697065", Effect::Resumed(Scope::Limit(limit()))),
        ("06 0006737472697065", Effect::Reopened { limit: limit(), partition: None }),
        ("17 0006737472697065026575 8580c8a19b92f5d918 05", partition_defined(None)),
        (
            "17 0106737472697065026575 8580c8a19b92f5d918 05 01 0514",
            partition_defined(Some(Limit::concurrency(20))),
        ),
        (
            "18 0106737472697065026575 8580c8a19b92f5d918 05c60f 03776879",
            Effect::ClosedBy {
                meter: meter(),
                until: instant(1_000),
                reason: "why".into(),
                now: now(),
            },
        ),
        ("1a 0006737472697065 06", Effect::Allowed { meter: (limit(), None), units: 6 }),
        (
            "19 0006737472697065 8580c8a19b92f5d918 05",
            Effect::Reset { meter: (limit(), None), now: now() },
        ),
        ("06 0106737472697065026575", Effect::Reopened { limit: limit(), partition: meter().1 }),
    ]
}

fn receipts_and_records() -> Vec<(&'static str, Effect)> {
    let (id, now) = (300, now());
    let expires = instant(60);
    let owed = [(meter(), 2), ((limit(), None), 3)].into();
    let meters = [meter()].into();
    let receipt = Box::new(Receipt { id, expires, lines: vec![line()] });
    let (actual, remembered) = ([4].into(), instant(70));
    let written = |bytes| Effect::Written { key: key(), revision: Revision(129), bytes };
    vec![
        (
            "10 ac02 8580c8a19b92f5d918 05046e02010673747269706502657502000673747269706503",
            Effect::Paid { id, owed, now, starts: instant(7), expires },
        ),
        (
            "11 ac02 8580c8a19b92f5d918 056e010106737472697065026575",
            Effect::ReceiptRenewed { id, meters, now, expires },
        ),
        (
            "12 8580c8a19b92f5d918 058201ac026e01010673747269706502657501010400000506ac020104",
            Effect::ReceiptSettled { receipt, actual, now, remembered },
        ),
        ("13 00076f726465722f318101", written(None)),
        ("13 01076f726465722f318101057374617465", written(Some(b"state".as_slice().into()))),
        ("14 076f726465722f3100", Effect::Counted { key: key(), left: 0 }),
    ]
}

fn kept() -> Vec<(&'static str, Effect)> {
    let until = instant(9);
    let counters =
        Kept::Counters { ids: 1, tokens: 128, arrivals: u64::MAX, revisions: 0, now: until };
    let open = Kept::Meter { name: meter(), words: [1, 300].into(), closed: None };
    let closed = Some((until, "upstream".into()));
    let closed = Kept::Meter { name: (limit(), None), words: [].into(), closed };
    let lane = |is_paused, is_held| {
        let (queue, lane) = (queue(), lane());
        Kept::Lane { queue, lane, is_paused, is_held, weight: 1 }
    };
    let kept = [
        ("40 018001ffffffffffffffffff0100 8980c8a19b92f5d918", counters),
        ("41 01067374726970650265750201ac0200", open),
        ("41 00067374726970650001 8980c8a19b92f5d918 08757073747265616d", closed),
        ("42 01046d61696c016101", lane(true, false)),
        ("42 02046d61696c016101", lane(false, true)),
        (
            "44 046d61696c076f726465722f31ac02 8980c8a19b92f5d918",
            Kept::Dedupe { queue: queue(), key: key(), id: CallId(300), until },
        ),
        ("45 ac02 8980c8a19b92f5d918", Kept::Receipt { id: 300, until }),
    ];
    kept.map(|(hex, kept)| (hex, Effect::Kept(kept))).into()
}

fn limit_defined(definition: Option<Limit>) -> Effect {
    let definition = definition.map(|limit| Box::new(Definition::new(limit).unwrap()));
    Effect::LimitDefined { name: limit(), definition, now: now() }
}

fn limit_came(limit: Limit) -> Effect {
    let definition = Box::new(Definition::new(limit).unwrap());
    Effect::LimitCame { name: self::limit(), definition, now: now() }
}

fn partition_defined(definition: Option<Limit>) -> Effect {
    let definition = definition.map(|limit| Box::new(Definition::new(limit).unwrap()));
    let partition = Partition::new("eu").unwrap();
    Effect::PartitionDefined { limit: limit(), partition, definition, now: now() }
}

/// A queue with nothing as usual.
/// A toll that is read from the body in every way, and one that is fixed in every way.
fn tolls_in_bodies() -> Vec<QueueToll> {
    let path = |text| BodyPath::new(text).unwrap();
    let when = |text, is| Some(TollWhen { path: path(text), is });
    let read = QueueToll {
        partition: TollPartition::Body { path: path("body.p"), default: meter().1 },
        weight: TollWeight::Body { path: path("body.w"), default: Some(2), max: Some(5) },
        when: when("body", Scalar::Text("x".into())),
        ..QueueToll::new(limit())
    };
    let fixed = QueueToll {
        partition: TollPartition::Fixed(meter().1.unwrap()),
        weight: TollWeight::Fixed(7),
        when: when("body.k", Scalar::Number(-1)),
        ..QueueToll::new(limit())
    };
    vec![read, fixed]
}

fn spec() -> QueueSpec {
    let toll = |like, priority| QueueToll { like, priority, ..QueueToll::new(limit()) };
    QueueSpec {
        order: Order::Parallel(200),
        lease: Span::from_nanos(1),
        failures_max: 2,
        crashes_max: 3,
        limited_max: u32::MAX,
        backoff: Backoff::doubling(Span::from_nanos(4), Span::from_nanos(5)),
        on_dead: OnDead::Hold,
        depth_max: 6,
        dead_max: DEAD_MAX_DEFAULT,
        dedupe: Span::from_nanos(7),
        tolls: vec![toll(None, Some(Priority::MAX)), toll(LimitName::new("all").ok(), None)],
        delivery: None,
        tells_accepted: false,
    }
}

fn line() -> PaidLine {
    let (limit, partition) = meter();
    let payment = Payment {
        weight: 4,
        paid_at: instant(5),
        starts: now(),
        hold: Some(HoldId(300)),
        sequence: 6,
        promised: 1,
    };
    PaidLine { limit, partition, payment }
}

fn meter() -> MeterName {
    (limit(), Partition::new("eu").ok())
}

fn limit() -> LimitName {
    LimitName::new("stripe").unwrap()
}

fn queue() -> QueueName {
    QueueName::new("mail").unwrap()
}

fn lane() -> LaneName {
    LaneName::new("a").unwrap()
}

fn key() -> Key {
    Key::new("order/1").unwrap()
}
