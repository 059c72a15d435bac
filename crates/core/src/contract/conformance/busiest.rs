//! The busiest lanes and meters, of all or of some.

use super::*;
use crate::contract::{Among, BusyLanes, BusyMeters, Onward};

impl<S: Stage> World<S> {
    /// All slices, joined.
    async fn busiest_lanes(&self, among: &Among, most: usize) -> BusyLanes {
        let (mut all, mut next) = (BusyLanes::default(), Some(Onward::default()));
        while let Some(from) = next {
            all.join(self.store().busiest_lanes(among.clone(), most, from).await.unwrap(), most);
            next = all.next;
        }
        all
    }

    async fn busiest_meters(&self, among: &Among, most: usize) -> BusyMeters {
        let (mut all, mut next) = (BusyMeters::default(), Some(Onward::default()));
        while let Some(from) = next {
            all.join(self.store().busiest_meters(among.clone(), most, from).await.unwrap(), most);
            next = all.next;
        }
        all
    }
}

fn named<const N: usize>(found: &BusyLanes) -> [(&str, &str, u64); N] {
    let lanes = found.lanes.iter();
    let named: Vec<_> = lanes
        .map(|lane| (lane.queue.as_str(), lane.state.name.as_str(), lane.state.waiting))
        .collect();
    named.try_into().unwrap()
}

fn at(partition: &str) -> Toll {
    Toll { partition: Some(Partition::new(partition).unwrap()), ..toll("l", 1) }
}

pub async fn the_lanes_with_most_that_wait_come_first(stage: impl Stage) {
    let mut world = World::new(stage).await;
    for (queue, lane, calls) in [("strict", "b", 2), ("strict", "a", 2), ("parallel", "c", 3)] {
        for _ in 0..calls {
            world.enqueue(call(queue, lane)).await;
        }
    }
    let all = world.busiest_lanes(&Among::EVERYTHING, 2).await;
    assert_eq!(named(&all), [("parallel", "c", 3), ("strict", "a", 2)]);
    let mut queues: Vec<_> =
        all.queues.iter().map(|it| (it.name.as_str(), it.waiting, it.enqueued)).collect();
    queues.sort_unstable();
    assert_eq!(queues, [("parallel", 3, 3), ("strict", 4, 4)]);
    let one = world.busiest_lanes(&Among::One("strict".to_owned()), 9).await;
    assert_eq!(named(&one), [("strict", "a", 2), ("strict", "b", 2)]);
    let but = Among::All { prefix: String::new(), but: Some("par") };
    assert_eq!(named(&world.busiest_lanes(&but, 1).await), [("strict", "a", 2)]);
    let some = Among::All { prefix: "par".to_owned(), but: None };
    assert_eq!(named(&world.busiest_lanes(&some, 9).await), [("parallel", "c", 3)]);
    let none = world.busiest_lanes(&Among::One("none".to_owned()), 9).await;
    assert_eq!(none, BusyLanes::default());
}

/// Of each queue the call that has been in line longest is told, wherever in its lane it is.
pub async fn the_call_that_has_been_in_line_longest_is_told(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let low = world.enqueue(call("strict", "a")).await;
    let high = world.enqueue(NewCall { priority: Priority::MAX, ..call("strict", "a") }).await;
    let other = world.enqueue(call("strict", "b")).await;
    let oldest = async |world: &World<_>| {
        let found = world.busiest_lanes(&Among::One("strict".to_owned()), 1).await;
        found.queues[0].oldest.map(|oldest| oldest.call)
    };
    assert_eq!(oldest(&world).await, Some(low));
    assert_eq!(world.claim("strict", 9).await, [high, other]);
    assert_eq!(oldest(&world).await, Some(low));
    world.cancel(low).await;
    assert_eq!(oldest(&world).await, None);
    for started in [other, high] {
        world.settle(started, Settlement::Retry(Some(Span::from_secs(60)))).await;
    }
    assert_eq!(oldest(&world).await, Some(high), "it rests before the other");
    world.cancel(high).await;
    assert_eq!(oldest(&world).await, Some(other));
    let none = world.busiest_lanes(&Among::EVERYTHING, 0).await;
    assert!(none.queues.iter().all(|queue| queue.oldest.is_none()), "no lane is looked at");
}

pub async fn the_meters_where_most_stand_come_first(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(1)).await;
    world.limit("held", Limit::per_hour(1)).await;
    for (partition, lanes) in [("p", 1), ("q", 3)] {
        for lane in 0..lanes {
            let lane = format!("{partition}{lane}");
            world.enqueue(NewCall { tolls: [at(partition)].into(), ..call("strict", &lane) }).await;
        }
    }
    assert_eq!(world.claim("strict", 9).await.len(), 2);
    world.pause(Scope::Limit(limit_name("held"))).await;
    let found = world.busiest_meters(&Among::EVERYTHING, 9).await;
    let names: Vec<_> = found
        .meters
        .iter()
        .map(|meter| (&*meter.name.0, meter.name.1.as_deref(), meter.state.waiting))
        .collect();
    assert_eq!(names, [("l", Some("q"), 2), ("held", None, 0), ("l", Some("p"), 0)]);
    assert!(found.meters[0].blocker.is_some() && found.meters[1].state.is_paused);
    assert_eq!(world.busiest_meters(&Among::One("l".to_owned()), 1).await.meters.len(), 1);
}

pub async fn a_limit_is_told_with_who_is_at_all_its_meters(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    for (lane, partition) in [("a", "p"), ("b", "q"), ("c", "q")] {
        world.enqueue(NewCall { tolls: [at(partition)].into(), ..call("strict", lane) }).await;
    }
    assert_eq!(world.claim("strict", 9).await.len(), 2);
    let found = world.busiest_meters(&Among::One("l".to_owned()), 0).await;
    let [limit] = &found.limits[..] else { panic!("{found:?}") };
    assert_eq!((limit.waiting, limit.in_flight, limit.totals.admitted.count), (1, 2, 2));
    assert_eq!((found.meters.len(), found.totals.admitted.count), (0, 2));
}
