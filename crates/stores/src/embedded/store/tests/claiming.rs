//! Calls that were started for someone who is gone wait again at once.

use super::{Machine, enqueue, queue, wait};
use std::future::Future;
use std::task::{Context, Waker};
use tollgate_core::Span;
use tollgate_core::contract::Lanes;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::lanes::{CallId, Claim};

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
