//! Browsing: pages in order, each thing as it is.

use super::*;
use crate::contract::{CallState, CallView, CallsQuery, PAGE_MAX};
use crate::lanes::{DeathCause, Revision, Write};

fn query(name: &str) -> CallsQuery {
    CallsQuery { queue: queue(name), lane: None, state: None, after: None, most: 100 }
}

impl<S: Stage> World<S> {
    async fn calls(&self, query: CallsQuery) -> Vec<CallView> {
        self.store().calls(query).await.unwrap()
    }

    async fn ids(&self, query: CallsQuery) -> Vec<CallId> {
        self.calls(query).await.iter().map(|call| call.id).collect()
    }

    /// One call in each state, in lane `a` of the queue `parallel`: waiting, not due, resting, in
    /// flight, dead.
    async fn in_every_state(&mut self) -> [(CallState, CallId); 5] {
        let [dead, resting, flying] = self.several::<3>(call("parallel", "a")).await;
        assert_eq!(self.claim("parallel", 3).await, [dead, resting, flying]);
        self.settle(dead, Settlement::Dead).await;
        self.settle(resting, Settlement::Retry(Some(Span::from_secs(10)))).await;
        let not_before = Some(self.after(10));
        let apart = self.enqueue(NewCall { not_before, ..call("parallel", "a") }).await;
        let waiting = self.enqueue(call("parallel", "a")).await;
        [
            (CallState::Dead, dead),
            (CallState::Resting, resting),
            (CallState::InFlight, flying),
            (CallState::NotDue, apart),
            (CallState::Waiting, waiting),
        ]
    }
}

pub async fn queues_come_by_name_with_what_is_in_them(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.in_every_state().await;
    world.pause(Scope::Queue(queue("strict"))).await;
    let all = world.store().queues(None, 10).await.unwrap();
    let names: Vec<&str> = all.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["parallel", "strict"]);
    assert_eq!((all[0].waiting, all[0].in_flight, all[0].dead), (3, 1, 1));
    assert_eq!((all[0].lanes, all[0].is_paused, all[1].is_paused), (1, false, true));
    assert_eq!(all[1].spec, QueueSpec::default());
    assert_eq!(world.store().queues(None, 1).await.unwrap(), all[..1]);
    assert_eq!(world.store().queues(Some(queue("parallel")), 9).await.unwrap(), all[1..]);
}

pub async fn lanes_come_by_name_with_what_is_in_them(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let calls = world.in_every_state().await;
    let b = world.enqueue(call("parallel", "b")).await;
    world.store().weigh(queue("parallel"), lane_name("b"), 3).await.unwrap();
    world.pause(Scope::Lane(queue("parallel"), lane_name("c"))).await;
    let all = world.store().lanes(queue("parallel"), None, 10).await.unwrap().unwrap();
    let names: Vec<&str> = all.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!((all[0].waiting, all[0].in_flight, all[0].dead), (3, 1, 1));
    assert_eq!((all[0].head, all[0].weight), (Some(calls[4].1), 1));
    assert_eq!((all[1].head, all[1].weight, all[1].is_paused), (Some(b), 3, false));
    assert_eq!((all[2].head, all[2].waiting, all[2].is_paused), (None, 0, true));
    let lanes = |after, most| world.store().lanes(queue("parallel"), after, most);
    assert_eq!(lanes(Some(lane_name("a")), 1).await.unwrap().unwrap(), all[1..2]);
    assert_eq!(world.store().lanes(queue("none"), None, 1).await.unwrap(), None);
}

pub async fn one_lane_is_found_as_it_is_listed(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.in_every_state().await;
    world.pause(Scope::Lane(queue("parallel"), lane_name("b"))).await;
    let all = world.store().lanes(queue("parallel"), None, 10).await.unwrap().unwrap();
    let lane = async |queue_name, name| {
        world.store().lane(queue(queue_name), lane_name(name)).await.unwrap()
    };
    assert_eq!(lane("parallel", "a").await.as_ref(), Some(&all[0]));
    assert_eq!(lane("parallel", "b").await.as_ref(), Some(&all[1]));
    for (queue, name) in [("parallel", "c"), ("strict", "a"), ("none", "a")] {
        assert_eq!(lane(queue, name).await, None, "{queue} {name}");
    }
}

pub async fn lanes_of_which_nothing_is_known_are_not_listed(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    world.settle(id, Settlement::Done).await;
    assert_eq!(world.store().lanes(queue("strict"), None, 9).await.unwrap(), Some(vec![]));
    assert_eq!(world.store().lane(queue("strict"), lane_name("a")).await.unwrap(), None);
}

pub async fn a_page_holds_no_more_than_a_thousand(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let enqueue = vec![call("strict", "a"); PAGE_MAX + 1];
    let ids = world.act(Act { enqueue, ..Act::default() }).await.unwrap().enqueued;
    let page = CallsQuery { most: usize::MAX, ..query("strict") };
    assert_eq!(world.ids(page.clone()).await, ids[..PAGE_MAX]);
    let after = Some(ids[PAGE_MAX - 1]);
    assert_eq!(world.ids(CallsQuery { after, ..page }).await, ids[PAGE_MAX..]);
}

pub async fn calls_come_by_id_with_the_state_they_are_in(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let calls = world.in_every_state().await;
    let _other = world.enqueue(call("strict", "a")).await;
    let found = world.calls(query("parallel")).await;
    let states: Vec<_> = found.iter().map(|call| (call.state, call.id)).collect();
    assert_eq!(states, calls);
    for (state, id) in calls {
        let of_state = CallsQuery { state: Some(state), ..query("parallel") };
        assert_eq!(world.ids(of_state).await, [id], "{state:?}");
    }
    assert_eq!(found[1].rests_until, Some(world.after(10)));
    assert_eq!(found[1].attempts.failures, 1);
    assert_eq!(found[2].lease_expires, Some(world.after(30)));
    assert_eq!(found[3].not_before, Some(world.after(10)));
    assert_eq!(world.ids(query("none")).await, []);
}

pub async fn calls_of_one_lane_are_found_in_every_state(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let expires = Some(world.after(99));
    let tolls = vec![toll("l", 1), toll("l", 2)];
    world.limit("l", Limit::per_second(9)).await;
    let calls = world.in_every_state().await;
    let new =
        NewCall { expires, tolls: tolls.into(), priority: priority(3), ..call("parallel", "b") };
    let other = world.enqueue(new).await;
    let of_lane = |name, state| {
        let lane = Some(lane_name(name));
        CallsQuery { lane, state, ..query("parallel") }
    };
    assert_eq!(world.ids(of_lane("a", None)).await, calls.map(|(_, id)| id));
    for (state, id) in calls {
        assert_eq!(world.ids(of_lane("a", Some(state))).await, [id], "{state:?}");
    }
    let found = world.calls(of_lane("b", None)).await;
    assert_eq!((found[0].id, found[0].expires, found[0].priority), (other, expires, priority(3)));
    assert_eq!(*found[0].tolls, [toll("l", 3)]);
    assert_eq!(world.ids(of_lane("b", Some(CallState::Dead))).await, []);
    assert_eq!(world.ids(of_lane("none", None)).await, []);
}

pub async fn a_dead_call_says_why_and_when_it_died(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let spec =
        QueueSpec { failures_max: 1, crashes_max: 1, limited_max: 1, ..QueueSpec::default() };
    world.queue("strict", spec).await;
    let pause = Settlement::Limited(Span::from_secs(1));
    let settled = [
        (DeathCause::Failed, Some(Settlement::Retry(None)), (1, 0, 0)),
        (DeathCause::Limited, Some(pause), (0, 0, 1)),
        (DeathCause::GivenUp, Some(Settlement::Dead), (0, 0, 0)),
        (DeathCause::Crashed, None, (0, 1, 0)),
    ];
    for (cause, settlement, tried) in settled {
        let id = world.enqueue(call("strict", "a")).await;
        world.claim("strict", 1).await;
        match settlement {
            Some(settlement) => world.settle(id, settlement).await,
            None => world.wait(30),
        }
        let dead = world.store().look(vec![id]).await.unwrap().remove(0).unwrap();
        let death = dead.death.unwrap();
        assert_eq!((dead.state, death.cause, death.at), (CallState::Dead, cause, world.now.at));
        let attempts = dead.attempts;
        assert_eq!((attempts.failures, attempts.crashes, attempts.limited), tried);
    }
}

pub async fn a_call_that_ended_for_good_is_not_seen(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.cancel(id).await;
    let calls = || vec![id, CallId(99)];
    assert_eq!(world.store().look(calls()).await.unwrap(), [None, None]);
    assert_eq!(world.store().payloads(calls()).await.unwrap(), [None, None]);
    assert_eq!(world.ids(query("strict")).await, []);
}

pub async fn payloads_are_read_of_calls_in_every_state(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let payload = |body: &[u8]| Payload::new(b"e", body).unwrap();
    let with = |body: &[u8]| NewCall { payload: payload(body), ..call("parallel", "a") };
    let [one, two, three] = [
        world.enqueue(with(b"1")).await,
        world.enqueue(with(b"2")).await,
        world.enqueue(with(b"3")).await,
    ];
    world.claim("parallel", 2).await;
    world.settle(one, Settlement::Dead).await;
    let found = world.store().payloads(vec![three, two, one]).await.unwrap();
    assert_eq!(found, [b"3", b"2", b"1"].map(|body| Some(payload(body))));
}

pub async fn limits_come_by_name_unless_they_were_removed(stage: impl Stage) {
    let mut world = World::new(stage).await;
    for name in ["b", "gone", "a"] {
        world.limit(name, Limit::per_second(1)).await;
    }
    world.remove_limit("gone").await;
    world.pause(Scope::Limit(limit_name("b"))).await;
    let all = world.store().limits(None, 10).await.unwrap();
    let told: Vec<_> = all.iter().map(|limit| (limit.name.as_str(), limit.is_paused)).collect();
    assert_eq!(told, [("a", false), ("b", true)]);
    assert_eq!(all[0].definition, Definition::new(Limit::per_second(1)).unwrap());
    assert_eq!(world.store().limits(Some(limit_name("a")), 9).await.unwrap(), all[1..]);
    assert_eq!(world.store().limits(None, 1).await.unwrap(), all[..1]);
}

pub async fn meters_come_by_partition_and_the_global_one_first(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(5)).await;
    let part = |name: &str| Partition::new(name).unwrap();
    for partition in [Some(part("b")), None, Some(part("a"))] {
        let tolls = vec![Toll { partition, ..toll("l", 2) }];
        assert!(world.consume(Ask { tolls: tolls.into(), ..asking([]) }).await.is_ok());
    }
    let meters = |after, most| world.store().meters(limit_name("l"), after, most);
    let all = meters(None, 10).await.unwrap().unwrap();
    let names: Vec<_> = all.iter().map(|(partition, _)| partition.clone()).collect();
    assert_eq!(names, [None, Some(part("a")), Some(part("b"))]);
    assert!(all.iter().all(|(_, meter)| meter.standing.remaining == 3), "{all:?}");
    assert_eq!(meters(None, 1).await.unwrap().unwrap(), all[..1]);
    assert_eq!(meters(Some(part("a")), 10).await.unwrap().unwrap(), all[2..]);
    assert_eq!(world.store().meters(limit_name("none"), None, 1).await.unwrap(), None);
    world.wait(3_601);
    let meters = world.store().meters(limit_name("l"), None, 10).await.unwrap();
    assert_eq!(meters, Some(vec![]), "all are as new");
}

pub async fn records_are_found_by_how_their_keys_begin(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let write = ["run/2", "other", "run/1", "run/3"].map(|name| {
        let bytes = Some(name.as_bytes().into());
        Write { key: key(name), expected: Revision(0), bytes }
    });
    let _ = world.act(Act { write: write.into(), ..Act::default() }).await.unwrap();
    let records = |after, most| world.store().records_of("run/".to_owned(), after, most);
    let all = records(None, 10).await.unwrap();
    let names: Vec<&str> = all.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(names, ["run/1", "run/2", "run/3"]);
    assert_eq!((all[0].1.revision, &*all[0].1.bytes), (Revision(3), &b"run/1"[..]));
    assert_eq!(records(None, 2).await.unwrap(), all[..2]);
    assert_eq!(records(Some(key("run/2")), 10).await.unwrap(), all[2..]);
    assert_eq!(world.store().records_of(String::new(), None, 10).await.unwrap().len(), 4);
}
