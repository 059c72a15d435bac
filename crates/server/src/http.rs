//! HTTP: routes, what they read and write, and the problems they answer with.

mod audit;
pub(crate) mod body;
pub(crate) mod caller;
mod calls;
mod claim;
mod consume;
mod dead;
pub(crate) mod definitions;
mod enqueue;
mod events;
mod fields;
pub(crate) mod figures;
pub(crate) mod forecast;
pub(crate) mod guard;
mod health;
pub(crate) mod history;
mod lanes;
mod limits;
mod meters;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod origin;
pub(crate) mod overview;
mod path;
pub(crate) mod problem;
mod queues;
mod receipts;
mod roles;
pub(crate) mod routes;
mod runs;
mod schedules;
pub(crate) mod series;
mod settle;
mod unbound;
mod wire;
mod workflows;

use crate::access::KnownTokens;
use crate::seal::{Seal, SealError, SealOnce};
use crate::shutdown::Shutdown;
use crate::traces::Traces;
use problem::{Problem, kinds};
use std::sync::Arc;
use tollgate::Tollgate;

/// What every handler works with.
pub(crate) struct App {
    pub(crate) gate: Tollgate,
    pub(crate) seal: SealOnce,
    /// What callers must show one of; none, and nobody is asked.
    pub(crate) tokens: KnownTokens,
    pub(crate) shutdown: Shutdown,
    /// The room for large bodies.
    pub(crate) room: body::Room,
    /// Whose turn it is to read history: it is on disk, and few look at a time.
    pub(crate) history: history::Readers,
    /// Whose turn it is to have a forecast made.
    pub(crate) seers: forecast::Seers,
    /// Bodies are kept from those who look at calls.
    pub(crate) redact_bodies: bool,
    pub(crate) figures: figures::Figures,
    /// What happened since the server was bound.
    pub(crate) series: series::Series,
    /// What was seen last of everything.
    pub(crate) looks: overview::Looks,
    /// Where spans of calls go.
    pub(crate) traces: Arc<Traces>,
}

impl App {
    /// What seals receipts and leases. Asked for before anything is paid that needs it.
    pub(crate) async fn seal(&self) -> Result<&Seal, Problem> {
        let seal = self.seal.of(&self.gate).await;
        seal.map_err(|error| match error {
            SealError::Store(error) => error.into(),
            other => Problem::new(kinds::STORE_FAILED, other.to_string()),
        })
    }
}

/// The application as handlers get it.
type Shared = axum::extract::State<Arc<App>>;
