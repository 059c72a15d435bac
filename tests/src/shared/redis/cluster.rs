//! Redis Cluster: one prefix is one slot, and so one server of it.

use super::super::cells::{self, Add, cell, change, look};
use super::super::memory::Time;
use super::{add_one, settings};
use crate::servers::cluster::{RedisCluster, say, shared};
use std::sync::Arc;
use std::time::Duration;
use tollgate_core::contract::StoreError;
use tollgate_stores::redis::{RedisCells, Settings};
use tollgate_stores::shared::cells::{Cells, Kind};

/// A store of its own, under a test's time.
pub(in super::super) async fn under(now: Time) -> Arc<dyn Cells> {
    let time: Option<Arc<dyn Fn() -> tollgate_core::Now + Send + Sync>> =
        Some(Arc::new(move || *now.lock()));
    Arc::new(RedisCells::connect(shared(), Settings { time, ..settings() }).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_among_many() {
    let (settings, mut connections) = (settings(), Vec::<Arc<dyn Cells>>::new());
    for _ in 0..3 {
        connections.push(Arc::new(RedisCells::connect(shared(), settings.clone()).await.unwrap()));
    }
    cells::no_change_is_lost_among_many(&connections).await;
}

#[tokio::test]
async fn who_knows_one_server_reaches_all_of_them() {
    let cluster = RedisCluster::start();
    let mut reached = [false; 3];
    for number in 0.. {
        let settings = Settings { prefix: format!("p{number}"), ..settings() };
        let (owner, _) = cluster.owner(&settings.prefix);
        if reached[owner] {
            continue;
        }
        let cells = RedisCells::connect(&cluster.url(), settings.clone()).await.unwrap();
        add_one(&cells).await.unwrap();
        let key = format!("{{{}}}:m:1:a", settings.prefix);
        let kept: String = say(&cluster.nodes[owner], &["GET", &key]);
        assert_eq!(kept, "1");
        reached[owner] = true;
        if reached == [true; 3] {
            break;
        }
    }
}

#[tokio::test]
async fn one_server_of_several_that_are_named_may_be_away() {
    let cluster = RedisCluster::start();
    let nobody = crate::servers::free_port();
    let url = format!("redis://127.0.0.1:{nobody},127.0.0.1:{}", cluster.nodes[1].port());
    let cells = RedisCells::connect(&url, settings()).await.unwrap();
    add_one(&cells).await.unwrap();
}

/// Hands a slot with all that is in it from one server to another.
fn move_slot(cluster: &RedisCluster, slot: &str, from: usize, to: usize) {
    let (from, to) = (&cluster.nodes[from], &cluster.nodes[to]);
    let [id_from, id_to]: [String; 2] = [from, to].map(|node| say(node, &["CLUSTER", "MYID"]));
    say::<()>(to, &["CLUSTER", "SETSLOT", slot, "IMPORTING", &id_from]);
    say::<()>(from, &["CLUSTER", "SETSLOT", slot, "MIGRATING", &id_to]);
    let keys: Vec<String> = say(from, &["CLUSTER", "GETKEYSINSLOT", slot, "1000"]);
    let port = to.port().to_string();
    let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
    migrate.extend(keys.iter().map(String::as_str));
    say::<String>(from, &migrate);
    for node in [to, from] {
        say::<()>(node, &["CLUSTER", "SETSLOT", slot, "NODE", &id_to]);
    }
}

#[tokio::test]
async fn a_slot_that_moves_takes_what_was_spent_along() {
    let cluster = RedisCluster::start();
    let settings = settings();
    let (owner, slot) = cluster.owner(&settings.prefix);
    let cells = RedisCells::connect(&cluster.url(), settings).await.unwrap();
    add_one(&cells).await.unwrap();
    let next = (owner + 1) % 3;
    move_slot(&cluster, &slot, owner, next);
    // The client still takes the old server for its owner, is told that it is not, and asks the other.
    let mut add = Add::new(&[1]);
    change(&cells, &[cell(Kind::Meter, "a")], &mut add).await;
    assert_eq!(add.before, [1]);
    assert_eq!(look(&cells, &[cell(Kind::Meter, "a")]).await, [Some(b"2".to_vec())]);
}

#[tokio::test]
async fn while_its_server_stands_still_it_is_out_of_reach_and_others_are_not() {
    let cluster = RedisCluster::start();
    let prefixes = (0..).map(|number| format!("p{number}"));
    let mut of: [Option<String>; 3] = [const { None }; 3];
    for prefix in prefixes {
        let (owner, _) = cluster.owner(&prefix);
        of[owner].get_or_insert(prefix);
        if of.iter().all(Option::is_some) {
            break;
        }
    }
    let mut stores = Vec::new();
    for prefix in of.into_iter().flatten() {
        let settings = Settings { prefix, deadline: Duration::from_millis(500), ..settings() };
        let cells = RedisCells::connect(&cluster.url(), settings).await.unwrap();
        add_one(&cells).await.unwrap();
        stores.push(cells);
    }
    cluster.nodes[2].server.stand_still();
    let told = add_one(&stores[2]).await;
    assert!(matches!(told, Err(StoreError::Unreachable { .. })), "{told:?}");
    add_one(&stores[0]).await.unwrap();
    cluster.nodes[2].server.go_on();
    add_one(&stores[2]).await.unwrap();
}
