//! Who may come in, and what operators see of each request.

use super::App;
use super::caller::Caller;
use super::origin::is_foreign;
use super::problem::{Problem, kinds, written};
use super::roles::RoleTable;
use crate::access::Role;
use crate::console::Console;
use crate::qstash::Face;
use axum::Router;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Request, Uri};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::net::IpAddr;
use std::sync::Arc;

/// Paths behind this carry a receipt, which is not for the log.
const RECEIPTS: &str = "/v1/receipts/";

/// All routes, behind the one door that asks for the token and knows what its holder may do.
// In front of the router and not a layer of it, for a layer costs each request some allocations.
pub(crate) struct Door {
    app: Arc<App>,
    roles: RoleTable,
    router: TowerToHyperService<Router>,
    face: Face,
    console: Console,
}

impl Door {
    pub(super) fn new(app: Arc<App>, roles: RoleTable, router: Router, face: Face) -> Self {
        let (router, console) = (TowerToHyperService::new(router), Console::new());
        Self { app, roles, router, face, console }
    }

    /// Answers a request if it may come in, and traces the answer.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: IpAddr) -> Response {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return self.admit(request, peer).await;
        }
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let response = self.admit(request, peer).await;
        let status = response.status().as_u16();
        tracing::debug!(%method, path = shown_path(&uri), status, "request answered");
        response
    }

    async fn admit(&self, mut request: Request<Incoming>, peer: IpAddr) -> Response {
        if Face::is_at(request.uri().path()) {
            // Boxed: other requests need not carry the room for it.
            let answered = Box::pin(self.face.answer(request.map(Body::new), peer)).await;
            self.app.figures.count(&answered);
            return answered;
        }
        if Console::is_at(request.uri().path()) {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let answered = self.console.answer(method, uri, request.headers()).await;
            return self.written(answered, &Caller::ANYONE);
        }
        let caller = match self.caller(&request) {
            Ok(caller) => caller,
            Err(problem) => return self.written(problem.into_response(), &Caller::ANYONE),
        };
        // Nothing is left for the handler where no token is wanted: that would cost an allocation.
        if caller.token_name().is_some() {
            request.extensions_mut().insert(caller.clone());
        }
        match self.router.call(request).await {
            Ok(response) => self.written(response, &caller),
            Err(never) => match never {},
        }
    }

    /// The answer as it goes out, counted.
    fn written(&self, response: Response, caller: &Caller) -> Response {
        self.app.figures.count(&response);
        written(response, caller)
    }

    /// Who asks, if they may ask this.
    fn caller(&self, request: &Request<Incoming>) -> Result<Caller, Problem> {
        let path = request.uri().path();
        if self.roles.is_open(path) {
            return Ok(Caller::ANYONE);
        }
        let caller = self.known(request.headers())?;
        // An admin needs no look at the table.
        if !caller.may(Role::Admin) {
            let role = self.roles.wanted(request.method(), path);
            if !caller.may(role) {
                return Err(forbidden(&caller, role));
            }
        }
        Ok(caller)
    }

    /// Lets in who shows a token, or, where none is wanted, everyone but pages from elsewhere.
    fn known(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        if self.app.tokens.is_empty() {
            return if is_foreign(headers) { Err(foreign_origin()) } else { Ok(Caller::ANYONE) };
        }
        let holder = bearer(headers).and_then(|shown| self.app.tokens.holder(shown));
        holder.map(Caller::holder).ok_or_else(unauthorized)
    }
}

fn shown_path(uri: &Uri) -> &str {
    if uri.path().starts_with(RECEIPTS) { RECEIPTS } else { uri.path() }
}

/// The token that a header shows.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().as_bytes())
}

pub(crate) fn unauthorized() -> Problem {
    let detail = "this server wants a token that it knows: send `Authorization: Bearer …` with the value of TOLLGATE_TOKEN, or with one that `tollgate token new` made";
    let problem = Problem::new(kinds::UNAUTHORIZED, detail);
    problem.header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn forbidden(caller: &Caller, role: Role) -> Problem {
    let name = caller.token_name().unwrap_or_default();
    let detail = format!(
        "this takes the role {role}, which the token {name:?} does not have: use one that has it"
    );
    Problem::new(kinds::FORBIDDEN, detail)
}

pub(crate) fn foreign_origin() -> Problem {
    let detail = "a page from elsewhere sends this: only this server's own pages may act on it; start the server with a TOLLGATE_TOKEN to allow others";
    Problem::new(kinds::FOREIGN_ORIGIN, detail)
}
