//! Acts: all or nothing, revisions, duplicates, joins.

use super::*;
use crate::lanes::{Count, Revision, Write};

fn write(name: &str, expected: u64, bytes: Option<&[u8]>) -> Write {
    Write { key: key(name), expected: Revision(expected), bytes: bytes.map(Box::from) }
}

fn writes<const N: usize>(write: [Write; N]) -> Act {
    Act { write: write.into(), ..Act::default() }
}

fn counts<const N: usize>(count_down: [Count; N]) -> Act {
    Act { count_down: count_down.into(), ..Act::default() }
}

fn count(from: u64) -> Count {
    Count { key: key("join"), from, then: call("strict", "a") }
}

pub async fn an_act_with_a_stale_revision_does_nothing_at_all(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    let lease = world.leases[&id];
    let act = Act {
        settle: vec![Settle::new(lease, Settlement::Done)],
        write: vec![write("r", 0, Some(b"1")), write("s", 7, Some(b"1"))],
        enqueue: vec![call("strict", "a")],
        ..Act::default()
    };
    let found = Revision(0);
    assert_eq!(world.act(act).await, Err(ActError::RevisionDiffers { at: 1, found }));
    assert!(world.is_in_flight(id).await);
    assert!(world.record(key("r")).await.is_none());
    world.settle(id, Settlement::Done).await;
    assert_eq!(world.claim("strict", 10).await, [], "nothing was enqueued");
}

pub async fn of_acts_those_that_are_not_made_are_left_and_can_be_made_again(stage: impl Stage) {
    let mut world = World::new(stage).await;
    // Its queue adds a toll of its own, once however often it is tried.
    world.limit("l", Limit::per_second(100)).await;
    let tolls = vec![QueueToll::new(limit_name("l"))];
    world.queue("tolled", QueueSpec { tolls, ..QueueSpec::default() }).await;
    let mut acts = [
        Act { write: vec![write("r", 0, Some(b"1"))], ..Act::default() },
        Act {
            needs: vec![key("s")],
            write: vec![write("t", 0, Some(b"1"))],
            enqueue: vec![call("tolled", "a")],
            ..Act::default()
        },
    ];
    let refused = acts[1].clone();
    let answers = world.make(&mut acts).await;
    assert_eq!(answers[1], Err(ActError::RecordMissing { at: 0 }));
    assert_eq!(acts, [Act::default(), refused]);
    let _ = world.act(writes([write("s", 0, Some(b"1"))])).await.unwrap();
    let answers = world.make(&mut acts).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(acts, [Act::default(), Act::default()]);
    assert_eq!(world.claim("tolled", 10).await.len(), 1);
}

pub async fn revisions_count_the_writes_of_all_records(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let first = world.act(writes([write("r", 0, Some(b"1")), write("s", 0, Some(b"2"))])).await;
    assert_eq!(first.unwrap().written, [Revision(1), Revision(2)]);
    let removed = world.act(writes([write("r", 1, None)])).await;
    assert_eq!(removed.unwrap().written, [Revision(3)]);
    let again = world.act(writes([write("r", 0, Some(b"3"))])).await;
    assert_eq!(again.unwrap().written, [Revision(4)]);
    let record = world.record(key("r")).await.unwrap();
    assert_eq!((record.revision, &*record.bytes), (Revision(4), &b"3"[..]));
}

pub async fn a_write_sees_the_earlier_writes_of_its_act(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let act = writes([write("r", 0, Some(b"1")), write("r", 1, None), write("r", 0, Some(b"2"))]);
    assert_eq!(world.act(act).await.unwrap().written, [1, 2, 3].map(Revision));
}

pub async fn a_duplicate_is_the_first_call(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let new = NewCall { dedupe: Some(key("k")), ..call("strict", "a") };
    let act = Act { enqueue: vec![new.clone(), new.clone()], ..Act::default() };
    let enqueued = world.act(act).await.unwrap().enqueued;
    assert_eq!(enqueued[0], enqueued[1]);
    assert_eq!(world.claim("strict", 2).await, [enqueued[0]]);
    world.settle(enqueued[0], Settlement::Done).await;
    assert_eq!(world.enqueue(new).await, enqueued[0]);
}

pub async fn duplicates_are_named_by_their_place(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let new = |dedupe: Option<&str>| NewCall { dedupe: dedupe.map(key), ..call("strict", "a") };
    let named = |names: &[Option<&str>]| {
        let enqueue = names.iter().map(|name| new(*name)).collect();
        Act { enqueue, ..Act::default() }
    };
    let first = world.act(named(&[Some("k"), None, Some("l")])).await.unwrap();
    assert!(first.duplicates.is_empty(), "{first:?}");
    let second = world.act(named(&[None, Some("l"), Some("m"), Some("m"), Some("k")])).await;
    let second = second.unwrap();
    assert_eq!(second.duplicates, [1, 3, 4]);
    assert_eq!(second.enqueued[1], first.enqueued[2]);
    let count_down = vec![Count { then: new(Some("k")), ..count(1) }];
    let counted = world.act(Act { count_down, ..Act::default() }).await.unwrap();
    assert!(counted.duplicates.is_empty(), "it has no place among the new calls");
}

pub async fn a_dedupe_key_is_forgotten_after_its_time(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let new = NewCall { dedupe: Some(key("k")), ..call("strict", "a") };
    let first = world.enqueue(new.clone()).await;
    world.wait(599);
    assert_eq!(world.enqueue(new.clone()).await, first);
    world.wait(1);
    assert_ne!(world.enqueue(new).await, first);
}

pub async fn a_dedupe_key_is_one_of_its_queue(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let dedupe = Some(key("k"));
    let first = world.enqueue(NewCall { dedupe: dedupe.clone(), ..call("strict", "a") }).await;
    let second = world.enqueue(NewCall { dedupe, ..call("parallel", "a") }).await;
    assert_ne!(first, second);
}

pub async fn a_join_enqueues_its_call_when_it_has_counted_down(stage: impl Stage) {
    let mut world = World::new(stage).await;
    assert_eq!(
        world.act(counts([count(3), count(3)])).await.unwrap().counted,
        [(2, None), (1, None)]
    );
    let last = world.act(counts([count(3)])).await.unwrap().counted;
    let [(0, Some(then))] = last[..] else { panic!("{last:?}") };
    assert_eq!(world.claim("strict", 2).await, [then]);
}

pub async fn a_join_that_was_reached_is_opened_anew(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let act = counts([count(1), count(2)]);
    let counted = world.act(act).await.unwrap().counted;
    assert!(matches!(counted[..], [(0, Some(_)), (1, None)]), "{counted:?}");
}

pub async fn a_join_that_is_forgotten_counts_from_its_beginning(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let forget = || Act { forget: vec![key("join"), key("none")], ..Act::default() };
    assert_eq!(world.act(counts([count(2)])).await.unwrap().counted, [(1, None)]);
    let _ = world.act(forget()).await.unwrap();
    assert_eq!(world.act(counts([count(2)])).await.unwrap().counted, [(1, None)]);
    let refused = Act { needs: vec![key("none")], ..forget() };
    assert_eq!(world.act(refused).await, Err(ActError::RecordMissing { at: 0 }));
    let counted = world.act(counts([count(2)])).await.unwrap().counted;
    assert!(matches!(counted[..], [(0, Some(_))]), "it was not forgotten: {counted:?}");
}

pub async fn a_join_that_counts_from_nothing_is_refused_when_it_opens(stage: impl Stage) {
    let mut world = World::new(stage).await;
    assert_eq!(world.act(counts([count(0)])).await, Err(ActError::CountFromZero { at: 0 }));
    let counted = world.act(counts([count(2), count(0)])).await.unwrap().counted;
    assert!(matches!(counted[..], [(1, None), (0, Some(_))]), "{counted:?}");
}

pub async fn a_call_that_is_settled_in_the_act_can_be_cancelled_in_it(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    let lease = world.leases[&id];
    let settle = vec![Settle::new(lease, Settlement::Release)];
    let act = Act { settle, cancel: vec![id], ..Act::default() };
    assert_eq!(world.act(act).await.unwrap().cancelled, [true]);
    assert_eq!(world.end(id).await, Some(End::Cancelled));
}

pub async fn a_worker_gets_the_payload_that_was_handed_in(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let with = |body: &[u8]| NewCall {
        payload: Payload::new(b"to whom", body).unwrap(),
        dedupe: Some(key("k")),
        ..call("parallel", "a")
    };
    world.enqueue(with(b"first")).await;
    world.enqueue(with(b"again")).await;
    world.enqueue(NewCall { payload: vec![7; 100_000].into(), ..call("parallel", "b") }).await;
    let claim = Claim { queue: queue("parallel"), most: 10, lease: None, asks: Span::from_secs(0) };
    let claimed = world.store().claim(claim).await.unwrap();
    let payloads = claimed.iter().map(|it| (it.payload.envelope(), it.payload.body()));
    let expected = [(&b"to whom"[..], &b"first"[..]), (&[], &[7; 100_000])];
    assert_eq!(payloads.collect::<Vec<_>>(), expected);
}

pub async fn an_act_without_the_record_that_it_needs_does_nothing_at_all(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let next = |needs: &[&str]| {
        let needs = needs.iter().map(|name| key(name)).collect();
        Act { enqueue: vec![call("strict", "a")], needs, ..Act::default() }
    };
    let _ = world.act(writes([write("there", 0, Some(b"1"))])).await.unwrap();
    let missing = Err(ActError::RecordMissing { at: 1 });
    assert_eq!(world.act(next(&["there", "gone"])).await, missing);
    let written = Act { needs: vec![key("new")], ..writes([write("new", 0, Some(b"1"))]) };
    let missing = Err(ActError::RecordMissing { at: 0 });
    assert_eq!(world.act(written).await, missing, "it must be there before");
    assert_eq!(world.claim("strict", 10).await, []);
    let ids = world.act(next(&["there"])).await.unwrap().enqueued;
    assert_eq!(world.claim("strict", 10).await, *ids);
    let _ = world.act(writes([write("there", 1, None)])).await.unwrap();
    assert_eq!(world.act(next(&["there"])).await, missing);
}
