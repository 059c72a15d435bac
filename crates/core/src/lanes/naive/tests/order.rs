//! The order within a lane: priority, backoff, joining later, ending unstarted.

use super::*;

#[test]
fn a_lane_goes_by_priority_and_then_by_arrival() {
    let mut world = World::new();
    let first = world.enqueue(call("strict", "a"));
    let second = world.enqueue(call("strict", "a"));
    let urgent = world.enqueue(NewCall { priority: priority(5), ..call("strict", "a") });
    for expected in [urgent, first, second] {
        assert_eq!(world.claim("strict", 10), [expected]);
        world.settle(expected, Settlement::Done);
    }
}

#[test]
fn a_claim_goes_over_lanes_by_priority_and_then_by_arrival() {
    let mut world = World::new();
    let first = world.enqueue(call("strict", "b"));
    let second = world.enqueue(call("strict", "a"));
    let urgent = world.enqueue(NewCall { priority: priority(5), ..call("strict", "c") });
    assert_eq!(world.claim("strict", 2), [urgent, first]);
    assert_eq!(world.claim("strict", 2), [second]);
}

#[test]
fn a_strict_lane_keeps_a_failed_call_first_through_its_backoff() {
    let mut world = World::new();
    let failed = world.enqueue(call("strict", "a"));
    let behind = world.enqueue(call("strict", "a"));
    assert_eq!(world.claim("strict", 10), [failed]);
    world.settle(failed, Settlement::Retry(Some(Span::from_secs(5))));
    world.wait(4);
    assert_eq!(world.claim("strict", 10), []);
    world.wait(1);
    assert_eq!(world.claim("strict", 10), [failed]);
    world.settle(failed, Settlement::Done);
    assert_eq!(world.claim("strict", 10), [behind]);
}

#[test]
fn a_call_of_higher_priority_does_not_pass_one_that_came_back_in_a_strict_lane() {
    let mut world = World::new();
    let first = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    world.settle(first, Settlement::Retry(Some(Span::ZERO)));
    world.enqueue(NewCall { priority: priority(9), ..call("strict", "a") });
    assert_eq!(world.claim("strict", 10), [first]);
}

#[test]
fn a_parallel_lane_lets_a_failed_call_step_aside_and_reenter_at_its_old_place() {
    let mut world = World::new();
    let order = Order::Parallel(1);
    world.queue("one", QueueSpec { order, ..QueueSpec::default() });
    let [failed, second, third] = [0; 3].map(|_| world.enqueue(call("one", "a")));
    assert_eq!(world.claim("one", 10), [failed]);
    world.settle(failed, Settlement::Retry(Some(Span::from_secs(5))));
    assert_eq!(world.claim("one", 10), [second]);
    world.wait(5);
    world.settle(second, Settlement::Done);
    assert_eq!(world.claim("one", 10), [failed]);
    world.settle(failed, Settlement::Done);
    assert_eq!(world.claim("one", 10), [third]);
}

#[test]
fn the_backoff_of_the_queue_doubles_with_each_failure() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    for seconds in [1, 2, 4] {
        assert_eq!(world.claim("strict", 1), [id]);
        world.settle(id, Settlement::Retry(None));
        world.wait(seconds - 1);
        assert_eq!(world.claim("strict", 1), []);
        world.wait(1);
    }
    assert_eq!(world.start("strict", 1)[0].attempts.failures, 3);
}

#[test]
fn no_more_of_a_lane_are_in_flight_than_its_order_allows() {
    let mut world = World::new();
    let order = Order::Parallel(2);
    world.queue("two", QueueSpec { order, ..QueueSpec::default() });
    let ids = [0; 3].map(|_| world.enqueue(call("two", "a")));
    assert_eq!(world.claim("two", 10), ids[..2]);
    world.settle(ids[1], Settlement::Done);
    assert_eq!(world.claim("two", 10), ids[2..]);
}

#[test]
fn a_lane_that_becomes_strict_waits_for_all_in_flight_and_then_tries_what_came_back_first() {
    let mut world = World::new();
    let [first, second, third] = [0; 3].map(|_| world.enqueue(call("parallel", "a")));
    world.claim("parallel", 3);
    let urgent = world.enqueue(NewCall { priority: priority(9), ..call("parallel", "a") });
    world.settle(third, Settlement::Retry(Some(Span::ZERO)));
    world.settle(second, Settlement::Retry(Some(Span::from_secs(5))));
    world.queue("parallel", QueueSpec::default());
    assert_eq!(world.claim("parallel", 10), []);
    world.settle(first, Settlement::Done);
    assert_eq!(world.claim("parallel", 10), []);
    world.wait(5);
    for expected in [second, third, urgent] {
        assert_eq!(world.claim("parallel", 10), [expected]);
        world.settle(expected, Settlement::Done);
    }
}

#[test]
fn a_delayed_call_joins_behind_those_that_were_there_when_it_was_due() {
    let mut world = World::new();
    let not_before = Some(world.after(10));
    let delayed = world.enqueue(NewCall { not_before, ..call("strict", "a") });
    assert_eq!(world.claim("strict", 10), []);
    world.wait(9);
    let early = world.enqueue(call("strict", "a"));
    world.wait(1);
    let late = world.enqueue(call("strict", "a"));
    for expected in [early, delayed, late] {
        assert_eq!(world.claim("strict", 10), [expected]);
        world.settle(expected, Settlement::Done);
    }
}

#[test]
fn a_call_that_never_started_expires() {
    let mut world = World::new();
    let expires = Some(world.after(10));
    let id = world.enqueue(NewCall { expires, ..call("strict", "a") });
    world.wait(9);
    assert_eq!(world.end(id), None);
    world.wait(1);
    assert_eq!(world.end(id), Some(End::Expired));
}

#[test]
fn a_call_expires_before_it_joins() {
    let mut world = World::new();
    let (not_before, expires) = (Some(world.after(20)), Some(world.after(10)));
    let id = world.enqueue(NewCall { not_before, expires, ..call("strict", "a") });
    world.wait(10);
    assert_eq!(world.end(id), Some(End::Expired));
}

#[test]
fn a_call_that_failed_once_does_not_expire() {
    let mut world = World::new();
    let expires = Some(world.after(10));
    let id = world.enqueue(NewCall { expires, ..call("strict", "a") });
    world.claim("strict", 1);
    world.settle(id, Settlement::Retry(Some(Span::from_secs(20))));
    world.wait(20);
    assert_eq!(world.claim("strict", 1), [id]);
}

#[test]
fn a_newer_call_takes_the_place_of_the_one_it_supersedes() {
    let mut world = World::new();
    let newer = NewCall { supersedes: Some(key("k")), ..call("strict", "a") };
    let old = world.enqueue(newer.clone());
    world.enqueue(call("strict", "a"));
    let new = world.enqueue(newer);
    assert_eq!(world.end(old), Some(End::Superseded));
    assert_eq!(world.claim("strict", 1), [new]);
}

#[test]
fn a_call_that_was_started_is_not_superseded() {
    let mut world = World::new();
    let newer = NewCall { supersedes: Some(key("k")), ..call("strict", "a") };
    let old = world.enqueue(newer.clone());
    world.claim("strict", 1);
    let _ = world.enqueue(newer.clone());
    world.settle(old, Settlement::Retry(None));
    let _ = world.enqueue(newer);
    assert_eq!(world.end(old), None);
}

#[test]
fn a_delayed_call_supersedes_and_takes_no_place_over() {
    let mut world = World::new();
    let supersedes = Some(key("k"));
    let old = NewCall { supersedes: supersedes.clone(), ..call("strict", "a") };
    let old = world.enqueue(old);
    let behind = world.enqueue(call("strict", "a"));
    let not_before = Some(world.now.wall);
    world.enqueue(NewCall { supersedes, not_before, ..call("strict", "a") });
    assert_eq!(world.end(old), Some(End::Superseded));
    assert_eq!(world.claim("strict", 1), [behind]);
}
