//! What a task owes, by its input: its own meter, or a failure that says why.

use crate::flow::workflow::{RunError, Task, TaskError, TaskToll, Workflow};
use crate::name::{LimitName, Partition};
use crate::time::Span;
use crate::toll::Toll;
use crate::tolls::Tolls;

const MINUTE: Span = Span::from_minutes(1);

fn toll(limit: &str, partition: Option<&str>, weight: u64) -> Toll {
    let partition = partition.map(|partition| Partition::new(partition).unwrap());
    Toll { limit: LimitName::new(limit).unwrap(), partition, weight, hears_feedback: false }
}

fn of(task: Task) -> Workflow {
    Workflow::new("w").task(task).build().unwrap()
}

fn keyed() -> Workflow {
    of(Task::new("x", "llm.chat").keyed_rate_limit("config.provider.name", 100, MINUTE, 2))
}

#[test]
fn a_rate_is_paid_at_the_limit_of_the_type() {
    let first = |toll: Toll| Toll { hears_feedback: true, ..toll };
    let rate = of(Task::new("x", "llm.chat").rate_limit(10, MINUTE));
    let owed = vec![first(toll("task/llm.chat", None, 1))];
    // What is not read may be anything.
    assert_eq!(rate.tolls("x", b"no JSON", "r"), Ok(owed.into()));
    let input = br#"{"config": {"provider": {"name": "a@b.com"}}}"#;
    let owed = vec![first(toll("task/llm.chat", Some("a@b.com"), 2))];
    assert_eq!(keyed().tolls("x", input, "r"), Ok(owed.into()));
    assert_eq!(of(Task::new("x", "t")).tolls("x", b"", "r"), Ok(Tolls::new()));
}

#[test]
fn all_that_is_owed_is_told_with_slots_last() {
    let tolls = [
        TaskToll::new("tenant").partition_at("tenant").weight_at("tokens"),
        TaskToll::new("region").partition("eu").weight(3),
        TaskToll::new("all"),
        TaskToll::new("tokens").weight_at("tokens"),
    ];
    let task = Task::new("x", "t").rate_limit(10, MINUTE).tolls(tolls).concurrency(5);
    let workflow = Workflow::new("w").task(task).tasks_max(4).build().unwrap();
    let owed = workflow.tolls("x", br#"{"tokens": 900, "tenant": "acme"}"#, "run-7").unwrap();
    let expected = vec![
        Toll { hears_feedback: true, ..toll("task/t", None, 1) },
        toll("tenant", Some("acme"), 900),
        toll("region", Some("eu"), 3),
        toll("all", None, 1),
        toll("tokens", None, 900),
        toll("task-slots/t", None, 1),
        toll("run-tasks/w", Some("run-7"), 1),
    ];
    assert_eq!(*owed, expected);
    let slots = of(Task::new("x", "t").concurrency(5)).tolls("x", b"", "r").unwrap();
    assert_eq!(*slots, [toll("task-slots/t", None, 1)], "a slot hears of no pause");
    let error = workflow.tolls("x", br#"{"tokens": 900, "tenant": "acme"}"#, "").unwrap_err();
    assert!(matches!(error, TaskError::Run { .. }), "{error}");
}

#[test]
fn a_key_is_a_text_or_a_whole_number_and_all_else_fails_the_task() {
    let workflow = keyed();
    let long = format!("\"{}\"", "x".repeat(513));
    for (name, partition) in [
        ("\"acme corp\"", Ok("acme corp")),
        ("\"_global\"", Ok("_global")),
        ("1234567", Ok("1234567")),
        ("-0", Ok("0")),
        ("9007199254740993", Ok("9007199254740993")),
        ("\"\"", Err("an empty text")),
        ("null", Err("null")),
        ("1.5", Err("1.5, which is no whole number")),
        ("1e6", Err("1e6, which is no whole number")),
        ("true", Err("true")),
        ("[1]", Err("a list")),
        ("{\"a\": 1}", Err("an object")),
        (long.as_str(), Err("a text of 513 bytes")),
    ] {
        let input = format!("{{\"config\": {{\"provider\": {{\"name\": {name}}}}}}}");
        let owed = workflow.tolls("x", input.as_bytes(), "r");
        match partition {
            Ok(partition) => {
                assert_eq!(owed.unwrap()[0].partition.as_deref(), Some(partition));
            }
            Err(found) => {
                let told = owed.unwrap_err().to_string();
                assert_eq!(
                    told,
                    format!(
                        "task x reads its partition at task/llm.chat from config.provider.name, where its input has {found}: send a text of 1 to 512 bytes or a whole number there"
                    )
                );
            }
        }
    }
}

#[test]
fn a_key_that_is_missing_fails_the_task() {
    for input in ["", "{}", "null", "[]", "5", r#"{"config": "x"}"#, r#"{"config": [{}]}"#] {
        let error = keyed().tolls("x", input.as_bytes(), "r").unwrap_err();
        assert!(error.to_string().contains("has nothing:"), "{input}: {error}");
    }
    let error = keyed().tolls("x", b"{", "r").unwrap_err();
    assert_eq!(error, TaskError::InputNotJson { task: "x".to_owned() });
    let error = keyed().tolls("y", b"{}", "r").unwrap_err();
    assert_eq!(error, TaskError::Unknown { task: "y".to_owned() });
}

#[test]
fn a_weight_is_a_whole_number_from_one_on() {
    let workflow = of(Task::new("x", "t").tolls([TaskToll::new("l").weight_at("n")]));
    assert_eq!(workflow.tolls("x", br#"{"n": 7}"#, "r").unwrap()[0].weight, 7);
    for input in [r#"{"n": 0}"#, r#"{"n": -1}"#, r#"{"n": 1.5}"#, r#"{"n": "7"}"#, "{}"] {
        let error = workflow.tolls("x", input.as_bytes(), "r").unwrap_err();
        assert!(error.to_string().contains("a whole number from 1 on"), "{input}: {error}");
    }
}

#[test]
fn an_item_of_a_map_may_be_its_own_key() {
    let workflow = of(Task::new("x", "t").map("users").keyed_rate_limit(".", 5, MINUTE, 1));
    let owed = workflow.tolls("x", b"\"ada\"", "r").unwrap();
    assert_eq!(owed[0].partition.as_deref(), Some("ada"));
}

#[test]
fn a_run_without_its_idempotency_key_is_refused() {
    let task = || Workflow::new("w").task(Task::new("x", "t"));
    let workflow = task().idempotency("order.id").build().unwrap();
    let key = |input: &str| workflow.idempotency_key(input.as_bytes());
    assert_eq!(key(r#"{"order": {"id": "o-1"}}"#), Ok(Some("o-1".to_owned())));
    assert_eq!(key(r#"{"order": {"id": 1234567}}"#), Ok(Some("1234567".to_owned())));
    let told = key(r#"{"order": {"id": null}}"#).unwrap_err().to_string();
    assert!(told.contains("from order.id, where the input has null"), "{told}");
    assert!(matches!(key("{}"), Err(RunError::NoKey { .. })));
    assert!(matches!(key("{"), Err(RunError::InputNotJson { .. })));
    assert_eq!(task().build().unwrap().idempotency_key(b"{"), Ok(None));
}
