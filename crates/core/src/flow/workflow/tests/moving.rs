//! How runs move: what starts with what, what is skipped, how they end.

use crate::flow::workflow::{
    AdvanceError, Advanced, Comparison, Happened, ITEMS_MAX, Progress, ProgressError, Read, RunEnd,
    RunView, Source, Task, TaskState, TaskToll, Work, Workflow, WorkflowSpec, list_of,
};
use crate::lanes::act::BODY_BYTES_MAX;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A run and what its tasks gave.
struct Run {
    workflow: Workflow,
    progress: Progress,
    input: Vec<u8>,
    given: BTreeMap<String, Vec<u8>>,
}

/// What is to be done, so that it can be compared.
#[derive(Debug, PartialEq, Eq, Default)]
struct Told {
    start: Vec<(String, Vec<String>)>,
    cancel: Vec<String>,
    end: Option<String>,
}

fn told(advanced: Advanced<'_, '_>) -> Told {
    let text = |bytes: &Cow<'_, [u8]>| String::from_utf8(bytes.to_vec()).unwrap();
    let start = advanced.start.iter().map(|start| {
        let items = match &start.work {
            Work::One(call) => vec![text(&call.input)],
            Work::Items(calls) => calls.iter().map(|call| text(&call.input)).collect(),
        };
        (start.task.name.clone(), items)
    });
    let end = advanced.end.as_ref().map(|end| match end {
        RunEnd::Done { output } => format!("done {}", text(output)),
        RunEnd::Failed { task, reason } => format!("failed {task}: {reason}"),
        RunEnd::Cancelled => "cancelled".to_owned(),
    });
    let cancel = advanced.cancel.iter().map(|task| (*task).to_owned()).collect();
    Told { start: start.collect(), cancel, end }
}

impl Run {
    fn new(spec: WorkflowSpec, input: &str) -> Self {
        let workflow = spec.build().unwrap();
        let progress = Progress::new(&workflow);
        Self { workflow, progress, input: input.into(), given: BTreeMap::new() }
    }

    fn on(&mut self, happened: Happened<'_>) -> Told {
        let read = |source: Source<'_>| match source {
            Source::Run => Some(&self.input[..]),
            Source::Task(task) => self.given.get(task).map(|given| &given[..]),
        };
        told(self.progress.advance(&self.workflow, happened, view(&read)).unwrap())
    }

    fn start(&mut self) -> Told {
        self.on(Happened::Started)
    }

    fn done(&mut self, task: &str, output: &str) -> Told {
        self.given.insert(task.to_owned(), output.into());
        self.on(Happened::Done { task })
    }

    fn rerun(&mut self, task: &str) -> Told {
        let read = |source: Source<'_>| match source {
            Source::Run => Some(&self.input[..]),
            Source::Task(task) => self.given.get(task).map(|given| &given[..]),
        };
        told(self.progress.rerun_from(&self.workflow, task, view(&read)).unwrap())
    }

    fn states(&self) -> Vec<&'static str> {
        self.progress.states().iter().map(|state| state.as_str()).collect()
    }
}

/// A run of which this can be read.
fn view<'a, 'r>(read: Read<'a, 'r>) -> RunView<'a, 'r> {
    RunView { id: "run-7", read }
}

fn starts<const N: usize>(tasks: [(&str, &str); N]) -> Told {
    let start = tasks.map(|(task, input)| (task.to_owned(), vec![input.to_owned()]));
    Told { start: start.into(), ..Told::default() }
}

fn ends(end: &str) -> Told {
    Told { end: Some(end.to_owned()), ..Told::default() }
}

fn task(name: &str) -> Task {
    Task::new(name, "t")
}

/// a, then b and c, then d.
fn diamond() -> WorkflowSpec {
    Workflow::new("w")
        .task(task("a"))
        .task(task("b").after("a"))
        .task(task("c").after("a"))
        .task(task("d").after("b").after("c"))
}

#[test]
fn inputs_are_the_runs_one_output_or_an_object() {
    let mut run = Run::new(diamond(), r#"{"n": 1}"#);
    assert_eq!(run.start(), starts([("a", r#"{"n": 1}"#)]));
    assert_eq!(run.done("a", " [1, 2] "), starts([("b", " [1, 2] "), ("c", " [1, 2] ")]));
    assert_eq!(run.done("c", ""), Told::default());
    assert_eq!(run.done("b", " {\"x\": 1}\n"), starts([("d", r#"{"b":{"x": 1},"c":null}"#)]));
    assert_eq!(run.done("d", "7"), ends("done 7"));
    assert!(run.progress.is_over());
}

#[test]
fn a_run_of_several_ends_gives_an_object() {
    let spec = Workflow::new("w").task(task("a")).task(task("b")).task(task("c").when(
        "no",
        Comparison::Exists,
        true,
    ));
    let mut run = Run::new(spec, "{}");
    assert_eq!(run.start(), starts([("a", "{}"), ("b", "{}")]));
    assert_eq!(run.done("b", "2"), Told::default());
    assert_eq!(run.done("a", "1"), ends(r#"done {"a":1,"b":2}"#));
    assert_eq!(run.states(), ["done", "done", "skipped"]);
}

#[test]
fn what_comes_again_or_too_late_changes_nothing() {
    let mut run = Run::new(diamond(), "{}");
    let _ = run.start();
    assert_eq!(run.start(), Told::default());
    let _ = run.done("a", "1");
    let before = run.progress.clone();
    assert_eq!(run.done("a", "1"), Told::default());
    assert_eq!(run.done("d", "1"), Told::default());
    assert_eq!(run.on(Happened::ItemsDone { task: "b" }), Told::default());
    assert_eq!(run.on(Happened::Failed { task: "d", reason: "x" }), Told::default());
    assert_eq!(run.progress, before);
    let _ = run.on(Happened::Cancelled);
    let before = run.progress.clone();
    assert_eq!(run.on(Happened::Cancelled), Told::default());
    assert_eq!(run.on(Happened::Failed { task: "b", reason: "x" }), Told::default());
    assert_eq!(run.done("b", "1"), Told::default());
    assert_eq!(run.start(), Told::default());
    assert_eq!(run.progress, before);
    let read = |_: Source<'_>| None;
    let unknown = run.progress.advance(&run.workflow, Happened::Done { task: "z" }, view(&read));
    assert_eq!(unknown, Err(AdvanceError::UnknownTask { task: "z".to_owned() }));
}

#[test]
fn a_branch_that_is_not_taken_is_skipped_to_its_end() {
    let spec = Workflow::new("w")
        .task(task("a"))
        .task(task("b").after("a").when("go", Comparison::Eq, true))
        .task(task("c").after("b"))
        .task(task("d").after("a"))
        .task(task("e").after("c").after("d"))
        .task(task("f").after("c"));
    let mut run = Run::new(spec, "{}");
    let _ = run.start();
    let output = r#"{"go": false}"#;
    assert_eq!(run.done("a", output), starts([("d", output)]));
    assert_eq!(run.states(), ["done", "skipped", "skipped", "running", "waiting", "skipped"]);
    assert_eq!(run.done("d", "4"), starts([("e", r#"{"d":4}"#)]));
    assert_eq!(run.done("e", "5"), ends(r#"done {"e":5}"#));
}

#[test]
fn a_run_whose_last_task_is_skipped_gives_null() {
    let spec = Workflow::new("w").task(task("a").when("go", Comparison::Eq, true));
    let mut run = Run::new(spec, "{}");
    assert_eq!(run.start(), ends("done null"));
    assert_eq!(run.states(), ["skipped"]);
    assert_eq!(run.start(), Told::default(), "an end is told once");
}

#[test]
fn a_map_is_done_for_each_item_in_order() {
    let spec = Workflow::new("w").task(task("m").map("items")).task(task("z").after("m"));
    let mut run = Run::new(spec, r#"{"items": [ {"a": 1}, "b" ,[]]}"#);
    let items = [r#"{"a": 1}"#, "\"b\"", "[]"].map(str::to_owned);
    let start = vec![("m".to_owned(), items.into())];
    assert_eq!(run.start(), Told { start, ..Told::default() });
    assert_eq!(run.progress.state(&run.workflow, "m").unwrap().items(), Some(3));
    assert_eq!(run.on(Happened::Done { task: "m" }), Told::default(), "one item is not the map");
    let list = list_of([&b"1"[..], b"", b"3"]);
    run.given.insert("m".to_owned(), list);
    assert_eq!(run.on(Happened::ItemsDone { task: "m" }), starts([("z", "[1,null,3]")]));
    assert_eq!(run.progress.state(&run.workflow, "m").unwrap().items(), Some(3));
    assert_eq!(run.done("z", "9"), ends("done 9"));
}

#[test]
fn a_map_over_what_several_gave_is_taken_apart_too() {
    let spec = Workflow::new("w")
        .task(task("a"))
        .task(task("b"))
        .task(task("m").after("a").after("b").map("a.list"));
    let mut run = Run::new(spec, "{}");
    let _ = run.start();
    let _ = run.done("b", "0");
    let start = vec![("m".to_owned(), vec!["1".to_owned(), "2".to_owned()])];
    assert_eq!(run.done("a", r#"{"list": [1,2]}"#), Told { start, ..Told::default() });
}

#[test]
fn a_map_over_an_empty_list_is_done_at_once() {
    let spec = Workflow::new("w").task(task("m").map(".")).task(task("z").after("m"));
    let mut run = Run::new(spec, " [ ] ");
    assert_eq!(run.start(), starts([("z", "[]")]));
    assert_eq!(run.done("z", "1"), ends("done 1"));
    let mut alone = Run::new(Workflow::new("w").task(task("m").map(".")), "[]");
    assert_eq!(alone.start(), ends("done []"));
}

#[test]
fn a_map_over_no_list_fails_the_run_and_says_why() {
    for (input, found) in [
        (r#"{"items": null}"#, "null"),
        (r#"{"items": {}}"#, "an object"),
        (r#"{"items": "x"}"#, "a text of 1 bytes"),
        ("{}", "nothing"),
        ("", "nothing"),
    ] {
        let spec = Workflow::new("w").task(task("m").map("items")).task(task("z").after("m"));
        let mut run = Run::new(spec, input);
        let expected = format!(
            "failed m: task m maps over items, where its input has {found}: send a list there, [] for nothing to do"
        );
        assert_eq!(run.start(), ends(&expected));
        assert_eq!(run.states(), ["failed", "cancelled"]);
    }
    let list = format!("[{}0]", "0,".repeat(ITEMS_MAX));
    let end = Run::new(Workflow::new("w").task(task("m").map(".")), &list).start().end.unwrap();
    assert!(end.contains("a list of 10001 items, and the most is 10000"), "{end}");
    let full = format!("[{}0]", "0,".repeat(ITEMS_MAX - 1));
    let mut run = Run::new(Workflow::new("w").task(task("m").map(".")), &full);
    assert_eq!(run.start().start[0].1.len(), ITEMS_MAX);
}

#[test]
fn what_is_not_json_fails_who_reads_it_and_no_other() {
    let mut run = Run::new(diamond(), "no JSON");
    assert_eq!(run.start(), starts([("a", "no JSON")]));
    let _ = run.done("a", "no JSON");
    let _ = run.done("b", "1");
    let expected =
        "failed d: task d needs what c gave, which is not JSON: let c give JSON".to_owned();
    assert_eq!(run.done("c", "{").end, Some(expected));
    let spec = Workflow::new("w").task(task("a").when("go", Comparison::Eq, true));
    let end = Run::new(spec, "{").start().end.unwrap();
    assert!(end.contains("reads its input, which is not JSON"), "{end}");
    let mut run = Run::new(Workflow::new("w").task(task("a")).task(task("b")), "");
    let _ = run.start();
    let _ = run.done("a", "{");
    let end = run.done("b", "1").end.unwrap();
    assert!(end.starts_with("failed a: task a gave what is not JSON"), "{end}");
    assert_eq!(run.states(), ["failed", "done"]);
}

#[test]
fn an_input_that_no_call_could_carry_fails_its_task() {
    let mut run = Run::new(diamond(), "{}");
    let _ = run.start();
    let _ = run.done("a", "1");
    let half = format!("\"{}\"", "x".repeat(BODY_BYTES_MAX / 2));
    let _ = run.done("b", &half);
    let end = run.done("c", &half).end.unwrap();
    assert!(end.starts_with("failed d: the input of task d has 167772"), "{end}");
}

#[test]
fn a_task_that_failed_fails_the_run_and_stops_the_others() {
    let mut run = Run::new(diamond().task(task("e")), "{}");
    let _ = run.start();
    let _ = run.done("a", "1");
    let failed = run.on(Happened::Failed { task: "c", reason: "no answer" });
    let cancel = vec!["b".to_owned(), "e".to_owned()];
    let end = Some("failed c: no answer".to_owned());
    assert_eq!(failed, Told { start: vec![], cancel, end });
    assert_eq!(run.states(), ["done", "cancelled", "failed", "cancelled", "cancelled"]);
    assert!(run.progress.is_over());
}

#[test]
fn the_other_items_of_a_map_that_failed_are_to_stop() {
    let spec = Workflow::new("w").task(task("m").map(".")).task(task("r"));
    let mut run = Run::new(spec, "[1, 2]");
    let _ = run.start();
    let failed = run.on(Happened::Failed { task: "m", reason: "item 1" });
    assert_eq!(failed.cancel, ["r", "m"]);
    assert_eq!(run.states(), ["failed", "cancelled"]);
}

#[test]
fn a_task_starts_with_what_it_owes_or_fails() {
    let spec = || {
        let toll = TaskToll::new("tenant").partition_at("tenant");
        Workflow::new("w").task(task("m").map(".").tolls([toll])).task(task("r")).tasks_max(2)
    };
    let workflow = spec().build().unwrap();
    let input = br#"[{"tenant": "a"}, {"tenant": 2}]"#;
    let read = |_: Source<'_>| Some(&input[..]);
    let mut progress = Progress::new(&workflow);
    let advanced = progress.advance(&workflow, Happened::Started, view(&read)).unwrap();
    let Work::Items(calls) = &advanced.start[0].work else { panic!("{advanced:?}") };
    for call in calls {
        let owed = workflow.tolls("m", &call.input, "run-7").unwrap();
        assert_eq!(call.tolls, owed);
        assert_eq!(owed[1].partition.as_deref(), Some("run-7"));
    }
    assert_eq!(calls[1].tolls[0].partition.as_deref(), Some("2"));
    let mut run = Run::new(spec(), r#"[{"tenant": "a"}, {}]"#);
    let expected = "failed m: item [1] of the list: task m reads its partition at tenant from tenant, where its input has nothing: send a text of 1 to 512 bytes or a whole number there";
    assert_eq!(run.start(), ends(expected));
    assert_eq!(run.states(), ["failed", "cancelled"]);
}

#[test]
fn a_state_is_made_of_its_words_again() {
    let states = [
        TaskState::Waiting,
        TaskState::Running { items: None },
        TaskState::Running { items: Some(3) },
        TaskState::Done { items: None },
        TaskState::Done { items: Some(0) },
        TaskState::Skipped,
        TaskState::Failed,
        TaskState::Cancelled,
    ];
    for state in states {
        assert_eq!(TaskState::from_words(state.as_str(), state.items()), Some(state));
    }
    assert_eq!(TaskState::from_words("waiting", Some(1)), None);
    assert_eq!(TaskState::from_words("gone", None), None);
}

#[test]
fn what_would_have_started_beside_a_failure_never_does() {
    let spec = Workflow::new("w")
        .task(task("a"))
        .task(task("b").after("a"))
        .task(task("m").after("a").map("items"))
        .task(task("r"));
    let mut run = Run::new(spec, "{}");
    let _ = run.start();
    let failed = run.done("a", "{}");
    assert!(failed.start.is_empty());
    assert_eq!(failed.cancel, ["r"], "b is not told to stop, for nobody heard of it");
    assert_eq!(run.states(), ["done", "cancelled", "failed", "cancelled"]);
}

#[test]
fn of_two_that_fail_together_the_first_of_the_workflow_is_told() {
    let spec = Workflow::new("w").task(task("m").map("items")).task(task("n").map("items"));
    let mut run = Run::new(spec, "{}");
    let end = run.start().end.unwrap();
    assert!(end.starts_with("failed m:"), "{end}");
    assert_eq!(run.states(), ["failed", "cancelled"]);
}

#[test]
fn a_cancelled_run_tells_what_runs() {
    let mut run = Run::new(diamond(), "{}");
    let _ = run.start();
    let _ = run.done("a", "1");
    let cancel = vec!["b".to_owned(), "c".to_owned()];
    let end = Some("cancelled".to_owned());
    assert_eq!(run.on(Happened::Cancelled), Told { start: vec![], cancel, end });
    assert_eq!(run.states(), ["done", "cancelled", "cancelled", "cancelled"]);
}

#[test]
fn a_run_that_failed_goes_on_where_it_is_run_again() {
    let mut run = Run::new(diamond().task(task("e")), "{}");
    let _ = run.start();
    let _ = run.done("a", "1");
    let _ = run.done("b", "2");
    let _ = run.on(Happened::Failed { task: "c", reason: "no answer" });
    assert_eq!(run.rerun("c"), starts([("c", "1"), ("e", "{}")]));
    assert_eq!(run.states(), ["done", "done", "running", "waiting", "running"]);
    let _ = run.done("e", "5");
    assert_eq!(run.done("c", "3"), starts([("d", r#"{"b":2,"c":3}"#)]));
    assert_eq!(run.done("d", "4"), ends(r#"done {"d":4,"e":5}"#));
    assert_eq!(run.rerun("b"), starts([("b", "1")]), "also one that is done");
    assert_eq!(run.states(), ["done", "running", "done", "waiting", "done"]);
    let _ = run.done("b", "20");
    assert_eq!(run.done("d", "40"), ends(r#"done {"d":40,"e":5}"#));
}

#[test]
fn what_runs_and_depends_on_what_is_run_again_is_stopped_first() {
    let mut run = Run::new(diamond(), "{}");
    let _ = run.start();
    let _ = run.done("a", "1");
    let again = run.rerun("a");
    assert_eq!(again.cancel, ["b", "c"]);
    assert_eq!(again.start, starts([("a", "{}")]).start);
    assert_eq!(run.states(), ["running", "waiting", "waiting", "waiting"]);
    let read = |_: Source<'_>| None;
    let unknown = run.progress.rerun_from(&run.workflow, "z", view(&read));
    assert_eq!(unknown, Err(AdvanceError::UnknownTask { task: "z".to_owned() }));
}

#[test]
fn what_was_not_loaded_is_asked_for_and_nothing_has_changed() {
    let workflow = diamond().build().unwrap();
    let mut progress = Progress::new(&workflow);
    let all = |_: Source<'_>| Some(&b"1"[..]);
    let none = |_: Source<'_>| None;
    let unread = progress.advance(&workflow, Happened::Started, view(&none)).unwrap_err();
    assert_eq!(unread, AdvanceError::Unread { sources: vec![Source::Run] });
    for happened in [Happened::Started, Happened::Done { task: "a" }, Happened::Done { task: "b" }]
    {
        let _ = progress.advance(&workflow, happened, view(&all)).unwrap();
    }
    let before = progress.clone();
    let done = Happened::Done { task: "c" };
    let unread = progress.advance(&workflow, done, view(&none)).unwrap_err();
    assert_eq!(
        unread,
        AdvanceError::Unread { sources: vec![Source::Task("b"), Source::Task("c")] }
    );
    assert_eq!(progress, before);
    let unread = progress.rerun_from(&workflow, "b", view(&none)).unwrap_err();
    assert_eq!(unread, AdvanceError::Unread { sources: vec![Source::Task("a")] });
    assert_eq!(progress, before);
    let _ = progress.advance(&workflow, done, view(&all)).unwrap();
    let unread =
        progress.advance(&workflow, Happened::Done { task: "d" }, view(&none)).unwrap_err();
    assert_eq!(unread, AdvanceError::Unread { sources: vec![Source::Task("d")] });
    assert!(!progress.is_over());
}

#[test]
fn states_of_another_workflow_are_refused() {
    let workflow = diamond().task(task("m").map("items")).build().unwrap();
    let (waiting, running) = (TaskState::Waiting, TaskState::Running { items: None });
    let of = |states: [TaskState; 5]| Progress::from_states(&workflow, states.into());
    assert!(of([waiting; 5]).is_ok());
    let count = Progress::from_states(&workflow, vec![waiting]).unwrap_err();
    assert!(matches!(count, ProgressError::Count { states: 1, tasks: 5, .. }), "{count}");
    let ahead = of([running, running, waiting, waiting, waiting]).unwrap_err().to_string();
    assert!(ahead.starts_with("task b is running, but a, which it needs, is running"), "{ahead}");
    let items = of([waiting, waiting, waiting, waiting, running]).unwrap_err();
    assert_eq!(items, ProgressError::Items { task: "m".to_owned() });
}
