//! Who may come in, and what operators see of each request.

use super::problem::{Problem, kinds};
use super::{App, Shared};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Where load balancers look. They have no token, and learn nothing but that the server lives.
pub(super) const HEALTH: &str = "/healthz";

/// Lets a request pass if it shows the token, and traces the answer.
pub(super) async fn guard(State(app): Shared, request: Request, next: Next) -> Response {
    if request.uri().path() != HEALTH && !is_known(&app, request.headers()) {
        return unauthorized().into_response();
    }
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return next.run(request).await;
    }
    // The pattern and not the path: a path may carry a receipt.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let route = route.as_ref().map(MatchedPath::as_str);
    tracing::debug!(%method, route, status = response.status().as_u16(), "request answered");
    response
}

fn is_known(app: &App, headers: &HeaderMap) -> bool {
    let Some(tag) = &app.bearer else { return true };
    shown_token(headers).is_some_and(|shown| app.seal.is_tag(tag, shown))
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
