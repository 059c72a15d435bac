//! Claims of who is gone, and claims that come a moment too early.

use super::{Machine, enqueue, queue, wait};
use crate::store::Store;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{Act, CallId, Claim, QueueSpec, Settle, Settlement, Started};
use tollgate_core::{Definition, LaneName, Limit, LimitName, Now, QueueName, Span, Toll};

/// How far a claim comes before nobody waits for it any more.
#[derive(Debug, Clone, Copy)]
enum Gone {
    BeforeTheAnswer,
    WithTheAnswer,
}

/// A store with one call that was claimed by someone who hung up.
fn hung_up(gone: Gone) -> (Machine, CallId) {
    let machine = Machine::new(1);
    machine.define();
    let enqueued = wait(machine.store().act(vec![enqueue(40)])).unwrap().remove(0).unwrap();
    let claim = Claim { queue: queue(), most: 1, lease: None, asks: Span::from_secs(0) };
    let mut claimed = Box::pin(machine.store().claim(claim));
    let mut context = Context::from_waker(Waker::noop());
    // The writer waits for the time: however slow this thread is, it is not answered yet.
    let clock = machine.clock.lock().unwrap();
    assert!(claimed.as_mut().poll(&mut context).is_pending());
    drop(clock);
    if matches!(gone, Gone::WithTheAnswer) {
        // By the time that what comes later is answered, so is the claim, or almost.
        wait(machine.store().advance()).unwrap();
    }
    drop(claimed);
    (machine, enqueued.enqueued[0])
}

#[test]
fn a_claim_of_who_is_gone_gives_its_calls_back() {
    for gone in [Gone::BeforeTheAnswer, Gone::WithTheAnswer] {
        let (machine, call) = hung_up(gone);
        // The clock stands still: no lease runs out.
        let again = (0..1_000).find_map(|_| machine.claim(1).pop());
        let started = again.unwrap_or_else(|| panic!("{gone:?}: it is still in flight")).started;
        assert_eq!((started.lease.call, started.attempts), (call, Default::default()));
    }
}

/// A store whose limit opens in a millisecond for the call that waits, with another that was started; its clock stands
/// still until `step` is set: then each reading moves it by so many nanoseconds.
pub(super) fn a_moment_before_a_limit_opens() -> (Machine, Started, Arc<AtomicU64>) {
    let mut machine = Machine::new(1);
    let (clock, step) = (machine.clock.clone(), Arc::new(AtomicU64::new(0)));
    let reading = step.clone();
    let ticking = move || {
        let mut now = clock.lock().unwrap();
        *now = Now::both(now.at.plus(Span::from_nanos(reading.load(Ordering::Relaxed))));
        *now
    };
    machine.store = None;
    let disk = machine.host.open().unwrap();
    machine.store = Some(Store::on(disk, machine.settings, Arc::new(ticking)).unwrap().store);
    machine.define();
    let definition = Some(Definition::new(Limit::per_second(1_000).burst(1)).unwrap());
    let limit = LimitName::new("l").unwrap();
    let limits = vec![(limit.clone(), definition)];
    let configure = Configure { limits, ..Configure::default() };
    wait(machine.store().configure(configure)).unwrap().unwrap();
    for _ in 0..2 {
        let mut act = enqueue(1);
        let toll = Toll { limit: limit.clone(), partition: None, weight: 1, hears_feedback: false };
        act.enqueue[0].tolls = [toll].into();
        assert!(wait(machine.store().act(vec![act])).unwrap()[0].is_ok());
    }
    let started = machine.claim(1).remove(0).started;
    (machine, started, step)
}

fn commits(store: &Store) -> u64 {
    wait(store.totals()).unwrap().store.commits
}

pub(super) fn waiting() -> Claim {
    Claim { queue: queue(), most: 1, lease: None, asks: Span::from_secs(1) }
}

#[test]
fn a_claim_that_comes_a_moment_too_early_gets_the_call_when_its_limit_opens() {
    let (machine, before, step) = a_moment_before_a_limit_opens();
    step.store(400_000, Ordering::Relaxed);
    let claimed = wait(machine.store().claim(waiting())).unwrap();
    let late: Vec<_> = claimed.iter().map(|call| call.started.at.since(before.at)).collect();
    assert!(matches!(late[..], [late] if late >= Span::from_millis(1)), "{late:?}");
}

#[test]
fn a_claim_that_lingers_gets_what_comes_meanwhile() {
    let (machine, ..) = a_moment_before_a_limit_opens();
    let mut free = enqueue(2);
    free.enqueue[0].lane = LaneName::new("b").unwrap();
    let (mut claimed, mut acted) =
        (Box::pin(machine.store().claim(waiting())), Box::pin(machine.store().act(vec![free])));
    let (mut context, before) = (Context::from_waker(Waker::noop()), commits(machine.store()));
    // The writer waits for the time until both are sent.
    let clock = machine.clock.lock().unwrap();
    assert!(claimed.as_mut().poll(&mut context).is_pending());
    assert!(acted.as_mut().poll(&mut context).is_pending());
    drop(clock);
    let enqueued = wait(acted).unwrap().remove(0).unwrap().enqueued;
    let claimed = wait(claimed).unwrap();
    assert_eq!(claimed.iter().map(|call| call.started.lease.call).collect::<Vec<_>>(), *enqueued);
    assert_eq!(commits(machine.store()) - before, 1, "at once");
}

#[test]
fn a_claim_does_not_linger_for_a_limit_of_another_queue() {
    let (machine, before, step) = a_moment_before_a_limit_opens();
    assert!(machine.claim(1).is_empty(), "from now on it is known when the limit opens");
    let other = QueueName::new("other").unwrap();
    wait(machine.store().define_queue(other.clone(), QueueSpec::default())).unwrap().unwrap();
    step.store(400_000, Ordering::Relaxed);
    let claim = Claim { queue: other, ..waiting() };
    assert!(wait(machine.store().claim(claim)).unwrap().is_empty());
    // The time was read when it was tried and once behind that, and nobody waited for the limit.
    let now = machine.clock.lock().unwrap().at;
    assert!(now.since(before.at) < Span::from_millis(1));
}

#[test]
fn a_claim_does_not_linger_while_time_stands_still_nor_when_the_store_is_closed() {
    let (mut machine, ..) = a_moment_before_a_limit_opens();
    assert!(wait(machine.store().claim(waiting())).unwrap().is_empty());
    let mut context = Context::from_waker(Waker::noop());
    let store = machine.store.take().unwrap();
    let mut claimed = Box::pin(store.claim(waiting()));
    assert!(claimed.as_mut().poll(&mut context).is_pending());
    drop(claimed);
    // It ends when all is done that was asked for.
    drop(store);
    machine.start();
    assert!(machine.claim(1).is_empty());
}

#[test]
fn what_is_settled_with_a_claim_that_lingers_is_written_with_what_it_starts() {
    let needed = |together: bool| {
        let (machine, started, step) = a_moment_before_a_limit_opens();
        let store = machine.store();
        let settle = Settle::new(started.lease, Settlement::Done);
        let act = Act { settle: vec![settle], ..Act::default() };
        let (mut act, mut claim) =
            (Box::pin(store.act(vec![act])), Box::pin(store.claim(waiting())));
        let (before, mut acted, mut claimed) = (commits(store), None, None);
        step.store(250_000, Ordering::Relaxed);
        wait(poll_fn(|context| {
            let mut send = || {
                acted = acted.take().or_else(|| answer(act.as_mut().poll(context)));
                claimed = claimed.take().or_else(|| answer(claim.as_mut().poll(context)));
            };
            match together {
                true => store.together(send),
                false => send(),
            }
            if acted.is_some() && claimed.is_some() { Poll::Ready(()) } else { Poll::Pending }
        }));
        assert!(acted.unwrap().unwrap()[0].is_ok());
        assert_eq!(claimed.unwrap().unwrap().len(), 1);
        commits(store) - before
    };
    assert_eq!([true, false].map(needed), [1, 2]);
}

fn answer<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}
