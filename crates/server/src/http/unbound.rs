//! What belongs to the whole server is not for those who are bound to a part of it.

use super::App;
use super::caller::Caller;
use super::problem::{Problem, kinds};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::sync::Arc;

/// The caller is bound to no namespace: workflows and runs are in none, for their tasks pay at limits of the whole
/// server; and what becomes of calls hangs on those of others.
pub(super) struct Unbound;

impl FromRequestParts<Arc<App>> for Unbound {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match Caller::from_request_parts(parts, app).await?.namespace() {
            None => Ok(Self),
            Some(namespace) => Err(bound(namespace)),
        }
    }
}

fn bound(namespace: &str) -> Problem {
    let detail = format!(
        "this belongs to the whole server, and the token to the namespace {namespace}: use one that is bound to no namespace"
    );
    Problem::new(kinds::NAMESPACE_BOUND, detail)
}
