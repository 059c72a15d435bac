//! The door to the QStash API: who asks, what for, and the answer.

use super::destination;
use super::error::Fault;
use super::keys::{self, Keyring};
use super::names::Names;
use super::routing::{self, Route};
use crate::access::Role;
use crate::clock;
use crate::http::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::guard::{bearer, foreign_origin, unauthorized};
use crate::http::origin::is_foreign;
use crate::server::StartError;
use crate::shutdown::Shutdown;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tollgate::push::address::AddressPolicy;
use tollgate::{Error, Now, Operation, StoreError, Tollgate};

/// How long a store is left alone that could not tell keys.
const AGAIN: Duration = Duration::from_secs(1);

/// What the face shares with the manner in which its messages are delivered.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The keys that deliveries are signed with.
    pub(super) keys: Keyring,
    /// Where messages may go.
    pub(super) addresses: AddressPolicy,
    /// There is a queue of ticks to groups: somebody may have waited for it.
    pub(super) groups_made: Notify,
}

impl Shared {
    /// With what the server may connect to.
    pub(crate) fn new(addresses: AddressPolicy) -> Self {
        Self { keys: Keyring::default(), addresses, groups_made: Notify::new() }
    }

    /// Learns what was kept before. Keys that are lent stand for those of the server while it runs.
    pub(crate) async fn load(
        &self,
        gate: &Tollgate,
        lent: Option<(&str, &str)>,
    ) -> Result<(), StartError> {
        if !gate.keeps_calls() {
            return Ok(());
        }
        let wrong = |fault: Fault| StartError::Qstash(fault.to_string());
        match self.keys.load(gate).await {
            // They are learned again and again as long as it runs: a database that is away comes back.
            Err(fault) if gate.has_nodes() => {
                tracing::warn!(%fault, "the keys that messages are signed with are not read yet");
            }
            loaded => loaded.map_err(wrong)?,
        }
        lent.map_or(Ok(()), |(current, next)| self.keys.lend(current, next)).map_err(wrong)
    }

    /// Learns keys that other servers make and change, until this one ends.
    pub(crate) async fn learn_keys(&self, gate: &Tollgate, shutdown: Shutdown) {
        while gate.has_nodes() {
            let mut changed = pin!(gate.changed_elsewhere(keys::PREFIX));
            // From here on it is told of every change.
            let loaded = tokio::select! {
                biased;
                () = &mut changed => continue,
                loaded = self.keys.load(gate) => loaded,
            };
            let again = async {
                match loaded {
                    Ok(()) => changed.await,
                    Err(_) => clock::rest(AGAIN).await,
                }
            };
            tokio::select! {
                () = shutdown.begun() => return,
                () = again => {}
            }
        }
    }
}

/// The QStash API of a server.
pub(crate) struct Face {
    app: Arc<App>,
    shared: Arc<Shared>,
}

/// Who asks, of what.
pub(super) struct ApiRequest<'a> {
    pub(super) app: &'a App,
    pub(super) shared: &'a Shared,
    pub(super) caller: Caller,
    pub(super) names: Names,
    pub(super) peer: IpAddr,
    pub(super) parts: Parts,
    pub(super) body: Vec<u8>,
}

impl Face {
    /// The face of an application.
    pub(crate) fn new(app: Arc<App>, shared: Arc<Shared>) -> Self {
        Self { app, shared }
    }

    /// Whether a path is of this API.
    pub(crate) fn is_at(path: &str) -> bool {
        path.starts_with(routing::ROOT)
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: Request<Body>, peer: IpAddr) -> Response {
        self.try_answer(request, peer).await.unwrap_or_else(IntoResponse::into_response)
    }

    async fn try_answer(&self, request: Request<Body>, peer: IpAddr) -> Result<Response, Fault> {
        let caller = self.caller(&request)?;
        if !self.app.gate.keeps_calls() {
            return Err(Fault::of(StoreError::LimitsOnly.into(), &caller));
        }
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let route = routing::find(&parts.method, &path)?;
        let role = route.role();
        if !caller.may(role) {
            let name = caller.token_name().unwrap_or_default();
            let why = format!("this takes the role {role}, which the token {name:?} does not have");
            return Err(Fault::forbidden(why));
        }
        // Its share of the room for large bodies is given back with the answer.
        let (body, _room) = body::read_any(body, &self.app.room).await.map_err(Fault::from)?;
        let names = Names::of(caller.bound());
        let (app, shared) = (&*self.app, &*self.shared);
        let request = ApiRequest { app, shared, caller, names, peer, parts, body };
        request.answer(route).await
    }

    /// Who shows a token, in a header or in the query; where none is wanted, everyone but pages from
    /// elsewhere.
    fn caller(&self, request: &Request<Body>) -> Result<Caller, Fault> {
        if self.app.tokens.is_empty() {
            let is_foreign = is_foreign(request.headers());
            return if is_foreign { Err(foreign_origin().into()) } else { Ok(Caller::ANYONE) };
        }
        let in_query = || request.uri().query().and_then(destination::token);
        let shown = bearer(request.headers()).map(<[u8]>::to_vec);
        let shown = shown.or_else(|| in_query().map(String::into_bytes));
        let holder = shown.and_then(|shown| self.app.tokens.holder(&shown));
        holder.map(Caller::holder).ok_or_else(|| unauthorized().into())
    }
}

impl ApiRequest<'_> {
    async fn answer(&self, route: Route<'_>) -> Result<Response, Fault> {
        match route {
            Route::Publish(tail) => self.publish(tail).await,
            Route::Enqueue(tail) => self.enqueue(tail).await,
            Route::Batch => self.batch().await,
            Route::Message(id) => self.read_message(&id).await,
            Route::CancelMessage(id) => self.cancel_message(&id).await,
            Route::CancelMessages => self.cancel_messages().await,
            Route::Queues => self.list_queues().await,
            Route::DefineQueue => self.upsert_queue().await,
            Route::Queue(name) => self.read_queue(&name).await,
            Route::RemoveQueue(name) => self.remove_queue(&name).await,
            Route::PauseQueue(name) => self.pause_queue(&name, true).await,
            Route::ResumeQueue(name) => self.pause_queue(&name, false).await,
            Route::Groups => self.list_groups().await,
            Route::Group(name) => self.read_group(&name).await,
            Route::RemoveGroup(name) => self.remove_group(&name).await,
            Route::PatchGroup(name) => self.patch_group(&name).await,
            Route::AddEndpoints(name) => self.add_endpoints(&name).await,
            Route::RemoveEndpoints(name) => self.remove_endpoints(&name).await,
            Route::FlowKeys => self.list_keys().await,
            Route::FlowKey(key) => self.read_key(&key).await,
            Route::FlowAct(key, act) => self.act_on_key(&key, act).await,
            Route::GlobalParallelism => self.global_parallelism().await,
            Route::SigningKeys => self.signing_keys().await,
            Route::RotateSigningKeys => self.rotate_signing_keys().await,
            Route::Schedules => self.list_schedules().await,
            Route::MakeSchedule(tail) => self.make_schedule(tail).await,
            Route::Schedule(id) => self.read_schedule(&id).await,
            Route::RemoveSchedule(id) => self.remove_schedule(&id).await,
            Route::PauseSchedule(id) => self.pause_schedule(&id, true).await,
            Route::ResumeSchedule(id) => self.pause_schedule(&id, false).await,
            Route::Events => self.list_events().await,
            Route::Logs => self.list_logs().await,
            Route::Dead => self.list_dead().await,
            Route::DeadMessage(id) => self.read_dead(&id).await,
            Route::RemoveDead => self.remove_all_dead().await,
            Route::RemoveDeadMessage(id) => self.remove_dead(&id).await,
            Route::RetryDead => self.retry_all_dead().await,
            Route::RetryDeadMessage(id) => self.retry_dead(&id).await,
        }
    }

    /// The present.
    pub(super) async fn now(&self) -> Result<Now, Fault> {
        self.app.gate.now().await.map_err(|error| self.fault(error))
    }

    /// Who changes something, for the history of it.
    pub(super) fn who(&self) -> &str {
        self.caller.token_name().unwrap_or("qstash")
    }

    /// Who changes limits that an operator defined by what their messages say: not who may only publish.
    pub(super) fn changer(&self) -> Option<&str> {
        self.caller.may(Role::Admin).then(|| self.who())
    }

    /// Does what an operator asks for, as the caller.
    pub(super) async fn operate(&self, operation: Operation) -> Result<(), Fault> {
        let operated = self.app.gate.operate(self.who(), operation).await;
        operated.map_err(|error| self.fault(error))
    }

    /// What the engine refuses, in the caller's words.
    pub(super) fn fault(&self, error: Error) -> Fault {
        Fault::of(error, &self.caller)
    }

    /// The request's body as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Fault::invalid(format!("the body is not as it should be: {error}")))
    }

    /// The request's query, as it came.
    pub(super) fn query(&self) -> &str {
        self.parts.uri.query().unwrap_or_default()
    }

    async fn signing_keys(&self) -> Result<Response, Fault> {
        let keys = self.shared.keys.get(&self.app.gate, &self.names).await?;
        Ok(reply(StatusCode::OK, &keys.wire()))
    }

    async fn rotate_signing_keys(&self) -> Result<Response, Fault> {
        let keys = self.shared.keys.rotate(&self.app.gate, &self.names).await?;
        Ok(reply(StatusCode::OK, &keys.wire()))
    }
}

/// An answer in JSON.
pub(super) fn reply(status: StatusCode, value: &impl Serialize) -> Response {
    let mut response = body::json(value, "application/json");
    if response.status() == StatusCode::OK {
        *response.status_mut() = status;
    }
    response
}

/// An answer that says nothing but that it was done.
pub(super) fn done() -> Response {
    reply(StatusCode::OK, &serde_json::Map::new())
}
