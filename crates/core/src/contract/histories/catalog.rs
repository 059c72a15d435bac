//! What there is in a history: a few limits, queues and names, so that things meet.

use crate::lanes::{
    BodyPath, OnDead, Order, Payload, QueueSpec, QueueToll, Scalar, TollPartition, TollWeight,
    TollWhen,
};
use crate::limit::{Definition, Limit};
use crate::name::{Key, LaneName, LimitName, Partition, QueueName};
use crate::time::Span;
use crate::turn::Priority;

/// Small enough that calls meet at them; the first weight that is too much is 5, 4, 3 or 4.
pub fn definition(rule: usize) -> Definition {
    let second = Span::from_secs(1);
    let limit = match rule {
        0 => Limit::per(1, second).burst(4),
        1 => Limit::sliding_window(3, second),
        2 => Limit::concurrency(2),
        _ => Limit::fixed_window(3, second).and(Limit::concurrency(3)),
    };
    Definition::new(limit).unwrap()
}

pub fn spec(which: usize) -> QueueSpec {
    let few = QueueSpec {
        lease: Span::from_secs(10),
        failures_max: 3,
        crashes_max: 2,
        limited_max: 3,
        depth_max: 20,
        dead_max: 4,
        ..QueueSpec::default()
    };
    match which {
        0 => few,
        1 => QueueSpec { order: Order::Parallel(2), dead_max: 2, tells_accepted: true, ..few },
        3 => {
            let (bucket, sliding, slots) = (limit_name(0), limit_name(1), limit_name(2));
            let (like, priority) = (Some(sliding), Some(Priority::default()));
            let share = QueueToll { like, ..QueueToll::new(bucket) };
            QueueSpec { tolls: vec![share, QueueToll { priority, ..QueueToll::new(slots) }], ..few }
        }
        4 => QueueSpec { order: Order::Parallel(3), tolls: read_from_body(), ..few },
        _ => QueueSpec { on_dead: OnDead::Hold, depth_max: 6, ..few },
    }
}

/// Tolls whose partition, weight and condition are told by some of the bodies.
fn read_from_body() -> Vec<QueueToll> {
    let path = |text| BodyPath::new(text).unwrap();
    let (bucket, both) = (QueueToll::new(limit_name(0)), QueueToll::new(limit_name(3)));
    let partition = TollPartition::Body { path: path("body.p"), default: partition(true) };
    let weight = TollWeight::Body { path: path("body.w"), default: None, max: Some(3) };
    let when = TollWhen { path: path("body.k"), is: Scalar::Number(1) };
    let learned = TollWeight::Learned { default: 1, max: None };
    vec![
        QueueToll { partition, weight, ..bucket },
        QueueToll { when: Some(when), priority: Some(Priority::default()), ..both },
        QueueToll { weight: learned, ..QueueToll::new(limit_name(1)) },
    ]
}

/// Some bodies are in an envelope, and one is large.
pub fn payload(which: usize) -> Payload {
    let bodies =
        ["", r#"{"w": 2}"#, r#"{"p": "part", "w": 9, "k": 1}"#, r#"{"p": 7, "w": 0}"#, "no"];
    let envelope: &[u8] = if which.is_multiple_of(2) { b"to whom" } else { b"" };
    let large = || format!(r#"{{"w": 1, "more": "{}"}}"#, "more".repeat(700));
    let body = bodies.get(which).map_or_else(large, |body| (*body).to_owned());
    Payload::new(envelope, body.as_bytes()).unwrap()
}

pub fn queue_name(queue: usize) -> QueueName {
    QueueName::new(["one", "two"][queue]).unwrap()
}

pub fn lane_name(lane: usize) -> LaneName {
    LaneName::new(["a", "b", "c"][lane]).unwrap()
}

pub fn limit_name(limit: usize) -> LimitName {
    LimitName::new(["bucket", "sliding", "slots", "both", "comes"][limit]).unwrap()
}

pub fn partition(is_given: bool) -> Option<Partition> {
    is_given.then(part)
}

pub fn part() -> Partition {
    Partition::new("part").unwrap()
}

pub fn key(key: usize) -> Key {
    Key::new(["first", "second"][key]).unwrap()
}
