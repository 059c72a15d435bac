//! Turns at meters: shares of lanes, fat calls, several tolls, seniors, parked heads.

use super::*;

fn one_in(seconds: u64) -> Limit {
    Limit::per(1, Span::from_secs(seconds))
}

pub async fn a_limit_shared_by_two_lanes_alternates_between_them(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", one_in(1)).await;
    let a = world.several::<3>(paying("parallel", "a", [("l", 1)])).await;
    let b = world.several::<3>(paying("parallel", "b", [("l", 1)])).await;
    let mut order = Vec::new();
    for _ in 0..6 {
        order.extend(world.claim("parallel", 10).await);
        world.wait(1);
    }
    assert_eq!(order, [a[0], b[0], a[1], b[1], a[2], b[2]]);
}

pub async fn ever_new_lanes_do_not_starve_one_that_was_served(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", one_in(1)).await;
    let old = world.several::<9>(paying("parallel", "old", [("l", 1)])).await;
    let mut served = 0;
    for newcomer in 0..20 {
        let lane = format!("new {newcomer}");
        world.enqueue(paying("parallel", &lane, [("l", 1)])).await;
        let started = world.claim("parallel", 1).await;
        served += started.iter().filter(|call| old.contains(call)).count();
        world.wait(1);
    }
    // There are ever more of them, and it has its share among those that stand there.
    assert!((4..=9).contains(&served), "{served} of 20");
}

pub async fn two_queues_that_ask_share_a_limit(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", one_in(1)).await;
    let a = world.several::<2>(paying("strict", "a", [("l", 1)])).await;
    let b = world.enqueue(paying("parallel", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, [a[0]]);
    world.settle(a[0], Settlement::Done).await;
    assert_eq!(world.claim("parallel", 1).await, []);
    assert_eq!(world.claim("strict", 1).await, []);
    world.wait(1);
    assert_eq!(world.claim("strict", 1).await, []);
    assert_eq!(world.claim("parallel", 1).await, [b]);
}

pub async fn a_queue_that_asks_no_more_has_no_turn(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", one_in(10)).await;
    let _ = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let _ = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    let other = world.enqueue(paying("parallel", "c", [("l", 1)])).await;
    assert_eq!(world.claim_asking("strict", 2, Span::from_secs(5)).await.len(), 1);
    world.wait(10);
    assert_eq!(world.claim("parallel", 1).await, [other]);
}

pub async fn a_fat_call_waits_for_its_whole_weight_and_is_not_overtaken_at_its_meter(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per(10, Span::from_secs(10))).await;
    let spender = world.enqueue(paying("strict", "spender", [("l", 6)])).await;
    let fat = world.enqueue(paying("strict", "fat", [("l", 8)])).await;
    let thin = world.enqueue(paying("strict", "thin", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [spender]);
    world.wait(3);
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(1);
    assert_eq!(world.claim("strict", 10).await, [fat]);
    world.wait(1);
    assert_eq!(world.claim("strict", 10).await, [thin]);
}

pub async fn strangers_of_a_fat_call_go_on(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per(10, Span::from_secs(10))).await;
    world.limit("other", one_in(1)).await;
    let spender = world.enqueue(paying("strict", "spender", [("l", 6)])).await;
    let _fat = world.enqueue(paying("strict", "fat", [("l", 8)])).await;
    let stranger = world.enqueue(paying("strict", "stranger", [("other", 1)])).await;
    let free = world.enqueue(call("strict", "free")).await;
    assert_eq!(world.claim("strict", 10).await, [spender, stranger, free]);
}

pub async fn a_call_of_higher_priority_passes_a_fat_one(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per(10, Span::from_secs(10))).await;
    let spender = world.enqueue(paying("strict", "spender", [("l", 6)])).await;
    let _fat = world.enqueue(paying("strict", "fat", [("l", 8)])).await;
    assert_eq!(world.claim("strict", 10).await, [spender]);
    let urgent = paying("strict", "urgent", [("l", 1)]);
    let urgent = world.enqueue(NewCall { priority: priority(1), ..urgent }).await;
    assert_eq!(world.claim("strict", 10).await, [urgent]);
}

pub async fn two_tolls_are_paid_both_or_not_at_all(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("x", Limit::concurrency(1)).await;
    world.limit("y", one_in(10)).await;
    let spender = world.enqueue(paying("strict", "spender", [("y", 1)])).await;
    let both = world.enqueue(paying("strict", "both", [("x", 1), ("y", 1)])).await;
    let only_x = world.enqueue(paying("strict", "x", [("x", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [spender, only_x]);
    world.settle(only_x, Settlement::Done).await;
    world.wait(10);
    assert_eq!(world.claim("strict", 10).await, [both]);
}

pub async fn tolls_at_one_meter_add_up(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(3)).await;
    let twice = world.enqueue(paying("strict", "a", [("l", 1), ("l", 1)])).await;
    let once = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    let late = world.enqueue(paying("strict", "c", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [twice, once]);
    assert!(world.is_waiting(late).await);
}

/// A call that owes at `x` and `y` was admitted where it stood and refused elsewhere, twice, and
/// stands at `x`, which opens in six seconds. `y` is open.
async fn world_with_a_senior<S: Stage>(stage: S) -> (World<S>, CallId) {
    let mut world = World::new(stage).await;
    world.limit("x", one_in(10)).await;
    world.limit("y", one_in(10)).await;
    world.spend("x1", "x").await;
    let both = world.enqueue(paying("strict", "both", [("x", 1), ("y", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(5);
    world.spend("y1", "y").await;
    world.wait(5);
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(2);
    world.spend("x2", "x").await;
    world.wait(3);
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(1);
    (world, both)
}

pub async fn a_call_refused_elsewhere_twice_is_senior_and_has_the_turn_where_it_does_not_stand(
    stage: impl Stage,
) {
    let (mut world, both) = world_with_a_senior(stage).await;
    let stranger = world.enqueue(paying("strict", "y2", [("y", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(6);
    assert_eq!(world.claim("strict", 10).await, [both]);
    world.wait(10);
    assert_eq!(world.claim("strict", 10).await, [stranger]);
}

pub async fn a_call_of_higher_priority_does_not_yield_to_a_senior(stage: impl Stage) {
    let (mut world, _) = world_with_a_senior(stage).await;
    let urgent = paying("strict", "y2", [("y", 1)]);
    let urgent = world.enqueue(NewCall { priority: priority(1), ..urgent }).await;
    assert_eq!(world.claim("strict", 10).await, [urgent]);
}

pub async fn a_head_that_was_paused_is_senior_no_more(stage: impl Stage) {
    let (mut world, _) = world_with_a_senior(stage).await;
    let stranger = world.enqueue(paying("strict", "y2", [("y", 1)])).await;
    let both = Scope::Lane(queue("strict"), lane_name("both"));
    world.pause(both.clone()).await;
    world.resume(both).await;
    assert_eq!(world.claim("strict", 10).await, [stranger]);
}

pub async fn a_limit_that_is_removed_parks_and_a_new_definition_wakes(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", one_in(10)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.remove_limit("l").await;
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(1_000);
    assert_eq!(world.claim("strict", 10).await, []);
    world.limit("l", one_in(10)).await;
    assert_eq!(world.claim("strict", 10).await, [id]);
}

pub async fn a_weight_that_became_impossible_waits_for_a_larger_limit(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(5)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 5)])).await;
    world.limit("l", Limit::per_second(4)).await;
    assert_eq!(world.claim("strict", 10).await, []);
    world.limit("l", Limit::per_second(6)).await;
    assert_eq!(world.claim("strict", 10).await, [id]);
}

pub async fn what_was_spent_is_still_spent_when_a_removed_limit_comes_back(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(1)).await;
    let first = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let second = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [first]);
    world.remove_limit("l").await;
    world.limit("l", Limit::per_hour(2)).await;
    assert_eq!(world.claim("strict", 10).await, [second]);
    let _third = world.enqueue(paying("strict", "c", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, []);
}

pub async fn slots_are_held_until_the_call_is_settled(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let first = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let second = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [first]);
    assert_eq!(world.claim("strict", 10).await, []);
    world.settle(first, Settlement::Done).await;
    assert_eq!(world.claim("strict", 10).await, [second]);
}

pub async fn a_heavier_lane_is_served_as_many_times_as_much(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", one_in(1)).await;
    world.spend("first", "l").await;
    let light = world.several::<8>(paying("parallel", "light", [("l", 1)])).await;
    let heavy = world.several::<8>(paying("parallel", "heavy", [("l", 1)])).await;
    world.store().weigh(queue("parallel"), lane_name("heavy"), 3).await.unwrap();
    let mut started = Vec::new();
    for _ in 0..8 {
        world.wait(1);
        started.extend(world.claim("parallel", 10).await);
    }
    assert_eq!(started.iter().filter(|id| light.contains(id)).count(), 2);
    assert_eq!(started.iter().filter(|id| heavy.contains(id)).count(), 6);
}

pub async fn a_share_leaves_the_rest_of_a_limit_to_others(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(5)).await;
    world.limit("share", Limit::per_hour(3)).await;
    let like = Some(limit_name("l"));
    let share = QueueToll { like, ..QueueToll::new(limit_name("share")) };
    let order = Order::Parallel(10);
    world.queue("bulk", QueueSpec { order, tolls: vec![share], ..QueueSpec::default() }).await;
    world.several::<9>(paying("bulk", "a", [("l", 1)])).await;
    assert_eq!(world.claim("bulk", 9).await.len(), 3);
    let others = world.several::<2>(paying("parallel", "b", [("l", 1)])).await;
    assert_eq!(world.claim("parallel", 9).await, others);
}

pub async fn a_toll_of_the_queue_is_owed_by_all_its_calls_of_that_priority(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(1)).await;
    let toll = QueueToll { priority: Some(priority(0)), ..QueueToll::new(limit_name("l")) };
    world.queue("tolled", QueueSpec { tolls: vec![toll], ..QueueSpec::default() }).await;
    let first = world.enqueue(call("tolled", "a")).await;
    world.enqueue(call("tolled", "b")).await;
    let urgent = NewCall { priority: priority(1), ..call("tolled", "c") };
    let urgent = world.enqueue(urgent).await;
    assert_eq!(world.claim("tolled", 10).await, [urgent, first]);
}

pub async fn a_paused_queue_holds_nobodys_turn(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", one_in(1)).await;
    world.spend("first", "l").await;
    let held = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, []);
    let other = world.enqueue(paying("parallel", "b", [("l", 1)])).await;
    world.wait(1);
    assert_eq!(world.claim("parallel", 1).await, []);
    world.pause(Scope::Queue(queue("strict"))).await;
    assert_eq!(world.claim("parallel", 1).await, [other]);
    world.wait(1);
    world.resume(Scope::Queue(queue("strict"))).await;
    assert_eq!(world.claim("strict", 1).await, [held]);
}
