//! Exports from the shell: a data folder as lines of JSON, and back.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::tempdir;
use tollgate::lanes::{Act, LaneName, Lanes, NewCall, QueueName, QueueSpec};
use tollgate::store::Store;
use tollgate::{Clock, SystemClock};

/// Runs a command in a folder: its code, and what it said on both outputs.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.current_dir(folder).args(arguments.split(' '));
    if arguments.contains(" - ") {
        command.stdin(File::open(folder.join("lines")).unwrap());
    }
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Makes a store with one call, and closes it.
fn make(folder: &Path) {
    let clock = SystemClock::new();
    let store = Store::open(folder, Arc::new(move || clock.both())).unwrap().store;
    let queue = QueueName::new("q").unwrap();
    let call = NewCall::new(queue.clone(), LaneName::new("a").unwrap());
    let call = NewCall { payload: (*b"hello").into(), ..call };
    let enqueue = Act { enqueue: vec![call], ..Act::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        store.define_queue(queue, QueueSpec::default()).await.unwrap().unwrap();
        assert!(store.act(vec![enqueue]).await.unwrap()[0].is_ok());
    });
}

#[test]
fn what_was_exported_is_imported_and_exports_alike() {
    let parent = tempdir().unwrap();
    make(&parent.path().join("data"));
    let (code, lines, error) = run(parent.path(), "store export data");
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let (first, last) = (lines.lines().next().unwrap(), lines.lines().next_back().unwrap());
    assert_eq!(first, r#"{"tollgate":"export","version":1}"#);
    assert_eq!(last, format!(r#"{{"fact":"end","lines":{}}}"#, lines.lines().count()));
    assert!(lines.contains(r#""body":"hello""#), "{lines}");

    let (code, said, _) = run(parent.path(), "store export data --output lines");
    assert_eq!((code, said.as_str()), (Some(0), "lines: 5 lines\n"));
    assert_eq!(fs::read_to_string(parent.path().join("lines")).unwrap(), lines);
    for (file, folder) in [("lines", "one"), ("-", "two")] {
        let (code, said, error) =
            run(parent.path(), &format!("store import {file} {folder} --json"));
        assert_eq!(code, Some(0), "{said}{error}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["lines"], &said["calls"]["waiting"]), (&5.into(), &1.into()));
        assert_eq!(run(parent.path(), &format!("store export {folder}")).1, lines);
    }
}

#[test]
fn what_stands_in_the_way_is_said_and_nothing_is_left() {
    let parent = tempdir().unwrap();
    make(&parent.path().join("data"));
    assert_eq!(run(parent.path(), "store export data --output lines").0, Some(0));
    let lines = fs::read_to_string(parent.path().join("lines")).unwrap();
    fs::write(parent.path().join("wrong"), lines.replace("waiting", "wanting")).unwrap();
    for (command, code, found) in [
        ("store export data --output lines", 1, "is there already"),
        ("store import lines data", 1, "is not empty"),
        ("store import wrong new", 1, "wrong, line 4: unknown variant `wanting`"),
        ("store import missing new", 2, "missing cannot be read"),
        ("store export missing", 2, "there is no folder"),
    ] {
        let (ended, said, error) = run(parent.path(), command);
        assert_eq!(ended, Some(code), "{command}: {said}{error}");
        assert!(format!("{said}{error}").contains(found), "{command}: {said}{error}");
    }
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 3, "data, lines and wrong");
    assert_eq!(fs::read_to_string(parent.path().join("lines")).unwrap(), lines);
}

#[test]
fn the_commands_of_the_document_run_in_their_order() {
    let document = include_str!("../../../docs/backups.md");
    let blocks = document.split("```").skip(1).step_by(2);
    let commands = blocks.flat_map(|block| block.strip_prefix("sh\n").unwrap().lines());
    let parent = tempdir().unwrap();
    make(&parent.path().join("data"));
    for command in commands.clone() {
        let (code, said, error) = run(parent.path(), command.strip_prefix("tollgate ").unwrap());
        assert_eq!(code, Some(0), "{command}: {said}{error}");
    }
    assert_eq!(commands.count(), 5);
    let exported = |folder| run(parent.path(), &format!("store export {folder}")).1;
    assert_eq!(exported("data"), exported("moved"));
    assert_eq!(exported("data"), exported("restored"));
}
