//! Limits that come along with calls, and go with them.

use super::*;
use crate::lanes::Scope;
use crate::toll::TollError;

/// Hands in a call of its own lane that pays a unit at a limit which comes along.
async fn come(world: &mut World<impl Stage>, lane: &str, limit: Limit) -> Result<CallId, ActError> {
    let define = vec![(limit_name("key"), Definition::new(limit).unwrap())];
    let enqueue = vec![paying("parallel", lane, [("key", 1)])];
    let act = Act { define, enqueue, ..Act::default() };
    world.act(act).await.map(|acted| acted.enqueued[0])
}

async fn is_there(world: &World<impl Stage>) -> bool {
    let found = world.store().inspect(vec![(limit_name("key"), None)]).await.unwrap();
    let listed = world.store().limits(None, 10).await.unwrap();
    assert_eq!(listed.len(), usize::from(found[0].is_some()));
    found[0].is_some()
}

pub async fn a_limit_that_comes_along_holds_for_its_call_and_the_newest_for_all(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let hour = Span::from_hours(1);
    let first = come(&mut world, "a", Limit::fixed_window(1, hour)).await.unwrap();
    let second = come(&mut world, "b", Limit::fixed_window(1, hour)).await.unwrap();
    assert_eq!(world.claim("parallel", 10).await, [first]);
    let third = come(&mut world, "c", Limit::fixed_window(2, hour)).await.unwrap();
    assert_eq!(world.claim("parallel", 10).await, [second], "what was spent stays spent");
    world.settle(first, Settlement::Done).await;
    world.settle(second, Settlement::Done).await;
    world.wait(3_600);
    assert_eq!(world.claim("parallel", 10).await, [third]);
}

pub async fn a_limit_that_stands_in_its_own_right_is_not_changed_by_what_comes_along(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    world.limit("key", Limit::concurrency(1)).await;
    let first = come(&mut world, "a", Limit::concurrency(5)).await.unwrap();
    come(&mut world, "b", Limit::concurrency(5)).await.unwrap();
    assert_eq!(world.claim("parallel", 10).await, [first]);
    world.limit("key", Limit::concurrency(2)).await;
    assert_eq!(world.claim("parallel", 10).await.len(), 1, "its owner changes it");
}

pub async fn a_limit_that_came_along_goes_with_its_calls(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = come(&mut world, "a", Limit::fixed_window(1, Span::from_secs(10))).await.unwrap();
    assert!(is_there(&world).await);
    assert_eq!(world.claim("parallel", 10).await, [id]);
    world.settle(id, Settlement::Done).await;
    assert!(is_there(&world).await, "its window counts");
    world.wait(10);
    assert!(!is_there(&world).await);
    let refused = world.try_enqueue(paying("parallel", "a", [("key", 1)])).await;
    let error = TollError::UnknownLimit { limit: limit_name("key") };
    assert_eq!(refused, Err(ActError::Toll { at: 0, error }));
    let again = come(&mut world, "a", Limit::concurrency(1)).await.unwrap();
    assert_eq!(world.claim("parallel", 10).await, [again]);
}

pub async fn a_limit_stays_for_calls_that_wait_rest_or_are_dead(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let define = vec![(limit_name("key"), Definition::new(Limit::concurrency(1)).unwrap())];
    let later = world.after(1_000);
    let call = NewCall { not_before: Some(later), ..paying("parallel", "a", [("key", 1)]) };
    let act = Act { define, enqueue: vec![call], ..Act::default() };
    let id = world.act(act).await.unwrap().enqueued[0];
    world.wait(999);
    assert!(is_there(&world).await, "it is not due");
    world.wait(1);
    assert_eq!(world.claim("parallel", 1).await, [id]);
    world.settle(id, Settlement::Retry(Some(Span::from_secs(50)))).await;
    world.wait(49);
    assert!(is_there(&world).await, "it rests");
    world.wait(1);
    assert_eq!(world.kill("parallel").await, id);
    world.wait(10_000);
    assert!(is_there(&world).await, "it may be revived");
    assert!(world.cancel(id).await);
    assert!(!is_there(&world).await);
}

pub async fn a_limit_that_came_along_stays_while_it_is_held_back(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = come(&mut world, "a", Limit::concurrency(1)).await.unwrap();
    world.pause(Scope::Limit(limit_name("key"))).await;
    assert!(world.cancel(id).await);
    world.wait(10_000);
    assert!(is_there(&world).await);
    come(&mut world, "a", Limit::concurrency(2)).await.unwrap();
    assert_eq!(world.claim("parallel", 10).await, []);
    world.resume(Scope::Limit(limit_name("key"))).await;
    assert_eq!(world.claim("parallel", 10).await.len(), 1);
    world.wait(1);
}

pub async fn a_limit_that_came_along_stands_once_it_is_defined(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = come(&mut world, "a", Limit::concurrency(1)).await.unwrap();
    world.limit("key", Limit::concurrency(1)).await;
    assert!(world.cancel(id).await);
    world.wait(10_000);
    assert!(is_there(&world).await);
}

pub async fn a_weight_over_the_limit_that_comes_along_is_refused_with_all_of_its_act(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    let define = vec![(limit_name("key"), Definition::new(Limit::concurrency(2)).unwrap())];
    let enqueue = vec![call("parallel", "a"), paying("parallel", "a", [("key", 3)])];
    let refused = world.act(Act { define, enqueue, ..Act::default() }).await;
    assert!(matches!(refused, Err(ActError::Toll { at: 1, .. })), "{refused:?}");
    assert!(!is_there(&world).await);
    assert_eq!(world.claim("parallel", 10).await, []);
}
