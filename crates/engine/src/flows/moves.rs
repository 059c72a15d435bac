//! What a step says becomes one act, made again if somebody else changed the run meanwhile.

use super::body::{Body, Woken};
use super::ending::LastStep;
use super::outcome::{StepOutcome, Then, What};
use super::record::{Ending, FailedStep, RunRecord, as_json};
use super::start::{NewRun, bring_alone, spec, step_call, step_of};
use super::{Flows, TRIES_MAX, child_id, queue_of, run_key, write};
use crate::error::Error;
use crate::flows::FlowError;
use crate::lanes::{Job, Outcome};
use serde::Serialize;
use tollgate_core::contract::Lanes;
use tollgate_core::flow::run::{Parent, Plan, Run};
use tollgate_core::lanes::act::{ACT_BYTES_MAX, BODY_BYTES_MAX};
use tollgate_core::lanes::{
    Act, ActError, Attempts, CallId, Door, Lease, Revision, Settle, Settlement,
};
use tollgate_core::toll::check_shape;
use tollgate_core::{Key, LaneName, LimitName, QueueName, Span, Timestamp};

/// What the calls of timeouts, and of the signals that come before them, take each other's place by.
const AWAIT: &str = "await";
/// Longest value that a run gives: the act has room for what its parent goes on with, and for what else is written
/// down at its end.
const VALUE_BYTES_MAX: usize = ACT_BYTES_MAX - BODY_BYTES_MAX - (1 << 20);
/// How long a queue without room is left alone.
const FULL: Span = Span::from_millis(250);

/// What a step says of itself, for its run's timeline.
#[derive(Serialize)]
struct Report<'a> {
    step: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<&'a str>,
}

/// The call of a step, as far as it matters.
pub(super) struct StepCall {
    pub(super) id: CallId,
    pub(super) run: LaneName,
    pub(super) body: Box<[u8]>,
    pub(super) attempt: u32,
    pub(super) tried: Attempts,
    pub(super) lease: Lease,
    pub(super) started: Timestamp,
}

impl StepCall {
    pub(super) fn of(job: Job) -> Self {
        let Job { id, lane: run, body, attempt, tried, lease, started, envelope: _ } = job;
        Self { id, run, body, attempt, tried, lease, started }
    }
}

/// A step that was made.
pub(super) struct Made<'a> {
    pub(super) call: &'a StepCall,
    /// Of which version of the machine it was, and of which the one is that made it.
    pub(super) versions: (u32, u32),
    /// Where the steps of that version go.
    pub(super) queue: &'a QueueName,
    pub(super) step: &'a str,
    pub(super) state: &'a [u8],
}

impl Made<'_> {
    fn run(&self) -> &str {
        &self.call.run
    }

    /// Whether what came of it is settled with others, and needs no look at its run before that.
    pub(super) fn goes_with_others(&self, outcome: &StepOutcome) -> bool {
        match outcome.what {
            What::Retry(_) | What::Limited(_) | What::Done => true,
            What::Next => self.versions.0 == self.versions.1,
            _ => false,
        }
    }

    fn report(&self, outcome: &StepOutcome) -> Box<[u8]> {
        let then = Some(&*outcome.then.step).filter(|step| !step.is_empty());
        let report = Report { step: self.step, outcome: outcome.name(), then };
        // Two names and a word are always JSON.
        as_json(&report).unwrap_or_default()
    }

    fn settle(&self, outcome: &StepOutcome) -> Result<Settle, Error> {
        let named = outcome.actual.iter();
        let named = named.map(|(limit, units)| Ok((LimitName::new(limit)?, *units)));
        Ok(Settle {
            lease: self.call.lease,
            settlement: Settlement::Done,
            actual: named.collect::<Result<_, Error>>()?,
            report: self.report(outcome),
        })
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// Settles a step with others.
    pub(super) fn settle(&self, made: &Made<'_>, outcome: StepOutcome) -> Result<Outcome, Error> {
        let report = made.report(&outcome);
        let StepOutcome { what, then, actual } = outcome;
        // What names no limit is found out before it is tried.
        for (limit, _) in &actual {
            LimitName::new(limit)?;
        }
        let settled = match what {
            What::Retry(after) => Outcome::retry_after(after),
            What::Limited(pause) => Outcome::limited(pause),
            What::Done => Outcome::done().followed(self.last_step(made, then)?),
            _ => Outcome::done().standing_alone().and(self.next_act(made, then)?),
        };
        let costs = actual.into_iter();
        let settled = costs.fold(settled, |settled, (limit, units)| settled.actual(limit, units));
        Ok(settled.report(report))
    }

    /// How a run ends that gives something.
    fn last_step(&self, made: &Made<'_>, then: Then) -> Result<LastStep<S>, Error> {
        let value = then.json?;
        if value.len() > VALUE_BYTES_MAX {
            return Err(ActError::TooManyBytes { bytes: value.len() }.into());
        }
        let (run, version) = (made.call.run.clone(), made.versions.1);
        Ok(LastStep { flows: self.clone(), run, version, value })
    }

    /// What follows where the run itself need not be looked at: it must be there.
    fn next_act(&self, made: &Made<'_>, then: Then) -> Result<Act, Error> {
        let needs = vec![Key::new(&run_key(made.run()))?];
        let mut act = Act { needs, door: Door::Parks, ..Act::default() };
        let (plan, wall) = (then.into_plan()?, self.engine.wall());
        bring_alone(&mut act, &plan)?;
        let queue = made.queue.clone();
        act.enqueue = vec![step_of(queue, made.run(), plan, &Woken::Plainly, wall)?];
        // It is settled though nothing could follow: what cannot is found out before.
        for (at, call) in act.enqueue.iter().enumerate() {
            check_shape(&call.tolls).map_err(|error| ActError::Toll { at, error })?;
            let bytes = call.payload.body().len();
            if bytes > BODY_BYTES_MAX {
                return Err(ActError::BodyTooLong { at, bytes }.into());
            }
        }
        Ok(act)
    }

    /// Settles a step with a change of its run.
    pub(super) async fn change(
        &self,
        made: &Made<'_>,
        outcome: StepOutcome,
    ) -> Result<Outcome, Error> {
        for _ in 0..TRIES_MAX {
            let Some((mut run, revision)) = self.live(made.run()).await? else {
                // It was taken back, and nothing follows.
                return Ok(Outcome::done().report(made.report(&outcome)));
            };
            run.version = made.versions.1;
            let mut act = match &outcome.what {
                What::Stop(reason) => {
                    let (reason, step) = (reason.clone(), made.step.to_owned());
                    let ending = Ending::Failed { reason, step, state: made.state.into() };
                    let failed = self.failed_step(made).await?;
                    self.end(made.run(), (&run, revision), ending, failed).await?
                }
                _ => self.go_on(made, &outcome, run, revision)?,
            };
            act.settle.push(made.settle(&outcome)?);
            match self.act_when_there_is_room(act).await {
                Ok(()) => {
                    self.engine.run_changed(made.run());
                    self.sweep_in_time();
                    return Ok(Outcome::elsewhere());
                }
                // Somebody else was faster; or a parent that was to be told has ended.
                Err(Error::Act(
                    ActError::RevisionDiffers { .. } | ActError::RecordMissing { .. },
                )) => {}
                Err(Error::Act(ActError::UnknownQueue { queue, .. })) => {
                    self.engine.define_own_queue(&queue, spec()).await?
                }
                Err(Error::Act(ActError::LeaseLost { .. })) => {
                    tracing::warn!(
                        run = made.run(),
                        step = made.step,
                        "a step came too late: another worker may have it"
                    );
                    return Ok(Outcome::elsewhere());
                }
                Err(error) => return Err(error),
            }
        }
        Err(FlowError::Busy { run: made.run().to_owned() }.into())
    }

    /// What is kept of a step that failed; `None` if its call is not there any more, and nothing will come of it.
    async fn failed_step(&self, made: &Made<'_>) -> Result<Option<FailedStep>, Error> {
        let Some(call) = self.engine.call(made.call.id).await? else { return Ok(None) };
        let woken = Body::read(&made.call.body)?.woken;
        let (version, tolls, priority) = (made.versions.0, call.tolls, call.priority);
        Ok(Some(FailedStep { version, tolls, priority, woken }))
    }

    /// A run that comes to wait, or goes on in another version.
    fn go_on(
        &self,
        made: &Made<'_>,
        outcome: &StepOutcome,
        mut run: Run,
        revision: Revision,
    ) -> Result<Act, Error> {
        let (id, wall) = (made.run(), self.engine.wall());
        let mut act = Act { door: Door::Parks, ..Act::default() };
        let plan = outcome.then.clone().into_plan()?;
        match &outcome.what {
            What::Wait { names, timeout } => {
                let names = names.iter().map(|name| name.as_str().into()).collect();
                match run.wait(names, plan.clone()) {
                    Some((plan, signals)) => {
                        let woken = Woken::Signals(signals);
                        step_call(&mut act, (made.queue.clone(), id), plan, &woken, wall)?;
                    }
                    None => {
                        let at = timeout.map(|timeout| wall.plus(timeout));
                        timer(&mut act, made.queue.clone(), id, (&plan, run.turn), at)?;
                    }
                }
            }
            What::Children(runs) if !runs.is_empty() => {
                let children = u32::try_from(runs.len()).unwrap_or(u32::MAX);
                run.join(children, plan);
                for (at, child) in runs.iter().enumerate() {
                    begin_child(&mut act, child.clone(), (id, run.turn, at), wall)?;
                }
            }
            _ => step_call(&mut act, (made.queue.clone(), id), plan, &Woken::Plainly, wall)?,
        }
        act.write.push(write(&run_key(id), revision, Some(RunRecord::written(&run)?))?);
        Ok(act)
    }

    /// Whether a call that waited for the end of a wait's time goes on with its run.
    pub(super) async fn time_out(&self, run: &str, turn: u64) -> Result<bool, Error> {
        for _ in 0..TRIES_MAX {
            let Some((mut kept, revision)) = self.live(run).await? else { return Ok(false) };
            if !kept.time_out(turn) {
                return Ok(false);
            }
            let write = write(&run_key(run), revision, Some(RunRecord::written(&kept)?))?;
            match self.engine.act_own(Act { write: vec![write], ..Act::default() }).await {
                Ok(_) => return Ok(true),
                Err(Error::Act(ActError::RevisionDiffers { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FlowError::Busy { run: run.to_owned() }.into())
    }

    /// Makes an act; a queue without room is waited for, and so is a store that is away, each for its own while.
    pub(super) async fn act_when_there_is_room(&self, mut act: Act) -> Result<(), Error> {
        let (mut had_no_room, mut was_away) = (0, 0);
        loop {
            match self.engine.make_own(&mut act).await {
                Ok(_) => return Ok(()),
                Err(error @ Error::Act(ActError::QueueFull { .. })) if had_no_room < TRIES_MAX => {
                    had_no_room += 1;
                    tracing::warn!(%error, "what follows in a run waits for room");
                }
                Err(error) if error.may_pass() && was_away < TRIES_MAX => {
                    was_away += 1;
                    tracing::warn!(%error, "what follows in a run waits for the store");
                }
                Err(error) => return Err(error),
            }
            self.engine.rest(FULL).await;
        }
    }
}

/// A wait that has an end: the call that goes on then, unless a signal takes its place.
fn timer(
    act: &mut Act,
    queue: QueueName,
    run: &str,
    (plan, turn): (&Plan, u64),
    at: Option<Timestamp>,
) -> Result<(), Error> {
    let Some(at) = at else { return Ok(()) };
    let limits = plan.tolls.iter().map(|toll| toll.limit.as_str().to_owned()).collect();
    let woken = Woken::Timeout { turn, limits };
    bring_alone(act, plan)?;
    let mut call = step_of(queue, run, plan.clone(), &woken, at)?;
    call.not_before = Some(at.plus(plan.delay));
    call.supersedes = Some(Key::new(AWAIT)?);
    act.enqueue.push(call);
    Ok(())
}

/// A run that goes on by signals: in place of the call that waits for the end of its time, if there is one.
pub(super) fn wake(
    act: &mut Act,
    (id, run): (&str, &Run),
    plan: &Plan,
    woken: &Woken,
    wall: Timestamp,
) -> Result<(), Error> {
    bring_alone(act, plan)?;
    let queue = queue_of(&run.machine, run.version)?;
    let mut call = step_of(queue, id, plan.clone(), woken, wall)?;
    call.supersedes = Some(Key::new(AWAIT)?);
    act.enqueue.push(call);
    Ok(())
}

fn begin_child(
    act: &mut Act,
    child: NewRun,
    (parent, turn, at): (&str, u64, usize),
    wall: Timestamp,
) -> Result<(), Error> {
    let waiting = Parent { run: parent.into(), turn };
    let begun = child.into_act(&child_id(parent, turn, at), Some(waiting), wall)?;
    act.write.extend(begun.write);
    act.enqueue.extend(begun.enqueue);
    if act.define.is_empty() {
        act.define = begun.define;
    }
    Ok(())
}

/// A start that nothing came of: it cost nothing at these limits.
pub(super) fn unmade(limits: &[String]) -> Outcome {
    limits.iter().fold(Outcome::done(), |outcome, limit| outcome.actual(limit, 0))
}
