//! Who asks, and which names are theirs.

use super::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::borrow::Cow;

/// Who asks.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Caller {
    namespace: Option<std::sync::Arc<str>>,
}

impl Caller {
    /// The name in the store of what the caller calls so.
    pub(in crate::http) fn inner<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match &self.namespace {
            None => Cow::Borrowed(name),
            Some(namespace) => Cow::Owned(format!("{namespace}/{name}")),
        }
    }

    /// What the caller calls what has this name in the store; `None` if it is not theirs.
    pub(in crate::http) fn outer<'a>(&self, name: &'a str) -> Option<&'a str> {
        match &self.namespace {
            None => Some(name),
            Some(namespace) => name.strip_prefix(&**namespace)?.strip_prefix('/'),
        }
    }

    /// The name under which something is shown that is the caller's; what is not has none.
    pub(in crate::http) fn shown<'a>(&self, name: &'a str) -> &'a str {
        self.outer(name).unwrap_or_default()
    }

    /// Behind which name of the store the caller's names begin that come after one.
    pub(in crate::http) fn after<'a>(&self, after: Option<&'a str>) -> Option<Cow<'a, str>> {
        match (&self.namespace, after) {
            (None, None) => None,
            (_, after) => Some(self.inner(after.unwrap_or_default())),
        }
    }

    /// The namespace that the caller is bound to.
    pub(in crate::http) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}
