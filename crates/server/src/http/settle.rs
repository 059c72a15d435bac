//! `/v1/settle` and `/v1/leases/renew`: what came of starts, and leases that are held for longer.

use super::body::{Json, Large};
use super::caller::Caller;
use super::problem::{Problem, invalid_field};
use super::wire::object::Object;
use super::wire::settle::{RenewWire, RenewedWire, SettledPageWire, SettledWire, SettlementWire};
use super::{App, Shared};
use crate::lease::decode;
use crate::traces::Ended;
use axum::extract::State;
use tollgate::lanes::queue::LEASE_MAX;

/// Settles starts, each for itself: one that is refused does not hold up the others.
pub(super) async fn settle(
    State(app): Shared,
    caller: Caller,
    body: Large,
) -> Result<Json<SettledPageWire>, Problem> {
    let settlements = body.all()?;
    let settled = settle_all(&app, &caller, &settlements).await?;
    Ok(Json(SettledPageWire { settled }))
}

/// Makes an act of each settlement; says what came of each, in order.
pub(super) async fn settle_all(
    app: &App,
    caller: &Caller,
    settlements: &[Object<SettlementWire<'_>>],
) -> Result<Vec<SettledWire>, Problem> {
    if settlements.is_empty() {
        return Ok(Vec::new());
    }
    let (now, seal) = (app.gate.now().await?, app.seal().await?);
    let (mut acts, mut answers) = (Vec::with_capacity(settlements.len()), Vec::new());
    for Object(settlement) in settlements {
        answers.push(settlement.act(seal, caller, now).map(|act| acts.push(act)));
    }
    let mut acted = app.gate.act_all(acts).await?.into_iter();
    let settled = answers.into_iter().map(|answer| {
        let acted = answer.and_then(|()| match acted.next() {
            Some(acted) => acted.map_err(Problem::from),
            None => Ok(tollgate::lanes::Acted::default()),
        });
        SettledWire::new(acted, caller)
    });
    let settled: Vec<_> = settled.collect();
    if app.traces.is_on() {
        tell_attempts(app, caller, settlements.iter().zip(&settled)).await;
    }
    Ok(settled)
}

/// Tells of attempts that are traced and settled now.
async fn tell_attempts<'a>(
    app: &App,
    caller: &Caller,
    settled: impl Iterator<Item = (&'a Object<SettlementWire<'a>>, &'a SettledWire)>,
) {
    // What was settled is told, whatever comes of its spans.
    let (Ok(now), Ok(seal)) = (app.gate.now().await, app.seal().await) else { return };
    for (Object(settlement), _) in settled.filter(|(_, settled)| settled.is_settled()) {
        if let Some((call, attempt)) = settlement.attempt(seal, caller) {
            let (outcome, has_failed) = settlement.outcome();
            let namespace = caller.namespace();
            app.traces.end(attempt, Ended { call, namespace, outcome, has_failed, at: now.wall });
        }
    }
}

/// Holds leases for longer; says of each whether it was still held.
pub(super) async fn renew(
    State(app): Shared,
    caller: Caller,
    body: Large,
) -> Result<Json<RenewedWire>, Problem> {
    let request: RenewWire<'_> = body.one()?;
    let span = request.span.0;
    if span.is_zero() || span > LEASE_MAX {
        return Err(invalid_field("for", "a lease lasts for up to 1d, as in \"30s\""));
    }
    let seal = app.seal().await?;
    let read = |text: &std::borrow::Cow<'_, str>| decode(text, caller.namespace(), seal);
    let leases: Vec<_> = request.leases.0.iter().map(read).collect();
    let known = leases.iter().flatten().copied().collect();
    let mut held = app.gate.renew(known, span).await?.into_iter();
    // What is no lease of ours is not held.
    let renewed = leases.iter().map(|lease| lease.is_some() && held.next().unwrap_or(false));
    Ok(Json(RenewedWire { renewed: renewed.collect() }))
}
