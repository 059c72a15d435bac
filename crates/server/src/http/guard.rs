//! Who may come in, and what operators see of each request.

use super::App;
use super::origin::is_foreign;
use super::problem::{Problem, kinds};
use axum::Router;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Request, Uri};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;

/// Where load balancers look. They have no token, and learn nothing but that the server lives.
pub(super) const HEALTH: &str = "/healthz";

/// Paths behind this carry a receipt, which is not for the log.
const RECEIPTS: &str = "/v1/receipts/";

/// All routes, behind the one door that asks for the token.
// In front of the router and not a layer of it, for a layer costs each request some allocations.
pub(crate) struct Door {
    app: Arc<App>,
    router: TowerToHyperService<Router>,
}

impl Door {
    pub(super) fn new(app: Arc<App>, router: Router) -> Self {
        Self { app, router: TowerToHyperService::new(router) }
    }

    /// Answers a request if it may come in, and traces the answer.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return self.admit(request).await;
        }
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let response = self.admit(request).await;
        let status = response.status().as_u16();
        tracing::debug!(%method, path = shown_path(&uri), status, "request answered");
        response
    }

    async fn admit(&self, request: Request<Incoming>) -> Response {
        if request.uri().path() != HEALTH
            && let Err(problem) = self.check(request.headers())
        {
            return problem.into_response();
        }
        match self.router.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Lets in who shows the token, or, where none is wanted, everyone but pages from elsewhere.
    fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match (&self.app.bearer, shown_token(headers)) {
            (None, _) if is_foreign(headers) => Err(foreign_origin()),
            (None, _) => Ok(()),
            (Some(tag), Some(shown)) if self.app.seal.is_tag(tag, shown) => Ok(()),
            (Some(_), _) => Err(unauthorized()),
        }
    }
}

fn shown_path(uri: &Uri) -> &str {
    if uri.path().starts_with(RECEIPTS) { RECEIPTS } else { uri.path() }
}

fn shown_token(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().as_bytes())
}

fn unauthorized() -> Problem {
    let detail = "this server wants its token: send `Authorization: Bearer …` with the value of TOLLGATE_TOKEN";
    let problem = Problem::new(kinds::UNAUTHORIZED, detail);
    problem.header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn foreign_origin() -> Problem {
    let detail = "a page from elsewhere sends this: only this server's own pages may act on it; start the server with a TOLLGATE_TOKEN to allow others";
    Problem::new(kinds::FOREIGN_ORIGIN, detail)
}
