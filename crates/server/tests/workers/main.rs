//! Workers in three languages drain one queue of the real server together, and one of them is killed.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::expect_used, reason = "a test that cannot go on fails, and says why")]

mod peer;
mod told;
mod upstream;
mod worker;

use peer::Peer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use told::Told;
use tollgate::{Clock, SystemClock};
use upstream::{Arrival, Upstream};

const LANES: u64 = 20;
const CALLS_PER_LANE: u64 = 50;
const CALLS: u64 = LANES * CALLS_PER_LANE;
/// Calls that may start per second, and at once. Three workers could do more.
const RATE: u64 = 300;
const BURST: u64 = 20;
/// A worker is killed when so many calls have arrived.
const KILLED_AFTER: usize = 300;
/// Longest time for it all: it takes some four seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that does not outlive the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(command: &mut Command, cure: &str) -> Process {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let spawned = command.spawn();
    assert!(spawned.is_ok(), "{command:?}: {spawned:?}; {cure}");
    Process(spawned.unwrap())
}

/// The server on a folder, and where it listens.
fn serve(folder: &Path) -> (Process, SocketAddr) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder);
    command.env_remove("TOLLGATE_TOKEN").env("TOLLGATE_LOG", "warn");
    let mut server = spawn(&mut command, "it is built with the tests");
    let printed = BufReader::new(server.0.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    (server, printed.strip_prefix("tollgate listens on http://").unwrap().parse().unwrap())
}

/// A worker that is a script, and what it prints at its end.
fn script(program: &str, file: &str, [tollgate, upstream]: [SocketAddr; 2]) -> Process {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/workers").join(file);
    let mut command = Command::new(program);
    command.arg(path).args([tollgate.to_string(), upstream.to_string()]).args(["jobs", program]);
    spawn(
        &mut command,
        "Node 18 and Python 3.9 or newer are wanted: apt-get install nodejs python3",
    )
}

/// Defines the limit and the queue, paused, and hands in the calls, from lane to lane; their ids.
fn hand_in(tollgate: SocketAddr) -> Vec<String> {
    let mut tollgate = Peer::connect(tollgate);
    let rule = json!({"rule": "token_bucket", "limit": RATE, "per": "1s", "burst": BURST});
    tollgate.succeed("PUT", "/v1/limits/upstream", &rule);
    let queue = json!({"order": "strict", "lease": "2s", "tolls": [{"limit": "upstream"}]});
    tollgate.succeed("PUT", "/v1/queues/jobs", &queue);
    tollgate.succeed("POST", "/v1/queues/jobs/pause", &Value::Null);
    let calls = (0..CALLS).map(|number| {
        let (lane, sequence) = (format!("lane {}", number % LANES), number / LANES);
        json!({"lane": lane, "body": {"sequence": sequence}})
    });
    let answer = tollgate.succeed("POST", "/v1/queues/jobs/calls", &calls.collect());
    let ids = answer["ids"].as_array().unwrap().iter();
    ids.map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Lets the calls start once so many workers are there, so that each has its part.
fn resume_when_asked_by(workers: u64, tollgate: SocketAddr) {
    let (mut tollgate, clock) = (Peer::connect(tollgate), SystemClock::new());
    let begun = clock.now();
    while tollgate.succeed("GET", "/v1/queues/jobs", &Value::Null)["asking"] != workers {
        assert!(clock.now().since(begun) < PATIENCE.into(), "not all workers ask for calls");
    }
    tollgate.succeed("POST", "/v1/queues/jobs/resume", &Value::Null);
}

/// Waits for a worker's end: how many of its settlements were accepted, and how many refused.
fn ended(mut worker: Process) -> [u64; 2] {
    let mut printed = String::new();
    worker.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(worker.0.wait().unwrap().success(), "a worker failed: {printed}");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    ["settled", "refused"].map(|name| printed[name].as_u64().unwrap())
}

/// Drains the queue with all three, and kills one of them while it has calls.
fn drained(tollgate: SocketAddr) -> Upstream {
    let (upstream, holds) = Upstream::start(tollgate, "python3", KILLED_AFTER);
    let addresses = [tollgate, upstream.address];
    let node = script("node", "worker.mjs", addresses);
    let python = script("python3", "worker.py", addresses);
    let (ends, heard) = channel();
    let rust = ends.clone();
    thread::spawn(move || rust.send(worker::work(addresses[0], addresses[1], "jobs")));
    thread::spawn(move || ends.send(ended(node)));
    resume_when_asked_by(3, tollgate);
    holds.recv_timeout(PATIENCE).expect("the worker in Python makes no call");
    drop(python);
    // A sender that panicked is gone without a word.
    let end = || heard.recv_timeout(PATIENCE).expect("a worker failed, or does not end");
    for [settled, refused] in [end(), end()] {
        assert!(settled > 0, "a worker did nothing, and {refused} of its settlements were refused");
    }
    upstream
}

#[test]
fn workers_in_three_languages_drain_one_queue_though_one_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (server, tollgate) = serve(folder.path());
    let ids = hand_in(tollgate);
    let upstream = drained(tollgate);
    let (arrivals, held) = (upstream.arrivals(), upstream.held());

    let workers: BTreeSet<&str> = arrivals.iter().map(|found| found.worker.as_str()).collect();
    assert_eq!(workers, BTreeSet::from(["node", "python3", "rust"]));
    let late = upstream.late().expect("the call of the killed worker did not come again");
    assert_eq!(late["settled"][0]["settled"], false, "{late}");
    assert_eq!(late["settled"][0]["problem"]["code"], "lease_lost", "{late}");
    let state = Peer::connect(tollgate).succeed("GET", "/v1/queues/jobs", &Value::Null);
    for none in ["waiting", "in_flight", "dead"] {
        assert_eq!(state[none], 0, "{state}");
    }

    let told = Told::read(server, folder.path());
    told.each_call_is_done_once(&ids);
    told.starts_keep_the_limit(RATE, BURST);
    told.starts_keep_the_order(&ids, LANES);
    assert!(told.crashed(&held.id), "the killed worker's lease did not run out");
    arrivals_keep_the_order(&arrivals, &told);
}

/// In each lane calls arrive in order, and nothing behind a call arrives before it was made by who
/// settled it: one that came back from the killed worker was made again first.
fn arrivals_keep_the_order(arrivals: &[Arrival], told: &Told) {
    let mut lanes: BTreeMap<&str, u64> = BTreeMap::new();
    for arrival in arrivals {
        // The first arrival of the next call, or one of a call that was made before.
        let next = lanes.entry(&arrival.lane).or_default();
        assert!(arrival.sequence <= *next, "{arrival:?} came before {next}");
        if arrival.sequence == *next && told.done_by(&arrival.id) == Some(arrival.attempt) {
            *next += 1;
        }
    }
    assert_eq!(lanes.len() as u64, LANES);
    assert!(lanes.values().all(|next| *next == CALLS_PER_LANE), "{lanes:?}");
}
