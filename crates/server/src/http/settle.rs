//! `/v1/settle` and `/v1/leases/renew`: what came of starts, and leases that are held for longer.

use super::body::{Json, Large};
use super::caller::Caller;
use super::problem::{Problem, invalid_field, kinds};
use super::wire::object::Object;
use super::wire::settle::{
    Made, RenewWire, RenewedWire, SettledPageWire, SettledWire, SettlementWire,
};
use super::{App, Shared};
use crate::lease::decode;
use crate::traces::Ended;
use axum::extract::State;
use std::collections::BTreeMap;
use tokio::task::JoinHandle;
use tollgate::lanes::queue::LEASE_MAX;
use tollgate::lanes::{Act, Acted, Lease, Settle, Settlement};
use tollgate::{Error, Span, Tollgate};

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
    let (mut acts, mut ways) = (Vec::with_capacity(settlements.len()), Vec::new());
    for Object(settlement) in settlements {
        let held = settlement.held(seal, caller);
        ways.push(held.and_then(|held| match held.until {
            Some(until) => Ok(match settlement.of_task(caller, now.at > until)? {
                Some(made) => Way::Task(settle_task(&app.gate, held.lease, made)),
                None => {
                    acts.push(release(held.lease));
                    Way::Act
                }
            }),
            None => settlement.act(held.lease, caller, now).map(|act| {
                acts.push(act);
                Way::Act
            }),
        }));
    }
    let mut acted = app.gate.act_all(acts).await?.into_iter();
    let mut settled = Vec::with_capacity(ways.len());
    for way in ways {
        let came = match way {
            Ok(Way::Act) => {
                acted.next().unwrap_or_else(|| Ok(Acted::default())).map_err(Problem::from)
            }
            Ok(Way::Task(task)) => match task.await {
                Ok(settled) => settled.map(|()| Acted::default()).map_err(Problem::from),
                Err(error) => Err(Problem::new(kinds::STORE_FAILED, error.to_string())),
            },
            Err(problem) => Err(problem),
        };
        settled.push(SettledWire::new(came, caller));
    }
    if app.traces.is_on() {
        tell_attempts(app, caller, settlements.iter().zip(&settled)).await;
    }
    Ok(settled)
}

/// How one is settled.
enum Way {
    /// By an act, with all others.
    Act,
    /// By the change of its run.
    Task(JoinHandle<Result<(), Error>>),
}

/// Settles a task. It is seen through when nobody hears the answer, too.
fn settle_task(gate: &Tollgate, lease: Lease, made: Made) -> JoinHandle<Result<(), Error>> {
    let flows = gate.flows();
    tokio::spawn(async move { flows.settle_task(lease, made.0, made.1).await })
}

fn release(lease: Lease) -> Act {
    Act { settle: vec![Settle::new(lease, Settlement::Release)], ..Act::default() }
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
    let now = app.gate.now().await?.at;
    let mut spans: BTreeMap<Span, Vec<(usize, Lease)>> = BTreeMap::new();
    for (nth, text) in request.leases.0.iter().enumerate() {
        // What is no lease of ours is not held.
        let Some(held) = decode(text, caller.namespace(), seal) else { continue };
        // A task is held no longer than it may take.
        let most = held.until.map_or(span, |until| until.since(now));
        spans.entry(span.min(most)).or_default().push((nth, held.lease));
    }
    let mut renewed = vec![false; request.leases.0.len()];
    for (span, leases) in spans.into_iter().filter(|(span, _)| !span.is_zero()) {
        let held = app.gate.renew(leases.iter().map(|(_, lease)| *lease).collect(), span).await?;
        for ((nth, _), is_held) in leases.into_iter().zip(held) {
            if let Some(renewed) = renewed.get_mut(nth) {
                *renewed = is_held;
            }
        }
    }
    Ok(Json(RenewedWire { renewed }))
}
