//! Beginning runs.

use super::body::{self, Woken};
use super::error::FlowError;
use super::machine::Machine;
use super::outcome::{ALONE, Then};
use super::record::RunRecord;
use super::{Flows, TRIES_MAX, correlation_key, new_id, queue_of, run_key, write};
use crate::ask::Toll;
use crate::error::Error;
use serde::Serialize;
use tollgate_core::contract::Lanes;
use tollgate_core::flow::run::{Parent, Plan, Run, Stands};
use tollgate_core::lanes::{Act, ActError, Acted, Backoff, NewCall, QueueSpec, Revision};
use tollgate_core::{
    Definition, LaneName, Limit, LimitName, Priority, QueueName, Span, Timestamp, UNITS_MAX,
};

/// Runs that begin together, so that others may act in between.
const TOGETHER_MAX: usize = 1_000;

/// A run to begin.
#[derive(Debug, Clone)]
#[must_use = "nothing begins until it is handed in"]
pub struct NewRun {
    machine: String,
    version: u32,
    pub(super) correlation: Option<String>,
    then: Then,
}

/// A run that was begun, or was there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Which.
    pub run: String,
    /// Another one of its correlation key was there, and is this.
    pub is_known: bool,
}

impl NewRun {
    /// A run of a machine that begins with this step.
    pub fn new<M: Machine>(step: &str, state: M::State) -> Self {
        Self::named(M::NAME, M::VERSION, step, state)
    }

    /// A run of a machine that somebody else has, of a version, that begins with this step.
    pub fn named(machine: &str, version: u32, step: &str, state: impl Serialize) -> Self {
        let then = Then::new(step, "the state", state);
        Self { machine: machine.to_owned(), version, correlation: None, then }
    }

    /// The key that it is known by: while it lives no other run of the machine has it, and to begin another is
    /// to be told of this one.
    pub fn correlation(self, key: impl Into<String>) -> Self {
        Self { correlation: Some(key.into()), ..self }
    }

    /// Its first step owes this when it starts.
    pub fn pays(mut self, toll: Toll<'_>) -> Self {
        self.then.pay(toll);
        self
    }

    /// Its first step goes alone among all of this key.
    pub fn alone(mut self, key: impl Into<String>) -> Self {
        self.then.alone(&key.into());
        self
    }

    /// Its first step goes before those of lower priority at its meters.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.then.priority = priority;
        self
    }

    /// It begins after so long.
    pub fn delay(mut self, delay: impl Into<Span>) -> Self {
        self.then.delay = delay.into();
        self
    }

    /// What is written down of it, with the call for its first step.
    pub(super) fn into_act(
        self,
        id: &str,
        parent: Option<Parent>,
        wall: Timestamp,
    ) -> Result<Act, Error> {
        let run = Run {
            machine: self.machine.into(),
            version: self.version,
            correlation: self.correlation.map(Into::into),
            began: wall,
            turn: 0,
            stands: Stands::Going,
            inbox: Vec::new(),
            keys: Vec::new(),
            parent,
        };
        let mut act = Act::default();
        act.write.push(write(&run_key(id), Revision(0), Some(RunRecord::written(&run)?))?);
        if let Some(key) = &run.correlation {
            let key = correlation_key(&run.machine, key);
            act.write.push(write(&key, Revision(0), Some(id.as_bytes().into()))?);
        }
        let queue = queue_of(&run.machine, run.version)?;
        step_call(&mut act, (queue, id), self.then.into_plan()?, &Woken::Plainly, wall)?;
        Ok(act)
    }
}

/// Hands in the call for what follows.
pub(super) fn step_call(
    act: &mut Act,
    (queue, run): (QueueName, &str),
    plan: Plan,
    woken: &Woken,
    wall: Timestamp,
) -> Result<(), Error> {
    bring_alone(act, &plan)?;
    act.enqueue.push(step_of(queue, run, plan, woken, wall)?);
    Ok(())
}

/// The limit of steps that go alone comes along with them.
pub(super) fn bring_alone(act: &mut Act, plan: &Plan) -> Result<(), Error> {
    let goes_alone = plan.tolls.iter().any(|toll| toll.limit.as_str() == ALONE);
    let comes = || act.define.iter().any(|(limit, _)| limit.as_str() == ALONE);
    if goes_alone && !comes() {
        let name = LimitName::new(ALONE)?;
        if let Ok(one) = Definition::new(Limit::concurrency(1)) {
            act.define.push((name, one));
        }
    }
    Ok(())
}

/// The call for what follows.
pub(super) fn step_of(
    queue: QueueName,
    run: &str,
    plan: Plan,
    woken: &Woken,
    wall: Timestamp,
) -> Result<NewCall, Error> {
    Ok(NewCall {
        payload: body::write(&plan, woken)?,
        tolls: plan.tolls,
        priority: plan.priority,
        not_before: (!plan.delay.is_zero()).then(|| wall.plus(plan.delay)),
        ..NewCall::new(queue, LaneName::new(run)?)
    })
}

/// How the queue of a machine's steps is: what becomes of a step is for the machine to say, and none is ever
/// dead.
pub(super) fn spec() -> QueueSpec {
    QueueSpec {
        failures_max: u32::MAX,
        crashes_max: u32::MAX,
        limited_max: u32::MAX,
        backoff: Backoff::doubling(Span::from_secs(1), Span::from_minutes(5)),
        // Any number of runs, told as one that fits every reader of JSON.
        depth_max: UNITS_MAX,
        ..QueueSpec::default()
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// Begins a run, or says which one of its correlation key is there. Once answered, it lasts.
    pub async fn start(&self, run: NewRun) -> Result<Begun, Error> {
        for _ in 0..TRIES_MAX {
            let (id, act) = self.first_act(&run)?;
            let answer = self.engine.act_own(act).await;
            if let Some(begun) = self.begun(&run, id, answer).await? {
                return Ok(begun);
            }
        }
        Err(FlowError::Busy { run: run.correlation.unwrap_or_default() }.into())
    }

    /// Begins runs, each whatever becomes of the others; the answers in their order. A thousand of them share one
    /// way to the store.
    pub async fn start_all(
        &self,
        runs: impl IntoIterator<Item = NewRun>,
    ) -> Vec<Result<Begun, Error>> {
        let mut runs = runs.into_iter().peekable();
        let mut answers = Vec::new();
        while runs.peek().is_some() {
            let together = runs.by_ref().take(TOGETHER_MAX).collect();
            answers.extend(self.start_together(together).await);
        }
        answers
    }

    async fn start_together(&self, runs: Vec<NewRun>) -> Vec<Result<Begun, Error>> {
        let (mut ids, mut acts) = (Vec::with_capacity(runs.len()), Vec::with_capacity(runs.len()));
        for run in &runs {
            ids.push(self.first_act(run).map(|(id, act)| {
                acts.push(act);
                id
            }));
        }
        let acted = self.engine.act_all_own(acts).await;
        let mut acted = acted.map(Vec::into_iter);
        let mut answers = Vec::with_capacity(runs.len());
        for (run, id) in runs.into_iter().zip(ids) {
            answers.push(match (id, &mut acted) {
                (Err(error), _) => Err(error),
                (Ok(_), Err(error)) => Err(error.clone()),
                (Ok(id), Ok(acted)) => match acted.next() {
                    Some(acted) => self.begun_or_again(run, id, acted).await,
                    None => self.start(run).await,
                },
            });
        }
        answers
    }

    async fn begun_or_again(
        &self,
        run: NewRun,
        id: String,
        acted: Result<Acted, Error>,
    ) -> Result<Begun, Error> {
        match self.begun(&run, id, acted).await? {
            Some(begun) => Ok(begun),
            None => self.start(run).await,
        }
    }

    /// How a run begins, and what it is called then.
    fn first_act(&self, run: &NewRun) -> Result<(String, Act), Error> {
        let wall = self.engine.wall();
        let id = new_id(wall);
        let act = run.clone().into_act(&id, None, wall)?;
        Ok((id, act))
    }

    /// What came of a run's first act; `None` if it is to be tried again.
    async fn begun(
        &self,
        run: &NewRun,
        id: String,
        answer: Result<Acted, Error>,
    ) -> Result<Option<Begun>, Error> {
        match answer {
            Ok(_) => Ok(Some(Begun { run: id, is_known: false })),
            Err(Error::Act(ActError::UnknownQueue { queue, .. })) => {
                self.engine.define_own_queue(&queue, spec()).await?;
                Ok(None)
            }
            Err(Error::Act(ActError::RevisionDiffers { .. })) => {
                let key = run.correlation.as_ref().map(|key| correlation_key(&run.machine, key));
                let known = self.named(key.as_deref()).await?;
                Ok(known.map(|run| Begun { run, is_known: true }))
            }
            Err(error) => Err(error),
        }
    }

    /// The live run of a machine that has a correlation key.
    pub async fn find(&self, machine: &str, correlation: &str) -> Result<Option<String>, Error> {
        self.named(Some(&correlation_key(machine, correlation))).await
    }

    async fn named(&self, key: Option<&str>) -> Result<Option<String>, Error> {
        let Some(key) = key else { return Ok(None) };
        let record = self.engine.record(key).await?;
        Ok(record.map(|record| String::from_utf8_lossy(&record.bytes).into_owned()))
    }
}
