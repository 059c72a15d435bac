//! Acts: all or nothing, revisions, duplicates, joins.

use super::*;
use crate::lanes::act::{Count, Revision, Write};

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

#[test]
fn an_act_with_a_stale_revision_does_nothing_at_all() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    let lease = world.leases[&id];
    let act = Act {
        settle: vec![Settle { lease, settlement: Settlement::Done, actual: vec![] }],
        write: vec![write("r", 0, Some(b"1")), write("s", 7, Some(b"1"))],
        enqueue: vec![call("strict", "a")],
        ..Act::default()
    };
    let found = Revision(0);
    assert_eq!(world.act(&act), Err(ActError::RevisionDiffers { at: 1, found }));
    assert!(world.both.is_in_flight(id));
    assert!(world.both.record(&key("r")).is_none());
    assert_eq!(world.enqueue(call("strict", "a")), CallId(1));
}

#[test]
fn revisions_count_the_writes_of_all_records() {
    let mut world = World::new();
    let first = world.act(&writes([write("r", 0, Some(b"1")), write("s", 0, Some(b"2"))]));
    assert_eq!(first.unwrap().written, [Revision(1), Revision(2)]);
    let removed = world.act(&writes([write("r", 1, None)]));
    assert_eq!(removed.unwrap().written, [Revision(3)]);
    let again = world.act(&writes([write("r", 0, Some(b"3"))]));
    assert_eq!(again.unwrap().written, [Revision(4)]);
    let record = world.both.record(&key("r")).unwrap();
    assert_eq!((record.revision, &*record.bytes), (Revision(4), &b"3"[..]));
}

#[test]
fn a_write_sees_the_earlier_writes_of_its_act() {
    let mut world = World::new();
    let act = writes([write("r", 0, Some(b"1")), write("r", 1, None), write("r", 0, Some(b"2"))]);
    assert_eq!(world.act(&act).unwrap().written, [1, 2, 3].map(Revision));
}

#[test]
fn a_duplicate_is_the_first_call() {
    let mut world = World::new();
    let new = NewCall { dedupe: Some(key("k")), ..call("strict", "a") };
    let act = Act { enqueue: vec![new.clone(), new.clone()], ..Act::default() };
    assert_eq!(world.act(&act).unwrap().enqueued, [CallId(0), CallId(0)]);
    world.claim("strict", 1);
    world.settle(CallId(0), Settlement::Done);
    assert_eq!(world.enqueue(new), CallId(0));
}

#[test]
fn a_dedupe_key_is_forgotten_after_its_time() {
    let mut world = World::new();
    let new = NewCall { dedupe: Some(key("k")), ..call("strict", "a") };
    let first = world.enqueue(new.clone());
    world.wait(599);
    assert_eq!(world.enqueue(new.clone()), first);
    world.wait(1);
    assert_ne!(world.enqueue(new), first);
}

#[test]
fn a_dedupe_key_is_one_of_its_queue() {
    let mut world = World::new();
    let dedupe = Some(key("k"));
    let first = world.enqueue(NewCall { dedupe: dedupe.clone(), ..call("strict", "a") });
    let second = world.enqueue(NewCall { dedupe, ..call("parallel", "a") });
    assert_ne!(first, second);
}

#[test]
fn a_join_enqueues_its_call_when_it_has_counted_down() {
    let mut world = World::new();
    assert_eq!(world.act(&counts([count(3), count(3)])).unwrap().counted, [(2, None), (1, None)]);
    let last = world.act(&counts([count(3)])).unwrap();
    assert_eq!(last.counted, [(0, Some(CallId(0)))]);
    assert_eq!(world.claim("strict", 1), [CallId(0)]);
}

#[test]
fn a_join_that_was_reached_is_opened_anew() {
    let mut world = World::new();
    let act = counts([count(1), count(2)]);
    assert_eq!(world.act(&act).unwrap().counted, [(0, Some(CallId(0))), (1, None)]);
}

#[test]
fn a_join_that_counts_from_nothing_is_refused_when_it_opens() {
    let mut world = World::new();
    assert_eq!(world.act(&counts([count(0)])), Err(ActError::CountFromZero { at: 0 }));
    let counted = world.act(&counts([count(2), count(0)])).unwrap().counted;
    assert_eq!(counted, [(1, None), (0, Some(CallId(0)))]);
}

#[test]
fn a_call_that_is_settled_in_the_act_can_be_cancelled_in_it() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    let lease = world.leases[&id];
    let settle = vec![Settle { lease, settlement: Settlement::Release, actual: vec![] }];
    let act = Act { settle, cancel: vec![id], ..Act::default() };
    assert_eq!(world.act(&act).unwrap().cancelled, [true]);
    assert_eq!(world.end(id), Some(End::Cancelled));
}
