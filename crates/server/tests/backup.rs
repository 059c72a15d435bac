//! Backups from the shell: of a folder in use, and back.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::tempdir;
use tokio::runtime::Runtime;
use tollgate::embedded::{Disk, LogSettings, RealDisk, StoreSettings, contents};
use tollgate::lanes::{
    Act, CallId, Claim, Effect, Kept, LaneName, Lanes, Lease, NewCall, Order, QueueName, QueueSpec,
    Settle, Settlement,
};
use tollgate::store::Store;
use tollgate::{Clock, Span, SystemClock};

/// Runs a command: its code, and what it said on both outputs.
fn run(arguments: &[&str], paths: [&Path; 2]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let Output { status, stdout, stderr } = command.args(arguments).args(paths).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

/// A store with small segments and frequent checkpoints.
fn opened(folder: &Path) -> Store {
    let clock = SystemClock::new();
    let log = LogSettings { segment_bytes: 32 << 10 };
    let settings = StoreSettings { log, checkpoint_bytes: 64 << 10, ..StoreSettings::default() };
    let disk = Arc::new(RealDisk::open(folder).unwrap());
    let store = Store::on(disk, settings, Arc::new(move || clock.both())).unwrap().store;
    let spec = QueueSpec { order: Order::Parallel(1_000), ..QueueSpec::default() };
    runtime().block_on(store.define_queue(queue(), spec)).unwrap().unwrap();
    store
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn enqueue(store: &Store, bytes: usize) -> CallId {
    let call = NewCall::new(queue(), LaneName::new("a").unwrap());
    let call = NewCall { payload: vec![7; bytes].into(), ..call };
    let act = Act { enqueue: vec![call], ..Act::default() };
    runtime().block_on(store.act(vec![act])).unwrap().remove(0).unwrap().enqueued[0]
}

/// Starts up to so many calls.
fn start(store: &Store, most: usize) -> Vec<Lease> {
    let claim = Claim { queue: queue(), most, lease: None, asks: Span::ZERO };
    let claimed = runtime().block_on(store.claim(claim)).unwrap();
    claimed.iter().map(|claimed| claimed.started.lease).collect()
}

fn end(store: &Store, leases: &[Lease]) {
    let done = |lease: &Lease| {
        let (lease, settlement) = (*lease, Settlement::Done);
        Settle::new(lease, settlement)
    };
    let act = Act { settle: leases.iter().map(done).collect(), ..Act::default() };
    assert!(runtime().block_on(store.act(vec![act])).unwrap()[0].is_ok());
}

/// The calls in a folder that nobody uses, with the lengths of their bodies.
fn calls(folder: &Path) -> BTreeMap<CallId, usize> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::existing(folder).unwrap());
    let facts = contents(&disk).unwrap().facts.into_iter();
    let calls = facts.filter_map(|fact| match fact {
        Effect::Kept(Kept::Call { id, call, .. }) => Some((id, call.payload.body().len())),
        _ => None,
    });
    calls.collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_folder_in_use_is_copied_with_all_that_was_answered() {
    let parent = tempdir().unwrap();
    let folder = parent.path().join("data");
    let store = opened(&folder);
    let (live, is_over) = (Mutex::new(BTreeMap::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                let bytes = round % 7 * 300;
                let id = enqueue(&store, bytes);
                live.lock().unwrap().insert(id, bytes);
                if round % 3 == 0 && round > 100 {
                    let leases = start(&store, 3);
                    let is_started = |id: &CallId| leases.iter().any(|lease| lease.call == *id);
                    // Before they end: what is not here may be in a copy, or not.
                    live.lock().unwrap().retain(|id, _| !is_started(id));
                    end(&store, &leases);
                }
            }
        });
        for round in 0..30 {
            while live.lock().unwrap().len() < 20 {
                thread::yield_now();
            }
            let before = live.lock().unwrap().clone();
            let target = parent.path().join(format!("copy-{round}"));
            let (code, said, error) = run(&["backup", "--json"], [&folder, &target]);
            assert_eq!(code, Some(0), "{said}{error}");
            let found = calls(&target);
            let after = live.lock().unwrap().clone();
            for (id, bytes) in before {
                if found.contains_key(&id) || after.contains_key(&id) {
                    assert_eq!(found.get(&id), Some(&bytes), "{id:?} of copy {round}");
                }
            }
            let said: Value = serde_json::from_str(&said).unwrap();
            let told = &said["calls"];
            let told = told["waiting"].as_u64().unwrap() + told["in_flight"].as_u64().unwrap();
            assert_eq!(told, found.len() as u64, "{said}");
        }
        is_over.store(true, Ordering::Release);
    });
}

#[test]
fn what_was_restored_is_what_was_copied() {
    let parent = tempdir().unwrap();
    let [folder, copy, again] = ["data", "copy", "again"].map(|name| parent.path().join(name));
    let store = opened(&folder);
    let id = enqueue(&store, 1_234);
    assert_eq!(run(&["backup"], [&folder, &copy]).0, Some(0));
    end(&store, &start(&store, 1));
    // An empty folder is as good as none.
    fs::create_dir(&again).unwrap();
    let (code, said, error) = run(&["restore"], [&copy, &again]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(said.contains("1 waiting, 0 in flight") && said.contains(" bytes, in "), "{said}");
    assert_eq!(calls(&again), BTreeMap::from([(id, 1_234)]));
    assert_eq!(start(&opened(&again), 1)[0].call, id, "it goes on from there");
    assert_eq!(names(parent.path()), ["again", "copy", "data"]);
}

#[test]
fn a_folder_that_is_taken_or_in_use_is_refused_and_left_alone() {
    let parent = tempdir().unwrap();
    let [folder, copy, taken] = ["data", "copy", "taken"].map(|name| parent.path().join(name));
    let store = opened(&folder);
    assert_eq!(run(&["backup"], [&folder, &copy]).0, Some(0));
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("letter"), "dear").unwrap();
    for (command, from, to, reason) in [
        ("backup", &folder, &taken, "is not empty"),
        ("restore", &copy, &taken, "is not empty"),
        ("restore", &copy, &folder, "is in use by process"),
    ] {
        let (code, said, error) = run(&[command, "--json"], [from, to]);
        assert_eq!(code, Some(1), "{said}{error}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert!(said["reason"].as_str().unwrap().contains(reason), "{said}");
    }
    drop(store);
    let (code, said, _) = run(&["restore"], [&copy, &folder]);
    assert!(code == Some(1) && said.contains("is not empty"), "{said}");
    assert_eq!(names(&taken), ["letter"]);
    assert_eq!(names(parent.path()), ["copy", "data", "taken"]);
}

#[test]
fn a_copy_that_is_not_sound_is_not_left_behind() {
    let parent = tempdir().unwrap();
    let [folder, copy] = ["data", "copy"].map(|name| parent.path().join(name));
    let store = opened(&folder);
    enqueue(&store, 300);
    drop(store);
    let journal = names(&folder).into_iter().find(|name| name.starts_with("journal-")).unwrap();
    let mut bytes = fs::read(folder.join(&journal)).unwrap();
    bytes[100] ^= 4;
    fs::write(folder.join(&journal), bytes).unwrap();
    let (code, said, error) = run(&["backup"], [&folder, &copy]);
    assert_eq!(code, Some(1), "{said}{error}");
    assert!(said.contains(&format!("{journal} is damaged at offset ")), "{said}");
    let (code, _, error) = run(&["backup"], [parent.path(), &copy]);
    assert!(code == Some(2) && error.contains("holds no store"), "{error}");
    let missing = parent.path().join("missing");
    let (code, _, error) = run(&["backup"], [&missing, &copy]);
    assert!(code == Some(2) && error.contains("there is no folder"), "{error}");
    assert_eq!(names(parent.path()), ["data"]);
}
