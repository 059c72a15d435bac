//! Tollgate over the network: limits, calls and workers of a server, with the library's words.
//!
//! ```no_run
//! use tollgate_client::{Call, Client, Job, Limit, QueueSpec, toll};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let client = Client::connect("http://127.0.0.1:8655")?;
//! client.limit("stripe", Limit::per_second(100)).await?;
//! client.queue("charges", QueueSpec::default()).await?;
//! client.enqueue("charges", Call::new("acme").pays(toll("stripe", "acme")).body("42")).await?;
//!
//! let worker = client.worker("charges").concurrency(32).until_drained();
//! worker.run(async |job: Job| println!("{} {:?}", job.lane, job.body)).await?;
//! # Ok::<(), tollgate_client::ClientError>(())
//! # }).unwrap();
//! ```

mod calls;
mod client;
mod clock;
mod consume;
mod dead;
mod enqueue;
mod error;
mod events;
mod letting_go;
mod limits;
mod meters;
mod pass;
pub mod path;
mod queues;
mod runs;
mod schedules;
mod tasks;
mod transport;
mod wire;
mod worker;
mod workflows;

pub use calls::{
    Attempts, CallId, CallView, CallsQuery, Explanation, Lease, OwedView, Page, Reason,
};
pub use client::{Builder, Client};
pub use consume::Acquire;
pub use error::{ClientError, Problem};
pub use events::{Event, Events, EventsQuery, HistoryQuery, Told};
pub use pass::Pass;
pub use queues::LaneState;
pub use runs::{Ending, RunState, RunView, RunsQuery, StepAttempt};
pub use schedules::ScheduleState;
pub use tasks::{TaskJob, TaskOf, TaskWorker};
pub use tollgate_core::contract::QueueState;
pub use tollgate_core::flow::workflow::{
    Comparison, Retry, Task, TaskToll, Workflow, WorkflowError,
};
pub use tollgate_core::lanes::{Backoff, OnDead, Order, QueueSpec, QueueToll};
pub use tollgate_core::{Align, Cron, CronError, Limit, Priority, RuleSpec, Span, Timestamp};
pub use tollgate_engine::flows::{Begun, Cancelled, Signal, Signalled, TaskFailure, WorkflowText};
pub use tollgate_engine::{
    Ask, Asking, Call, Change, CostPath, Delivery, LimitState, MeterState, Outcome, Toll,
    TraceParent, When, Worked, global, toll,
};
pub use worker::{Job, Worker};
pub use workflows::WorkflowView;
