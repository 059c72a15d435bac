//! Whose clock counts: the gate's, and for calendars its wall clock.

use crate::world::{World, seconds};
use tollgate::{Clock, Limit, Span, Timestamp, global};

/// Seconds from the manual clock's start to the next midnight in UTC.
const TO_MIDNIGHT: u64 = 86_400 - 1_000_000 % 86_400;

fn wall(seconds: u64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// Client clocks deciding: an ask carries no time, and every clone sees the same budget.
#[tokio::test]
async fn two_clones_agree_on_the_time_and_on_what_is_left() {
    let world = World::of("api", Limit::per_minute(10)).await;
    let [here, there] = [world.gate.clone(), world.gate.clone()];
    let first = here.consume(global("api").weight(10)).await.unwrap();
    assert_eq!(first.reset_after(), seconds(60));
    world.advance(seconds(6)).await;
    let refusals = [here.peek(global("api").weight(2)), there.peek(global("api").weight(2))];
    let [a, b] = refusals.map(|peek| async { peek.await.unwrap_err() });
    assert_eq!(a.await, b.await);
    assert_eq!(there.consume(global("api")).await.unwrap().remaining(), 0);
}

#[tokio::test]
async fn setting_the_wall_clock_does_not_move_a_rate() {
    for limit in [
        Limit::per_minute(10),
        Limit::fixed_window(10, seconds(60)),
        Limit::sliding_window(10, seconds(60)),
    ] {
        let world = World::of("api", limit.clone()).await;
        world.pay(global("api").weight(10)).await;
        for set in [0, 2_000_000_000, 1] {
            world.clock.set_wall(wall(set));
            let refusal = world.refusal(global("api").weight(10)).await;
            assert_eq!(refusal.retry_after, Some(seconds(60)), "{limit:?}");
        }
    }
}

#[tokio::test]
async fn a_calendar_window_ends_at_midnight_of_its_zone() {
    let daily = |zone| Limit::fixed_window(10, Span::from_days(1)).on_calendar(zone);
    let world = World::of("utc", daily("UTC")).await.limit("tokyo", daily("Asia/Tokyo")).await;
    world.pay(global("utc").weight(10).and(global("tokyo").weight(10))).await;
    let utc = world.refusal(global("utc")).await.retry_after;
    assert_eq!(utc, Some(seconds(TO_MIDNIGHT)));
    let tokyo = world.refusal(global("tokyo")).await.retry_after;
    assert_eq!(tokyo, Some(seconds(TO_MIDNIGHT - 9 * 3_600)));
    world.advance(seconds(TO_MIDNIGHT)).await;
    assert_eq!(world.pay(global("utc").weight(10)).await, 0);
}

#[tokio::test]
async fn a_calendar_window_follows_the_wall_clock() {
    let limit = Limit::fixed_window(10, Span::from_days(1)).on_calendar("UTC");
    let world = World::of("quota", limit).await;
    world.pay(global("quota").weight(10)).await;
    world.clock.set_wall(world.clock.wall().plus(seconds(TO_MIDNIGHT - 5)));
    assert_eq!(world.refusal(global("quota")).await.retry_after, Some(seconds(5)));
    world.clock.set_wall(world.clock.wall().plus(seconds(5)));
    assert_eq!(world.pay(global("quota").weight(10)).await, 0);
    // Set back, the day that was begun stays: nothing is given twice.
    world.clock.set_wall(wall(1_000_000));
    world.refusal(global("quota")).await;
}

#[tokio::test]
async fn one_who_waits_for_midnight_starts_when_the_wall_clock_is_set_past_it() {
    let limit = Limit::fixed_window(10, Span::from_days(1)).on_calendar("UTC");
    let world = World::of("quota", limit).await;
    world.pay(global("quota").weight(10)).await;
    let mut waiter = world.stand(global("quota"));
    world.clock.set_wall(world.clock.wall().plus(seconds(TO_MIDNIGHT)));
    world.advance(seconds(60)).await;
    assert!(waiter.answer().is_some(), "it waits for a midnight that has passed");
}

#[tokio::test]
async fn one_who_waits_for_midnight_waits_on_when_the_wall_clock_is_set_back() {
    let limit = Limit::fixed_window(10, Span::from_days(1)).on_calendar("UTC");
    let world = World::of("quota", limit).await;
    world.pay(global("quota").weight(10)).await;
    let mut waiter = world.stand(global("quota"));
    world.clock.set_wall(wall(1_000_000 - 3_600));
    world.advance(seconds(TO_MIDNIGHT)).await;
    assert!(waiter.answer().is_none());
    world.advance(seconds(3_600)).await;
    let _ = waiter.answer().unwrap().unwrap();
}
