//! Workflows by chance, and a driver of runs that loads only what it is asked for and repeats itself.

use super::model::{fates, input};
use crate::flow::workflow::{
    AdvanceError, Advanced, Comparison, Happened, Progress, RunEnd, RunView, Source, Task,
    TaskState, Work, Workflow, list_of,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A workflow by chance, with what its tasks will give. Tasks need those of lower numbers, and stand
/// in the workflow in another order.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) tasks: Vec<PlannedTask>,
    /// The tasks in the order in which they stand.
    order: Vec<usize>,
    pub(super) input: Value,
}

#[derive(Debug, Clone)]
pub(super) struct PlannedTask {
    number: usize,
    pub(super) needs: Vec<usize>,
    pub(super) when: Option<(Reads, Comparison, i64)>,
    pub(super) map: Option<Reads>,
    gives: Value,
    pub(super) fails: bool,
}

/// What a task reads: a field of what one of several needs gave, or of its input.
#[derive(Debug, Clone)]
pub(super) struct Reads {
    pub(super) need: Option<String>,
    pub(super) field: Option<&'static str>,
}

impl Reads {
    fn path(&self) -> String {
        let steps: Vec<&str> = self.need.as_deref().into_iter().chain(self.field).collect();
        if steps.is_empty() { ".".to_owned() } else { steps.join(".") }
    }
}

impl PlannedTask {
    pub(super) fn name(&self) -> String {
        format!("t{}", self.number)
    }

    /// What it gives for an input: one that maps tells which item it was.
    pub(super) fn given(&self, input: &Value) -> Value {
        if self.map.is_some() {
            json!({ "of": input, "n": self.number })
        } else {
            self.gives.clone()
        }
    }

    fn written(&self) -> Task {
        let mut task = Task::new(&self.name(), "t");
        for need in &self.needs {
            task = task.after(&format!("t{need}"));
        }
        if let Some((reads, is, value)) = &self.when {
            let value = if *is == Comparison::Exists { json!(*value == 1) } else { json!(value) };
            task = task.when(&reads.path(), *is, value);
        }
        if let Some(reads) = &self.map {
            task = task.map(&reads.path());
        }
        task
    }
}

impl Plan {
    pub(super) fn workflow(&self) -> Workflow {
        let tasks = self.order.iter().map(|task| self.tasks[*task].written());
        tasks.fold(Workflow::new("w"), |workflow, task| workflow.task(task)).build().unwrap()
    }

    pub(super) fn place(&self, task: usize) -> usize {
        self.order.iter().position(|other| *other == task).unwrap()
    }

    /// The same, and no task fails by itself.
    pub(super) fn healed(&self) -> Self {
        let mut healed = self.clone();
        healed.tasks.iter_mut().for_each(|task| task.fails = false);
        healed
    }

    fn number(&self, name: &str) -> usize {
        self.tasks.iter().position(|task| task.name() == name).unwrap()
    }
}

fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        3 => (0_i64..4).prop_map(Value::from),
        1 => Just(json!(null)),
        1 => Just(json!("2")),
    ];
    let list = prop_oneof![
        2 => Just(json!([])),
        5 => Just(json!([1, {"n": 2}, "x"])),
        1 => Just(json!({"n": 1})),
    ];
    prop_oneof![
        8 => (number, list).prop_map(|(n, list)| json!({"n": n, "list": list})),
        1 => Just(json!([7, 8])),
        1 => Just(json!({})),
    ]
}

type Chances = (Vec<bool>, bool, (bool, usize, i64), bool, prop::sample::Index, Value, u8);

fn chances() -> impl Strategy<Value = Chances> {
    (
        prop::collection::vec(prop::bool::weighted(0.4), 9),
        prop::bool::weighted(0.3),
        (prop::bool::weighted(0.35), 0_usize..7, 0_i64..4),
        prop::bool::weighted(0.3),
        any::<prop::sample::Index>(),
        value(),
        0_u8..20,
    )
}

fn planned(number: usize, chances: Chances) -> PlannedTask {
    const COMPARISONS: [Comparison; 7] = [
        Comparison::Eq,
        Comparison::Ne,
        Comparison::Lt,
        Comparison::Le,
        Comparison::Gt,
        Comparison::Ge,
        Comparison::Exists,
    ];
    let (is_needed, is_map, (has_when, comparison, compared), of_all, which, gives, fails) =
        chances;
    let needs: Vec<usize> = (0..number).filter(|need| is_needed[*need]).collect();
    let need = (needs.len() > 1).then(|| format!("t{}", needs[which.index(needs.len())]));
    let field = |field| if of_all { None } else { Some(field) };
    // A path of several needs begins with one of them.
    let reads = |name| Reads { need: need.clone(), field: field(name) };
    let when = has_when.then(|| (reads("n"), COMPARISONS[comparison], compared));
    let map = is_map.then(|| reads("list"));
    PlannedTask { number, needs, when, map, gives, fails: fails == 0 }
}

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let tasks = prop::collection::vec(chances(), 1..9);
    (tasks, value()).prop_flat_map(|(tasks, input)| {
        let tasks: Vec<_> =
            tasks.into_iter().enumerate().map(|(number, it)| planned(number, it)).collect();
        let order = Just((0..tasks.len()).collect::<Vec<_>>()).prop_shuffle();
        order.prop_map(move |order| Plan { tasks: tasks.clone(), order, input: input.clone() })
    })
}

/// How a run ended, in the model's words.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    Done(Value),
    Failed(usize),
}

/// A run, what was loaded of it, and what its driver was told.
pub(super) struct World<'w> {
    plan: Plan,
    workflow: &'w Workflow,
    pub(super) progress: Progress,
    /// What tasks gave that have ended.
    given: BTreeMap<String, Vec<u8>>,
    /// What those will give that run.
    coming: BTreeMap<String, Vec<u8>>,
    pub(super) running: Vec<usize>,
    started: BTreeSet<usize>,
    pub(super) end: Option<Ended>,
}

/// What is told, without what it borrows.
#[derive(Default)]
struct Told {
    start: Vec<(usize, Vec<Value>, bool)>,
    cancel: Vec<usize>,
    end: Option<Option<Ended>>,
}

impl<'w> World<'w> {
    pub(super) fn new(plan: &Plan, workflow: &'w Workflow) -> Self {
        Self {
            plan: plan.clone(),
            workflow,
            progress: Progress::new(workflow),
            given: BTreeMap::new(),
            coming: BTreeMap::new(),
            running: Vec::new(),
            started: BTreeSet::new(),
            end: None,
        }
    }

    /// Starts the run, unless it was.
    pub(super) fn start(&mut self) {
        self.happen(Happened::Started);
        self.repeat(Happened::Started);
    }

    /// One of those that run ends as it is planned.
    pub(super) fn finish(&mut self, choice: usize) {
        let number = self.running[choice];
        let (task, place) = (self.plan.tasks[number].clone(), self.plan.place(number));
        // When one item of a map fails, others run on until they are told to stop.
        if !(task.fails && task.map.is_some()) {
            self.running.swap_remove(choice);
        }
        let name = task.name();
        self.given.extend(self.coming.remove_entry(&name));
        let happened = match self.progress.states()[place] {
            TaskState::Running { .. } if task.fails => {
                Happened::Failed { task: &name, reason: "planned" }
            }
            TaskState::Running { items: None } => Happened::Done { task: &name },
            TaskState::Running { items: Some(_) } => Happened::ItemsDone { task: &name },
            other => panic!("{name} runs and is {other:?}"),
        };
        self.happen(happened);
        self.repeat(happened);
    }

    pub(super) fn cancel(&mut self) {
        let was_over = self.progress.is_over();
        self.happen(Happened::Cancelled);
        assert!(was_over || self.end.is_none(), "a run that is cancelled has no other end");
        self.repeat(Happened::Cancelled);
    }

    /// From now on tasks end as this plan says.
    pub(super) fn heal(&mut self, plan: &Plan) {
        self.plan = plan.clone();
    }

    /// Runs a task again, and what depends on it.
    pub(super) fn rerun(&mut self, number: usize) {
        let name = self.plan.tasks[number].name();
        let forget = |world: &mut Self| {
            // All that is not done any more may start once more, and has given nothing.
            world.started = world.done();
            let plan = &world.plan;
            let started = &world.started;
            world.given.retain(|task, _| started.contains(&plan.number(task)));
        };
        self.move_on(|progress, workflow, run| progress.rerun_from(workflow, &name, run), forget);
    }

    fn done(&self) -> BTreeSet<usize> {
        let is_done =
            |number: &usize| self.progress.states()[self.plan.place(*number)].lets_go_on();
        (0..self.plan.tasks.len()).filter(is_done).collect()
    }

    fn happen(&mut self, happened: Happened<'_>) {
        self.move_on(|progress, workflow, run| progress.advance(workflow, happened, run), |_| ());
    }

    /// What happened already changes nothing when it is told again.
    fn repeat(&mut self, happened: Happened<'_>) {
        let before = (self.progress.clone(), self.running.clone(), self.end.clone());
        self.happen(happened);
        assert_eq!(before, (self.progress.clone(), self.running.clone(), self.end.clone()));
    }

    /// Asks until all that is needed was loaded, and does what is told.
    fn move_on(
        &mut self,
        ask: impl for<'r> Fn(
            &mut Progress,
            &'w Workflow,
            RunView<'_, 'r>,
        ) -> Result<Advanced<'w, 'r>, AdvanceError<'w>>,
        meanwhile: impl FnOnce(&mut Self),
    ) {
        let mut loaded: BTreeMap<Source<'w>, Vec<u8>> = BTreeMap::new();
        let told = loop {
            let before = self.progress.clone();
            let read = |source: Source<'_>| {
                loaded.iter().find(|(key, _)| **key == source).map(|(_, bytes)| &bytes[..])
            };
            match ask(&mut self.progress, self.workflow, RunView { id: "r", read: &read }) {
                Ok(advanced) => break self.told(&advanced),
                Err(AdvanceError::Unread { sources }) => {
                    assert_eq!(self.progress, before, "it is as it was");
                    for source in sources {
                        assert!(loaded.insert(source, self.load(source)).is_none());
                    }
                }
                Err(other) => panic!("{other}"),
            }
        };
        let states = self.progress.states().to_vec();
        let again = Progress::from_states(self.workflow, states).unwrap();
        assert_eq!(self.progress, again, "nothing is in it that its states do not say");
        meanwhile(self);
        self.heed(told);
    }

    fn load(&self, source: Source<'_>) -> Vec<u8> {
        match source {
            Source::Run => serde_json::to_vec(&self.plan.input).unwrap(),
            Source::Task(task) => self.given.get(task).expect("it has ended").clone(),
        }
    }

    fn told(&self, advanced: &Advanced<'_, '_>) -> Told {
        let value = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let start = advanced.start.iter().map(|start| {
            let (works, is_map) = match &start.work {
                Work::One(call) => (vec![value(&call.input)], false),
                Work::Items(calls) => (calls.iter().map(|call| value(&call.input)).collect(), true),
            };
            (self.plan.number(&start.task.name), works, is_map)
        });
        let end = advanced.end.as_ref().map(|end| match end {
            RunEnd::Done { output } => Some(Ended::Done(value(output))),
            RunEnd::Failed { task, .. } => Some(Ended::Failed(self.plan.number(task))),
            RunEnd::Cancelled => None,
        });
        let cancel = advanced.cancel.iter().map(|task| self.plan.number(task)).collect();
        Told { start: start.collect(), cancel, end }
    }

    /// Does what is told, and sees that it is right.
    fn heed(&mut self, told: Told) {
        for number in told.cancel {
            let place = self.running.iter().position(|running| *running == number);
            self.running.swap_remove(place.expect("what is to stop runs"));
        }
        let fates = fates(&self.plan);
        for (number, works, is_map) in told.start {
            assert!(self.started.insert(number), "task {number} starts again");
            let task = &self.plan.tasks[number];
            let done = self.done();
            assert!(
                task.needs.iter().all(|need| done.contains(need)),
                "task {number} is too early"
            );
            if !is_map {
                assert_eq!(works, [input(&self.plan, &fates, number)]);
            }
            let given: Vec<Vec<u8>> =
                works.iter().map(|work| serde_json::to_vec(&task.given(work)).unwrap()).collect();
            let given =
                if is_map { list_of(given.iter().map(|given| &given[..])) } else { given.concat() };
            self.coming.insert(task.name(), given);
            self.running.push(number);
        }
        if let Some(end) = told.end {
            assert!(self.running.is_empty(), "{:?} run on after the end", self.running);
            assert!(self.progress.is_over());
            self.end = end;
        }
    }
}
