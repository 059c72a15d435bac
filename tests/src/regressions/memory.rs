//! Memory: idle meters cost nothing, spent ones are never given away, and there is a bound.

use crate::world::{World, seconds};
use tollgate::{Error, Limit, Span, StoreError, Toll, Tollgate, global, toll};

const FULL: Error = Error::Store(StoreError::MetersFull { meters: 100 });

/// Meets so many new strangers that every segment of the table is cleared of what is as good as new.
async fn churn(world: &World, round: u64) {
    let keys: Vec<_> = (0..8_000).map(|number| format!("stranger {round} {number}")).collect();
    let tolls: Vec<Toll<'_>> = keys.iter().map(|key| toll("api", key)).collect();
    assert!(world.gate.consume_many(&tolls).await.iter().all(Result::is_ok));
}

/// How many calls of one key pass now.
async fn taken(world: &World) -> u64 {
    let mut taken = 0;
    while world.gate.consume(toll("api", "acme")).await.is_ok() {
        taken += 1;
    }
    taken
}

/// Returning-key burst: elsewhere a key that comes back after it expired gets twice its burst.
#[tokio::test]
async fn a_key_that_returns_has_one_burst_and_no_more() {
    for limit in [
        Limit::per_second(5),
        Limit::fixed_window(5, seconds(1)),
        Limit::sliding_window(5, seconds(1)),
        Limit::per_second(5).and(Limit::per_minute(1_000)),
    ] {
        let world = World::of("api", limit.clone()).await;
        for (round, pause) in [0, 1_000_000_000, 1_000_000_001, 60_000_000_000].iter().enumerate() {
            world.advance(Span::from_nanos(*pause)).await;
            assert_eq!(taken(&world).await, 5, "after {pause} ns at {limit:?}");
            churn(&world, u64::try_from(round).unwrap()).await;
            assert_eq!(taken(&world).await, 0, "after {pause} ns at {limit:?}");
        }
    }
}

/// However others come and go, a key gets the burst and what flowed in, to the unit.
#[tokio::test]
async fn a_key_gets_exactly_its_rate_however_others_come_and_go() {
    let world = World::of("api", Limit::per_second(10).burst(3)).await;
    let (mut admitted, mut elapsed_ms) = (taken(&world).await, 0);
    for round in 1..30 {
        let pause_ms = round * 7_919 % 190;
        world.advance(Span::from_millis(pause_ms)).await;
        elapsed_ms += pause_ms;
        churn(&world, round).await;
        admitted += taken(&world).await;
        assert_eq!(admitted, 3 + elapsed_ms / 100, "in {elapsed_ms} ms");
    }
}

/// Stop-the-world sweep: what it must do without one. How long a call takes is in the bench.
#[tokio::test]
async fn a_million_keys_that_expire_leave_nothing_behind() {
    let world = World::of("api", Limit::per_second(1)).await;
    let keys: Vec<_> = (0..100_000).map(|number| format!("tenant {number}")).collect();
    let mut most = 0;
    for round in 0..10 {
        let keys: Vec<_> = keys.iter().map(|key| format!("{round} {key}")).collect();
        let tolls: Vec<_> = keys.iter().map(|key| toll("api", key)).collect();
        assert!(world.gate.consume_many(&tolls).await.iter().all(Result::is_ok));
        most = most.max(world.gate.limiter().unwrap().meters_kept());
        world.advance(seconds(2)).await;
    }
    assert!(most < 250_000, "{most} meters kept of 100,000 that are not as good as new");
    assert_eq!(world.pay(toll("api", "0 tenant 0")).await, 0);
    world.refusal(toll("api", "0 tenant 0")).await;
}

#[tokio::test]
async fn idle_meters_are_forgotten_as_others_come() {
    let world = World::of("api", Limit::per_second(1)).await;
    churn(&world, 0).await;
    let spent = world.gate.limiter().unwrap().meters_kept();
    assert!(spent >= 8_000, "{spent}");
    for round in 0..20 {
        world.advance(seconds(2)).await;
        for number in 0..1_000 {
            world.pay(toll("api", &format!("{round} {number}"))).await;
        }
    }
    let kept = world.gate.limiter().unwrap().meters_kept();
    assert!(kept < 5_000, "{kept} meters kept of 1,000 that are not as good as new");
}

async fn room_for_a_hundred() -> World {
    let world = World::with(Tollgate::builder().meters_max(100)).await;
    let world = world.limit("api", Limit::per_hour(2)).await;
    for number in 0..100 {
        world.pay(toll("api", &format!("tenant {number}"))).await;
    }
    world
}

#[tokio::test]
async fn a_new_partition_beyond_the_bound_is_refused_in_every_way() {
    let world = room_for_a_hundred().await;
    let new = || toll("api", "one more");
    assert_eq!(world.gate.consume(new()).await.unwrap_err(), FULL);
    assert_eq!(world.gate.consume(new().estimate(1)).await.unwrap_err(), FULL);
    assert_eq!(world.gate.consume_delayed(new(), seconds(1)).await.unwrap_err(), FULL);
    assert_eq!(world.gate.acquire(new()).await.unwrap_err(), FULL);
    assert_eq!(world.gate.consume(new().and(global("api"))).await.unwrap_err(), FULL);
    assert!(world.gate.consume_many(&[new()]).await[0].is_err());
    assert!(FULL.to_string().contains("raise the bound, or use fewer partitions"));
    assert_eq!(world.gate.limiter().unwrap().meters_kept(), 100);
}

/// A spent meter that is forgotten would be given its units twice.
#[tokio::test]
async fn a_spent_meter_is_never_given_up_for_a_new_one() {
    let world = room_for_a_hundred().await;
    for number in 0..10_000 {
        let key = format!("hostile {number}");
        assert_eq!(world.gate.consume(toll("api", &key)).await.unwrap_err(), FULL);
    }
    for number in 0..100 {
        assert_eq!(world.pay(toll("api", &format!("tenant {number}"))).await, 0);
    }
}

#[tokio::test]
async fn meters_as_good_as_new_make_room() {
    let world = room_for_a_hundred().await;
    world.clock.advance(seconds(1_801));
    let mut admitted = 0;
    for number in 0..1_000 {
        let key = format!("later {number}");
        admitted += usize::from(world.gate.consume(toll("api", &key)).await.is_ok());
    }
    assert!(admitted >= 90, "only {admitted} of 100 found room");
    assert!(world.gate.limiter().unwrap().meters_kept() <= 100);
}
