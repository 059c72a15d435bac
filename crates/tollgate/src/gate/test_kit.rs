//! Machines and workflows in tests: in memory, on a clock that jumps.

use super::{GateError, Tollgate};
use crate::embedded::OpenError;
use crate::gate::Flows;
use crate::store::Store;
use serde::Serialize;
use std::future::Future;
use tollgate_core::{Span, Timestamp};
use tollgate_engine::ManualClock;
use tollgate_engine::flows::{Ended, Kit, KitError, Machine, TaskFailure, TaskJob};
use tollgate_stores::embedded::disk::simulated::Host;

/// A gate in memory that keeps calls, the worker of all that is given to it, and the clock, which stands still while
/// something can be done and then goes to the next instant at which something happens.
#[derive(Debug)]
pub struct TestKit {
    gate: Tollgate,
    kit: Kit<Store>,
    clock: ManualClock,
}

impl TestKit {
    /// An empty gate, and nobody who works.
    pub async fn new() -> Result<Self, GateError> {
        let clock = ManualClock::new();
        let mut builder = Tollgate::builder().clock(clock.clone());
        // Each meter is looked at when it opens, and not with others that open a little later.
        builder.store.gather = Span::ZERO;
        let disk = Host::new(0).open().map_err(OpenError::from)?;
        let gate = builder.open_on(disk).await?;
        let kit = Kit::new(gate.engine()?, clock.clone());
        Ok(Self { gate, kit, clock })
    }

    /// The gate: define limits, register workflows, begin runs and look at them as ever.
    pub fn gate(&self) -> &Tollgate {
        &self.gate
    }

    /// The runs of the gate.
    pub fn flows(&self) -> Flows {
        self.gate.flows()
    }

    /// Makes the steps of a machine's runs, as many at a time as may start. One that was given before is replaced.
    pub fn machine<M: Machine>(&self, machine: M) {
        self.kit.machine(machine);
    }

    /// Makes the tasks of a type, as many at a time as may start. A handler that was given before is replaced.
    pub fn tasks<H, F, T>(&self, type_name: &str, handler: H)
    where
        H: Fn(TaskJob) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, TaskFailure>> + Send + 'static,
        T: Serialize + Send + 'static,
    {
        self.kit.tasks(type_name, handler);
    }

    /// After how many steps, tasks and moves of the clock a run counts as one that never ends; 100,000 by default.
    pub fn steps_max(&self, steps: u64) {
        self.kit.steps_max(steps);
    }

    /// Works, and moves the clock from one instant to the next, until a run has ended. What other runs do in that time
    /// they do. A run that can never end is told, with what it waits for.
    ///
    /// Handlers run within this, one after the other or by turns, up to 64 at a time, and the clock stands still while
    /// one does: a handler may await what it calls, and not the clock. One that has not ended within 10 s of real time
    /// is an error.
    pub async fn finish(&self, run: &str) -> Result<Ended, KitError> {
        self.kit.finish(run).await
    }

    /// Lets so much time pass, and all happen in it that is due, each at its instant. With no time at all, what can be
    /// made now is made.
    pub async fn advance(&self, by: impl Into<Span>) -> Result<(), KitError> {
        self.kit.advance(by).await
    }

    /// The time on the clock.
    pub fn now(&self) -> Timestamp {
        self.kit.now()
    }

    /// How much time has passed on the clock since the kit was made.
    pub fn elapsed(&self) -> Span {
        self.kit.elapsed()
    }

    /// The clock itself: for handlers that read it, or to set its wall clock. Let [`Self::advance`] move it, or what is
    /// due on the way happens late.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }
}
