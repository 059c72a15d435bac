//! How runs end.

use super::body::Woken;
use super::record::{Ended, Ending, FailedStep, RunRecord};
use super::start::{bring_alone, spec, step_of};
use super::workflows::WorkflowRun;
use super::{Flows, correlation_key, ended_key, join_key, queue_of, run_key, write};
use crate::error::Error;
use crate::flows::FlowError;
use crate::lanes::{Following, Next};
use std::fmt;
use tollgate_core::contract::Lanes;
use tollgate_core::flow::run::{Parent, Run, Stands};
use tollgate_core::lanes::{Act, Count, Door, QueueSpec, Record, Revision};
use tollgate_core::{Key, LaneName, Timestamp};

/// The last step of a run, which gives this.
pub(super) struct LastStep<S> {
    pub(super) flows: Flows<S>,
    pub(super) run: LaneName,
    /// Of the machine that made the step.
    pub(super) version: u32,
    /// JSON.
    pub(super) value: Box<[u8]>,
}

impl<S> fmt::Debug for LastStep<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastStep").field("run", &self.run).finish_non_exhaustive()
    }
}

impl<S: Lanes + 'static> Following for LastStep<S> {
    fn next(&self, found: &[Option<Record>]) -> Result<Next, Error> {
        let Some((record, others)) = found.split_first() else {
            return Ok(Next::Look(vec![Key::new(&run_key(&self.run))?]));
        };
        // It was taken back, and nothing follows.
        let Some(record) = record else { return Ok(Next::Act(Box::default())) };
        let mut run = read(&self.run, record)?;
        run.version = self.version;
        let asked = others_of(&run)?;
        if asked.len() > others.len() {
            return Ok(Next::Look(asked));
        }
        let end = End {
            id: &self.run,
            ending: Ending::Done(self.value.clone()),
            failed: None,
            wall: self.flows.engine.wall(),
        };
        Ok(Next::Act(Box::new(end.act((&run, record.revision), others)?)))
    }

    fn queues(&self) -> QueueSpec {
        spec()
    }

    fn made(&self) {
        self.flows.engine.run_changed(&self.run);
        self.flows.sweep_in_time();
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// A run ends: it is among those that have, its key is free, and who waits for it is told.
    pub(super) async fn end(
        &self,
        id: &str,
        (run, revision): (&Run, Revision),
        ending: Ending,
        failed: Option<FailedStep>,
    ) -> Result<Act, Error> {
        let others = match others_of(run)? {
            none if none.is_empty() => Vec::new(),
            asked => self.records(asked).await?,
        };
        let end = End { id, ending, failed, wall: self.engine.wall() };
        end.act((run, revision), &others)
    }
}

/// A run that ends.
struct End<'a> {
    id: &'a str,
    ending: Ending,
    failed: Option<FailedStep>,
    wall: Timestamp,
}

impl End<'_> {
    /// What its end changes, by its record and by [others](others_of).
    fn act(
        self,
        (run, revision): (&Run, Revision),
        others: &[Option<Record>],
    ) -> Result<Act, Error> {
        let Self { id, ending, failed, wall } = self;
        let ended = Ended::of(run, ending, failed, wall).written()?;
        let mut act = Act {
            write: vec![
                write(&run_key(id), revision, None)?,
                write(&ended_key(id), Revision(0), Some(ended))?,
            ],
            door: Door::Parks,
            ..Act::default()
        };
        let mut others = others.iter();
        if let Some(key) = &run.correlation {
            let named = others.next().and_then(Option::as_ref);
            if let Some(own) = named.filter(|record| *record.bytes == *id.as_bytes()) {
                let key = correlation_key(&run.machine, key);
                act.write.push(write(&key, own.revision, None)?);
            }
        }
        if matches!(run.stands, Stands::Joining { .. }) {
            // Children that end from now on count for nobody.
            act.forget.push(Key::new(&join_key(id, run.turn))?);
        }
        let parent = run.parent.as_ref().zip(others.next().and_then(Option::as_ref));
        if let Some((parent, record)) = parent {
            tell_parent(&mut act, parent, &read(&parent.run, record)?, wall)?;
        }
        Ok(act)
    }
}

/// The records that the end of a run hangs on beside its own: whose its key is, and its parent.
fn others_of(run: &Run) -> Result<Vec<Key>, Error> {
    let named = run.correlation.iter().map(|key| correlation_key(&run.machine, key));
    let parent = run.parent.iter().map(|parent| run_key(&parent.run));
    named.chain(parent).map(|key| Ok(Key::new(&key)?)).collect()
}

/// One child less is waited for; with the last one the parent goes on.
fn tell_parent(act: &mut Act, parent: &Parent, run: &Run, wall: Timestamp) -> Result<(), Error> {
    let Some((children, plan)) = run.joins(parent.turn) else { return Ok(()) };
    let woken = Woken::Children { turn: parent.turn, children };
    let queue = queue_of(&run.machine, run.version)?;
    bring_alone(act, plan)?;
    let then = step_of(queue, &parent.run, plan.clone(), &woken, wall)?;
    let key = Key::new(&join_key(&parent.run, parent.turn))?;
    act.count_down.push(Count { key, from: children.into(), then });
    act.needs.push(Key::new(&run_key(&parent.run))?);
    Ok(())
}

/// A machine's run.
pub(super) fn read(id: &str, record: &Record) -> Result<Run, Error> {
    RunRecord::read(&record.bytes).map_err(|error| match WorkflowRun::read(&record.bytes) {
        Some(_) => FlowError::OfWorkflow { run: id.to_owned() }.into(),
        None => error,
    })
}
