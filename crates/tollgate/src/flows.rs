//! Flows: durable step machines, with the limit on the step.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use tollgate::flows::{Machine, NewRun, Step, StepError, StepOutcome, done, next};
//! use tollgate::{Limit, Tollgate, toll};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Order {
//!     tenant: String,
//!     cents: u64,
//! }
//!
//! struct Checkout;
//!
//! impl Machine for Checkout {
//!     const NAME: &'static str = "checkout";
//!     type State = Order;
//!
//!     async fn step(&self, step: Step<Order>) -> Result<StepOutcome, StepError> {
//!         let order = step.state;
//!         Ok(match step.name.as_str() {
//!             "prepare" => {
//!                 let tenant = order.tenant.clone();
//!                 next("charge", order).pays(toll("stripe", &tenant))
//!             }
//!             // Here the call to Stripe is made, at most as often as the limit says.
//!             _ => done(order.cents),
//!         })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! let gate = Tollgate::open(folder.path()).await?;
//! gate.limit("stripe", Limit::per_second(100)).await?;
//! let order = Order { tenant: "acme".to_owned(), cents: 4_200 };
//! let run = gate.flows().start(NewRun::new::<Checkout>("prepare", order)).await?.run;
//! gate.flows().worker(Checkout).until_drained().run().await?;
//! let ended = gate.flows().ended(&run).await?.expect("it has ended");
//! assert_eq!(ended.ending.value::<u64>().unwrap()?, 4_200);
//! # Ok::<(), StepError>(())
//! # }).unwrap();
//! ```

pub use crate::gate::{Flows, MachineWorker, TaskWorker};
pub use tollgate_core::flow::workflow::{
    Comparison, KeyedRateLimit, RateLimit, Retry, RetryKind, RunError, Task, TaskError,
    TaskPartition, TaskToll, TaskWeight, When, Workflow, WorkflowError, WorkflowSpec,
};
pub use tollgate_engine::flows::{
    ALONE, Attempt, AwaitingStep, Begun, Cancelled, Child, ClaimedTask, ENDED_KEPT, Ended, Ending,
    Failure, FlowError, Machine, NewRun, Registered, RunState, RunView, Signal, Signalled, Step,
    StepError, StepOutcome, TaskCard, TaskFailure, TaskJob, TaskOutcome, WorkflowText, children,
    done, is_of_runs, limited, next, retry, stop, type_of, wait_for,
};
