//! The cases of every store of limits, on each of them; and each beside the reference.

use super::differential::{Pair, Step, step};
use super::memory::{MemoryCells, Time};
use super::{nats, postgres, redis};
use proptest::prelude::*;
use std::sync::Arc;
use tollgate::shared::Shared;
use tollgate::shared::cells::Cells;
use tollgate::{Now, Span, Timestamp};
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::meters_conformance;

struct Stage {
    store: Shared,
    now: Time,
}

impl MetersStage for Stage {
    type Store = Shared;

    fn store(&self) -> &Shared {
        &self.store
    }

    fn set_now(&mut self, now: Now) {
        *self.now.lock() = now;
    }
}

fn wait_for<F: Future>(doing: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(doing)
}

/// Does the same on a store and on the reference.
async fn compare(cells: Arc<dyn Cells>, now: Time, steps: &[Step]) {
    let store = Shared::new(cells);
    let set_now = move |at: Now| *now.lock() = at;
    let since = Timestamp::default().plus(Span::from_days(20_000));
    let mut pair = Pair::new(&store, &set_now, since).await;
    for step in steps {
        pair.step(step).await;
        pair.compare().await;
    }
}

/// Runs all cases on a store that is connected to so, and so many random sequences.
macro_rules! on {
    ($store:ident, $connected:expr, $sequences:expr) => {
        mod $store {
            use super::*;

            fn run<F: Future<Output = ()>>(case: impl FnOnce(Stage) -> F) {
                wait_for(async {
                    let now = Time::default();
                    let cells: Arc<dyn Cells> = $connected(now.clone()).await;
                    case(Stage { store: Shared::new(cells), now }).await;
                });
            }

            meters_conformance!(run);

            proptest! {
                #![proptest_config(ProptestConfig {
                    cases: $sequences, ..ProptestConfig::default()
                })]

                #[test]
                fn answers_as_the_reference_does(steps in prop::collection::vec(step(), 1..60)) {
                    wait_for(async {
                        let now = Time::default();
                        compare($connected(now.clone()).await, now, &steps).await;
                    });
                }
            }
        }
    };
}

async fn in_memory(now: Time) -> Arc<dyn Cells> {
    Arc::new(MemoryCells::new(now))
}

on!(in_memory, in_memory, 512);
on!(on_redis, redis::under, 48);
on!(on_redis_cluster, redis::cluster::under, 16);
on!(on_postgres, postgres::under, 24);
on!(on_nats, nats::under, 16);
