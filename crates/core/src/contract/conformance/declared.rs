//! What a queue asks of all its calls, read from their bodies.

use super::*;
use crate::lanes::{BodyPath, Scalar, TollPartition, TollWeight, TollWhen};

/// A world with a limit of ten an hour, `l`, and a queue `tolled` whose calls owe there.
async fn tolled<S: Stage>(stage: S, toll: impl FnOnce(QueueToll) -> QueueToll) -> World<S> {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(10)).await;
    let spec = tolling(toll(QueueToll::new(limit_name("l"))));
    world.queue("tolled", spec).await;
    world
}

fn tolling(toll: QueueToll) -> QueueSpec {
    QueueSpec { order: Order::Parallel(100), tolls: vec![toll], ..QueueSpec::default() }
}

fn path(text: &str) -> BodyPath {
    BodyPath::new(text).unwrap()
}

fn partition(name: &str) -> Partition {
    Partition::new(name).unwrap()
}

fn saying(body: &str) -> NewCall {
    NewCall { payload: body.as_bytes().into(), ..call("tolled", "a") }
}

impl<S: Stage> World<S> {
    /// What a call with this body owes: partitions and weights.
    async fn owed(&mut self, body: &str) -> Vec<(Option<String>, u64)> {
        let id = self.enqueue(saying(body)).await;
        let view = self.store().look(vec![id]).await.unwrap().remove(0).unwrap();
        let owed = view.tolls.into_iter();
        owed.map(|toll| (toll.partition.map(|it| it.to_string()), toll.weight)).collect()
    }

    /// Why a call with this body is refused.
    async fn unreadable(&mut self, body: &str) -> TollError {
        match self.try_enqueue(saying(body)).await {
            Err(ActError::Toll { at: 0, error }) => error,
            other => panic!("{other:?}"),
        }
    }
}

fn named(name: &str) -> Vec<(Option<String>, u64)> {
    vec![(Some(name.to_owned()), 1)]
}

fn weighing(weight: u64) -> Vec<(Option<String>, u64)> {
    vec![(None, weight)]
}

pub async fn a_partition_is_read_from_the_body(stage: impl Stage) {
    let partition = TollPartition::Body { path: path("body.to.tenant"), default: None };
    let mut world = tolled(stage, |toll| QueueToll { partition, ..toll }).await;
    assert_eq!(world.owed(r#"{"to": {"tenant": "acme"}}"#).await, named("acme"));
    assert_eq!(world.owed(r#"{"to": {"tenant": 42}}"#).await, named("42"));
    for _ in 0..9 {
        world.owed(r#"{"to": {"tenant": "acme"}}"#).await;
    }
    world.owed(r#"{"to": {"tenant": "acme"}}"#).await;
    assert_eq!(world.claim("tolled", 20).await.len(), 11, "ten of one and one of the other");
}

pub async fn a_weight_is_read_from_the_body(stage: impl Stage) {
    let weight = TollWeight::Body { path: path("body.items.length"), default: None, max: None };
    let mut world = tolled(stage, |toll| QueueToll { weight, ..toll }).await;
    assert_eq!(world.owed(r#"{"items": [1, 2, 3]}"#).await, weighing(3));
    assert_eq!(world.owed(r#"{"items": [1, 2, 3, 4, 5, 6, 7, 8]}"#).await, weighing(8));
    assert_eq!(world.claim("tolled", 20).await.len(), 1);
    let (limit, weight, capacity) = (limit_name("l"), 11, 10);
    let refused = world.unreadable(r#"{"items": "of 11 bytes"}"#).await;
    assert_eq!(refused, TollError::WeightOverCapacity { limit, weight, capacity });
}

pub async fn what_the_body_does_not_say_is_refused_or_as_the_queue_says(stage: impl Stage) {
    let weight = |default| TollWeight::Body { path: path("body.w"), default, max: None };
    let partition = |default| TollPartition::Body { path: path("body.p"), default };
    let mut world = tolled(stage, |toll| QueueToll { weight: weight(None), ..toll }).await;
    for (body, found) in [
        ("", "nothing"),
        ("{}", "nothing"),
        (r#"{"w": 1.5}"#, "1.5, which is no whole number"),
        (r#"{"w": 0}"#, "the number 0"),
        (r#"{"w": -3}"#, "the number -3"),
        (r#"{"w": 18446744073709551616}"#, "the number 18446744073709551616"),
        (r#"{"w": "3"}"#, "a text of 1 bytes"),
        (r#"{"w": null}"#, "null"),
    ] {
        let (limit, path, found) = (limit_name("l"), path("body.w"), found.to_owned());
        let expected = TollError::NoWeight { limit, path, found };
        assert_eq!(world.unreadable(body).await, expected, "{body}");
    }
    let toll = QueueToll { partition: partition(None), ..QueueToll::new(limit_name("l")) };
    world.queue("tolled", tolling(toll)).await;
    let long = format!(r#"{{"p": "{}"}}"#, "x".repeat(513));
    for (body, found) in [
        (r#"{"q": 1}"#, "nothing"),
        (r#"{"p": ""}"#, "an empty text"),
        (r#"{"p": true}"#, "true"),
        (r#"{"p": ["a"]}"#, "a list"),
        (&long, "a text of 513 bytes"),
    ] {
        let (limit, path, found) = (limit_name("l"), path("body.p"), found.to_owned());
        let expected = TollError::NoPartition { limit, path, found };
        assert_eq!(world.unreadable(body).await, expected, "{body}");
    }
    let partition = partition(Some(self::partition("others")));
    let toll = QueueToll::new(limit_name("l"));
    let toll = QueueToll { partition, weight: weight(Some(2)), ..toll };
    world.queue("tolled", tolling(toll)).await;
    for body in ["", "{}", r#"{"w": 0.5, "p": {}}"#, r#"{"w": 0, "p": ""}"#] {
        assert_eq!(world.owed(body).await, [(Some("others".to_owned()), 2)], "{body}");
    }
}

pub async fn a_weight_over_the_max_counts_as_the_max(stage: impl Stage) {
    let weight = TollWeight::Body { path: path("body.w"), default: None, max: Some(4) };
    let mut world = tolled(stage, |toll| QueueToll { weight, ..toll }).await;
    for (body, weight) in
        [(r#"{"w": 4}"#, 4), (r#"{"w": 5}"#, 4), (r#"{"w": 99999999999999999999}"#, 4)]
    {
        assert_eq!(world.owed(body).await, weighing(weight), "{body}");
    }
    assert!(matches!(world.unreadable("{}").await, TollError::NoWeight { .. }));
}

pub async fn a_toll_is_owed_only_when_the_body_says_so(stage: impl Stage) {
    let mut world = tolled(stage, |toll| toll).await;
    for (is, owing) in [
        (Scalar::Text("bulk".into()), r#"{"kind": "b\u0075lk"}"#),
        (Scalar::Number(-7), r#"{"kind": -7}"#),
        (Scalar::Truth(true), r#"{"kind": true}"#),
    ] {
        let when = Some(TollWhen { path: path("body.kind"), is });
        let toll = QueueToll { when, ..QueueToll::new(limit_name("l")) };
        world.queue("tolled", tolling(toll)).await;
        assert_eq!(world.owed(owing).await, weighing(1), "{owing}");
        for other in ["", "{}", r#"{"kind": "other"}"#, r#"{"kind": 7}"#, r#"{"kind": false}"#] {
            assert_eq!(world.owed(other).await, [], "{other}");
        }
    }
}

pub async fn a_body_that_is_not_json_is_refused_only_where_it_is_read(stage: impl Stage) {
    let partition = TollPartition::Fixed(partition("acme"));
    let mut world = tolled(stage, |toll| QueueToll { partition, ..toll }).await;
    assert_eq!(world.owed("charge 42").await, named("acme"));
    let default = Some(self::partition("others"));
    let partition = TollPartition::Body { path: path("body.p"), default };
    let priority = Some(priority(0));
    let toll = QueueToll { partition, priority, ..QueueToll::new(limit_name("l")) };
    world.queue("tolled", tolling(toll)).await;
    let expected = TollError::BodyNotJson { limit: limit_name("l"), path: path("body.p") };
    assert_eq!(world.unreadable("charge 42").await, expected);
    let urgent = NewCall { priority: self::priority(1), ..saying("charge 42") };
    assert!(world.try_enqueue(urgent).await.is_ok(), "a call that does not owe there");
}

pub async fn what_is_owed_stays_as_it_was_when_the_call_was_enqueued(stage: impl Stage) {
    let weight = TollWeight::Body { path: path("body.w"), default: None, max: None };
    let mut world = tolled(stage, |toll| QueueToll { weight, ..toll }).await;
    let id = world.enqueue(saying(r#"{"w": 10}"#)).await;
    world
        .queue("tolled", QueueSpec { tolls: vec![], ..tolling(QueueToll::new(limit_name("l"))) })
        .await;
    assert_eq!(world.claim("tolled", 10).await, [id]);
    assert_eq!(world.inspect("l").await.standing.remaining, 0);
}

pub async fn a_toll_that_could_weigh_nothing_or_is_like_two_things_is_refused(stage: impl Stage) {
    let mut world = tolled(stage, |toll| toll).await;
    let limit = || limit_name("l");
    let read = |default, max| TollWeight::Body { path: path("body.w"), default, max };
    for weight in
        [TollWeight::Fixed(0), read(Some(0), None), read(None, Some(0)), read(Some(5), Some(4))]
    {
        let toll = QueueToll { weight, ..QueueToll::new(limit()) };
        let refused = world.define_queue("tolled", tolling(toll)).await;
        assert_eq!(refused, Err(QueueError::TollWeight { limit: limit() }));
    }
    let like = Some(limit_name("other"));
    let toll = QueueToll { like, weight: TollWeight::Fixed(2), ..QueueToll::new(limit()) };
    let refused = world.define_queue("tolled", tolling(toll)).await;
    assert_eq!(refused, Err(QueueError::TollLike { limit: limit() }));
}

pub async fn a_queue_estimates_by_what_its_calls_cost_in_truth(stage: impl Stage) {
    let weight = TollWeight::Learned { default: 2, max: None };
    let mut world = tolled(stage, |toll| QueueToll { weight, ..toll }).await;
    world.limit("l", Limit::per_hour(10_000)).await;
    let own = paying("tolled", "b", [("l", 5)]);
    for cost in 1..=16 {
        assert_eq!(world.owed("").await, weighing(2), "too little is known");
        let id = world.claim("tolled", 1).await[0];
        let (lease, actual) = (world.leases[&id], vec![(limit_name("l"), 10 * cost)]);
        let settle = Settle { actual, ..Settle::new(lease, Settlement::Done) };
        let _ = world.act(Act { settle: vec![settle], ..Act::default() }).await.unwrap();
    }
    assert_eq!(world.owed("").await, weighing(160), "95 of 100");
    let id = world.enqueue(own).await;
    let view = world.store().look(vec![id]).await.unwrap().remove(0).unwrap();
    assert_eq!(view.tolls.iter().map(|toll| toll.weight).collect::<Vec<_>>(), [5], "its own");
    world.limit("l", Limit::per_hour(50)).await;
    assert_eq!(world.owed("").await, weighing(50), "no more than can ever pass");
    let spec = |weight| tolling(QueueToll { weight, ..QueueToll::new(limit_name("l")) });
    world.queue("tolled", spec(TollWeight::Learned { default: 2, max: Some(7) })).await;
    assert_eq!(world.owed("").await, weighing(7));
}
