//! Checkpoints are made, old segments go, and bodies that are still needed move.

use super::{Machine, enqueue, queue, wait};
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::{Lanes, Meters};
use tollgate_core::lanes::{Act, Claim, Claimed, End, Revision, Settle, Settlement, Write};
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

/// Writes a record again and again, which has no body, until this is so.
fn write_until(machine: &mut Machine, mut is_so: impl FnMut(&mut Machine, usize) -> bool) {
    let key = || Key::new("record").unwrap();
    let found = wait(machine.store().records(vec![key()])).unwrap().remove(0);
    let mut expected = found.map_or(Revision(0), |record| record.revision);
    let is_reached = (0..ROUNDS).any(|round| {
        let write = vec![Write { key: key(), expected, bytes: Some([7; 300].into()) }];
        let acted = wait(machine.store().act(vec![Act { write, ..Act::default() }])).unwrap();
        expected = acted[0].as_ref().unwrap().written[0];
        is_so(machine, round)
    });
    assert!(is_reached, "{} segments", machine.segments().len());
}

#[test]
fn what_can_be_read_of_a_damaged_segment_moves_and_it_goes() {
    for is_lost in [false, true] {
        let mut machine = Machine::new(1);
        machine.define();
        let acted = wait(machine.store().act(vec![enqueue(3_000)])).unwrap();
        let call = acted[0].as_ref().unwrap().enqueued[0];
        let oldest = machine.segments().remove(0);
        write_until(&mut machine, |machine, _| {
            machine.host.files().into_keys().any(|name| name.ends_with(".whole"))
        });
        let bytes = machine.host.files().remove(&oldest).unwrap();
        let body = bytes.windows(3_000).position(|window| window == [7; 3_000]).unwrap();
        // The tag of its record, or a bit in the header of the first frame.
        machine.host.flip(&oldest, if is_lost { (body - 5) * 8 + 7 } else { 32 * 8 });
        machine.store = None;
        machine.start();
        for _ in 0..2 {
            let oldest = machine.segments().remove(0);
            write_until(&mut machine, |machine, _| !machine.segments().contains(&oldest));
            let claimed = machine.claim(1);
            let bodies: Vec<_> = claimed.iter().map(|it| it.payload.body().len()).collect();
            assert_eq!(bodies, if is_lost { vec![] } else { vec![3_000] });
            for held in claimed {
                machine.settle(vec![Settle::new(held.started.lease, Settlement::Release)]);
            }
            machine.store = None;
            machine.start();
        }
        let end = wait(machine.store().ends(vec![call])).unwrap().remove(0);
        assert_eq!(end, is_lost.then_some(End::Dead));
    }
}

#[test]
fn a_body_that_stays_does_not_keep_all_that_is_written_behind_it() {
    for restarts in [false, true] {
        let mut machine = Machine::new(1);
        machine.define();
        assert!(wait(machine.store().act(vec![enqueue(100)])).unwrap()[0].is_ok());
        let oldest = machine.segments().remove(0);
        write_until(&mut machine, |machine, round| {
            if restarts && round % 40 == 39 {
                machine.store = None;
                machine.start();
            }
            !machine.segments().contains(&oldest)
        });
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
