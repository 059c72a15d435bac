//! A data folder that is copied into a database from the shell, and served from there.

use crate::asking::Nodes;
use crate::database::Database;
use crate::node::Node;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use tollgate::lanes::{Act, LaneName, Lanes, NewCall, QueueName, QueueSpec};
use tollgate::store::Store;
use tollgate::{Clock, SystemClock};

/// Runs a command: its code, and what it said on both outputs.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.env_remove("TOLLGATE_PREFIX");
    let Output { status, stdout, stderr } = command.args(arguments).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

/// Makes a store with one call, and closes it.
async fn make(folder: &Path) {
    let clock = SystemClock::new();
    let store = Store::open(folder, Arc::new(move || clock.both())).unwrap().store;
    let queue = QueueName::new("q").unwrap();
    let call = NewCall::new(queue.clone(), LaneName::new("a").unwrap());
    let call = NewCall { payload: (*b"hello").into(), ..call };
    store.define_queue(queue, QueueSpec::default()).await.unwrap().unwrap();
    let enqueue = Act { enqueue: vec![call], ..Act::default() };
    assert!(store.act(vec![enqueue]).await.unwrap()[0].is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_folder_held_is_served_from_the_database_it_was_copied_to() {
    let folder = tempfile::tempdir().unwrap();
    let (database, data) = (Database::start(folder.path()), folder.path().join("data"));
    make(&data).await;
    let (url, data) = (database.url(), data.to_str().unwrap());
    let (code, said) = run(&["store", "copy", data, &url, "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["schema"], &said["calls"]["waiting"]), (&"tollgate".into(), &1.into()));

    let (code, said) = run(&["store", "copy", data, &url]);
    assert!(code == Some(1) && said.contains("is in use already"), "{code:?}: {said}");
    let (code, said) = run(&["store", "copy", data, &url, "--prefix", "other"]);
    assert!(
        code == Some(0) && said.contains("127.0.0.1") && said.contains("schema other"),
        "{said}"
    );
    let (code, said) = run(&["store", "copy", data, "redis://:hush@a"]);
    assert!(code == Some(2) && !said.contains("hush"), "{code:?}: {said}");
    let (code, said) = run(&["store", "copy", "missing", &url]);
    assert!(code == Some(2) && said.contains("there is no folder"), "{code:?}: {said}");

    let node = Node::start(&url, &folder.path().join("log"));
    let mut asking = Nodes::new(vec![node.port()]).asking_one(0);
    let claimed = asking.surely("POST", "/v1/queues/q/claim", &json!({})).await;
    let call = &claimed["calls"][0];
    assert_eq!(
        (&call["lane"], &call["body_base64"]),
        (&json!("a"), &json!("aGVsbG8=")),
        "{claimed}"
    );
}
