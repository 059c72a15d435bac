//! Nodes whose wall clocks are an hour behind, right, and an hour ahead: the database's clock decides.

use crate::asking::{Asking, Nodes};
use crate::database::Database;
use crate::node::{Node, Wrong};
use serde_json::{Value, json};
use std::process::Command;

/// How wrong the clocks are: by as much as a limit's period, so that it would show.
const WRONG: [i64; 3] = [-HOUR, 0, HOUR];
const HOUR: i64 = 3_600;
/// What each limit admits in an hour.
const LIMIT: usize = 20;
/// How many seconds before a full minute the database's clock begins: nodes start meanwhile.
const BEFORE: i64 = 12;

/// What the clock of this machine says.
fn clock(wrong: &Wrong) -> i64 {
    let said = wrong.put_before(Command::new("date").arg("+%s")).output().unwrap();
    String::from_utf8(said.stdout).unwrap().trim().parse().unwrap()
}

/// An instant that a clock of this machine will show in half an hour.
fn in_half_an_hour(wrong: &Wrong) -> String {
    let mut date = Command::new("date");
    date.args(["-u", "-d", "30 minutes", "+%Y-%m-%dT%H:%M:%SZ"]);
    let said = wrong.put_before(&mut date).output().unwrap();
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

/// Asks one after the other for what a limit admits; says how much that was.
async fn admitted(nodes: &mut [Asking], limit: &str) -> usize {
    let (asked, mut granted) = (json!({"tolls": [{"limit": limit}]}), 0);
    for at in 0..LIMIT * 2 {
        let node = &mut nodes[at % WRONG.len()];
        if node.status("POST", "/v1/consume", &asked).await == 200 {
            granted += 1;
        }
    }
    granted
}

async fn claimed(node: &mut Asking, wait: &str) -> Vec<Value> {
    let claimed = node.surely("POST", "/v1/queues/q/claim", &json!({"wait": wait})).await;
    claimed["calls"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_whose_clocks_are_an_hour_off_admit_what_is_allowed_and_fire_once() {
    let folder = tempfile::tempdir().unwrap();
    let library = Wrong::library(folder.path());
    let wrong = |seconds| Wrong { library: library.clone(), seconds };
    let is_wrong = clock(&wrong(HOUR)) - clock(&wrong(-HOUR)) >= 2 * HOUR - 1;
    assert!(is_wrong, "the clocks are not wrong");
    let until_minute = 60 - clock(&wrong(0)) % 60;
    let clock_of_database = wrong(until_minute - BEFORE);
    let database = Database::start_with(folder.path(), Some(&clock_of_database));
    let log = |at: i64| folder.path().join(format!("{at}.log"));
    let url = database.url();
    let nodes: Vec<Node> =
        WRONG.iter().map(|at| Node::start_with(&url, &log(*at), Some(wrong(*at)))).collect();
    let asked = Nodes::new(nodes.iter().map(Node::port).collect());
    let mut nodes_asked: Vec<Asking> = (0..WRONG.len()).map(|at| asked.asking_one(at)).collect();

    nodes_asked[2].surely("PUT", "/v1/queues/q", &json!({"lease": "30s"})).await;
    let schedule = json!({"queue": "q", "cron": "* * * * *", "call": {"lane": "a"}});
    nodes_asked[0].surely("PUT", "/v1/schedules/s", &schedule).await;
    let later = in_half_an_hour(&clock_of_database);
    let later = json!({"queue": "q", "at": later, "call": {"lane": "later"}});
    nodes_asked[1].surely("PUT", "/v1/schedules/later", &later).await;
    for rule in ["token_bucket", "fixed_window", "sliding_window"] {
        let (limit, path) =
            (json!({"rule": rule, "limit": LIMIT, "per": "1h"}), format!("/v1/limits/{rule}"));
        nodes_asked[1].surely("PUT", &path, &limit).await;
        assert_eq!(admitted(&mut nodes_asked, rule).await, LIMIT, "{rule}");
    }
    let fired = claimed(&mut nodes_asked[2], "25s").await;
    assert_eq!(fired.len(), 1, "the schedule did not fire when the database's clock said so");
    let settled = json!({"lease": fired[0]["lease"], "outcome": "done"});
    let settled = nodes_asked[0].surely("POST", "/v1/settle", &settled).await;
    assert_eq!(settled["settled"][0], json!({"settled": true}), "a lease is good everywhere");
    for node in &mut nodes_asked {
        let more = claimed(node, "1s").await;
        assert_eq!(more, [] as [Value; 0], "one fired twice, or before its time");
    }
}
