//! `/v1/forecast`: what becomes of all that waits, as limits are and as they might be.

use super::Shared;
use super::body::Json;
use super::problem::{Problem, invalid_field, kinds};
use super::unbound::Unbound;
use super::wire::forecast::{OutlookWire, WhatIfWire};
use axum::extract::State;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Most limits that are changed on paper.
const LIMITS_MAX: usize = 100;

/// Whose turn it is: one forecast at a time, for each takes a core for seconds.
#[derive(Debug, Clone)]
pub(crate) struct Seers(Arc<Semaphore>);

impl Default for Seers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

pub(super) async fn ask(
    State(app): Shared,
    _: Unbound,
    Json(asked): Json<WhatIfWire>,
) -> Result<Json<OutlookWire>, Problem> {
    let work = asked.work().map_err(|(field, why)| invalid_field(field, &why))?;
    if asked.limits.len() > LIMITS_MAX {
        let why = format!(
            "{} limits are more than the {LIMITS_MAX} that can be changed at once",
            asked.limits.len()
        );
        return Err(invalid_field("limits", &why));
    }
    let busy = || Problem::new(kinds::TOO_BUSY, "a forecast is being made: ask again in a second");
    let turn = app.seers.0.clone().try_acquire_owned().map_err(|_| busy())?;
    let limits = asked.limits.into_iter().map(|(name, limit)| (name, limit.0)).collect();
    // It goes on when whoever asked has gone, and so does the turn.
    let made = tokio::spawn(async move {
        let made = app.gate.forecast(limits, work).await;
        drop(turn);
        made
    });
    let made = made.await.map_err(|error| Problem::new(kinds::STORE_FAILED, error.to_string()))?;
    Ok(Json(made?.into()))
}
