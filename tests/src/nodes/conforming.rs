//! Every case of the contracts, in a schema of its own: on one node, and on three that are asked in turn.

use super::in_turn::InTurn;
use super::{node, settings};
use parking_lot::Mutex;
use std::any::type_name_of_val;
use std::sync::Arc;
use tollgate::Now;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_stores::postgres::DatabaseSettings;

/// Cases of what each node tells of itself: what it counts, what it is told to do, what it tells as it
/// happens, and where it goes on in a walk over what it has.
const OF_ONE_NODE: [&str; 5] = [
    "::totals::",
    "::busiest::",
    "::driving::",
    "::told::",
    "::meters_come_by_partition_and_the_global_one_first",
];

struct Stage {
    store: InTurn,
    now: Arc<Mutex<Now>>,
}

impl MetersStage for Stage {
    type Store = InTurn;

    fn store(&self) -> &InTurn {
        &self.store
    }

    fn set_now(&mut self, now: Now) {
        *self.now.lock() = now;
    }
}

fn run_on<F: Future<Output = ()>>(count: usize, case: impl FnOnce(Stage) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let now = Arc::<Mutex<Now>>::default();
        let clock = now.clone();
        let time = Some(Arc::new(move || *clock.lock()) as _);
        let settings = DatabaseSettings { time, ..settings() };
        let mut nodes = Vec::new();
        for _ in 0..count {
            nodes.push(node(&settings).await);
        }
        case(Stage { store: InTurn::new(nodes), now }).await;
    });
}

mod one_node {
    use super::{Stage, run_on};

    fn run<F: Future<Output = ()>>(case: impl FnOnce(Stage) -> F) {
        run_on(1, case);
    }

    tollgate_core::lanes_conformance!(run);
}

mod three_nodes {
    use super::{OF_ONE_NODE, Stage, run_on, type_name_of_val};

    fn run<F: Future<Output = ()>>(case: impl FnOnce(Stage) -> F) {
        let is_of_one = OF_ONE_NODE.iter().any(|part| type_name_of_val(&case).contains(part));
        run_on(if is_of_one { 1 } else { 3 }, case);
    }

    tollgate_core::lanes_conformance!(run);
}
