//! Measures rate limiters side by side, in one run and on one machine.
//!
//! A limiter takes part through a `Contender`, a table of what it offers;
//! each section below asks every contender that offers what the section measures. What would be
//! disturbed by a neighbour (memory, longest call, waiters) runs in a fresh child process.
#![expect(clippy::disallowed_methods, reason = "a bench measures with the real clock")]
#![expect(clippy::float_arithmetic, reason = "results are rounded for reading, nothing is billed")]

mod contender;
mod contenders;
mod keys;
mod plan;

mod bare;
mod calls;
mod decisions;
mod designs;
mod drain;
mod flows;
mod folder;
mod http;
mod lanes;
mod longest;
mod memory;
mod race;
mod shared;
mod store;
mod timed_disk;
mod waiters;
mod waiting;

mod command;
mod machine;
mod process;
mod table;

pub use command::{
    run, run_calls, run_designs, run_drain, run_flows, run_http, run_lanes, run_shared, run_store,
};
