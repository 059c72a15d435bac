//! Data folders from the shell: checking one, and torturing one.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::{TempDir, tempdir};
use tollgate::lanes::{Act, Claim, LaneName, Lanes, NewCall, Order, QueueName, QueueSpec};
use tollgate::store::Store;
use tollgate::{Clock, Span, SystemClock};

/// Runs a command: its code, and what it said on both outputs.
fn run(arguments: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let Output { status, stdout, stderr } = command.args(arguments).arg(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn check(folder: &Path) -> (Option<i32>, String, String) {
    run(&["store", "check"], folder)
}

/// A folder with two calls that wait and one in flight, and its store.
fn opened() -> (TempDir, Store) {
    let (folder, clock) = (tempdir().unwrap(), SystemClock::new());
    let store = Store::open(folder.path(), Arc::new(move || clock.both())).unwrap().store;
    let queue = QueueName::new("q").unwrap();
    let call = NewCall::new(queue.clone(), LaneName::new("a").unwrap());
    let call = NewCall { payload: [7; 300].into(), ..call };
    let spec = QueueSpec { order: Order::Parallel(9), ..QueueSpec::default() };
    let enqueue = Act { enqueue: vec![call.clone(), call.clone(), call], ..Act::default() };
    let claim = Claim { queue: queue.clone(), most: 1, lease: None, asks: Span::ZERO };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        store.define_queue(queue, spec).await.unwrap().unwrap();
        assert!(store.act(vec![enqueue]).await.unwrap()[0].is_ok());
        assert_eq!(store.claim(claim).await.unwrap().len(), 1);
    });
    (folder, store)
}

/// The same, closed.
fn closed() -> TempDir {
    opened().0
}

/// Every file but the lock, which names whoever held it last.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.ends_with("lock"));
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn a_sound_folder_is_described_and_not_changed() {
    let folder = closed();
    let before = files(folder.path());
    let (code, said, error) = check(folder.path());
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(said.contains("is sound") && said.contains("2 waiting, 1 in flight"), "{said}");
    let (code, said, _) = run(&["store", "check", "--json"], folder.path());
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["is_sound"]), (Some(0), &Value::Bool(true)));
    assert_eq!((&said["calls"]["waiting"], &said["calls"]["in_flight"]), (&2.into(), &1.into()));
    assert_eq!((&said["queues"], &said["checkpoint"]), (&1.into(), &Value::Null));
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let (folder, store) = opened();
    let (code, _, error) = check(folder.path());
    assert_eq!(code, Some(2), "{error}");
    let process = format!("in use by process {}", std::process::id());
    assert!(error.contains(&process), "{error}");
    drop(store);
}

#[test]
fn a_flipped_bit_is_found_with_file_and_offset() {
    let folder = closed();
    let path = files(folder.path()).into_keys().next().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 4;
    fs::write(&path, bytes).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let (code, said, _) = check(folder.path());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("{name} is damaged at offset ")), "{said}");
    let (code, said, _) = run(&["store", "check", "--json"], folder.path());
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["is_sound"]), (Some(1), &Value::Bool(false)));
    assert_eq!(said["file"], name);
}

#[test]
fn a_torn_tail_is_said_and_is_no_damage() {
    let folder = closed();
    let path = files(folder.path()).into_keys().next_back().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([9; 40]);
    fs::write(&path, bytes).unwrap();
    let before = files(folder.path());
    let (code, said, _) = check(folder.path());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("torn tail: 40 bytes at offset "), "{said}");
    assert_eq!(files(folder.path()), before);
}

#[test]
fn what_is_no_data_folder_is_not_made_one() {
    let folder = tempdir().unwrap();
    let (missing, file) = (folder.path().join("missing"), folder.path().join("file"));
    fs::write(&file, "").unwrap();
    for (path, said) in [
        (missing.as_path(), "there is no folder"),
        (&file, "not a directory"),
        (folder.path(), "holds no store"),
    ] {
        let (code, _, error) = check(path);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(said) && error.contains(path.to_str().unwrap()), "{error}");
    }
    let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(left.collect::<Vec<_>>(), [file]);
}

#[test]
fn a_short_torture_loses_nothing_and_leaves_nothing() {
    let folder = tempdir().unwrap();
    let arguments = ["torture", "--rounds", "5", "--seconds", "60", "--json"];
    let (code, said, error) = run(&arguments, folder.path());
    assert_eq!(code, Some(0), "{said}{error}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["kills"], &said["is_sound"]), (&5.into(), &Value::Bool(true)), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{error}");
}
