//! What happened in a run becomes one act, made again if somebody else changed the run meanwhile.

use super::card::{Card, Chore, ChoreKind};
use super::record::{WorkflowRun, states};
use super::{item_key, items_key, live_key, output_key, pending_key, task_queue};
use crate::error::Error;
use crate::flows::record::{Ended, Ending};
use crate::flows::{FlowError, Flows, TRIES_MAX, ended_key, run_key, write};
use std::collections::BTreeMap;
use tollgate_core::contract::{CallsQuery, Lanes};
use tollgate_core::flow::workflow::{
    AdvanceError, Advanced, Happened, Progress, RunEnd, RunView, Source, Start, TaskCall,
    TaskState, Work, Workflow, list_of,
};
use tollgate_core::lanes::{Act, ActError, Door, NewCall, Revision, Settle};
use tollgate_core::{Key, LaneName, Timestamp};

/// How many records are read at once.
const PAGE: usize = 1_000;
/// Why a run ended whose time was over.
const TIMED_OUT: &str = "it took longer than its workflow allows";

/// What moves a run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Moves<'a> {
    /// It begins.
    Begin,
    /// A task is done, and gave this.
    Done { task: &'a str, output: &'a [u8] },
    /// All items of a map are done.
    Items { task: &'a str },
    /// A task failed for good.
    Failed { task: &'a str, reason: &'a str },
    /// Its time is over.
    Timeout,
    /// What would follow can never be.
    Impossible { reason: &'a str },
    /// It is taken back.
    Cancel,
    /// It is begun again from a task.
    Again { task: &'a str },
}

/// What came of it.
pub(super) struct Moved {
    pub(super) states: Vec<super::StateRecord>,
    calls: Vec<NewCall>,
    /// The joins of its maps.
    joins: Vec<Key>,
    pub(super) ending: Option<Ending>,
}

/// What tasks gave, as far as it was read.
type Loaded = BTreeMap<String, Box<[u8]>>;

impl<S: Lanes + 'static> Flows<S> {
    /// Changes a run by what happened, with the settlement of whoever says so. Says whether the run was there, and
    /// at the turn that this is of.
    pub(super) async fn change_run(
        &self,
        (id, turn): (&str, Option<u64>),
        settle: Option<Settle>,
        moves: Moves<'_>,
    ) -> Result<bool, Error> {
        // One after another: tasks that end together would only be in each other's way.
        let _alone = self.engine.at_hand().change(id).await;
        for _ in 0..TRIES_MAX {
            let Some(record) = self.engine.record(&run_key(id)).await? else { return Ok(false) };
            let Some(run) = WorkflowRun::read(&record.bytes) else { return Ok(false) };
            if turn.is_some_and(|turn| turn != run.turn) {
                return Ok(false);
            }
            let workflow = self.workflow_of(&run.workflow, run.version).await?;
            let mut act = Act { door: Door::Parks, ..Act::default() };
            act.settle.extend(settle.clone());
            let mut loaded = Loaded::new();
            self.give(&mut act, (id, &run, &workflow), moves, &mut loaded).await?;
            let moved = self.decided((id, &run), &workflow, moves, loaded).await?;
            let is_over = moved.ending.is_some();
            self.follow(&mut act, id, (run, record.revision), moved).await?;
            match self.act_when_there_is_room(act).await {
                Ok(()) => {
                    if is_over {
                        self.run_over(id, &workflow).await?;
                    }
                    return Ok(true);
                }
                Err(Error::Act(ActError::RevisionDiffers { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FlowError::Busy { run: id.to_owned() }.into())
    }

    /// Writes down what a task gave.
    async fn give(
        &self,
        act: &mut Act,
        (id, run, workflow): (&str, &WorkflowRun, &Workflow),
        moves: Moves<'_>,
        loaded: &mut Loaded,
    ) -> Result<(), Error> {
        let (task, output): (&str, Box<[u8]>) = match moves {
            Moves::Done { task, output } => (task, output.into()),
            Moves::Items { task } => {
                let state = run.progress(workflow)?.state(workflow, task);
                let Some(TaskState::Running { items: Some(items) }) = state else { return Ok(()) };
                (task, self.take_items(act, (id, task, run.turn), items).await?.into())
            }
            _ => return Ok(()),
        };
        let key = output_key(id, Some(task));
        let before = self.engine.record(&key).await?;
        let revision = before.map_or(Revision(0), |record| record.revision);
        act.write.push(write(&key, revision, Some(output.clone()))?);
        loaded.insert(task.to_owned(), output);
        Ok(())
    }

    /// The list of what the items of a map gave, which goes into one place.
    async fn take_items(
        &self,
        act: &mut Act,
        (id, task, turn): (&str, &str, u64),
        items: u32,
    ) -> Result<Vec<u8>, Error> {
        let keys: Vec<_> = (0..items).map(|item| item_key(id, task, turn, item)).collect();
        let mut given = Vec::with_capacity(keys.len());
        for page in keys.chunks(PAGE) {
            let named = page.iter().map(|key| Key::new(key)).collect::<Result<Vec<_>, _>>()?;
            for (key, record) in page.iter().zip(self.records(named).await?) {
                let Some(record) = record else {
                    given.push(Box::default());
                    continue;
                };
                act.write.push(write(key, record.revision, None)?);
                given.push(record.bytes);
            }
        }
        Ok(list_of(given.iter().map(|given| &**given)))
    }

    /// Asks the core what follows, and reads what that needs.
    pub(super) async fn decided(
        &self,
        (id, run): (&str, &WorkflowRun),
        workflow: &Workflow,
        moves: Moves<'_>,
        mut loaded: Loaded,
    ) -> Result<Moved, Error> {
        loop {
            let mut progress = run.progress(workflow)?;
            let wanted = {
                let read = |source: Source<'_>| loaded.get(name_of(source)).map(|bytes| &**bytes);
                let view = RunView { id, read: &read };
                match advance(&mut progress, workflow, moves, view) {
                    Ok(advanced) => {
                        let moved = moved((id, run), &progress, advanced, moves)?;
                        return Ok(Moved { joins: joins((id, run), workflow)?, ..moved });
                    }
                    Err(AdvanceError::Unread { sources }) => sources
                        .into_iter()
                        .map(|source| name_of(source).to_owned())
                        .collect::<Vec<_>>(),
                    Err(error) => {
                        return Err(FlowError::Workflow { reason: error.to_string() }.into());
                    }
                }
            };
            for name in wanted {
                let task = (!name.is_empty()).then_some(&*name);
                let record = self.engine.record(&output_key(id, task)).await?;
                let bytes = record.map_or_else(|| Box::from(*b"null"), |record| record.bytes);
                loaded.insert(name, bytes);
            }
        }
    }

    /// Writes down how a run stands, or that it ended, and hands in what follows.
    pub(super) async fn follow(
        &self,
        act: &mut Act,
        id: &str,
        (run, revision): (WorkflowRun, Revision),
        moved: Moved,
    ) -> Result<(), Error> {
        let Moved { states, calls, joins, ending } = moved;
        // One that had to wait gets the place of one that ended.
        let (was_pending, has_place) = (run.is_pending, run.has_place || run.is_pending);
        let run = WorkflowRun { states, is_pending: false, has_place, ..run };
        act.enqueue.extend(calls);
        let Some(ending) = ending else {
            act.write.push(write(&run_key(id), revision, Some(run.written()?))?);
            return Ok(());
        };
        act.enqueue.clear();
        // Items that end from now on count for nobody.
        act.forget.extend(joins);
        if revision != Revision(0) {
            act.write.push(write(&run_key(id), revision, None)?);
        }
        let before = self.engine.record(&ended_key(id)).await?;
        let before = before.map_or(Revision(0), |record| record.revision);
        let ended = Ended::of_workflow(&run, ending, self.engine.wall()).written()?;
        act.write.push(write(&ended_key(id), before, Some(ended))?);
        // One that still waits to begin has no place to leave to another.
        let key = pending_key(&run.workflow, id);
        let pending = if was_pending { self.engine.record(&key).await? } else { None };
        match pending {
            Some(pending) => act.write.push(write(&key, pending.revision, None)?),
            None if has_place => self.let_next_begin(act, &run.workflow).await?,
            None => {}
        }
        Ok(())
    }

    /// Where so many runs may live, the next one begins for one that ends.
    async fn let_next_begin(&self, act: &mut Act, workflow: &str) -> Result<(), Error> {
        let Some(live) = self.engine.record(&live_key(workflow)).await? else { return Ok(()) };
        let prefix = pending_key(workflow, "");
        match self.engine.records_of(&prefix, None, 1).await?.pop() {
            Some((key, record)) => {
                let run = key.as_str().trim_start_matches(&prefix).to_owned();
                act.write.push(write(key.as_str(), record.revision, None)?);
                act.enqueue.push(Chore { run, turn: 0, what: ChoreKind::Begin }.call()?);
            }
            None => {
                let count = count_of(&live.bytes).saturating_sub(1);
                let bytes = (count > 0).then(|| count.to_string().into_bytes().into());
                act.write.push(write(&live_key(workflow), live.revision, bytes)?);
            }
        }
        Ok(())
    }

    /// A run is over: who waits for it is told, and what of it has not ended stops.
    pub(super) async fn run_over(&self, id: &str, workflow: &Workflow) -> Result<(), Error> {
        self.engine.run_changed(id);
        self.sweep_in_time();
        let mut queues = vec![tollgate_core::QueueName::new(super::KEEPER)?];
        for task in workflow.tasks() {
            let queue = task_queue(&task.type_name)?;
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
        for queue in queues {
            if !self.stop_calls(queue, id).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes back what is left of a run in a queue; says whether the run does not live again.
    async fn stop_calls(&self, queue: tollgate_core::QueueName, id: &str) -> Result<bool, Error> {
        let lane = Some(LaneName::new(id)?);
        let mut query = CallsQuery { queue, lane, state: None, after: None, most: PAGE };
        loop {
            let calls = self.engine.calls(query.clone()).await?;
            let Some(last) = calls.last() else { return Ok(true) };
            query.after = Some(last.id);
            let cancel = calls.iter().map(|call| call.id).collect();
            if !self.stop_if_ended(id, cancel).await? {
                return Ok(false);
            }
        }
    }
}

/// How many runs live.
pub(super) fn count_of(bytes: &[u8]) -> u64 {
    std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn name_of<'s>(source: Source<'s>) -> &'s str {
    match source {
        Source::Run => "",
        Source::Task(task) => task,
    }
}

fn advance<'w, 'r>(
    progress: &mut Progress,
    workflow: &'w Workflow,
    moves: Moves<'_>,
    view: RunView<'_, 'r>,
) -> Result<Advanced<'w, 'r>, AdvanceError<'w>> {
    let happened = match moves {
        Moves::Begin => Happened::Started,
        Moves::Done { task, .. } => Happened::Done { task },
        Moves::Items { task } => Happened::ItemsDone { task },
        Moves::Failed { task, reason } => Happened::Failed { task, reason },
        Moves::Timeout | Moves::Impossible { .. } | Moves::Cancel => Happened::Cancelled,
        Moves::Again { task } => return progress.rerun_from(workflow, task, view),
    };
    progress.advance(workflow, happened, view)
}

fn moved(
    (id, run): (&str, &WorkflowRun),
    progress: &Progress,
    advanced: Advanced<'_, '_>,
    moves: Moves<'_>,
) -> Result<Moved, Error> {
    let mut calls = Vec::new();
    for Start { task, work } in advanced.start {
        let call = |call: TaskCall<'_>, item: Option<(u32, u32)>| {
            let card = Card {
                workflow: run.workflow.clone(),
                version: run.version,
                run: id.to_owned(),
                turn: run.turn,
                task: task.name.clone(),
                item,
            };
            let new = NewCall::new(task_queue(&task.type_name)?, LaneName::new(id)?);
            let payload = card.around(&call.input)?;
            Ok::<_, Error>(NewCall { tolls: call.tolls, payload, ..new })
        };
        match work {
            Work::One(one) => calls.push(call(one, None)?),
            Work::Items(items) => {
                let many = u32::try_from(items.len()).unwrap_or(u32::MAX);
                for (item, one) in (0..).zip(items) {
                    calls.push(call(one, Some((item, many)))?);
                }
            }
        }
    }
    let failed =
        |reason: String, step: String| Ending::Failed { reason, step, state: (*b"null").into() };
    let ending = advanced.end.map(|end| match end {
        RunEnd::Done { output } => Ending::Done(output.into_owned().into()),
        RunEnd::Failed { task, reason } => failed(reason, task.to_owned()),
        RunEnd::Cancelled => match moves {
            Moves::Timeout => failed(TIMED_OUT.to_owned(), String::new()),
            Moves::Impossible { reason } => failed(reason.to_owned(), String::new()),
            _ => Ending::Cancelled,
        },
    });
    Ok(Moved { states: states(progress), calls, joins: Vec::new(), ending })
}

/// The joins that a run's maps may have.
fn joins((id, run): (&str, &WorkflowRun), workflow: &Workflow) -> Result<Vec<Key>, Error> {
    let maps = workflow.tasks().iter().filter(|task| task.map.is_some());
    let keys = maps.map(|task| Key::new(&items_key(id, &task.name, run.turn)));
    Ok(keys.collect::<Result<_, _>>()?)
}

/// When a run is to have ended.
pub(super) fn deadline(workflow: &Workflow, began: Timestamp) -> Option<Timestamp> {
    workflow.spec().timeout.map(|timeout| began.plus(timeout))
}
