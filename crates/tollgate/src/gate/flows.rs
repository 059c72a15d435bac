//! Runs of step machines, in the store of this gate.

use super::Tollgate;
use crate::store::Store;
use serde::Serialize;
use std::future::Future;
use tollgate_core::flow::workflow::Workflow;
use tollgate_core::lanes::Lease;
use tollgate_core::{LimitName, Span};
use tollgate_engine::flows::{
    self, Attempt, Begun, Cancelled, ClaimedTask, Ended, Machine, NewRun, Registered, RunView,
    Signal, Signalled, StepOutcome, TaskFailure, TaskJob, TaskOutcome,
};
use tollgate_engine::{Error, Worked};

/// The runs of a gate that keeps calls.
#[derive(Debug, Clone)]
pub struct Flows {
    inner: Result<flows::Flows<Store>, Error>,
}

/// A worker of a machine, to be set up and run.
#[derive(Debug)]
#[must_use = "no step is made until it runs"]
pub struct MachineWorker<M: Machine> {
    inner: Result<flows::MachineWorker<Store, M>, Error>,
}

impl Tollgate {
    /// Its runs. In memory, and in a store that others share, there are none: to ask is an error.
    pub fn flows(&self) -> Flows {
        Flows { inner: self.engine().map(flows::Flows::new) }
    }
}

impl Flows {
    fn inner(&self) -> Result<&flows::Flows<Store>, Error> {
        self.inner.as_ref().map_err(Clone::clone)
    }

    /// A worker that makes the steps of a machine's runs.
    pub fn worker<M: Machine>(&self, machine: M) -> MachineWorker<M> {
        MachineWorker { inner: self.inner().map(|inner| inner.worker(machine)) }
    }

    /// Begins a run, or says which one of its correlation key is there. Once answered, it lasts.
    pub async fn start(&self, run: NewRun) -> Result<Begun, Error> {
        self.inner()?.start(run).await
    }

    /// Begins runs, each whatever becomes of the others; the answers in their order. A thousand of them share one
    /// way to the store.
    pub async fn start_all(
        &self,
        runs: impl IntoIterator<Item = NewRun>,
    ) -> Vec<Result<Begun, Error>> {
        match self.inner() {
            Ok(inner) => inner.start_all(runs).await,
            Err(error) => runs.into_iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// The live run of a machine that has a correlation key.
    pub async fn find(&self, machine: &str, correlation: &str) -> Result<Option<String>, Error> {
        self.inner()?.find(machine, correlation).await
    }

    /// Tells a run something. Once answered, it lasts; one that ended takes nothing any more.
    pub async fn signal(&self, run: &str, signal: Signal) -> Result<Signalled, Error> {
        self.inner()?.signal(run, signal).await
    }

    /// Takes a run back: it ends, nothing more of it starts, and a step that is being made is followed by none.
    /// So do the children that it waits for; if this is cut short before it reached all of them, do it again.
    pub async fn cancel(&self, run: &str) -> Result<Cancelled, Error> {
        self.inner()?.cancel(run).await
    }

    /// How a run ended; `None` if it has not. An error if there is no such run.
    pub async fn ended(&self, run: &str) -> Result<Option<Ended>, Error> {
        self.inner()?.ended(run).await
    }

    /// How a run ends, as soon as it does; `None` if it has not within so long.
    pub async fn result(&self, run: &str, within: impl Into<Span>) -> Result<Option<Ended>, Error> {
        self.inner()?.result(run, within).await
    }

    /// The attempts at steps of a run, or at tasks of a workflow's, oldest first, as long as history keeps them: the
    /// last 10,000.
    pub async fn timeline(&self, run: &str) -> Result<Vec<Attempt>, Error> {
        self.inner()?.timeline(run).await
    }

    /// A run's steps as a flowchart for Mermaid: in which order they were made, how often, and what each waited
    /// for.
    pub async fn picture(&self, run: &str) -> Result<String, Error> {
        self.inner()?.picture(run).await
    }

    /// Registers a workflow: its limits are defined, and runs that begin from now on are of it. Runs that are under
    /// way go on as they began. Registered again as it is, it stays as it is.
    ///
    /// Refused if another workflow has tasks of the same type and says otherwise how many of them start or run.
    pub async fn register(&self, workflow: Workflow) -> Result<Registered, Error> {
        self.inner()?.register(workflow).await
    }

    /// A workflow as it was registered last.
    pub async fn workflow(&self, name: &str) -> Result<Option<Registered>, Error> {
        self.inner()?.workflow(name).await
    }

    /// Workflows by name, after one, up to 1,000.
    pub async fn workflows(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Registered>, Error> {
        self.inner()?.workflows(after, most).await
    }

    /// Begins a run of a workflow as it was registered last. With an idempotency key the answer is the first run
    /// of that key, for as long as that is kept. Where only so many runs may live, it waits for its turn.
    pub async fn start_workflow(&self, name: &str, input: impl Serialize) -> Result<Begun, Error> {
        self.inner()?.start_workflow(name, input).await
    }

    /// The same, with JSON as it was sent.
    pub async fn start_workflow_json(&self, name: &str, input: &[u8]) -> Result<Begun, Error> {
        self.inner()?.start_workflow_json(name, input).await
    }

    /// Does again what made a run fail: the step of a machine, or the task of a workflow.
    pub async fn rerun(&self, run: &str) -> Result<(), Error> {
        self.inner()?.rerun(run).await
    }

    /// Lets a run that ended, and is kept, live again from a step or a task.
    ///
    /// Of a machine, that is the step at which it failed: with the state that it had, the signals and children that
    /// it was given, and what it owed, which it pays again. Other steps keep no state: [`Self::rerun_with`] takes
    /// one. Of a workflow, it is any task, with all that depends on it or had not been done; what other tasks gave
    /// stays.
    ///
    /// Its correlation key is its own again, unless another run has it: then nothing is done. A child lives again
    /// when its parent has ended, and tells nobody of its second end.
    pub async fn rerun_from(&self, run: &str, step: &str) -> Result<(), Error> {
        self.inner()?.rerun_from(run, step).await
    }

    /// Lets a machine's run that ended, however that was, live again with what [`next`](crate::flows::next) says: a
    /// step, a state, and what that owes. It is given no signals and no children. The state is that of the version
    /// in which the run ended.
    pub async fn rerun_with(&self, run: &str, next: StepOutcome) -> Result<(), Error> {
        self.inner()?.rerun_with(run, next).await
    }

    /// A run of a workflow as a flowchart for Mermaid, with how far each task is; `None` if it is not one.
    pub async fn workflow_picture(&self, run: &str) -> Result<Option<String>, Error> {
        self.inner()?.workflow_picture(run).await
    }

    /// A worker of tasks of a type.
    pub fn tasks(&self, type_name: &str) -> TaskWorker {
        TaskWorker { inner: self.inner().map(|inner| inner.tasks(type_name)) }
    }

    /// Does what follows in workflows' runs without a worker's hand, until it is told to stop. Every
    /// [worker of tasks](Self::tasks) does so beside its tasks; where all tasks are made elsewhere, this is to run.
    pub async fn keeper(
        &self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Worked, Error> {
        self.inner()?.keeper(stop).await
    }

    /// Starts up to `most` tasks of a type, as soon as one may, within `wait`, for a worker that is not one of
    /// [these](Self::tasks). It says with [`Self::settle_task`] what came of each. A lease lasts for 30 s unless it is
    /// said otherwise.
    pub async fn claim_tasks(
        &self,
        type_name: &str,
        most: usize,
        wait: impl Into<Span>,
        lease: Option<Span>,
    ) -> Result<Vec<ClaimedTask>, Error> {
        self.inner()?.claim_tasks(type_name, most, wait, lease).await
    }

    /// Says what came of a task that was [claimed](Self::claim_tasks), and what it really cost at limits that it
    /// pays. What follows in its run happens in the same act.
    pub async fn settle_task(
        &self,
        lease: Lease,
        outcome: TaskOutcome,
        actual: Vec<(LimitName, u64)>,
    ) -> Result<(), Error> {
        self.inner()?.settle_task(lease, outcome, actual).await
    }

    /// Lets runs go that ended more than [a day](flows::ENDED_KEPT) ago; says how many. It is done by itself
    /// about once a minute while runs end.
    pub async fn sweep(&self) -> Result<u64, Error> {
        self.inner()?.sweep().await
    }

    /// A run as it is; `None` if there is none of that name, or it ended and is not kept any more.
    pub async fn run(&self, run: &str) -> Result<Option<RunView>, Error> {
        self.inner()?.run(run).await
    }

    /// Live runs in the order in which they began, after one, up to 1,000. Which step each is at is told by
    /// [`Self::run`].
    pub async fn runs(&self, after: Option<&str>, most: usize) -> Result<Vec<RunView>, Error> {
        self.inner()?.runs(after, most).await
    }

    /// Runs that ended and are kept, in the order in which they began, after one, up to 1,000.
    pub async fn ended_runs(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<RunView>, Error> {
        self.inner()?.ended_runs(after, most).await
    }
}

impl<M: Machine> MachineWorker<M> {
    /// How many steps of each version it makes at a time; 1 by default.
    pub fn concurrency(self, steps: usize) -> Self {
        Self { inner: self.inner.map(|worker| worker.concurrency(steps)) }
    }

    /// How long a step waits for another worker if this one dies, from 100 ms to a day; 30 s by default.
    pub fn lease(self, lease: impl Into<Span>) -> Self {
        Self { inner: self.inner.map(|worker| worker.lease(lease)) }
    }

    /// When this is ready, no more steps are begun; those under way are finished and settled.
    pub fn until(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { inner: self.inner.map(|worker| worker.until(stop)) }
    }

    /// Ends when no run has a step to make, now or later; runs that wait for signals without end, or for
    /// others, may be left.
    pub fn until_drained(self) -> Self {
        Self { inner: self.inner.map(flows::MachineWorker::until_drained) }
    }

    /// Makes steps until it is told to stop or the store fails. Needs a tokio runtime.
    pub async fn run(self) -> Result<Worked, Error> {
        self.inner?.run().await
    }
}

/// A worker of tasks of a type, to be set up and run.
#[derive(Debug)]
#[must_use = "no task is made until it runs"]
pub struct TaskWorker {
    inner: Result<flows::TaskWorker<Store>, Error>,
}

impl TaskWorker {
    /// How many tasks it makes at a time; 1 by default.
    pub fn concurrency(self, tasks: usize) -> Self {
        Self { inner: self.inner.map(|worker| worker.concurrency(tasks)) }
    }

    /// How long a task waits for another worker if this one dies; 30 s by default.
    pub fn lease(self, lease: impl Into<Span>) -> Self {
        Self { inner: self.inner.map(|worker| worker.lease(lease)) }
    }

    /// When this is ready, no more tasks are begun; those under way are finished and settled.
    pub fn until(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { inner: self.inner.map(|worker| worker.until(stop)) }
    }

    /// Makes tasks until it is told to stop or the store fails. An error is tried again as the workflow says; one
    /// that takes longer than its task may is dropped, and has failed. Needs a tokio runtime.
    pub async fn run<H, F, T>(self, handler: H) -> Result<Worked, Error>
    where
        H: Fn(TaskJob) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, TaskFailure>> + Send + 'static,
        T: Serialize + Send + 'static,
    {
        self.inner?.run(handler).await
    }
}
