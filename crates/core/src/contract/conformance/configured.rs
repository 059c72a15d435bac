//! Changes of limits: whole or not at all, with what was spent and the records beside them.

use super::*;
use crate::contract::{ConfigureError, MeterError};
use crate::lanes::{Revision, Write};

fn defined(units: u64) -> Option<Definition> {
    Some(Definition::new(Limit::per_hour(units)).unwrap())
}

fn part(name: &str) -> Partition {
    Partition::new(name).unwrap()
}

fn write(name: &str, expected: u64, bytes: &[u8]) -> Write {
    Write { key: key(name), expected: Revision(expected), bytes: Some(bytes.into()) }
}

impl<S: MetersStage> World<S> {
    /// The limits that are there, with what their rules let pass at once.
    async fn capacities(&self) -> Vec<(String, u64)> {
        let limits = self.store().limits(None, 10).await.unwrap().into_iter();
        limits.map(|it| (it.name.as_str().to_owned(), it.definition.capacity())).collect()
    }

    /// What a meter lets pass at once.
    async fn capacity(&self, limit: &str, partition: Option<&str>) -> Option<u64> {
        let meter = (limit_name(limit), partition.map(part));
        let state = self.store().inspect(vec![meter]).await.unwrap().remove(0);
        state.map(|state| state.definition.capacity())
    }
}

pub async fn a_change_after_the_clock_was_set_back_does_not_multiply_what_was_spent(
    stage: impl MetersStage,
) {
    let mut world = World::of_limits(stage);
    let daily = |limit| Limit::fixed_window(limit, Span::from_days(1)).on_calendar("UTC");
    world.limit("l", Limit::fixed_window(3, Span::from_secs(1)).on_calendar("UTC")).await;
    world.set_wall(world.now.wall.plus(Span::from_days(2)));
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    world.set_wall(world.now.wall.minus(Span::from_days(2)));
    world.limit("l", daily(3)).await;
    assert_eq!(world.inspect("l").await.standing.remaining, 2);
}

pub async fn a_change_with_a_stale_revision_does_nothing_at_all(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(5)).await;
    world
        .configure(Configure { write: vec![write("r", 0, b"1")], ..<_>::default() })
        .await
        .unwrap();
    let found = world.record(key("r")).await.unwrap().revision;
    let stale = Configure {
        write: vec![write("s", 0, b"2"), write("r", 0, b"2")],
        limits: vec![(limit_name("l"), defined(9)), (limit_name("new"), defined(9))],
        overrides: vec![(limit_name("l"), part("a"), defined(9))],
    };
    let refused = world.configure(stale.clone()).await;
    assert_eq!(refused, Err(ConfigureError::RevisionDiffers { at: 1, found }));
    assert_eq!(world.record(key("s")).await, None);
    assert_eq!(world.record(key("r")).await.unwrap().bytes[..], *b"1");
    assert_eq!(world.capacities().await, [("l".to_owned(), 5)]);
    assert_eq!(world.capacity("l", Some("a")).await, Some(5));
    let write = vec![write("s", 0, b"2"), Write { expected: found, ..write("r", 0, b"2") }];
    world.configure(Configure { write, ..stale }).await.unwrap();
    assert_eq!(world.capacities().await, [("l".to_owned(), 9), ("new".to_owned(), 9)]);
    assert_eq!(world.record(key("r")).await.unwrap().bytes[..], *b"2");
    assert!(world.record(key("r")).await.unwrap().revision != found);
}

pub async fn a_partition_of_an_unknown_limit_refuses_the_whole_change(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(5)).await;
    let unknown = |limit: &str| Err(MeterError::UnknownLimit { limit: limit_name(limit) }.into());
    let change = |limits, limit: &str| Configure {
        write: vec![write("r", 0, b"1")],
        limits,
        overrides: vec![
            (limit_name("l"), part("a"), defined(7)),
            (limit_name(limit), part("a"), defined(7)),
        ],
    };
    let other = vec![(limit_name("m"), defined(3))];
    assert_eq!(world.configure(change(other, "none")).await, unknown("none"));
    let removed = vec![(limit_name("l"), None)];
    assert_eq!(world.configure(change(removed, "l")).await, unknown("l"), "it is gone by then");
    assert_eq!(world.record(key("r")).await, None);
    assert_eq!(world.capacities().await, [("l".to_owned(), 5)]);
    assert_eq!(world.capacity("l", Some("a")).await, Some(5));
}

pub async fn a_limit_and_its_partitions_come_and_go_in_one_change(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    let change = |common, own| Configure {
        limits: vec![(limit_name("l"), common)],
        overrides: vec![(limit_name("l"), part("a"), own)],
        ..Configure::default()
    };
    world.configure(change(defined(5), defined(7))).await.unwrap();
    assert_eq!(world.capacity("l", Some("a")).await, Some(7));
    assert_eq!(world.capacity("l", Some("b")).await, Some(5));
    world.configure(change(None, None)).await.unwrap();
    assert_eq!(world.capacities().await, []);
    assert_eq!(world.capacity("l", Some("a")).await, None);
    world.limit("l", Limit::per_hour(6)).await;
    assert_eq!(world.capacity("l", Some("a")).await, Some(6), "its own rules went with the limit");
}

pub async fn taking_away_what_is_not_there_changes_nothing(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    let change = Configure {
        limits: vec![(limit_name("l"), None)],
        overrides: vec![(limit_name("l"), part("a"), None), (limit_name("m"), part("a"), None)],
        ..Configure::default()
    };
    assert_eq!(world.configure(change).await, Ok(()));
    assert_eq!(world.capacities().await, []);
}

pub async fn a_record_that_is_removed_and_written_again_has_a_revision_of_its_own(
    stage: impl MetersStage,
) {
    let mut world = World::of_limits(stage);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let write = vec![write("r", 0, b"1")];
        world.configure(Configure { write, ..<_>::default() }).await.unwrap();
        let expected = world.record(key("r")).await.unwrap().revision;
        seen.push(expected);
        let write = vec![Write { key: key("r"), expected, bytes: None }];
        world.configure(Configure { write, ..<_>::default() }).await.unwrap();
        assert_eq!(world.record(key("r")).await, None);
    }
    assert!(seen[0] != seen[1], "{seen:?}");
    let stale = vec![Write { key: key("r"), expected: seen[0], bytes: None }];
    let refused = world.configure(Configure { write: stale, ..<_>::default() }).await;
    let found = Revision(0);
    assert_eq!(refused, Err(ConfigureError::RevisionDiffers { at: 0, found }));
}

pub async fn a_changed_limit_carries_what_was_spent(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(10)).await;
    assert!(world.consume(asking([("l", 8)])).await.is_ok());
    world.limit("l", Limit::per_hour(12)).await;
    assert_eq!(world.inspect("l").await.standing.remaining, 4);
    world.limit("l", Limit::fixed_window(9, Span::from_hours(1))).await;
    assert_eq!(world.inspect("l").await.standing.remaining, 1);
    world.refused(asking([("l", 2)])).await;
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
}

pub async fn a_changed_limit_carries_the_slots_that_are_held(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::concurrency(3)).await;
    let receipt = world.consume(asking([("l", 2)])).await.unwrap().receipt;
    world.limit("l", Limit::concurrency(2)).await;
    world.refused(asking([("l", 1)])).await;
    assert_eq!(world.settle_receipt(&receipt, Cost::Nothing).await, Ok(()));
    assert!(world.consume(asking([("l", 2)])).await.is_ok());
}

pub async fn what_was_spent_is_spent_when_a_limit_comes_back(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(10)).await;
    assert!(world.consume(asking([("l", 8)])).await.is_ok());
    world.remove_limit("l").await;
    let unknown = TollError::UnknownLimit { limit: limit_name("l") };
    assert_eq!(world.consume(asking([("l", 1)])).await, Err(unknown.into()));
    world.limit("l", Limit::per_hour(10)).await;
    assert_eq!(world.inspect("l").await.standing.remaining, 2);
}

pub async fn limits_are_listed_by_name_and_page_by_page(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    for name in ["b", "gone", "a", "c"] {
        world.limit(name, Limit::per_hour(1)).await;
    }
    world.remove_limit("gone").await;
    let listed = async |after: Option<&str>, most| {
        let page = world.store().limits(after.map(limit_name), most).await.unwrap();
        page.into_iter().map(|limit| limit.name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, 10).await, ["a", "b", "c"]);
    assert_eq!(listed(None, 2).await, ["a", "b"]);
    assert_eq!(listed(Some("b"), 2).await, ["c"]);
    let all = world.store().limits(None, 1).await.unwrap();
    assert_eq!(all[0].definition, Definition::new(Limit::per_hour(1)).unwrap());
}
