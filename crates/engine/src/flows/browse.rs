//! Looking at runs.

use super::body::Body;
use super::record::{Ended, Ending, RunRecord};
use super::workflows::WorkflowRun;
use super::{Flows, queue_of};
use crate::error::Error;
use tollgate_core::contract::{CallsQuery, Lanes};
use tollgate_core::flow::run::{Run, Stands};
use tollgate_core::lanes::CallId;
use tollgate_core::{LaneName, Timestamp};

/// Where the records of live runs are.
const LIVE: &str = "tollgate/run/";
/// Where those of runs are that ended.
const ENDED: &str = "tollgate/ended/";

/// A run as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    /// Its name.
    pub run: String,
    /// Of which machine or workflow.
    pub name: String,
    /// Of which version of it.
    pub version: u32,
    /// The key that it is known by.
    pub correlation: Option<String>,
    /// When it began, on the wall clock.
    pub began: Timestamp,
    /// Where it is in its life.
    pub state: RunState,
}

/// Where a run is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// It has a step to make, which this call is for.
    Going {
        /// Which step; `None` if that was made just now.
        step: Option<String>,
        /// Which call: ask why it waits.
        call: Option<CallId>,
    },
    /// It waits for signals.
    Awaiting {
        /// Of which names.
        names: Vec<String>,
        /// Which step follows.
        then: String,
    },
    /// It waits for its children.
    Joining {
        /// How many there are.
        children: u32,
        /// Which step follows.
        then: String,
    },
    /// It is of a workflow.
    Working {
        /// Its tasks, in their order, and how far each is.
        tasks: Vec<(String, String)>,
        /// It waits for other runs of its workflow to end.
        is_pending: bool,
    },
    /// It ended.
    Ended {
        /// When, on the wall clock.
        at: Timestamp,
        /// How.
        ending: Ending,
    },
}

impl<S: Lanes + 'static> Flows<S> {
    /// A run as it is; `None` if there is none of that name, or it ended and is not kept any more.
    pub async fn run(&self, run: &str) -> Result<Option<RunView>, Error> {
        let record = self.engine.record(&super::run_key(run)).await?;
        if let Some(working) = record.and_then(|record| WorkflowRun::read(&record.bytes)) {
            return Ok(Some(self.working(run, working).await?));
        }
        if let Some((kept, _)) = self.live(run).await? {
            let going = self.step_of(run, &kept).await?;
            return Ok(Some(view(run, &kept, going)));
        }
        let ended = self.engine.record(&super::ended_key(run)).await?;
        ended.map(|ended| Ok(ended_view(run, Ended::read(&ended.bytes)?))).transpose()
    }

    /// Live runs in the order in which they began, after one, up to 1,000. Which step each is at is told by
    /// [`Self::run`].
    pub async fn runs(&self, after: Option<&str>, most: usize) -> Result<Vec<RunView>, Error> {
        let after = after.map(super::run_key);
        let records = self.engine.records_of(LIVE, after.as_deref(), most).await?;
        let mut views = Vec::with_capacity(records.len());
        for (key, record) in records {
            let run = key.as_str().trim_start_matches(LIVE);
            views.push(match WorkflowRun::read(&record.bytes) {
                Some(working) => self.working(run, working).await?,
                None => view(run, &RunRecord::read(&record.bytes)?, None),
            });
        }
        Ok(views)
    }

    async fn working(&self, run: &str, kept: WorkflowRun) -> Result<RunView, Error> {
        let workflow = self.workflow_of(&kept.workflow, kept.version).await?;
        let names = workflow.tasks().iter().map(|task| task.name.clone());
        let tasks = names.zip(kept.states.into_iter().map(|(state, _)| state)).collect();
        Ok(RunView {
            run: run.to_owned(),
            name: kept.workflow,
            version: kept.version,
            correlation: kept.key,
            began: kept.began,
            state: RunState::Working { tasks, is_pending: kept.is_pending },
        })
    }

    /// Runs that ended and are kept, in the order in which they began, after one, up to 1,000.
    pub async fn ended_runs(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<RunView>, Error> {
        let after = after.map(super::ended_key);
        let records = self.engine.records_of(ENDED, after.as_deref(), most).await?;
        let view = |(key, record): (tollgate_core::Key, tollgate_core::lanes::Record)| {
            let run = key.as_str().trim_start_matches(ENDED).to_owned();
            Ok(ended_view(&run, Ended::read(&record.bytes)?))
        };
        records.into_iter().map(view).collect()
    }

    /// The call for a run's next step, and which step it is for.
    async fn step_of(&self, run: &str, kept: &Run) -> Result<Option<(String, CallId)>, Error> {
        let query = CallsQuery {
            queue: queue_of(&kept.machine, kept.version)?,
            lane: Some(LaneName::new(run)?),
            state: None,
            after: None,
            most: 1,
        };
        let Some(call) = self.engine.calls(query).await?.pop() else { return Ok(None) };
        let Some(payload) = self.engine.payload(call.id).await? else { return Ok(None) };
        Ok(Some((Body::read(payload.body())?.step.into_owned(), call.id)))
    }
}

fn view(run: &str, kept: &Run, going: Option<(String, CallId)>) -> RunView {
    let texts = |names: &[Box<str>]| names.iter().map(|name| name.as_ref().to_owned()).collect();
    let state = match (&kept.stands, going) {
        (Stands::Awaiting { names, then }, _) => {
            RunState::Awaiting { names: texts(names), then: then.step.as_ref().to_owned() }
        }
        (Stands::Joining { children, then }, None) => {
            RunState::Joining { children: *children, then: then.step.as_ref().to_owned() }
        }
        (_, going) => {
            let (step, call) = going.unzip();
            RunState::Going { step, call }
        }
    };
    RunView {
        run: run.to_owned(),
        name: kept.machine.as_ref().to_owned(),
        version: kept.version,
        correlation: kept.correlation.as_deref().map(str::to_owned),
        began: kept.began,
        state,
    }
}

fn ended_view(run: &str, ended: Ended) -> RunView {
    let Ended { name, version, correlation, began, ended, ending, .. } = ended;
    let state = RunState::Ended { at: ended, ending };
    RunView { run: run.to_owned(), name, version, correlation, began, state }
}
