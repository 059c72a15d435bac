//! Who holds which token, and what is sent with it.

use super::client::Answer;
use super::started::{JSON, Started};
use serde_json::Value;
use tollgate_server::{Namespace, Role, Roles, Token, TokenHash, TokenSpec};

/// A token that is called like its secret, with these roles.
pub(crate) fn holder(name: &str, roles: &[Role], namespace: Option<&str>) -> TokenSpec {
    let hash = TokenHash::of(&Token::new(name).unwrap());
    let namespace = namespace.map(|namespace| Namespace::new(namespace).unwrap());
    TokenSpec { name: name.to_owned(), hash, roles: Roles::of(roles.iter().copied()), namespace }
}

/// An admin of one namespace, called like it.
pub(crate) fn admin_of(namespace: &str) -> TokenSpec {
    holder(namespace, &[Role::Admin], Some(namespace))
}

impl Started {
    /// Sends a request with that token, and a body unless it is null.
    pub(crate) async fn ask_as(
        &self,
        token: &str,
        (method, path): (&str, &str),
        body: &Value,
    ) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [JSON, ("authorization", &bearer)];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.ask(method, path, &headers, &body).await
    }
}
