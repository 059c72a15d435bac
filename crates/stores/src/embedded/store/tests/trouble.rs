//! What goes wrong beside the writer: a full disk is tried again, a panic too, and a sync that fails
//! ends the store wherever it is.

use super::{Machine, enqueue, wait};
use crate::embedded::disk::simulated::Fault;
use tollgate_core::contract::conformance::Stage;
use tollgate_core::contract::{Lanes, StoreError};

/// More calls than are made before the second checkpoint.
const ROUNDS: usize = 2_000;

impl Machine {
    fn has_checkpoint(&self) -> bool {
        self.host.files().into_keys().any(|name| name.ends_with(".whole"))
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
