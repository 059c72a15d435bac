//! Checkpoints are made, old segments go, and bodies that are still needed move.

use super::{Machine, enqueue, queue, wait};
use tollgate_core::contract::Lanes;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::lanes::{Act, Claim, Claimed, Revision, Settle, Settlement, Write};
use tollgate_core::{Key, Span};

/// More rounds than it ever takes.
const ROUNDS: usize = 20_000;

impl Machine {
    pub(super) fn claim(&self, most: usize) -> Vec<Claimed> {
        let claim = Claim { queue: queue(), most, lease: None, asks: Span::from_secs(0) };
        wait(self.store().claim(claim)).unwrap()
    }

    pub(super) fn settle(&self, settle: Vec<Settle>) {
        let act = Act { settle, ..Act::default() };
        assert!(wait(self.store().act(vec![act])).unwrap()[0].is_ok());
    }

    /// Enqueues, starts and ends a call.
    pub(super) fn live_through_one(&self) {
        wait(self.store().act(vec![enqueue(500)])).unwrap()[0].as_ref().unwrap();
        let lease = self.claim(1).remove(0).started.lease;
        let settle = vec![Settle::new(lease, Settlement::Done)];
        self.settle(settle);
    }

    /// The files of the journal, oldest first.
    pub(super) fn segments(&self) -> Vec<String> {
        let names = self.host.files().into_keys();
        names.filter(|name| name.starts_with("journal-")).collect()
    }

    pub(super) fn live_until(&self, is_reached: impl Fn(&Self) -> bool) {
        let reached = (0..ROUNDS).any(|_| {
            self.live_through_one();
            is_reached(self)
        });
        assert!(reached, "{:?}", self.segments());
    }
}

#[test]
fn old_segments_go_once_there_is_a_checkpoint() {
    let machine = Machine::new(1);
    machine.define();
    let oldest = machine.segments().remove(0);
    machine.live_until(|machine| {
        let segments = machine.segments();
        !segments.contains(&oldest) && segments.len() < 8
    });
}

#[test]
fn a_body_that_is_needed_for_long_moves_and_comes_back_whole() {
    let mut machine = Machine::new(1);
    machine.define();
    wait(machine.store().act(vec![enqueue(1_234)])).unwrap()[0].as_ref().unwrap();
    let held = machine.claim(1).remove(0).started.lease;
    let oldest = machine.segments().remove(0);
    machine.live_until(|machine| !machine.segments().contains(&oldest));
    machine.crash();
    machine.start();
    let settle = vec![Settle::new(held, Settlement::Release)];
    machine.settle(settle);
    let again = machine.claim(2);
    assert_eq!(again.len(), 1);
    assert_eq!((again[0].started.lease.call, again[0].payload.body().len()), (held.call, 1_234));
}

#[test]
fn a_body_that_stays_does_not_keep_all_that_is_written_behind_it() {
    for restarts in [false, true] {
        let mut machine = Machine::new(1);
        machine.define();
        assert!(wait(machine.store().act(vec![enqueue(100)])).unwrap()[0].is_ok());
        let oldest = machine.segments().remove(0);
        let mut revision = Revision(0);
        let is_dropped = (0..ROUNDS).any(|round| {
            let key = Key::new("record").unwrap();
            let write = vec![Write { key, expected: revision, bytes: Some([7; 300].into()) }];
            let act = Act { write, ..Act::default() };
            revision =
                wait(machine.store().act(vec![act])).unwrap()[0].as_ref().unwrap().written[0];
            if restarts && round % 40 == 39 {
                machine.store = None;
                machine.start();
            }
            !machine.segments().contains(&oldest)
        });
        assert!(is_dropped, "{restarts}: {:?}", machine.segments());
        assert_eq!(machine.claim(1)[0].payload.body(), [7; 100]);
    }
}

#[test]
fn what_was_dead_before_a_restart_counts_as_dead_after_it() {
    let mut machine = Machine::new(1);
    machine.define();
    assert!(wait(machine.store().act(vec![enqueue(100)])).unwrap()[0].is_ok());
    assert_eq!(machine.claim(1).len(), 1);
    let oldest = machine.segments().remove(0);
    for _ in 0..5 {
        machine.live_through_one();
    }
    machine.store = None;
    machine.start();
    machine.live_until(|machine| !machine.segments().contains(&oldest));
}
