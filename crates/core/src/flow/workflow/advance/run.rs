//! One move of a run: what became ready is looked at until nothing is, and then it is told.

use super::{AdvanceError, Advanced, RunEnd, RunView, Source, Start, TaskCall, Work};
use crate::flow::workflow::input::{Prepared, object_of, output_of, prepare};
use crate::flow::workflow::owed::resolve;
use crate::flow::workflow::progress::{Progress, TaskState};
use crate::flow::workflow::task_error::TaskError;
use crate::flow::workflow::{Node, Workflow};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A move that is being made. What it changed is taken back if something was not loaded.
pub(super) struct Move<'w, 'r, 'p> {
    workflow: &'w Workflow,
    progress: &'p mut Progress,
    run: RunView<'p, 'r>,
    /// Tasks whose needs have all ended, the first of the workflow first: which one fails does not
    /// depend on chance.
    ready: BTreeSet<usize>,
    start: Vec<(usize, Work<'r>)>,
    failed: Option<(usize, String)>,
    unread: BTreeSet<Source<'w>>,
    /// What states were before, in the order in which they changed.
    before: Vec<(usize, TaskState)>,
    /// Tasks that wait for one less.
    closer: Vec<usize>,
}

impl<'w, 'r, 'p> Move<'w, 'r, 'p> {
    pub(super) fn new(
        workflow: &'w Workflow,
        progress: &'p mut Progress,
        run: RunView<'p, 'r>,
    ) -> Self {
        Self {
            workflow,
            progress,
            run,
            ready: BTreeSet::new(),
            start: Vec::new(),
            failed: None,
            unread: BTreeSet::new(),
            before: Vec::new(),
            closer: Vec::new(),
        }
    }

    pub(super) fn state(&self, place: usize) -> TaskState {
        self.progress.states[place]
    }

    /// Looks at all tasks that could start.
    pub(super) fn consider_all(&mut self) {
        let could = |place: &usize| {
            self.state(*place) == TaskState::Waiting && self.progress.waits[*place] == 0
        };
        self.ready = (0..self.workflow.nodes.len()).filter(could).collect();
    }

    /// A task gave something.
    pub(super) fn done(&mut self, place: usize, items: Option<u32>) {
        self.let_go_on(place, TaskState::Done { items });
    }

    /// A task failed for good.
    pub(super) fn fail(&mut self, place: usize, reason: String) {
        self.failed = Some((place, reason));
    }

    /// Ends the run where it is.
    pub(super) fn cancel(mut self) -> Advanced<'w, 'r> {
        if self.progress.is_over() {
            return Advanced::default();
        }
        let cancel = self.end_all();
        Advanced { start: Vec::new(), cancel, end: Some(RunEnd::Cancelled) }
    }

    /// Looks at what is ready, and tells what is to be done.
    pub(super) fn finish(mut self) -> Result<Advanced<'w, 'r>, AdvanceError<'w>> {
        while self.failed.is_none()
            && let Some(place) = self.ready.pop_first()
        {
            if let Err(error) = self.consider(place) {
                self.fail(place, error.to_string());
            }
        }
        let has_moved = self.failed.is_some() || !self.before.is_empty();
        let output = if has_moved && self.progress.is_over() { self.output() } else { None };
        if !self.unread.is_empty() {
            return Err(self.take_back());
        }
        if let Some((place, reason)) = self.failed.take() {
            return Ok(self.end_failed(place, reason));
        }
        self.start.sort_unstable_by_key(|(place, _)| *place);
        let tasks = self.workflow.tasks();
        let start = self.start.into_iter().map(|(place, work)| Start { task: &tasks[place], work });
        let end = output.map(|output| RunEnd::Done { output });
        Ok(Advanced { start: start.collect(), cancel: Vec::new(), end })
    }

    /// Starts, skips or finishes a task whose needs have all ended; leaves it if they were not loaded.
    fn consider(&mut self, place: usize) -> Result<(), TaskError> {
        let node = self.node(place);
        let is_done = |need: &usize| matches!(self.state(*need), TaskState::Done { .. });
        if !node.needs.is_empty() && !node.needs.iter().any(is_done) {
            self.let_go_on(place, TaskState::Skipped);
            return Ok(());
        }
        let Some(input) = self.input_of(place)? else { return Ok(()) };
        match prepare(self.workflow.name_at(place), node, input)? {
            Prepared::Skipped => self.let_go_on(place, TaskState::Skipped),
            Prepared::Items(items) if items.is_empty() => self.done(place, Some(0)),
            Prepared::Items(items) => {
                let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
                let calls = items.into_iter().enumerate().map(|(item, input)| {
                    self.call_of(place, input).map_err(|error| error.of_item(item))
                });
                let calls = calls.collect::<Result<_, _>>()?;
                self.set(place, TaskState::Running { items: Some(count) });
                self.start.push((place, Work::Items(calls)));
            }
            Prepared::One(input) => {
                let call = self.call_of(place, input)?;
                self.set(place, TaskState::Running { items: None });
                self.start.push((place, Work::One(call)));
            }
        }
        Ok(())
    }

    fn call_of(&self, place: usize, input: Cow<'r, [u8]>) -> Result<TaskCall<'r>, TaskError> {
        let (task, owed) = (self.workflow.name_at(place), &self.node(place).owed);
        let tolls = resolve(task, owed, &input, self.run.id)?;
        Ok(TaskCall { input, tolls })
    }

    /// What a task gets; `None` if something of it was not loaded.
    fn input_of(&mut self, place: usize) -> Result<Option<Cow<'r, [u8]>>, TaskError> {
        let node = self.node(place);
        match &*node.needs {
            [] => Ok(self.read(Source::Run).map(Cow::Borrowed)),
            [need] => Ok(self.given_by(*need).map(Cow::Borrowed)),
            needs => {
                let Some(parts) = self.given_by_all(needs) else { return Ok(None) };
                let not_json = |need: &str| TaskError::OutputNotJson {
                    task: self.workflow.name_at(place).to_owned(),
                    need: need.to_owned(),
                };
                object_of(&parts).map(|object| Some(object.into())).map_err(not_json)
            }
        }
    }

    /// What the run gives; `None` if something of it was not loaded, or cannot be put together.
    fn output(&mut self) -> Option<Cow<'r, [u8]>> {
        let workflow = self.workflow;
        if self.failed.is_some() {
            return None;
        }
        if let [last] = *workflow.last {
            return match self.state(last) {
                TaskState::Skipped => Some(Cow::Borrowed(b"null")),
                _ => self.given_by(last).map(Cow::Borrowed),
            };
        }
        let parts = self.given_by_all(&workflow.last)?;
        match object_of(&parts) {
            Ok(object) => Some(object.into()),
            Err(name) => {
                let place = workflow.place_of(name)?;
                self.fail(place, format!("task {name} gave what is not JSON: let it give JSON"));
                None
            }
        }
    }

    /// What those of these tasks gave that are done; `None` if something was not loaded.
    fn given_by_all(&mut self, places: &[usize]) -> Option<Vec<(&'w str, &'r [u8])>> {
        let mut parts = Some(Vec::with_capacity(places.len()));
        for place in places {
            if !matches!(self.state(*place), TaskState::Done { .. }) {
                continue;
            }
            // All are asked for, so that what is missing is told at once.
            let given = self.given_by(*place);
            parts = parts.zip(given).map(|(mut parts, given)| {
                parts.push((self.workflow.name_at(*place), given));
                parts
            });
        }
        parts
    }

    fn given_by(&mut self, place: usize) -> Option<&'r [u8]> {
        let (state, name) = (self.state(place), self.workflow.name_at(place));
        output_of(state, || self.read(Source::Task(name)))
    }

    fn read(&mut self, source: Source<'w>) -> Option<&'r [u8]> {
        let found = (self.run.read)(source);
        if found.is_none() {
            self.unread.insert(source);
        }
        found
    }

    fn node(&self, place: usize) -> &'w Node {
        &self.workflow.nodes[place]
    }

    fn set(&mut self, place: usize, state: TaskState) {
        let before = std::mem::replace(&mut self.progress.states[place], state);
        self.before.push((place, before));
        if state.is_ended() && !before.is_ended() {
            self.progress.left -= 1;
        }
    }

    /// Ends a task so that those that need it may go on.
    fn let_go_on(&mut self, place: usize, state: TaskState) {
        self.set(place, state);
        for dependent in &self.node(place).dependents {
            self.progress.waits[*dependent] -= 1;
            self.closer.push(*dependent);
            if self.progress.waits[*dependent] == 0 {
                self.ready.insert(*dependent);
            }
        }
    }

    fn end_failed(mut self, place: usize, reason: String) -> Advanced<'w, 'r> {
        for (started, _) in std::mem::take(&mut self.start) {
            // It never began for anybody else.
            self.set(started, TaskState::Cancelled);
        }
        let task = self.workflow.name_at(place);
        let has_items = matches!(self.state(place), TaskState::Running { items: Some(_) });
        self.set(place, TaskState::Failed);
        let mut cancel = self.end_all();
        cancel.extend(has_items.then_some(task));
        Advanced { start: Vec::new(), cancel, end: Some(RunEnd::Failed { task, reason }) }
    }

    /// Cancels all that has not ended, and tells what of it runs.
    fn end_all(&mut self) -> Vec<&'w str> {
        let mut cancel = Vec::new();
        for place in 0..self.workflow.nodes.len() {
            let state = self.state(place);
            if matches!(state, TaskState::Running { .. }) {
                cancel.push(self.workflow.name_at(place));
            }
            if !state.is_ended() {
                self.set(place, TaskState::Cancelled);
            }
        }
        cancel
    }

    /// Makes the progress what it was.
    fn take_back(self) -> AdvanceError<'w> {
        for (place, before) in self.before.into_iter().rev() {
            let state = std::mem::replace(&mut self.progress.states[place], before);
            if state.is_ended() && !before.is_ended() {
                self.progress.left += 1;
            }
        }
        for place in self.closer {
            self.progress.waits[place] += 1;
        }
        AdvanceError::Unread { sources: self.unread.into_iter().collect() }
    }
}
