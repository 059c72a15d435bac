//! `/v1/consume`: pay now, pay now and start later, or wait for one's turn.

use super::body::Json;
use super::caller::Caller;
use super::fields::{Fields, Told, fields};
use super::problem::{Problem, invalid_field, kinds, shutting_down};
use super::receipts::{LIFE_DEFAULT, check_life};
use super::wire::consume::{ConsumeWire, GrantWire, OnExceeded};
use super::{App, Shared};
use crate::access::Role;
use crate::receipt::encode;
use crate::seal::Seal;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use std::future::IntoFuture;
use tollgate::{Error, Pass, Refusal, Span};

/// How long a call waits unless it says.
const WAIT_DEFAULT: Span = Span::from_secs(30);
/// Longest wait: a connection is kept open for it.
const WAIT_MAX: Span = Span::from_minutes(10);
/// How far ahead a call is promised unless it says.
const DELAY_DEFAULT: Span = Span::from_minutes(1);
/// Furthest promise.
const DELAY_MAX: Span = Span::from_days(1);

/// Pays the tolls of one call. If the client goes while it waits, it gives up its place.
pub(super) async fn consume(
    State(app): Shared,
    caller: Caller,
    Json(mut request): Json<ConsumeWire>,
) -> Result<Response, Problem> {
    request.rename(|name| caller.inner(name));
    if !caller.may(Role::Admin) {
        Box::pin(check_definitions(&app, &caller, &request)).await?;
    }
    let max_wait = max_wait(&request)?;
    if let Some(life) = request.receipt {
        check_life("receipt", life.0)?;
    }
    let seal = app.seal().await?;
    let outcome = match request.on_exceeded {
        OnExceeded::Fail => app.gate.consume(request.ask()).await,
        OnExceeded::Delay => app.gate.consume_delayed(request.ask(), max_wait).await,
        // Boxed: calls that do not wait need not carry the room for it.
        OnExceeded::Wait => Box::pin(turn(&app, &request, max_wait)).await?,
    };
    let pass = match outcome {
        Ok(pass) => pass,
        Err(Error::Refused(refusal)) => return Err(refused(refusal, &caller)),
        Err(error) => return Err(error.into()),
    };
    let (mut grant, fields) = (GrantWire::from(&pass), granted_fields(&request, &pass, &caller));
    grant.receipt = receipt(seal, &caller, &request, pass).await;
    Ok((fields, Json(grant)).into_response())
}

/// Lets who is no admin bring along limits that are not there yet, or that are as they say.
async fn check_definitions(
    app: &App,
    caller: &Caller,
    request: &ConsumeWire,
) -> Result<(), Problem> {
    for (name, limit) in request.definitions() {
        if app.gate.is_defined_as(name, limit) {
            continue;
        }
        let known = app.gate.limit_state(name).await?;
        if known.is_some_and(|known| known.defined != *limit) {
            let shown = caller.shown(name);
            let detail = format!(
                "the limit {shown} is defined otherwise, and only the role admin may change it: leave out `define`, or define it with PUT /v1/limits/{shown}"
            );
            return Err(Problem::new(kinds::FORBIDDEN, detail));
        }
    }
    Ok(())
}

/// Waits for the call's turn, or for the end of the server.
async fn turn(
    app: &App,
    request: &ConsumeWire,
    max_wait: Span,
) -> Result<Result<Pass, Error>, Problem> {
    let acquire = app.gate.acquire(request.ask()).max_wait(max_wait);
    tokio::select! {
        // The turn first: who has it when the server ends still gets it.
        biased;
        outcome = acquire.into_future() => Ok(outcome),
        () = app.shutdown.begun() => Err(shutting_down()),
    }
}

fn max_wait(request: &ConsumeWire) -> Result<Span, Problem> {
    let (default, most) = match request.on_exceeded {
        OnExceeded::Fail if request.max_wait.is_some() => {
            let why = "nothing waits when `on_exceeded` is \"fail\": leave it out, or choose \"delay\" or \"wait\"";
            return Err(invalid_field("max_wait", why));
        }
        OnExceeded::Fail => return Ok(Span::ZERO),
        OnExceeded::Delay => (DELAY_DEFAULT, DELAY_MAX),
        OnExceeded::Wait => (WAIT_DEFAULT, WAIT_MAX),
    };
    let given = request.max_wait.map_or(default, |span| span.0);
    if given > most {
        return Err(invalid_field("max_wait", &format!("{given} is over the longest, {most}")));
    }
    Ok(given)
}

/// The receipt that was asked for, or one that holds the call's slots. It lives from the start of
/// the call, which may be later than now.
async fn receipt(
    seal: &Seal,
    caller: &Caller,
    request: &ConsumeWire,
    pass: Pass,
) -> Option<String> {
    let life = request.receipt.map(|life| life.0);
    if life.is_none() && !pass.holds_slots() {
        return None;
    }
    let starts_after = pass.delay();
    let receipt = pass.into_receipt(starts_after.plus(life.unwrap_or(LIFE_DEFAULT))).await?;
    Some(encode(&receipt, seal, caller.namespace()))
}

fn granted_fields(request: &ConsumeWire, pass: &Pass, caller: &Caller) -> Option<Fields> {
    let (limit, partition) = request.meters().nth(pass.tightest())?;
    let limit = caller.outer(limit)?;
    let more_after = Some(pass.reset_after());
    Some(fields(Told { limit, partition, standing: pass.standing(), more_after }))
}

fn refused(refusal: Refusal, caller: &Caller) -> Problem {
    let told = caller.outer(&refusal.limit).map(|limit| Told {
        limit,
        partition: refusal.partition.as_deref(),
        standing: refusal.standing,
        more_after: refusal.retry_after,
    });
    let fields = told.map(fields);
    let problem = Problem::from(Error::Refused(refusal));
    fields.into_iter().flatten().fold(problem, |problem, (name, value)| problem.header(name, value))
}
