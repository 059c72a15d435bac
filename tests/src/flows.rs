//! Runs of step machines, on a clock that the test moves.

mod children;
mod cleared;
mod crashes;
mod ending;
mod joins;
mod kit;
mod limits;
mod rerun;
mod signals;
mod steps;
mod versions;
mod workflows;

use crate::gate::{Opened, patiently};
use serde_json::{Value, json};
use std::future::pending;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tollgate::flows::{
    Ending, Failure, Flows, Machine, NewRun, RunState, Step, StepError, StepOutcome, done, next,
    retry, stop, wait_for,
};
use tollgate::{Span, Timestamp, Tollgate, Worked};

type Steps = dyn Fn(Step<Value>) -> Result<StepOutcome, StepError> + Send + Sync;
type Failed = dyn Fn(Failure<Value>) -> StepOutcome + Send + Sync;

/// A machine of steps that a test says.
struct Scripted {
    steps: Box<Steps>,
    failed: Option<Box<Failed>>,
    told: mpsc::UnboundedSender<Told>,
}

/// A step that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    run: String,
    step: String,
    attempt: u32,
    at: Timestamp,
}

impl Machine for Scripted {
    const NAME: &'static str = "m";
    type State = Value;

    async fn step(&self, step: Step<Value>) -> Result<StepOutcome, StepError> {
        let told = Told {
            run: step.run.clone(),
            step: step.name.clone(),
            attempt: step.attempt,
            at: step.started,
        };
        drop(self.told.send(told));
        (self.steps)(step)
    }

    async fn failed(&self, failure: Failure<Value>) -> StepOutcome {
        match &self.failed {
            Some(failed) => failed(failure),
            None => stop(failure.error),
        }
    }
}

/// A worker of a machine, and the steps that it began.
struct Working {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Worked, tollgate::Error>>,
    heard: mpsc::UnboundedReceiver<Told>,
}

impl Working {
    /// The next step that is begun.
    async fn hears(&mut self) -> Told {
        patiently(self.heard.recv()).await.unwrap()
    }

    /// The name of the next step that is begun.
    async fn step(&mut self) -> String {
        self.hears().await.step
    }

    async fn stop(self) -> Worked {
        drop(self.stop);
        patiently(self.task).await.unwrap().unwrap()
    }
}

fn work(
    opened: &Opened,
    steps: impl Fn(Step<Value>) -> Result<StepOutcome, StepError> + Send + Sync + 'static,
) -> Working {
    work_with(opened, 8, steps, None)
}

fn work_with(
    opened: &Opened,
    concurrency: usize,
    steps: impl Fn(Step<Value>) -> Result<StepOutcome, StepError> + Send + Sync + 'static,
    failed: Option<Box<Failed>>,
) -> Working {
    let (told, heard) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let machine = Scripted { steps: Box::new(steps), failed, told };
    let worker = opened.gate().flows().worker(machine).concurrency(concurrency);
    let task = tokio::spawn(worker.until(async move { drop(stopped.await) }).run());
    Working { stop, task, heard }
}

/// The machine, at a worker that dies at each step.
struct Dies(mpsc::UnboundedSender<()>);

impl Machine for Dies {
    const NAME: &'static str = Scripted::NAME;
    type State = Value;

    async fn step(&self, _: Step<Value>) -> Result<StepOutcome, StepError> {
        let _ = self.0.send(());
        pending().await
    }
}

/// A worker begins so many steps and dies.
async fn die_at(gate: &Tollgate, steps: usize) {
    let (begun, mut heard) = mpsc::unbounded_channel();
    let worker = gate.flows().worker(Dies(begun)).concurrency(10);
    let worker = tokio::spawn(worker.run());
    for _ in 0..steps {
        patiently(heard.recv()).await.unwrap();
    }
    worker.abort();
    drop(worker.await);
}

/// A run of the machine.
fn run(step: &str, state: Value) -> NewRun {
    NewRun::new::<Scripted>(step, state)
}

async fn begin(flows: &Flows, new: NewRun) -> String {
    flows.start(new).await.unwrap().run
}

/// How a run ends.
async fn ending(flows: &Flows, run: &str) -> Ending {
    patiently(flows.result(run, Span::from_days(30))).await.unwrap().unwrap().ending
}

/// What a run gives.
async fn gives(flows: &Flows, run: &str) -> Value {
    match ending(flows, run).await {
        Ending::Done(value) => serde_json::from_slice(&value).unwrap(),
        other => panic!("it ended otherwise: {other:?}"),
    }
}

/// Why a run failed.
async fn fails(flows: &Flows, run: &str) -> String {
    match ending(flows, run).await {
        Ending::Failed { reason, .. } => reason,
        other => panic!("it ended otherwise: {other:?}"),
    }
}

/// Waits until a run is as it should be.
async fn until(flows: &Flows, run: &str, is_so: impl Fn(&RunState) -> bool) {
    patiently(async {
        loop {
            let found = flows.run(run).await.unwrap();
            if found.is_some_and(|found| is_so(&found.state)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Waits until no step is being made: what is being made loses its lease when the clock is moved far.
async fn idle(opened: &Opened) {
    patiently(async {
        let queue = || opened.gate().queue_state("machine/m@1");
        while queue().await.unwrap().is_some_and(|queue| queue.in_flight > 0) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn awaits(state: &RunState) -> bool {
    matches!(state, RunState::Awaiting { .. })
}
