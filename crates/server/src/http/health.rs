//! `/healthz` and `/readyz`: whether the server lives, and whether it would keep what it is told.

use super::problem::{Problem, leaving};
use super::{App, Shared};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

/// Where load balancers look. They have no token, and learn nothing but that the server lives.
pub(super) const HEALTH: &str = "/healthz";
/// Where they look for whether to send it anything.
pub(super) const READY: &str = "/readyz";

pub(super) async fn alive() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#)
}

/// Costs no write: the store knows how its last one went. One that others share may be back without
/// anyone having asked it anything: who looks here has it asked.
pub(super) async fn ready(State(app): Shared) -> Result<impl IntoResponse, Problem> {
    if app.gate.takes_writes().is_err() {
        app.gate.ask_store().await?;
    }
    check(&app)?;
    Ok(([(CONTENT_TYPE, "application/json")], r#"{"status":"ready"}"#))
}

/// Says why nothing should be sent here, if so.
pub(super) fn check(app: &App) -> Result<(), Problem> {
    if app.shutdown.is_coming() {
        return Err(leaving());
    }
    Ok(app.gate.takes_writes()?)
}
