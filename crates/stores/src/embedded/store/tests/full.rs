//! A disk without space, and one that fails.

use super::{Machine, Store, enqueue, wait};
use crate::embedded::disk::simulated::Fault;
use std::future::Future;
use std::task::{Context, Poll, Waker};
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::{Lanes, Meters, StoreError};

#[test]
fn what_finds_no_space_is_done_once_there_is_some() {
    let machine = Machine::new(1);
    machine.define();
    machine.host.plan(Fault::DiskFull(0));
    assert_eq!(machine.store().takes_writes(), Ok(()), "nobody has tried");
    let first = wait(machine.store().act(vec![enqueue(4)])).unwrap();
    let second = wait(machine.store().act(vec![enqueue(4)])).unwrap();
    assert_ne!(first[0].as_ref().unwrap().enqueued, second[0].as_ref().unwrap().enqueued);
    assert_eq!(machine.store().takes_writes(), Ok(()));
}

#[test]
fn a_sync_that_fails_ends_the_store_for_good_and_a_new_start_reads_what_lasts() {
    let mut machine = Machine::new(1);
    machine.define();
    let kept = wait(machine.store().act(vec![enqueue(4)])).unwrap()[0].clone().unwrap().enqueued[0];
    machine.host.plan(Fault::SyncFails(0));
    for _ in 0..3 {
        let answer = wait(machine.store().act(vec![enqueue(4)]));
        assert!(matches!(answer, Err(StoreError::Failed { .. })), "{answer:?}");
    }
    assert!(matches!(machine.store().takes_writes(), Err(StoreError::Failed { .. })));
    // Whoever drives it hears of it.
    while wait(machine.store().woken()).is_ok() {}
    machine.crash();
    machine.start();
    assert!(wait(machine.store().explain(vec![kept])).unwrap()[0].is_some());
}

#[test]
fn acts_that_fit_no_batch_together_are_all_done() {
    let machine = Machine::new(1);
    machine.define();
    let acts = (0..12).map(|_| enqueue(3 << 20)).collect();
    let answers = wait(machine.store().act(acts)).unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 12);
}

/// The first few find no space and wait for it; whoever comes once that is known is refused.
fn until_refused(store: &Store) {
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting = Vec::new();
    let refused = loop {
        let mut act = Box::pin(store.act(vec![enqueue(4)]));
        if let Poll::Ready(answer) = act.as_mut().poll(&mut context) {
            break answer;
        }
        wait(store.inspect(vec![])).unwrap();
        if let Poll::Ready(answer) = act.as_mut().poll(&mut context) {
            break answer;
        }
        waiting.push(act);
    };
    assert!(matches!(refused, Err(StoreError::Full { .. })), "{refused:?}");
    assert!(matches!(store.takes_writes(), Err(StoreError::Full { .. })));
}

#[test]
fn a_disk_that_stays_full_refuses_what_is_new_and_lets_the_store_close() {
    let mut machine = Machine::new(1);
    machine.define();
    let kept = wait(machine.store().act(vec![enqueue(4)])).unwrap()[0].clone().unwrap();
    machine.host.plan(Fault::DiskStaysFull);
    let store = machine.store().clone();
    until_refused(&store);
    drop(store);
    machine.store = None;
    machine.crash();
    machine.start();
    assert!(wait(machine.store().explain(kept.enqueued.into())).unwrap()[0].is_some());
}

#[test]
fn leases_are_renewed_while_the_disk_is_full() {
    let machine = Machine::new(1);
    machine.define();
    wait(machine.store().act(vec![enqueue(4)])).unwrap();
    let (most, asks) = (1, tollgate_core::Span::ZERO);
    let claim = tollgate_core::lanes::Claim { queue: super::queue(), most, lease: None, asks };
    let lease = wait(machine.store().claim(claim.clone())).unwrap()[0].started.lease;
    machine.host.plan(Fault::DiskStaysFull);
    until_refused(machine.store());
    let minute = tollgate_core::Span::from_minutes(1);
    assert_eq!(wait(machine.store().renew_leases(vec![lease], minute)).unwrap(), [true]);
}
