//! The order within a lane: priority, backoff, joining later, ending unstarted.

use super::*;

pub async fn a_lane_goes_by_priority_and_then_by_arrival(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let first = world.enqueue(call("strict", "a")).await;
    let second = world.enqueue(call("strict", "a")).await;
    let urgent = world.enqueue(NewCall { priority: priority(5), ..call("strict", "a") }).await;
    for expected in [urgent, first, second] {
        assert_eq!(world.claim("strict", 10).await, [expected]);
        world.settle(expected, Settlement::Done).await;
    }
}

pub async fn a_claim_goes_over_lanes_by_priority_and_then_by_arrival(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let first = world.enqueue(call("strict", "b")).await;
    let second = world.enqueue(call("strict", "a")).await;
    let urgent = world.enqueue(NewCall { priority: priority(5), ..call("strict", "c") }).await;
    assert_eq!(world.claim("strict", 2).await, [urgent, first]);
    assert_eq!(world.claim("strict", 2).await, [second]);
}

pub async fn a_strict_lane_keeps_a_failed_call_first_through_its_backoff(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let failed = world.enqueue(call("strict", "a")).await;
    let behind = world.enqueue(call("strict", "a")).await;
    assert_eq!(world.claim("strict", 10).await, [failed]);
    world.settle(failed, Settlement::Retry(Some(Span::from_secs(5)))).await;
    world.wait(4);
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(1);
    assert_eq!(world.claim("strict", 10).await, [failed]);
    world.settle(failed, Settlement::Done).await;
    assert_eq!(world.claim("strict", 10).await, [behind]);
}

pub async fn a_call_of_higher_priority_does_not_pass_one_that_came_back_in_a_strict_lane(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    let first = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    world.settle(first, Settlement::Retry(Some(Span::ZERO))).await;
    world.enqueue(NewCall { priority: priority(9), ..call("strict", "a") }).await;
    assert_eq!(world.claim("strict", 10).await, [first]);
}

pub async fn a_parallel_lane_lets_a_failed_call_step_aside_and_reenter_at_its_old_place(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    let order = Order::Parallel(1);
    world.queue("one", QueueSpec { order, ..QueueSpec::default() }).await;
    let [failed, second, third] = world.several::<3>(call("one", "a")).await;
    assert_eq!(world.claim("one", 10).await, [failed]);
    world.settle(failed, Settlement::Retry(Some(Span::from_secs(5)))).await;
    assert_eq!(world.claim("one", 10).await, [second]);
    world.wait(5);
    world.settle(second, Settlement::Done).await;
    assert_eq!(world.claim("one", 10).await, [failed]);
    world.settle(failed, Settlement::Done).await;
    assert_eq!(world.claim("one", 10).await, [third]);
}

pub async fn the_backoff_of_the_queue_doubles_with_each_failure(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    for seconds in [1, 2, 4] {
        assert_eq!(world.claim("strict", 1).await, [id]);
        world.settle(id, Settlement::Retry(None)).await;
        world.wait(seconds - 1);
        assert_eq!(world.claim("strict", 1).await, []);
        world.wait(1);
    }
    assert_eq!(world.start("strict", 1).await[0].attempts.failures, 3);
}

pub async fn no_more_of_a_lane_are_in_flight_than_its_order_allows(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let order = Order::Parallel(2);
    world.queue("two", QueueSpec { order, ..QueueSpec::default() }).await;
    let ids = world.several::<3>(call("two", "a")).await;
    assert_eq!(world.claim("two", 10).await, ids[..2]);
    world.settle(ids[1], Settlement::Done).await;
    assert_eq!(world.claim("two", 10).await, ids[2..]);
}

pub async fn a_lane_that_becomes_strict_waits_for_all_in_flight_and_then_tries_what_came_back_first(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    let [first, second, third] = world.several::<3>(call("parallel", "a")).await;
    world.claim("parallel", 3).await;
    let urgent = world.enqueue(NewCall { priority: priority(9), ..call("parallel", "a") }).await;
    world.settle(third, Settlement::Retry(Some(Span::ZERO))).await;
    world.settle(second, Settlement::Retry(Some(Span::from_secs(5)))).await;
    world.queue("parallel", QueueSpec::default()).await;
    assert_eq!(world.claim("parallel", 10).await, []);
    world.settle(first, Settlement::Done).await;
    assert_eq!(world.claim("parallel", 10).await, []);
    world.wait(5);
    for expected in [second, third, urgent] {
        assert_eq!(world.claim("parallel", 10).await, [expected]);
        world.settle(expected, Settlement::Done).await;
    }
}

pub async fn a_delayed_call_joins_behind_those_that_were_there_when_it_was_due(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let not_before = Some(world.after(10));
    let delayed = world.enqueue(NewCall { not_before, ..call("strict", "a") }).await;
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(9);
    let early = world.enqueue(call("strict", "a")).await;
    world.wait(1);
    let late = world.enqueue(call("strict", "a")).await;
    for expected in [early, delayed, late] {
        assert_eq!(world.claim("strict", 10).await, [expected]);
        world.settle(expected, Settlement::Done).await;
    }
}

pub async fn a_call_that_never_started_expires(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let expires = Some(world.after(10));
    let id = world.enqueue(NewCall { expires, ..call("strict", "a") }).await;
    world.wait(9);
    assert_eq!(world.end(id).await, None);
    world.wait(1);
    assert_eq!(world.end(id).await, Some(End::Expired));
}

pub async fn a_call_expires_before_it_joins(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let (not_before, expires) = (Some(world.after(20)), Some(world.after(10)));
    let id = world.enqueue(NewCall { not_before, expires, ..call("strict", "a") }).await;
    world.wait(10);
    assert_eq!(world.end(id).await, Some(End::Expired));
}

pub async fn a_call_that_failed_once_does_not_expire(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let expires = Some(world.after(10));
    let id = world.enqueue(NewCall { expires, ..call("strict", "a") }).await;
    world.claim("strict", 1).await;
    world.settle(id, Settlement::Retry(Some(Span::from_secs(20)))).await;
    world.wait(20);
    assert_eq!(world.claim("strict", 1).await, [id]);
}

pub async fn a_newer_call_takes_the_place_of_the_one_it_supersedes(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let newer = NewCall { supersedes: Some(key("k")), ..call("strict", "a") };
    let old = world.enqueue(newer.clone()).await;
    world.enqueue(call("strict", "a")).await;
    let new = world.enqueue(newer).await;
    assert_eq!(world.end(old).await, Some(End::Superseded));
    assert_eq!(world.claim("strict", 1).await, [new]);
}

pub async fn a_call_that_was_started_is_not_superseded(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let newer = NewCall { supersedes: Some(key("k")), ..call("strict", "a") };
    let old = world.enqueue(newer.clone()).await;
    world.claim("strict", 1).await;
    let _ = world.enqueue(newer.clone()).await;
    world.settle(old, Settlement::Retry(None)).await;
    let _ = world.enqueue(newer).await;
    assert_eq!(world.end(old).await, None);
}

pub async fn a_call_that_is_handed_back_expires_as_one_that_never_started(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let expires = Some(world.after(10));
    let late = world.enqueue(NewCall { expires, ..call("strict", "a") }).await;
    let due = world.enqueue(NewCall { expires, ..call("strict", "b") }).await;
    world.claim("strict", 2).await;
    world.settle(due, Settlement::Release).await;
    world.wait(10);
    assert_eq!(world.end(due).await, Some(End::Expired));
    assert_eq!(world.end(late).await, None, "it is in flight");
    world.settle(late, Settlement::Release).await;
    assert_eq!(world.claim("strict", 2).await, [], "its time is over");
    assert_eq!(world.end(late).await, Some(End::Expired));
}

pub async fn a_delayed_call_supersedes_and_takes_no_place_over(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let supersedes = Some(key("k"));
    let old = NewCall { supersedes: supersedes.clone(), ..call("strict", "a") };
    let old = world.enqueue(old).await;
    let behind = world.enqueue(call("strict", "a")).await;
    let not_before = Some(world.after(1));
    let new = NewCall { supersedes, not_before, ..call("strict", "a") };
    let new = world.enqueue(new).await;
    assert_eq!(world.end(old).await, Some(End::Superseded));
    world.wait(1);
    assert_eq!(world.claim("strict", 1).await, [behind]);
    world.settle(behind, Settlement::Done).await;
    assert_eq!(world.claim("strict", 1).await, [new]);
}
