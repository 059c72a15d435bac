//! Who asks: their name, their roles, and the part of the world that is theirs.

mod outward;

use super::App;
use super::guard::unauthorized;
use super::problem::Problem;
use crate::access::{Namespace, Role, TokenSpec};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::borrow::Cow;
use std::sync::Arc;
use tollgate::push::caps::is_cap;

/// Who asks.
// Invariant: `None` only where no token is wanted, or nothing is shown but that the server lives.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Option<Arc<TokenSpec>>);

impl Caller {
    /// Whoever can reach a server that wants no token: an admin of everything.
    pub(crate) const ANYONE: Self = Self(None);

    /// Who shows this token.
    pub(crate) fn holder(token: Arc<TokenSpec>) -> Self {
        Self(Some(token))
    }

    /// The name of the token; `None` if none was wanted.
    pub(crate) fn token_name(&self) -> Option<&str> {
        self.0.as_ref().map(|token| token.name.as_str())
    }

    /// Whether they may do what takes `role`.
    pub(crate) fn may(&self, role: Role) -> bool {
        self.0.as_ref().is_none_or(|token| token.roles.allow(role))
    }

    /// The name of that namespace.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.bound().map(Namespace::as_str)
    }

    /// The namespace they are bound to; `None` if everything is theirs.
    pub(crate) fn bound(&self) -> Option<&Namespace> {
        self.0.as_ref()?.namespace.as_ref()
    }

    /// What a limit, queue or schedule is called in the store, given what the caller calls it.
    pub(super) fn inner<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.bound() {
            // A name that is empty stays so: nothing may be called like the namespace itself.
            Some(namespace) if !name.is_empty() => Cow::Owned([namespace.prefix(), name].concat()),
            _ => Cow::Borrowed(name),
        }
    }

    /// What the caller calls what has this name in the store; `None` if it is not theirs.
    pub(super) fn outer<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self.bound() {
            Some(namespace) => {
                name.strip_prefix(namespace.prefix()).filter(|name| !name.is_empty())
            }
            None => Some(name),
        }
    }

    /// The name under which something is shown that is the caller's, or Tollgate's own for what it
    /// pushes; what is neither has none.
    pub(super) fn shown<'a>(&self, name: &'a str) -> &'a str {
        self.outer(name).unwrap_or(if is_cap(name) { name } else { "" })
    }

    /// Behind which name of the store the caller's names begin that come after one.
    pub(super) fn after<'a>(&self, after: Option<&'a str>) -> Option<Cow<'a, str>> {
        match self.bound() {
            Some(namespace) => {
                Some(Cow::Owned([namespace.prefix(), after.unwrap_or_default()].concat()))
            }
            None => after.map(Cow::Borrowed),
        }
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match parts.extensions.get::<Self>() {
            Some(caller) => Ok(caller.clone()),
            // The door leaves nothing behind where it asks for nothing, for that costs an allocation.
            None if app.tokens.is_empty() => Ok(Self::ANYONE),
            None => Err(unauthorized()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;

    pub(super) fn bound_to(namespace: &str) -> Caller {
        let spec = TokenSpec::admin(&Token::new("secret").unwrap());
        let namespace = Some(Namespace::new(namespace).unwrap());
        Caller::holder(Arc::new(TokenSpec { namespace, ..spec }))
    }

    #[test]
    fn names_go_in_and_come_out_again() {
        for name in ["stripe", "a/b", "acme/stripe", "/", " "] {
            let caller = bound_to("acme");
            assert_eq!(caller.inner(name), format!("acme/{name}"));
            assert_eq!(caller.outer(&caller.inner(name)), Some(name));
            assert_eq!(Caller::ANYONE.inner(name), name);
            assert_eq!(Caller::ANYONE.outer(name), Some(name));
        }
    }

    #[test]
    fn what_lies_elsewhere_has_no_name() {
        for name in ["", "acme", "acme/", "acme2/stripe", "stripe", "/acme/stripe", "ACME/stripe"] {
            assert_eq!(bound_to("acme").outer(name), None, "{name}");
        }
    }

    #[test]
    fn what_comes_after_a_name_is_looked_for_in_the_namespace() {
        let caller = bound_to("acme");
        assert_eq!(caller.after(None).as_deref(), Some("acme/"));
        assert_eq!(caller.after(Some("b")).as_deref(), Some("acme/b"));
        assert_eq!(Caller::ANYONE.after(None), None);
        assert_eq!(Caller::ANYONE.after(Some("b")).as_deref(), Some("b"));
    }

    #[test]
    fn an_empty_name_stays_empty() {
        assert_eq!(bound_to("acme").inner(""), "");
    }
}
