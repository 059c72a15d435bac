//! Paying at meters without a lane: now or later, all or nothing.

use super::*;
use std::collections::BTreeSet;

pub async fn an_ask_pays_all_its_tolls_or_none(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(5)).await;
    world.limit("m", Limit::per_hour(1)).await;
    assert!(world.consume(asking([("l", 2), ("m", 1)])).await.is_ok());
    let refusal = world.refused(asking([("l", 2), ("m", 1)])).await;
    assert_eq!((refusal.limit, refusal.cause), (limit_name("m"), Cause::Spent));
    assert_eq!(world.inspect("l").await.standing.remaining, 3);
}

pub async fn to_peek_is_to_be_told_what_an_ask_would_and_to_pay_nothing(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per(2, Span::from_secs(2))).await;
    for _ in 0..2 {
        let peeked = world.store().peek(vec![asking([("l", 1)])]).await.unwrap();
        assert_eq!(peeked[0].as_ref().unwrap().remaining, 2);
    }
    let _ = world.consume(asking([("l", 2)])).await.unwrap();
    let refused = world.consume(asking([("l", 1)])).await.unwrap_err();
    let peeked = world.store().peek(vec![asking([("l", 1)])]).await.unwrap();
    assert_eq!(peeked, [Err(refused)]);
}

pub async fn a_refused_ask_is_told_exactly_when_to_come_back(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per(3, Span::from_secs(1))).await;
    assert!(world.consume(asking([("l", 3)])).await.is_ok());
    let Opening::At(opens) = world.refused(asking([("l", 2)])).await.opening else { panic!() };
    world.wait_for(Span::from_nanos(opens.since(world.now.at).as_nanos() - 1));
    world.refused(asking([("l", 2)])).await;
    world.wait_for(Span::from_nanos(1));
    assert!(world.consume(asking([("l", 2)])).await.is_ok());
}

pub async fn what_can_never_be_paid_is_refused_for_good(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(5)).await;
    assert_eq!(world.consume(asking([])).await, Err(AskError::NoToll));
    let unknown = TollError::UnknownLimit { limit: limit_name("none") };
    assert_eq!(world.consume(asking([("none", 1)])).await, Err(unknown.into()));
    let (limit, weight, capacity) = (limit_name("l"), 6, 5);
    let over = TollError::WeightOverCapacity { limit, weight, capacity };
    assert_eq!(world.consume(asking([("l", 3), ("l", 3)])).await, Err(over.into()));
}

pub async fn slots_cannot_be_promised_for_later(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::concurrency(1)).await;
    let later = Ask { delay_max: Some(Span::from_secs(1)), ..asking([("l", 1)]) };
    let refused = AskError::DelayWithSlots { limit: limit_name("l") };
    assert_eq!(world.consume(later).await, Err(refused));
}

pub async fn a_refusal_says_when_it_was_so(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(1)).await;
    let _ = world.consume(asking([("l", 1)])).await.unwrap();
    world.wait_for(Span::from_millis(300));
    assert_eq!(world.refused(asking([("l", 1)])).await.now, world.now.at);
}

pub async fn asks_of_one_batch_are_decided_in_order(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(5)).await;
    world.limit("m", Limit::per_hour(5)).await;
    let asks = vec![
        asking([("l", 3)]),
        asking([("l", 3), ("m", 1)]),
        asking([("m", 5)]),
        asking([("l", 2)]),
        asking([("l", 1)]),
    ];
    let answers = world.store().consume(asks).await.unwrap();
    let is_paid: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(is_paid, [true, false, true, true, false]);
    let names: BTreeSet<_> = answers.iter().flatten().map(|paid| paid.receipt.key()).collect();
    assert_eq!(names.len(), 3, "each receipt has a name of its own");
}

pub async fn partitions_do_not_share_a_budget(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(2)).await;
    let pay = |name: Option<&str>| {
        let partition = name.map(|name| Partition::new(name).unwrap());
        Ask { tolls: [Toll { partition, ..toll("l", 2) }].into(), ..asking([]) }
    };
    for partition in [Some("a"), None, Some("b")] {
        assert!(world.consume(pay(partition)).await.is_ok(), "{partition:?}");
    }
    for partition in [Some("a"), None, Some("b")] {
        let refusal = world.refused(pay(partition)).await;
        assert_eq!(refusal.partition.as_deref(), partition);
    }
}

pub async fn two_tolls_of_an_ask_at_one_meter_add_up(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(5)).await;
    let paid = world.consume(asking([("l", 2), ("l", 1)])).await.unwrap();
    assert_eq!(paid.receipt.lines.len(), 1);
    assert_eq!((paid.receipt.lines[0].payment.weight, paid.standing.remaining), (3, 2));
    world.refused(asking([("l", 1), ("l", 2)])).await;
    assert!(world.consume(asking([("l", 1), ("l", 1)])).await.is_ok());
}

pub async fn the_tightest_meter_of_an_ask_is_told(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("wide", Limit::per_hour(50)).await;
    world.limit("narrow", Limit::per_hour(5)).await;
    let paid = world.consume(asking([("wide", 1), ("narrow", 1)])).await.unwrap();
    assert_eq!(paid.receipt.lines[paid.tightest].limit, limit_name("narrow"));
    assert_eq!((paid.standing.remaining, paid.starts), (4, world.now.at));
}

pub async fn a_promise_is_kept_against_asks_that_come_later(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(1)).await;
    let later = |seconds| Ask { delay_max: Some(Span::from_secs(seconds)), ..asking([("l", 1)]) };
    for seconds in [0, 1, 2] {
        let paid = world.consume(later(2)).await.unwrap();
        assert_eq!(paid.starts, world.after(seconds));
    }
    assert_eq!(world.refused(later(2)).await.opening, Opening::At(world.after(3)));
    for _ in 0..3 {
        world.refused(asking([("l", 1)])).await;
        world.wait(1);
    }
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
}

pub async fn a_promise_waits_for_the_last_of_its_meters(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(1)).await;
    world.limit("m", Limit::per(1, Span::from_secs(3))).await;
    let _ = world.consume(asking([("l", 1), ("m", 1)])).await.unwrap();
    let both = Ask { delay_max: Some(Span::from_secs(5)), ..asking([("l", 1), ("m", 1)]) };
    assert_eq!(world.consume(both).await.unwrap().starts, world.after(3));
    world.wait(1);
    assert!(world.consume(asking([("l", 1)])).await.is_ok(), "before the promise there is time");
}

pub async fn every_kind_of_rule_lets_pass_as_much_as_it_says(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    let minute = Span::from_minutes(1);
    let kinds = [
        ("bucket", Limit::per(3, minute)),
        ("fixed", Limit::fixed_window(3, minute)),
        ("sliding", Limit::sliding_window(3, minute)),
        ("calendar", Limit::fixed_window(3, minute).on_calendar("UTC")),
        ("both", Limit::per(3, minute).and(Limit::concurrency(9))),
    ];
    for (name, limit) in kinds.clone() {
        world.limit(name, limit).await;
        for _ in 0..3 {
            assert!(world.consume(asking([(name, 1)])).await.is_ok(), "{name}");
        }
        assert_eq!(world.refused(asking([(name, 1)])).await.cause, Cause::Spent, "{name}");
    }
    world.wait(60);
    for (name, _) in kinds {
        assert!(world.consume(asking([(name, 3)])).await.is_ok(), "{name}");
    }
}
