//! Kills servers, PostgreSQL and workers at random, and starts others in their place.

use crate::asking::moment;
use crate::chance::Chance;
use crate::database::Database;
use crate::node::Node;
use crate::working::Workers;
use tokio::time::Instant;

pub(crate) struct Killing {
    pub(crate) database: Database,
    pub(crate) nodes: Vec<Node>,
    pub(crate) workers: Workers,
    pub(crate) chance: Chance,
}

impl Killing {
    pub(crate) async fn go_on_until(&mut self, end: Instant, faults: &mut Vec<String>) {
        while Instant::now() < end {
            moment(100 + self.chance.below(1_200)).await;
            match self.chance.below(10) {
                0..3 => self.kill_node(faults).await,
                3 => self.kill_all_nodes(faults).await,
                4..6 => self.kill_database().await,
                6..8 => self.kill_one_of_database(),
                _ => self.kill_worker(),
            }
        }
    }

    /// Ends the workers, and says who has ended by itself.
    pub(crate) async fn end(&mut self, faults: &mut Vec<String>) {
        self.workers.end(faults).await;
        faults.extend(self.nodes.iter_mut().filter_map(Node::ended));
    }

    async fn kill_node(&mut self, faults: &mut Vec<String>) {
        let at = self.chance.index(self.nodes.len());
        faults.extend(self.nodes[at].ended());
        self.nodes[at].kill();
        eprintln!("node {at} was killed");
        moment(self.chance.below(1_000)).await;
        self.nodes[at].start_again();
    }

    async fn kill_all_nodes(&mut self, faults: &mut Vec<String>) {
        faults.extend(self.nodes.iter_mut().filter_map(Node::ended));
        self.nodes.iter_mut().for_each(Node::kill);
        eprintln!("all nodes were killed");
        moment(self.chance.below(500)).await;
        self.nodes.iter_mut().for_each(Node::start_again);
    }

    async fn kill_database(&mut self) {
        self.database.kill();
        eprintln!("PostgreSQL was killed");
        moment(self.chance.below(1_500)).await;
        self.database.start_again();
    }

    fn kill_one_of_database(&mut self) {
        let chance = &mut self.chance;
        self.database.kill_one(|count| chance.index(count));
        eprintln!("a process of PostgreSQL was killed");
    }

    fn kill_worker(&mut self) {
        let at = self.chance.index(self.workers.count());
        self.workers.kill(at);
        eprintln!("a worker was killed");
    }
}
