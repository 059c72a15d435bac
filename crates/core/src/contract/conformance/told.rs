//! Events: as they happen, and as they are kept.

use super::*;
use crate::contract::{EventCursor, EventPage, HistoryQuery, LimitCounts};
use crate::lanes::event::BEGINS_BYTES_MAX;
use crate::lanes::payload::TOLD_BODY_BYTES_MAX;
use crate::lanes::{Door, Event, Outcome, What};

impl<S: Stage> World<S> {
    /// The place from which on events are told.
    async fn present_place(&self) -> EventCursor {
        self.store().events(None, 0).await.unwrap().next
    }

    async fn events(&self, after: EventCursor, most: usize) -> EventPage {
        self.store().events(Some(after), most).await.unwrap()
    }

    async fn history_of(&self, id: CallId) -> Vec<What> {
        let events = self.store().histories(vec![id]).await.unwrap().remove(0);
        assert!(events.iter().all(|event| event.call == id), "{events:?}");
        events.into_iter().map(|event| event.what).collect()
    }

    /// All that is asked for, page by page.
    async fn history(&self, mut query: HistoryQuery) -> Vec<Event> {
        let mut all = Vec::new();
        loop {
            let page = self.store().history(query.clone()).await.unwrap();
            assert!(page.events.len() <= query.most, "{page:?}");
            assert_eq!(page.places.len(), page.events.len(), "{page:?}");
            for (place, told) in page.places.iter().zip(1..) {
                let older = HistoryQuery { after: Some(*place), ..query.clone() };
                let older = self.store().history(older).await.unwrap().events;
                assert!(older.starts_with(&page.events[told..]), "behind {place:?}: {older:?}");
            }
            all.extend(page.events);
            let Some(next) = page.next else { return all };
            query.after = Some(next);
        }
    }

    /// Starts and settles the one call that waits.
    async fn attempt(&mut self, id: CallId, settlement: Settlement) {
        assert_eq!(self.claim("strict", 1).await, [id]);
        self.settle(id, settlement).await;
    }
}

fn everything() -> HistoryQuery {
    HistoryQuery { most: 100, ..HistoryQuery::default() }
}

fn ids(events: &[Event]) -> Vec<CallId> {
    events.iter().map(|event| event.call).collect()
}

pub async fn a_life_is_told_in_order(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let begin = world.present_place().await;
    let id = world.enqueue(call("strict", "a")).await;
    let enqueued = world.now;
    world.wait(1);
    let started = world.now;
    let token = world.start("strict", 1).await[0].lease.token;
    world.wait(2);
    let report: Box<[u8]> = (*b"answered 200").into();
    let lease = world.leases[&id];
    let settle = Settle { report: report.clone(), ..Settle::new(lease, Settlement::Done) };
    let _ = world.act(Act { settle: vec![settle], ..Act::default() }).await.unwrap();
    let page = world.events(begin, 10).await;
    assert!(!page.missed);
    let of = |at, what| {
        let (queue, lane) = (queue("strict"), lane_name("a"));
        Event { at, call: id, queue, lane, what }
    };
    let (waits, outcome, end) = ([].into(), Outcome::Done, End::Done);
    let settled = What::Settled { token, attempt: 1, started, waits, outcome, report };
    let expected = vec![
        of(enqueued, What::Enqueued { payload: Payload::default() }),
        of(started, What::Started { token, attempt: 1, waits: [].into(), is_told: false }),
        of(world.now, settled),
        of(world.now, What::Ended { end, attempts: 1 }),
    ];
    let told: Vec<_> = page.events.iter().map(|(_, event)| event.clone()).collect();
    assert_eq!(told, expected);
    assert_eq!(page.next, page.events[3].0);
}

pub async fn events_are_told_once_and_page_by_page(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let begin = world.present_place().await;
    let all: [CallId; 5] = world.several(call("strict", "a")).await;
    let first = world.events(begin, 2).await;
    let second = world.events(first.next, 2).await;
    let third = world.events(second.next, 2).await;
    let pages = [&first, &second, &third];
    let told = pages.iter().flat_map(|page| page.events.iter().map(|(_, it)| it.call));
    assert_eq!(told.collect::<Vec<_>>(), all);
    assert!(pages.iter().all(|page| !page.missed));
    let again = world.events(first.events[0].0, 1).await;
    assert_eq!(again.events, first.events[1..], "a place is behind its event");
}

pub async fn what_was_before_is_not_told(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let _ = world.present_place().await;
    world.enqueue(call("strict", "a")).await;
    let begin = world.present_place().await;
    let later = world.enqueue(call("strict", "a")).await;
    let page = world.events(begin, 10).await;
    assert_eq!(page.events.iter().map(|(_, it)| it.call).collect::<Vec<_>>(), [later]);
}

pub async fn who_comes_from_another_run_is_told_that_it_missed_events(stage: impl Stage) {
    let world = World::new(stage).await;
    let begin = world.present_place().await;
    let page = world.events(EventCursor(begin.0 + 1_000), 10).await;
    assert_eq!((page.missed, page.events.len(), page.next), (true, 0, begin));
}

pub async fn what_came_of_each_attempt_is_told(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(10)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.attempt(id, Settlement::Release).await;
    world.attempt(id, Settlement::Retry(Some(Span::from_secs(5)))).await;
    let again_at = world.after(5);
    world.wait(5);
    world.attempt(id, Settlement::Limited(Span::from_secs(7))).await;
    let until = world.after(7);
    world.wait(7);
    assert_eq!(world.claim("strict", 1).await, [id]);
    world.wait(3_600);
    world.attempt(id, Settlement::Dead).await;
    let told = world.history_of(id).await;
    let outcomes = told.iter().filter_map(|what| match what {
        What::Settled { attempt, outcome, .. } => Some((*attempt, *outcome)),
        _ => None,
    });
    let expected = [
        (1, Outcome::Released),
        (1, Outcome::Failed { again_at }),
        (2, Outcome::Limited { until }),
        (3, Outcome::Crashed),
        (4, Outcome::Dead),
    ];
    assert_eq!(outcomes.collect::<Vec<_>>(), expected);
    assert_eq!(told.last(), Some(&What::Ended { end: End::Dead, attempts: 4 }));
}

pub async fn a_call_that_never_started_has_an_end_in_history(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    assert_eq!(world.history_of(id).await, []);
    world.wait(3);
    world.cancel(id).await;
    assert_eq!(world.history_of(id).await, [What::Ended { end: End::Cancelled, attempts: 0 }]);
    let told = world.history(everything()).await;
    assert_eq!((ids(&told), told[0].at), (vec![id], world.now));
}

pub async fn the_dead_end_again_and_the_revived_begin_again(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let begin = world.present_place().await;
    world.queue("strict", QueueSpec { dead_max: 1, ..QueueSpec::default() }).await;
    let revived = world.enqueue(call("strict", "a")).await;
    world.kill("strict").await;
    world.wait(1);
    assert!(world.revive(revived).await);
    assert_eq!(world.end(revived).await, None, "it waits again");
    world.attempt(revived, Settlement::Done).await;
    let dropped = world.enqueue(call("strict", "a")).await;
    world.kill("strict").await;
    let cancelled = world.enqueue(call("strict", "a")).await;
    world.kill("strict").await;
    world.wait(1);
    assert!(world.cancel(cancelled).await);
    for (id, end) in [(dropped, End::Dropped), (cancelled, End::Cancelled)] {
        let told = world.history_of(id).await;
        let ends = [End::Dead, end].map(|end| What::Ended { end, attempts: 1 });
        assert_eq!((told.len(), &told[1..]), (3, &ends[..]));
        assert_eq!(world.end(id).await, Some(end));
    }
    let told = world.history_of(revived).await;
    assert_eq!((told.len(), &told[2]), (5, &What::Revived));
    assert_eq!(told[4], What::Ended { end: End::Done, attempts: 1 });
    let page = world.events(begin, 100).await;
    let lives = page.events.into_iter().filter(|(_, event)| event.call == revived);
    let lives: Vec<What> = lives.map(|(_, event)| event.what).collect();
    assert_eq!((lives.len(), &lives[4]), (8, &What::Revived), "{lives:?}");
}

pub async fn history_is_told_newest_first_and_page_by_page(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let mut done = Vec::new();
    for _ in 0..7 {
        let id = world.enqueue(call("strict", "a")).await;
        world.attempt(id, Settlement::Done).await;
        done.push(id);
    }
    done.reverse();
    let ends = HistoryQuery { end: Some(End::Done), most: 3, ..everything() };
    assert_eq!(ids(&world.history(ends).await), done);
    let all = world.history(HistoryQuery { most: 1, ..everything() }).await;
    assert_eq!(all.len(), 14, "an attempt and an end each");
    assert_eq!(all[0].end(), Some(End::Done), "the end came last");
}

pub async fn history_is_found_by_queue_lane_end_and_time(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let mut cancelled = Vec::new();
    for (queue, lane) in [("strict", "a"), ("strict", "b"), ("parallel", "a")] {
        let id = world.enqueue(call(queue, lane)).await;
        world.cancel(id).await;
        cancelled.push((id, world.now.wall));
        world.wait(1);
    }
    let [(one, _), (two, second), (three, third)] = cancelled[..] else { panic!("{cancelled:?}") };
    let found = async |query| ids(&world.history(query).await);
    let of = |name| HistoryQuery { queue: Some(queue(name)), ..everything() };
    assert_eq!(found(of("strict")).await, [two, one]);
    let lane = Some(lane_name("a"));
    assert_eq!(found(HistoryQuery { lane: lane.clone(), ..everything() }).await, [three, one]);
    assert_eq!(found(HistoryQuery { lane, ..of("strict") }).await, [one]);
    assert_eq!(found(HistoryQuery { from: Some(second), ..everything() }).await, [three, two]);
    let (from, to) = (Some(second), Some(third));
    assert_eq!(found(HistoryQuery { from, to, ..everything() }).await, [two]);
    assert_eq!(found(HistoryQuery { end: Some(End::Done), ..everything() }).await, []);
}

pub async fn history_has_accepted_calls_with_their_envelopes_where_the_queue_tells_it(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    let begin = world.present_place().await;
    world.queue("strict", QueueSpec { tells_accepted: true, ..QueueSpec::default() }).await;
    let with = |name: &str, envelope: &[u8]| {
        let payload = Payload::new(envelope, b"body").unwrap();
        NewCall { payload, dedupe: Some(key("k")), ..call(name, "a") }
    };
    let told = world.enqueue(with("strict", b"to whom")).await;
    let accepted = world.now;
    world.wait(1);
    assert_eq!(world.enqueue(with("strict", b"again")).await, told, "it is told once");
    let untold = world.enqueue(with("parallel", b"to whom")).await;
    let bare = world.enqueue(call("strict", "b")).await;
    let enqueued = |envelope: &[u8], body: &[u8]| What::Enqueued {
        payload: Payload::new(envelope, body).unwrap(),
    };
    assert_eq!(world.history_of(told).await, [enqueued(b"to whom", b"body")]);
    for id in [untold, bare] {
        assert_eq!(world.history_of(id).await, [], "{id:?}");
    }
    assert!(world.cancel(told).await);
    let ended = What::Ended { end: End::Cancelled, attempts: 0 };
    assert_eq!(world.history_of(told).await, [enqueued(b"to whom", b"body"), ended]);
    let all = world.history(HistoryQuery { most: 1, ..everything() }).await;
    assert_eq!((ids(&all), all[1].at), (vec![told, told], accepted));
    let page = world.events(begin, 10).await;
    let streamed: Vec<_> = page.events.into_iter().map(|(_, event)| event.what).collect();
    let long = NewCall {
        payload: Payload::new(b"to whom", &[7; TOLD_BODY_BYTES_MAX + 1]).unwrap(),
        ..call("strict", "c")
    };
    let long = world.enqueue(long).await;
    assert_eq!(world.history_of(long).await, [enqueued(b"to whom", b"")], "it is too long");
    let lease = world.start("strict", 10).await.pop().unwrap().lease;
    let token = lease.token;
    let started = What::Started { token, attempt: 1, waits: [].into(), is_told: true };
    assert_eq!(world.history_of(lease.call).await.pop(), Some(started));
    assert_eq!(
        streamed[..3],
        [enqueued(b"to whom", b"body"), enqueued(b"", b""), enqueued(b"", b"")]
    );
}

pub async fn a_call_that_waits_for_an_unknown_limit_is_told_once_for_each_meter(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("known", Limit::per_second(9)).await;
    let begin = world.present_place().await;
    let of_one = Toll { partition: Some(Partition::new("p").unwrap()), ..toll("none", 1) };
    let tolls = vec![toll("none", 1), toll("known", 1), of_one.clone(), toll("none", 2)];
    let body = vec![7; BEGINS_BYTES_MAX + 1];
    let new = NewCall { tolls: tolls.into(), payload: body.into(), ..call("strict", "a") };
    let act = Act { enqueue: vec![new], door: Door::Parks, ..Act::default() };
    let id = world.act(act).await.unwrap().enqueued[0];
    let accepted = world.now;
    let unknown = |partition| What::Unknown {
        limit: limit_name("none"),
        partition,
        begins: [7; BEGINS_BYTES_MAX].into(),
    };
    let expected = [unknown(None), unknown(of_one.partition)];
    assert_eq!(world.history_of(id).await, expected);
    world.wait(1);
    world.limit("none", Limit::per_second(9)).await;
    world.attempt(id, Settlement::Retry(Some(Span::ZERO))).await;
    world.attempt(id, Settlement::Done).await;
    let page = world.events(begin, 3).await;
    let told: Vec<_> = page.events.into_iter().map(|(_, event)| (event.at, event.what)).collect();
    let enqueued = What::Enqueued { payload: Payload::default() };
    assert_eq!(told[0], (accepted, enqueued));
    assert_eq!(told[1..], expected.map(|what| (accepted, what)));
    let is_unknown = |what: &What| matches!(what, What::Unknown { .. });
    let history = world.history_of(id).await;
    assert_eq!(history.into_iter().filter(is_unknown).count(), 2, "once, however often it starts");
    let totals = world.store().totals().await.unwrap();
    let strict = totals.queues.into_iter().find(|totals| totals.name == queue("strict")).unwrap();
    let counted = [(limit_name("none"), LimitCounts { unknown: 2, ..<_>::default() })];
    assert_eq!(strict.counts.limits, counted.into());
}
