//! `/v1/receipts`: settle the true cost, hand back, hold slots longer.

use super::Shared;
use super::body::{Json, JsonIfAny};
use super::caller::Caller;
use super::path::InPath;
use super::problem::{Problem, invalid_field, kinds};
use super::wire::meter::NothingWire;
use super::wire::receipt::{CancelledWire, RenewWire, RenewedWire, SettleWire, SettledWire};
use crate::receipt::{decode, encode};
use crate::seal::Seal;
use axum::extract::State;
use tollgate::{Receipt, Span};

/// Longest life of a receipt, and longest renewal.
pub(super) const LIFE_MAX: Span = Span::from_hours(1);
/// Life of a receipt that was not asked for, but holds slots; and a renewal that does not say.
pub(super) const LIFE_DEFAULT: Span = Span::from_minutes(1);

pub(super) async fn settle(
    State(app): Shared,
    caller: Caller,
    InPath(receipt): InPath<String>,
    JsonIfAny(settle): JsonIfAny<SettleWire>,
) -> Result<Json<SettledWire>, Problem> {
    let receipt = known(app.seal().await?, &caller, &receipt)?;
    let actual = settle.actual.iter().map(|(limit, units)| (caller.inner(limit), units.0));
    let actual: Vec<_> = actual.collect();
    let actual: Vec<_> = actual.iter().map(|(limit, units)| (&**limit, *units)).collect();
    app.gate.settle_receipt(&receipt, &actual).await?;
    Ok(Json(SettledWire { settled: true }))
}

pub(super) async fn cancel(
    State(app): Shared,
    caller: Caller,
    InPath(receipt): InPath<String>,
    _: JsonIfAny<NothingWire>,
) -> Result<Json<CancelledWire>, Problem> {
    let receipt = known(app.seal().await?, &caller, &receipt)?;
    app.gate.hand_back(&receipt).await?;
    Ok(Json(CancelledWire { cancelled: true }))
}

pub(super) async fn renew(
    State(app): Shared,
    caller: Caller,
    InPath(receipt): InPath<String>,
    JsonIfAny(renew): JsonIfAny<RenewWire>,
) -> Result<Json<RenewedWire>, Problem> {
    let seal = app.seal().await?;
    let receipt = known(seal, &caller, &receipt)?;
    let life = renew.span.map_or(LIFE_DEFAULT, |span| span.0);
    check_life("for", life)?;
    let renewed = app.gate.renew_receipt(&receipt, life).await?;
    Ok(Json(RenewedWire { receipt: encode(&renewed, seal, caller.namespace()) }))
}

/// Whether a receipt may live so long.
pub(super) fn check_life(field: &str, life: Span) -> Result<(), Problem> {
    if life.is_zero() || life > LIFE_MAX {
        return Err(invalid_field(field, "a receipt lives for up to 1h, as in \"10m\""));
    }
    Ok(())
}

fn known(seal: &Seal, caller: &Caller, text: &str) -> Result<Receipt, Problem> {
    decode(text, seal, caller.namespace()).ok_or_else(|| {
        let detail = "this receipt was changed, cut off, or given by a server of another store, or in memory before a restart: what it paid stays spent";
        Problem::new(kinds::RECEIPT_UNKNOWN, detail)
    })
}
