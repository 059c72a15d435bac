//! Random commands: what always holds, and that everything ends once nothing is held back.

use super::*;
use crate::lanes::claim::Scope;
use crate::lanes::naive::ways::{Serving, lines};
use crate::lanes::naive::{Call, State};
use proptest::prelude::*;

const LIMITS: [&str; 3] = ["rate", "fat", "slots"];
const QUEUES: [&str; 2] = ["strict", "parallel"];
const LANES: [&str; 3] = ["a", "b", "c"];

fn define(world: &mut World, limit: usize, size: u64) {
    let limits = [
        Limit::per(2 + size % 3, Span::from_secs(3)),
        Limit::sliding_window(4 + size % 7, Span::from_secs(5)),
        Limit::concurrency(2 + size % 2),
    ];
    world.limit(LIMITS[limit % 3], limits[limit % 3].clone());
}

fn pick<T: Copy, const N: usize>(from: [T; N], at: u64) -> T {
    from[usize::try_from(at).unwrap() % N]
}

fn new_call(world: &World, seed: u64) -> NewCall {
    let mut tolls = Vec::new();
    for at in (0..3).filter(|at| seed & (1 << at) != 0) {
        let hears_feedback = seed & 8 != 0;
        let (limit, weight) = (pick(LIMITS, at), 1 + (seed >> 4) % 2);
        tolls.push(Toll { hears_feedback, ..toll(limit, weight) });
    }
    let level = if seed.is_multiple_of(5) { seed % 10 } else { 0 };
    NewCall {
        tolls,
        priority: priority(level),
        not_before: (seed % 7 == 1).then(|| world.after(seed % 4)),
        expires: (seed % 11 == 1).then(|| world.after(seed % 8)),
        dedupe: (seed % 13 == 1).then(|| key("dedupe")),
        supersedes: (seed % 9 == 1).then(|| key("supersedes")),
        ..call(pick(QUEUES, seed >> 6), pick(LANES, seed >> 7))
    }
}

fn settlement(seed: u64) -> Settlement {
    let span = Span::from_secs(seed % 4);
    pick(
        [
            Settlement::Done,
            Settlement::Retry(None),
            Settlement::Retry(Some(span)),
            Settlement::Release,
            Settlement::Dead,
            Settlement::Limited(span),
        ],
        seed,
    )
}

fn scope(seed: u64) -> Scope {
    let (queue, lane) = (queue(pick(QUEUES, seed / 3)), lane_name(pick(LANES, seed / 6)));
    match seed % 3 {
        0 => Scope::Queue(queue),
        1 => Scope::Lane(queue, lane),
        _ => Scope::Limit(limit_name(pick(LIMITS, seed / 3))),
    }
}

/// Starts calls, and sees that it ended for want of someone to try.
fn claim(world: &mut World, seed: u64) -> Vec<CallId> {
    let most = usize::try_from(seed % 5).unwrap();
    let name = pick(QUEUES, seed / 5);
    let started = world.claim(name, most);
    let served = queue(name);
    let candidate = world.both.candidate(Serving { queue: &served, now: world.now });
    assert!(started.len() == most || candidate.is_none(), "the claim gave up");
    started
}

fn step(world: &mut World, (kind, seed): (u8, u64)) {
    let some_call = CallId(seed % world.both.next_call.max(1));
    match kind {
        0..=7 => drop(world.try_enqueue(new_call(world, seed))),
        8..=13 => drop(claim(world, seed)),
        14..=18 => {
            let flying = world.both.calls.values().filter(|call| call.flight().is_some());
            let flying: Vec<CallId> = flying.map(|call| call.id).collect();
            if let Some(id) = flying.get(usize::try_from(seed).unwrap() % flying.len().max(1)) {
                // The lease may have expired by now: being refused is an answer, too.
                drop(world.try_settle(*id, settlement(seed / 7)));
            }
        }
        19..=22 => world.wait(seed % 4),
        23 => world.wait(30),
        24 => drop(world.cancel(some_call)),
        25 => world.both.pause(&scope(seed), world.now),
        26..=27 => world.both.resume(&scope(seed), world.now),
        28 => world.remove_limit(pick(LIMITS, seed)),
        _ => define(world, usize::try_from(seed % 3).unwrap(), seed / 3),
    }
}

fn assert_what_always_holds(world: &World) {
    let naive = &world.both;
    let heads: Vec<&Call> = naive.heads().map(|(call, _)| call).collect();
    assert_eq!(heads.len(), naive.heads.len(), "a head is a call");
    for (at, head) in heads.iter().enumerate() {
        assert!(head.is_waiting() && head.arrival.is_some(), "a head waits in its lane");
        let others = &heads[at + 1..];
        assert!(others.iter().all(|other| other.lane_key() != head.lane_key()), "one head a lane");
        for line in lines(&head.new.tolls) {
            let seniors = naive.heads().filter(|(call, it)| {
                it.is_senior && lines(&call.new.tolls).iter().any(|it| it.meter == line.meter)
            });
            assert!(seniors.count() <= 1, "one senior a meter");
        }
    }
    for lane in LANES {
        let flying = naive.calls.values().filter(|call| {
            let is_here = &*call.new.queue == "strict" && &*call.new.lane == lane;
            is_here && matches!(call.state, State::InFlight(_))
        });
        assert!(flying.count() <= 1, "a strict lane has one in flight");
    }
}

/// Nothing is held back any more, and every call that starts is done.
fn drain(world: &mut World) {
    for at in 0..LIMITS.len() {
        define(world, at, 2);
    }
    for seed in 0..18 {
        world.both.resume(&scope(seed), world.now);
    }
    world.wait(600);
    for _ in 0..1_000 {
        for name in QUEUES {
            for id in world.claim(name, 10) {
                world.settle(id, Settlement::Done);
            }
        }
        world.wait(1);
    }
}

proptest! {
    #[test]
    fn whatever_happens_lanes_stay_sound_and_everything_ends(
        steps in prop::collection::vec((0_u8..30, 0_u64..100_000), 1..120),
    ) {
        let mut world = World::new();
        (0..LIMITS.len()).for_each(|at| define(&mut world, at, 0));
        for each in steps {
            step(&mut world, each);
            assert_what_always_holds(&world);
        }
        drain(&mut world);
        let unended = world.both.calls.keys().filter(|id| world.both.end(**id).is_none());
        prop_assert_eq!(unended.collect::<Vec<_>>(), Vec::<&CallId>::new());
    }
}
