//! Why a call waits, and until when.

use super::*;

impl<S: Stage> World<S> {
    async fn told(&self, id: CallId) -> Explanation {
        self.explain(id).await.unwrap()
    }
}

pub async fn a_call_with_nothing_in_its_way_has_no_reason_to_wait(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let told = world.told(id).await;
    assert_eq!((told.position, told.reasons), (Some(0), vec![]));
    assert_eq!((told.not_before, told.expected), (Some(world.now.at), Some(world.now.at)));
}

pub async fn the_meter_that_is_spent_is_named_with_the_instant_it_opens(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    world.spend("a", "l").await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let told = world.told(id).await;
    let [Reason::Meter { limit, partition: None, blocker }] = &told.reasons[..] else {
        panic!("{told:?}")
    };
    assert_eq!((limit, blocker.cause), (&limit_name("l"), Cause::Spent));
    assert_eq!(told.not_before, Some(world.after(1)));
    world.wait(1);
    assert_eq!(world.claim("strict", 1).await, [id]);
}

pub async fn the_place_in_the_lane_and_the_time_it_takes_are_told(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    let ids = world.several::<4>(paying("strict", "a", [("l", 1)])).await;
    let told = world.told(ids[3]).await;
    assert_eq!((told.position, told.reasons), (Some(3), vec![Reason::Behind { calls: 3 }]));
    assert_eq!((told.not_before, told.expected), (Some(world.after(3)), Some(world.after(3))));
}

pub async fn lanes_that_go_before_it_count_for_what_is_expected(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    for lane in ["a", "b", "c"] {
        world.enqueue(paying("parallel", lane, [("l", 1)])).await;
    }
    let id = world.enqueue(paying("parallel", "d", [("l", 1)])).await;
    let told = world.told(id).await;
    assert_eq!((told.not_before, told.expected), (Some(world.now.at), Some(world.after(3))));
    for _ in 0..3 {
        assert_eq!(world.claim("parallel", 10).await.len(), 1);
        world.wait(1);
    }
    assert_eq!(world.claim("parallel", 10).await, [id]);
}

pub async fn what_nobody_can_compute_has_no_time(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let first = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let id = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [first]);
    // A slot may be let go at any time; at the latest when the lease of the other ends.
    let told = world.told(id).await;
    assert_eq!((told.not_before, told.expected), (Some(world.now.at), Some(world.after(30))));
    world.remove_limit("l").await;
    assert_eq!(world.told(id).await.not_before, None);
}

pub async fn a_call_in_flight_at_rest_or_held_back_says_so(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    assert_eq!(world.claim("strict", 1).await, [id]);
    let expires = world.after(30);
    assert_eq!(world.told(id).await.reasons, [Reason::InFlight { expires }]);
    world.settle(id, Settlement::Retry(Some(Span::from_secs(5)))).await;
    let (told, until) = (world.told(id).await, world.after(5));
    assert_eq!(told.reasons, [Reason::Resting { until }]);
    assert_eq!((told.attempts.failures, told.not_before), (1, Some(until)));
    world.pause(Scope::Queue(queue("strict"))).await;
    let told = world.told(id).await;
    assert_eq!(told.reasons, [Reason::QueuePaused, Reason::Resting { until }]);
    assert_eq!(told.not_before, None);
}

pub async fn a_call_that_is_not_due_says_when_it_is(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let wall = world.after(5);
    let id = world.enqueue(NewCall { not_before: Some(wall), ..call("strict", "a") }).await;
    let told = world.told(id).await;
    assert_eq!((told.position, told.reasons), (None, vec![Reason::NotDue { wall }]));
    assert_eq!((told.not_before, told.expected), (Some(wall), None));
}

pub async fn a_call_that_ended_is_not_explained(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.cancel(id).await;
    assert_eq!(world.explain(id).await, None);
    assert_eq!(world.explain(CallId(u64::MAX)).await, None);
}
