//! A machine: steps that someone writes, and what they are given.

use super::outcome::{StepOutcome, stop};
use super::record::Ending;
use super::signal::Signal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use tollgate_core::Timestamp;
use tollgate_core::flow::CRASHES_MAX_DEFAULT;
use tollgate_core::lanes::Lease;

/// What a step may fail with.
pub type StepError = Box<dyn std::error::Error + Send + Sync>;

/// A durable step machine. Each step is made at least once: what comes of it, the state with it, is written
/// down before the next one starts, and a step whose worker died is made again.
pub trait Machine: Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its version: raise it when steps or the state change so that runs under way could not go on. Runs of
    /// older versions wait for a worker that has those, or are [brought up](Self::upgrade).
    const VERSION: u32 = 1;
    /// The oldest version whose runs [`Self::upgrade`] brings up to this one.
    const OLDEST: u32 = Self::VERSION;
    /// How often a worker may die at one step before the step has failed.
    const CRASHES_MAX: u32 = CRASHES_MAX_DEFAULT;
    /// What is handed from step to step.
    type State: Serialize + DeserializeOwned + Send;

    /// Makes a step. An error goes to [`Self::failed`], and so does a panic.
    fn step(
        &self,
        step: Step<Self::State>,
    ) -> impl Future<Output = Result<StepOutcome, StepError>> + Send;

    /// Says what follows when a step failed: unless it is written, the run has failed.
    fn failed(&self, failure: Failure<Self::State>) -> impl Future<Output = StepOutcome> + Send {
        async move { stop(failure.error) }
    }

    /// Brings a step of an older version up to this one: which step it is now, with which state.
    /// `None` if that cannot be done: the step has failed.
    fn upgrade(
        version: u32,
        step: &str,
        state: serde_json::Value,
    ) -> Option<(String, Self::State)> {
        let _ = (version, step, state);
        None
    }
}

/// A step to be made.
#[derive(Debug, Clone)]
pub struct Step<T> {
    /// Of which run.
    pub run: String,
    /// Which step.
    pub name: String,
    /// What was handed to it.
    pub state: T,
    /// Which attempt it is, from 1: it was made before, as far as that went, if it is higher.
    pub attempt: u32,
    /// The signals that it waited for, in order.
    pub signals: Vec<Signal>,
    /// The time for signals was over.
    pub timed_out: bool,
    /// The children that it waited for, in order.
    pub children: Vec<Child>,
    /// When it was let go.
    pub started: Timestamp,
    /// What it is settled with. Its token is higher than that of every attempt before.
    pub lease: Lease,
}

/// A child that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Which run.
    pub run: String,
    /// How it ended.
    pub ending: Ending,
}

/// A step that failed.
#[derive(Debug, Clone)]
pub struct Failure<T> {
    /// Of which run.
    pub run: String,
    /// Which step.
    pub step: String,
    /// What was handed to it; `None` if that cannot be read.
    pub state: Option<T>,
    /// Which attempt it was.
    pub attempt: u32,
    /// Why.
    pub error: String,
}
