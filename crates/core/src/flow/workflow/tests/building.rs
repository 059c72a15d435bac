//! Every mistake is refused when the workflow is built, with the task and the cure.

use crate::flow::workflow::{
    ATTEMPTS_MAX, Comparison, NAME_BYTES_MAX, Retry, TASKS_MAX, TIMEOUT_MAX, Task, TaskToll,
    Workflow, WorkflowError, WorkflowSpec,
};
use crate::limit::{Limit, LimitError};
use crate::time::Span;
use crate::toll::TOLLS_MAX;
use proptest::prelude::*;
use serde_json::json;

const MINUTE: Span = Span::from_minutes(1);

fn task(name: &str) -> Task {
    Task::new(name, "t")
}

fn refused(spec: WorkflowSpec) -> WorkflowError {
    spec.build().unwrap_err()
}

/// The message for a workflow of this task, after one called `before`.
fn told(task: Task) -> String {
    let spec = Workflow::new("w").task(Task::new("before", "other")).task(task);
    refused(spec).to_string()
}

#[track_caller]
fn assert_told(task: Task, parts: [&str; 2]) {
    let told = told(task);
    for part in parts {
        assert!(told.contains(part), "{part:?} is not in {told:?}");
    }
    assert!(told.contains("task x"), "{told}");
}

#[test]
fn a_workflow_is_what_was_written() {
    let spec = Workflow::new("summarise")
        .task(Task::new("call-llm", "llm.chat").timeout(MINUTE).rate_limit(10, MINUTE).burst(3))
        .task(Task::new("mail", "mail.send").after("call-llm").concurrency(2))
        .timeout(Span::from_hours(1))
        .runs_max(7)
        .tasks_max(4)
        .idempotency("order.id");
    let workflow = spec.clone().build().unwrap();
    assert_eq!(*workflow.spec(), spec);
    assert_eq!(workflow.task("mail").unwrap().needs, ["call-llm"]);
    assert_eq!(workflow.task("post"), None);
    let limits: Vec<_> =
        workflow.limits().iter().map(|(name, it)| (name.as_str(), it.limit().clone())).collect();
    let expected = [
        ("task/llm.chat", Limit::per_minute(10).burst(3)),
        ("task-slots/mail.send", Limit::concurrency(2)),
        ("run-tasks/summarise", Limit::concurrency(4)),
    ];
    assert_eq!(limits, expected);
}

#[test]
fn a_workflow_without_a_name_tasks_or_time_is_refused() {
    let named = |name: &str| Workflow::new(name).task(task("x"));
    let w = || "w".to_owned();
    assert_eq!(refused(named("")), WorkflowError::WorkflowNameEmpty);
    let bytes = NAME_BYTES_MAX + 1;
    assert_eq!(refused(named(&"a".repeat(bytes))), WorkflowError::WorkflowNameTooLong { bytes });
    assert!(named(&"a".repeat(NAME_BYTES_MAX)).build().is_ok());
    let (name, character) = ("a/b".to_owned(), '/');
    assert_eq!(refused(named("a/b")), WorkflowError::WorkflowNameCharacter { name, character });
    assert_eq!(refused(Workflow::new("w")), WorkflowError::NoTasks { workflow: w() });
    let many = |count| (0..count).fold(Workflow::new("w"), |w, n| w.task(task(&n.to_string())));
    let (workflow, count) = (w(), TASKS_MAX + 1);
    assert_eq!(refused(many(count)), WorkflowError::TooManyTasks { workflow, count });
    assert!(many(TASKS_MAX).build().is_ok());
    let none = named("w").timeout(Span::ZERO);
    assert_eq!(refused(none), WorkflowError::RunTimeoutZero { workflow: w() });
    let timeout = TIMEOUT_MAX.plus(Span::from_nanos(1));
    let (workflow, long) = (w(), named("w").timeout(timeout));
    assert_eq!(refused(long), WorkflowError::RunTimeoutTooLong { workflow, timeout });
    assert_eq!(refused(named("w").runs_max(0)), WorkflowError::RunsMaxZero { workflow: w() });
    assert_eq!(refused(named("w").tasks_max(0)), WorkflowError::TasksMaxZero { workflow: w() });
    let large = refused(named("w").tasks_max(u64::MAX));
    assert!(matches!(large, WorkflowError::CapTooLarge { .. }), "{large}");
    for path in ["", "a..b"] {
        let (workflow, path) = (w(), path.to_owned());
        let spec = named("w").idempotency(&path);
        assert_eq!(refused(spec), WorkflowError::IdempotencyPath { workflow, path });
    }
}

#[test]
fn a_task_without_a_right_name_is_refused() {
    let of = |name: &str| refused(Workflow::new("w").task(task("a")).task(task(name)));
    assert_eq!(of(""), WorkflowError::TaskNameEmpty { number: 2 });
    let bytes = NAME_BYTES_MAX + 1;
    let long = "a".repeat(bytes);
    assert_eq!(of(&long), WorkflowError::TaskNameTooLong { number: 2, bytes });
    for character in ['.', '[', ']', '/', '\n'] {
        let name = format!("a{character}b");
        let expected = WorkflowError::TaskNameCharacter { task: name.clone(), character };
        assert_eq!(of(&name), expected);
    }
    assert_eq!(of("a"), WorkflowError::TaskTwice { task: "a".to_owned() });
    assert_told(Task::new("x", ""), ["has no type", "give it 1 to 128 bytes"]);
    assert_told(Task::new("x", &long), ["129 bytes", "shorten it"]);
}

#[test]
fn a_task_that_could_never_start_or_end_is_refused() {
    let long = TIMEOUT_MAX.plus(Span::from_nanos(1));
    let retry = |retry| task("x").retry(retry);
    assert_told(task("x").timeout(Span::ZERO), ["no time", "give it a timeout"]);
    assert_told(task("x").timeout(long), ["the most is", "shorten it"]);
    assert_told(task("x").concurrency(0), ["none of its type", "at least 1"]);
    assert_told(task("x").concurrency(u64::MAX), ["cannot be", "the most is"]);
    assert_told(retry(Retry::fixed(0, MINUTE)), ["no attempts", "at least 1"]);
    assert_told(retry(Retry::fixed(ATTEMPTS_MAX + 1, MINUTE)), ["100001", "allow fewer"]);
    assert_told(retry(Retry::none().crashes_max(0)), ["no death", "at least 1"]);
    assert_told(retry(Retry::none().crashes_max(ATTEMPTS_MAX + 1)), ["100001", "allow fewer"]);
    assert_told(retry(Retry::linear(2, MINUTE, Span::ZERO)), ["at most 0s", "at least the first"]);
    assert_told(retry(Retry::fixed(2, long)), ["the most is", "shorten it"]);
}

#[test]
fn a_rate_that_admits_nothing_is_refused() {
    let (keyed, rate) = (
        |key: &str, limit, per, units| task("x").keyed_rate_limit(key, limit, per, units),
        |limit, per| task("x").rate_limit(limit, per),
    );
    let both = rate(1, MINUTE).keyed_rate_limit("k", 1, MINUTE, 1);
    assert_told(both, ["rate_limit and keyed_rate_limit", "say the other with tolls"]);
    assert_told(rate(0, MINUTE), ["a rate of 0", "at least 1"]);
    assert_told(rate(1, Span::ZERO), ["per no time", "longer than nothing"]);
    assert_told(rate(1, MINUTE).burst(0), ["a burst of 0", "at least 1"]);
    assert_told(task("x").burst(2), ["a burst and no rate", "add rate_limit"]);
    assert_told(keyed("k", 0, MINUTE, 1), ["a rate of 0", "at least 1"]);
    assert_told(keyed("k", 1, Span::ZERO, 1), ["per no time", "longer than nothing"]);
    assert_told(keyed("k", 1, MINUTE, 0), ["0 units", "at least 1"]);
    assert_told(keyed("k", 5, MINUTE, 6), ["6 units, and 5", "take fewer"]);
    assert_told(keyed("k", 50, MINUTE, 6).burst(5), ["6 units, and 5", "or the burst"]);
    assert_told(keyed("", 5, MINUTE, 1), ["an empty key", "or use rate_limit"]);
    assert_told(keyed("a..b", 5, MINUTE, 1), ["\"a..b\" for its key", "write it as in"]);
    let years = refused(Workflow::new("w").task(rate(1, Span::from_days(400))));
    let (task, per) = ("x".to_owned(), Span::from_days(400));
    assert_eq!(years, WorkflowError::Limit { task, source: LimitError::Period { per } });
    assert!(Workflow::new("w").task(keyed("k", 5, MINUTE, 6).burst(6)).build().is_ok());
    assert!(Workflow::new("w").task(keyed("k", 5, MINUTE, 5)).build().is_ok());
}

#[test]
fn a_toll_that_cannot_be_is_refused() {
    let of = |toll| task("x").tolls([toll]);
    assert_told(of(TaskToll::new("")), ["without a limit's name", "is empty"]);
    assert_told(of(TaskToll::new("l").partition("")), ["toll at l", "is empty"]);
    assert_told(of(TaskToll::new("l").partition_at("")), ["for its partition", "write it as in"]);
    assert_told(of(TaskToll::new("l").weight(0)), ["weighs nothing", "give it a weight"]);
    assert_told(of(TaskToll::new("l").weight_at("a.")), ["for its weight", "write it as in"]);
    let tolls = (0..TOLLS_MAX - 2).map(|number| TaskToll::new(&number.to_string()));
    let full = task("x").tolls(tolls).rate_limit(1, MINUTE).concurrency(1);
    let spec = Workflow::new("w").task(full);
    assert!(spec.clone().build().is_ok(), "a short form goes with tolls");
    let (task, count) = ("x".to_owned(), TOLLS_MAX + 1);
    assert_eq!(refused(spec.tasks_max(1)), WorkflowError::TooManyTolls { task, count });
}

#[test]
fn a_condition_or_a_map_that_makes_no_sense_is_refused() {
    use Comparison::{Eq, Exists, Lt};
    let x = || task("x");
    assert_told(x().when("a[", Eq, 1), ["\"a[\" for its when", "write it as in"]);
    assert_told(x().when("a", Lt, "b"), ["compare by lt with \"b\"", "an order takes a number"]);
    assert_told(x().when("a", Eq, json!(null)), ["by eq with null", "eq and ne take"]);
    assert_told(x().when("a", Exists, 1), ["by exists with 1", "true or false"]);
    assert_told(x().map(""), ["\"\" for its map", "write it as in"]);
    let on_items = |path| x().map("items").when(path, Eq, 1);
    assert_told(on_items("items[0].a"), ["one item of it", "in the task before"]);
    assert!(Workflow::new("w").task(on_items("items.length")).build().is_ok());
    let several = |task: Task| {
        let before = Workflow::new("w").task(Task::new("a", "a")).task(Task::new("b", "b"));
        before.task(task.after("a").after("b"))
    };
    let of_object = refused(several(x().map(".")));
    assert_eq!(of_object, WorkflowError::MapOfObject { task: "x".to_owned() });
    assert!(several(x().map("a.items")).build().is_ok());
    assert!(several(x().map("a").keyed_rate_limit("tenant", 1, MINUTE, 1)).build().is_ok());
    for wrong in [
        x().when("items", Eq, 1),
        x().map("c.items"),
        x().keyed_rate_limit("tenant", 1, MINUTE, 1),
        x().tolls([TaskToll::new("l").weight_at("[0]")]),
    ] {
        let told = refused(several(wrong)).to_string();
        assert!(told.contains("begin with the name of one of these"), "{told}");
    }
}

#[test]
fn a_dependency_that_cannot_be_is_refused() {
    assert_told(task("x").after("y"), ["comes after y", "or correct the name"]);
    assert_told(task("x").after("x"), ["after itself", "leave that out"]);
    assert_told(task("x").after("before").after("before"), ["twice", "say it once"]);
}

#[test]
fn a_circle_is_named() {
    let spec = Workflow::new("w")
        .task(task("in").after("c"))
        .task(task("a").after("c").after("out"))
        .task(task("b").after("a"))
        .task(task("c").after("b"))
        .task(task("out"));
    let error = refused(spec);
    let WorkflowError::Cycle { mut tasks } = error.clone() else { panic!("{error}") };
    assert_eq!(
        error.to_string(),
        format!(
            "tasks wait for each other in a circle, {}: leave out one of these dependencies",
            tasks.join(", then ")
        )
    );
    let first = tasks.iter().position(|task| task == "a").unwrap();
    tasks.rotate_left(first);
    assert_eq!(tasks, ["a", "b", "c"], "each comes after the one before it");
}

proptest! {
    #[test]
    fn a_workflow_is_refused_for_a_circle_if_it_has_one(
        needs in prop::collection::vec(prop::collection::btree_set(0_usize..6, 0..3), 6),
    ) {
        let tasks = needs.iter().enumerate().map(|(number, needs)| {
            let others = needs.iter().filter(|need| **need != number);
            others.fold(task(&number.to_string()), |task, need| task.after(&need.to_string()))
        });
        let spec = tasks.fold(Workflow::new("w"), |spec, task| spec.task(task));
        let comes_after = |task: usize, other: usize| task != other && needs[task].contains(&other);
        // Whoever comes after somebody comes after all that they come after.
        let mut reach: Vec<Vec<bool>> =
            (0..6).map(|a| (0..6).map(|b| comes_after(a, b)).collect()).collect();
        for via in 0..6 {
            for from in 0..6 {
                for to in 0..6 {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        let has_circle = (0..6).any(|task| reach[task][task]);
        match spec.build() {
            Ok(_) => prop_assert!(!has_circle),
            Err(WorkflowError::Cycle { tasks }) => {
                let tasks: Vec<usize> = tasks.iter().map(|task| task.parse().unwrap()).collect();
                let before = tasks.iter().cycle().skip(tasks.len() - 1);
                prop_assert!(tasks.len() > 1);
                for (task, before) in tasks.iter().zip(before) {
                    prop_assert!(comes_after(*task, *before), "{:?}", tasks);
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn tasks_of_one_type_agree() {
    let of = |first: Task, second: Task| Workflow::new("w").task(first).task(second).build();
    let (a, b) = (|| Task::new("a", "t"), || Task::new("b", "t"));
    let names = || ("t".to_owned(), "a".to_owned(), "b".to_owned());
    let rate = |task: Task| task.rate_limit(10, MINUTE);
    let keyed = |task: Task, key: &str, units| task.keyed_rate_limit(key, 10, MINUTE, units);
    let (type_name, first, second) = names();
    let rates = Err(WorkflowError::TypeRates { type_name, first, second });
    assert_eq!(of(rate(a()), b().rate_limit(11, MINUTE)), rates);
    assert_eq!(of(rate(a()), b().rate_limit(10, Span::from_secs(1))), rates);
    assert_eq!(of(rate(a()), rate(b()).burst(11)), rates);
    assert_eq!(of(rate(a()), keyed(b(), "k", 1)), rates);
    assert_eq!(of(rate(a()), b()), rates, "one that does not pay would break it unseen");
    assert_eq!(of(a(), rate(b())), rates);
    assert_eq!(of(rate(a()), rate(b())).unwrap().limits().len(), 1);
    assert_eq!(of(keyed(a(), "k", 1), keyed(b(), "l.m", 2)).unwrap().limits().len(), 1);
    let (type_name, first, second) = names();
    let slots = Err(WorkflowError::TypeConcurrency { type_name, first, second });
    assert_eq!(of(a().concurrency(1), b().concurrency(2)), slots);
    assert_eq!(of(a().concurrency(1), b()), slots);
    assert_eq!(of(a().concurrency(1), b().concurrency(1)).unwrap().limits().len(), 1);
}
