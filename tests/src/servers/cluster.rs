//! Redis Cluster: three servers that share the slots of keys, for all tests, or of one test's own.

use super::free_port;
use super::redis::RedisServer;
use redis::{Connection, FromRedisValue};
use std::sync::LazyLock;
use std::sync::mpsc;
use std::time::Duration;

/// Servers of a cluster: with fewer than three none is a majority.
const NODES: usize = 3;
/// All slots there are.
const SLOTS: usize = 16_384;
/// How often it is looked whether the servers have found each other, and after how long again.
const LOOKS_MAX: usize = 1_000;
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The url of one server of a cluster that all tests share: each keeps to a prefix of its own.
pub(crate) fn shared() -> &'static str {
    static SHARED: LazyLock<(String, RedisCluster)> = LazyLock::new(|| {
        let cluster = RedisCluster::start();
        (cluster.url(), cluster)
    });
    &SHARED.0
}

/// A cluster of one test's own, empty at the start.
pub(crate) struct RedisCluster {
    pub(crate) nodes: Vec<RedisServer>,
}

impl RedisCluster {
    pub(crate) fn start() -> Self {
        let buses: Vec<String> = (0..NODES).map(|_| free_port().to_string()).collect();
        let start = |bus: &String| {
            let settings = ["--cluster-enabled", "yes", "--cluster-port", bus];
            RedisServer::start_on(free_port(), &settings)
        };
        let cluster = Self { nodes: buses.iter().map(start).collect() };
        for (place, node) in cluster.nodes.iter().enumerate() {
            let (first, end) = (SLOTS * place / NODES, SLOTS * (place + 1) / NODES);
            let (first, last) = (first.to_string(), (end - 1).to_string());
            say::<()>(node, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            say::<()>(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
        }
        for (node, bus) in cluster.nodes.iter().zip(&buses).skip(1) {
            let port = node.port().to_string();
            say::<()>(&cluster.nodes[0], &["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
        }
        cluster.nodes.iter().for_each(await_whole);
        cluster
    }

    /// The url of the first of its servers.
    pub(crate) fn url(&self) -> String {
        self.nodes[0].url()
    }

    /// Which of the servers has a key, and its slot.
    pub(crate) fn owner(&self, key: &str) -> (usize, String) {
        let slot: usize = say(&self.nodes[0], &["CLUSTER", "KEYSLOT", key]);
        let owner = (0..NODES).find(|place| slot < SLOTS * (place + 1) / NODES).unwrap();
        (owner, slot.to_string())
    }
}

/// Until a server knows all others, and that every slot is somebody's.
fn await_whole(node: &RedisServer) {
    let (_never, clock) = mpsc::channel::<()>();
    for _ in 0..LOOKS_MAX {
        let said: String = say(node, &["CLUSTER", "INFO"]);
        let has = |line: &str| said.lines().any(|other| other.trim() == line);
        if has("cluster_state:ok") && has("cluster_known_nodes:3") && has("cluster_size:3") {
            return;
        }
        let _ = clock.recv_timeout(LOOK_EVERY);
    }
    panic!("the servers of the cluster do not find each other");
}

/// What one server says to a command.
pub(crate) fn say<T: FromRedisValue>(node: &RedisServer, command: &[&str]) -> T {
    let client = redis::Client::open(node.url()).unwrap();
    let mut connection: Connection = client.get_connection().unwrap();
    redis::cmd(command[0]).arg(&command[1..]).query(&mut connection).unwrap()
}
