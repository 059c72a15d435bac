//! Workers: they claim at whichever node answers and settle at whichever answers then, and may be killed
//! at any moment.

use crate::LEASE;
use crate::asking::{Asking, Nodes, moment};
use crate::chance::Chance;
use crate::record::{Came, Record, StartId};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// How long a worker that holds a call for long goes without saying so.
const RENEW_MS: u64 = 500;

pub(crate) struct Workers {
    tasks: Vec<JoinHandle<()>>,
    nodes: Nodes,
    record: Arc<Record>,
    chance: Chance,
}

impl Workers {
    pub(crate) fn start(count: usize, nodes: &Nodes, record: &Arc<Record>, seed: u64) -> Self {
        let chance = Chance::new(!seed);
        let mut workers =
            Self { tasks: Vec::new(), nodes: nodes.clone(), record: record.clone(), chance };
        workers.tasks = (0..count).map(|_| workers.one()).collect();
        workers
    }

    fn one(&mut self) -> JoinHandle<()> {
        let mut chance = || Chance::new(self.chance.below(u64::MAX));
        let (asking, own) = (self.nodes.asking(chance()), chance());
        tokio::spawn(Worker { asking, chance: own, record: self.record.clone() }.work())
    }

    /// One is gone, with all it holds, and another takes its place.
    pub(crate) fn kill(&mut self, at: usize) {
        let next = self.one();
        std::mem::replace(&mut self.tasks[at], next).abort();
    }

    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Ends them all, and says which of them could not go on.
    pub(crate) async fn end(&mut self, faults: &mut Vec<String>) {
        for task in self.tasks.drain(..) {
            task.abort();
            if let Err(error) = task.await
                && !error.is_cancelled()
            {
                faults.push(format!("a worker could not go on: {error}"));
            }
        }
    }
}

struct Worker {
    asking: Asking,
    chance: Chance,
    record: Arc<Record>,
}

impl Worker {
    async fn work(mut self) {
        loop {
            let claim = json!({"max": 1 + self.chance.below(3), "wait": "500ms"});
            let sent = self.record.now();
            let Ok(answer) = self.asking.ask("POST", "/v1/queues/q/claim", &claim).await else {
                moment(20).await;
                continue;
            };
            let calls = answer["calls"].as_array().unwrap();
            // All of them are started now, whatever becomes of whoever has them.
            let starts: Vec<(StartId, &Value)> = calls
                .iter()
                .map(|call| (self.record.started(sent, call), &call["lease"]))
                .collect();
            for (start, lease) in starts {
                self.make(start, lease).await;
            }
        }
    }

    /// Takes some time over a call, now and then more than it was given, and says what came of it.
    async fn make(&mut self, start: StartId, lease: &Value) {
        moment(self.chance.below(20)).await;
        if self.chance.is_one_in(60) && !self.hold(start, lease).await {
            return;
        }
        let came = if self.chance.is_one_in(15) { Came::Retry } else { Came::Done };
        let settlement = match came {
            Came::Done => json!([{"lease": lease, "outcome": "done"}]),
            Came::Retry => json!([{"lease": lease, "outcome": "retry", "after": "30ms"}]),
        };
        loop {
            let settle = self.record.settling(start, came);
            match self.asking.ask("POST", "/v1/settle", &settlement).await {
                Ok(answer) => return self.record.settled(start, settle, &answer["settled"][0]),
                Err(_) => moment(20).await,
            }
        }
    }

    /// Holds a call for longer than a lease lasts. Says whether it is still held.
    async fn hold(&mut self, start: StartId, lease: &Value) -> bool {
        let renew = json!({"leases": [lease], "for": format!("{}s", LEASE.as_secs())});
        for _ in 0..6 {
            moment(RENEW_MS).await;
            let sent = self.record.now();
            match self.asking.ask("POST", "/v1/leases/renew", &renew).await {
                Ok(answer) if answer["renewed"][0] == true => self.record.renewed(start, sent),
                Ok(_) => return false,
                Err(_) => {}
            }
        }
        true
    }
}
