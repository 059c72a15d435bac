//! Random histories told to nodes and to the naive reference: the same answers, one by one, also from
//! nodes that were closed and opened again. More of them with `PROPTEST_CASES=1000`.

use super::in_turn::InTurn;
use super::{node, settings};
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use tollgate_core::contract::Lanes;
use tollgate_core::contract::histories::steps::Fresh;
use tollgate_core::contract::histories::{
    Seen, Step, beginning, catalog, counted, everything, lasting, step, tell,
};
use tollgate_core::contract::kept::Kept;
use tollgate_core::lanes::naive::Naive;
use tollgate_core::{Now, Span};
use tollgate_stores::postgres::DatabaseSettings;

/// Histories of each property, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 12;
/// Steps of a history, at most.
const STEPS: usize = 120;
/// So small that most nodes begin with a snapshot and something behind it.
const SNAPSHOT_BYTES: u64 = 3_000;
/// Longer than any history.
const ALWAYS: Span = Span::from_days(300);

/// One thing that happens to a store.
#[derive(Debug, Clone)]
enum Move {
    Step(Step),
    /// All nodes are closed, and as many opened.
    Reopen,
}

/// Nodes of one store, and the reference.
struct Twins {
    settings: DatabaseSettings,
    clock: Arc<Mutex<Now>>,
    nodes: InTurn,
    naive: Kept<Naive>,
    /// Of both, the reference's first.
    seen: [Seen; 2],
    moves: usize,
}

impl Twins {
    async fn new(count: usize) -> Self {
        let seen: [Seen; 2] = Default::default();
        let now = seen[0].now;
        let clock = Arc::new(Mutex::new(now));
        let told = clock.clone();
        let time = Some(Arc::new(move || *told.lock()) as _);
        let snapshot_bytes = SNAPSHOT_BYTES;
        let settings = DatabaseSettings { time, snapshot_bytes, report: false, ..settings() };
        let nodes = InTurn::new(nodes(&settings, count).await);
        let naive = Kept::new(Naive::new(), now);
        let mut twins = Self { settings, clock, nodes, naive, seen, moves: 0 };
        for step in beginning() {
            let [naive, nodes] = twins.step(&step).await;
            assert_eq!(naive, nodes, "{step:?}");
        }
        twins
    }

    /// What both answer and tell, the reference first.
    async fn make(&mut self, made: &Move) -> [String; 2] {
        self.moves += 1;
        let answers = match made {
            Move::Step(step) => self.step(step).await,
            Move::Reopen => self.reopen().await,
        };
        let [one, other] = &self.seen;
        let told = [
            everything(&self.naive, one, self.moves).await,
            everything(&self.nodes, other, self.moves).await,
        ];
        // Each node counts what it does.
        let counted = match self.nodes.nodes.len() {
            1 => [counted(&self.naive).await, counted(&self.nodes).await],
            _ => Default::default(),
        };
        [0, 1].map(|which| format!("{}\n{}\n{}", answers[which], told[which], counted[which]))
    }

    async fn step(&mut self, step: &Step) -> [String; 2] {
        let [one, other] = &mut self.seen;
        self.naive.set_now(one.pass(step));
        *self.clock.lock() = other.pass(step);
        let naive = tell(&self.naive, step, one).await;
        let nodes = tell(&self.nodes, step, other).await;
        match step {
            Step::Queue(..) | Step::RemoveQueue(..) => self.ask_everywhere().await,
            // As the driver of each node does: who only looks at one lets nothing happen.
            Step::Wait(_) | Step::SetWall { .. } => {
                for node in &self.nodes.nodes {
                    node.advance().await.unwrap();
                }
            }
            _ => {}
        }
        [naive, nodes]
    }

    async fn reopen(&mut self) -> [String; 2] {
        let count = self.nodes.nodes.len();
        self.nodes.nodes.clear();
        self.nodes = InTurn::new(nodes(&self.settings, count).await);
        self.naive.begin_again();
        self.ask_everywhere().await;
        let [one, other] = &self.seen;
        [lasting(&self.naive, one).await, lasting(&self.nodes, other).await]
    }

    /// Several nodes are asked for both queues all the time, each of them: turns hang on who asks where.
    async fn ask_everywhere(&self) {
        let nodes = &self.nodes.nodes;
        let until = self.clock.lock().at.plus(ALWAYS);
        for queue in [0, 1].map(catalog::queue_name).into_iter().filter(|_| nodes.len() > 1) {
            self.naive.ask(queue.clone(), until).await.unwrap();
            for node in nodes {
                node.ask(queue.clone(), until).await.unwrap();
            }
        }
    }
}

async fn nodes(settings: &DatabaseSettings, count: usize) -> Vec<tollgate::store::Store> {
    let mut nodes = Vec::new();
    for _ in 0..count {
        nodes.push(node(settings).await);
    }
    nodes
}

/// A history as it is for several nodes. Each finds for itself who is senior, so that no call owes at
/// more than one meter; and all are asked for at all times.
fn of_several(mut step: Step) -> Step {
    let one_toll = |call: &mut Fresh| call.tolls.truncate(1);
    match &mut step {
        Step::Enqueue(calls) | Step::Park(calls, _) | Step::Come(_, calls) => {
            calls.iter_mut().for_each(one_toll);
        }
        Step::Settle { follow, .. } | Step::Revive { follow, .. } => {
            follow.iter_mut().for_each(one_toll);
        }
        Step::Count { then: call, .. } | Step::Consume { call, .. } => one_toll(call),
        // The queues that ask for tolls themselves ask for several.
        Step::Queue(_, spec) | Step::RemoveQueue(_, Some(spec)) => *spec %= 3,
        Step::Ask(..) => return Step::Wait(1),
        _ => {}
    }
    step
}

fn history(each: fn(Step) -> Step) -> impl Strategy<Value = Vec<Move>> {
    let step = step().prop_map(move |step| Move::Step(each(step)));
    vec(prop_oneof![24 => step, 1 => Just(Move::Reopen)], 1..STEPS)
}

fn compare(count: usize, histories: impl Strategy<Value = Vec<Move>>) {
    let config = ProptestConfig::with_source_file(file!());
    let is_told = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_told { config.cases } else { CASES };
    let config = ProptestConfig { cases, max_shrink_time: 60_000, ..config };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ran = TestRunner::new(config).run(&histories, |history| {
        runtime.block_on(async {
            let mut twins = Twins::new(count).await;
            for (number, made) in history.iter().enumerate() {
                let [naive, nodes] = twins.make(made).await;
                prop_assert_eq!(naive, nodes, "move {}: {:?}", number, made);
            }
            Ok(())
        })
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

#[test]
fn a_node_answers_as_the_reference_and_goes_on_so_when_it_is_opened_again() {
    compare(1, history(|step| step));
}

#[test]
fn nodes_that_are_asked_in_turn_answer_as_the_reference() {
    compare(3, history(of_several));
}
