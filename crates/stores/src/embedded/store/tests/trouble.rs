//! What goes wrong beside the writer: a full disk is tried again, a panic too, and a sync that fails
//! ends the store wherever it is.

use super::{Machine, enqueue, wait};
use crate::embedded::disk::simulated::Fault;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::{Lanes, StoreError};
use tollgate_core::lanes::{Act, End, What};

/// More calls than are made before the second checkpoint.
const ROUNDS: usize = 2_000;

impl Machine {
    fn has_checkpoint(&self) -> bool {
        self.host.files().into_keys().any(|name| name.ends_with(".whole"))
    }

    /// Enqueues a call, takes it back, and looks into history, which is synced for that.
    fn try_to_live(&self) -> Result<(), StoreError> {
        let acted = wait(self.store().act(vec![enqueue(5)]))?.remove(0).unwrap();
        let cancel = Act { cancel: acted.enqueued.to_vec(), ..Act::default() };
        let _ = wait(self.store().act(vec![cancel]))?;
        wait(self.store().histories(vec![acted.enqueued[0]])).map(drop)
    }
}

#[test]
fn a_sync_that_fails_ends_the_store_wherever_it_is() {
    // The journal's syncs, and those of two checkpoints and of segments that are dropped.
    for operation in 0..100 {
        let machine = Machine::new(operation);
        machine.define();
        machine.host.plan(Fault::SyncFails(operation));
        let failed = (0..ROUNDS).find_map(|_| wait(machine.store().act(vec![enqueue(500)])).err());
        assert!(matches!(failed, Some(StoreError::Failed { .. })), "sync {operation}: {failed:?}");
    }
}

#[test]
fn a_sync_of_history_that_fails_ends_the_store() {
    // The journal's syncs, and those of segments of history that are begun, written, sealed, indexed
    // and dropped.
    for operation in 0..60 {
        let mut machine = Machine::new(operation);
        machine.store = None;
        (machine.settings.checkpoint_bytes, machine.settings.history.bytes) = (1 << 30, 8 << 10);
        machine.start();
        machine.define();
        machine.host.plan(Fault::SyncFails(operation));
        let failed = (0..ROUNDS).find_map(|_| machine.try_to_live().err());
        assert!(matches!(failed, Some(StoreError::Failed { .. })), "sync {operation}: {failed:?}");
    }
}

#[test]
fn a_checkpoint_that_finds_no_space_is_made_later() {
    let machine = Machine::new(1);
    machine.define();
    machine.host.plan(Fault::NoSpaceFor("checkpoint-"));
    machine.live_until(Machine::has_checkpoint);
}

#[test]
fn upkeep_that_panicked_is_tried_again() {
    let machine = Machine::new(1);
    machine.define();
    machine.host.plan(Fault::PanicsAt("checkpoint-"));
    machine.live_until(Machine::has_checkpoint);
}

#[test]
fn a_moment_without_files_to_open_is_waited_for() {
    for operations in 0..12 {
        let machine = Machine::new(1);
        machine.define();
        let segments = machine.segments();
        machine.host.plan(Fault::TooManyFiles(operations));
        machine.live_until(|machine| machine.segments() != segments && machine.has_checkpoint());
        assert_eq!(machine.store().takes_writes(), Ok(()));
    }
}

#[test]
fn a_call_whose_body_is_damaged_is_given_up_and_holds_up_no_other() {
    // The tag of its record is another, or nobody can read it.
    let flips = |machine: &Machine| {
        let name = machine.segments().remove(0);
        let bytes = machine.host.files().remove(&name).unwrap();
        let body = bytes.windows(200).position(|window| window == [7; 200]).unwrap();
        machine.host.flip(&name, (body - 5) * 8 + 7);
    };
    is_given_up(flips, "is damaged at offset");
    is_given_up(|machine| machine.host.plan(Fault::ReadFails), "failed reading journal-");
}

fn is_given_up(damages: impl FnOnce(&Machine), why: &str) {
    let mut machine = Machine::new(1);
    machine.define();
    let answers = wait(machine.store().act(vec![enqueue(200), enqueue(201)])).unwrap();
    let [damaged, other] = [0, 1].map(|at| answers[at].as_ref().unwrap().enqueued[0]);
    machine.store = None;
    machine.start();
    // What is in the segments read at the start is in memory no more.
    damages(&machine);
    let claimed: Vec<_> = (0..2).flat_map(|_| machine.claim(2)).collect();
    let calls: Vec<_> = claimed.iter().map(|claimed| claimed.started.lease.call).collect();
    assert_eq!(calls, [other]);
    let events = wait(machine.store().histories(vec![damaged])).unwrap().remove(0);
    let report = events.iter().find_map(|event| match &event.what {
        What::Settled { report, .. } => Some(String::from_utf8_lossy(report).into_owned()),
        _ => None,
    });
    assert!(report.is_some_and(|report| report.contains(why)), "{events:?}");
    assert_eq!(wait(machine.store().ends(vec![damaged])).unwrap(), [Some(End::Dead)]);
}
