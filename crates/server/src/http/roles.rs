//! Which role each route wants, found by the path as the router finds the route.

use super::routes::Route;
use crate::access::Role;
use axum::http::Method;
use std::collections::BTreeMap;

/// Methods and their roles at one path.
type Wants = Vec<(&'static str, Option<Role>)>;

/// The roles that all routes want.
pub(super) struct RoleTable {
    paths: matchit::Router<Wants>,
    /// Paths that want no token.
    open: Vec<&'static str>,
}

impl RoleTable {
    pub(super) fn new(routes: &[Route]) -> Self {
        let mut wants: BTreeMap<&'static str, Wants> = BTreeMap::new();
        for route in routes {
            wants.entry(route.path).or_default().push((route.method, route.role));
        }
        let is_open = |wants: &Wants| wants.iter().all(|(_, role)| role.is_none());
        let open = wants.iter().filter(|(_, wants)| is_open(wants)).map(|(path, _)| *path);
        let open = open.collect();
        let mut paths = matchit::Router::new();
        for (path, wants) in wants {
            // The router of requests would not take such a path, either; and what is not found here
            // is shut.
            let _ = paths.insert(path, wants);
        }
        Self { paths, open }
    }

    /// Whether everyone may look there, without a token.
    pub(super) fn is_open(&self, path: &str) -> bool {
        self.open.contains(&path)
    }

    /// What a request takes. One that is not in the table, which the router may still answer, takes
    /// the role of a reader if it reads and of an admin if it does not.
    pub(super) fn wanted(&self, method: &Method, path: &str) -> Role {
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        let method = if is_read { "GET" } else { method.as_str() };
        let found = self.paths.at(path).ok().and_then(|found| {
            let mut wants = found.value.iter();
            wants.find(|(other, _)| *other == method).and_then(|(_, role)| *role)
        });
        found.unwrap_or(if is_read { Role::Read } else { Role::Admin })
    }
}

#[cfg(test)]
mod tests {
    use super::super::routes::routes;
    use super::*;

    #[test]
    fn every_route_is_found_with_its_role() {
        let table = RoleTable::new(&routes());
        for route in routes() {
            let method = Method::from_bytes(route.method.as_bytes()).unwrap();
            let path = route.path.replace(['{', '}'], "");
            match route.role {
                Some(role) => assert_eq!(table.wanted(&method, &path), role, "{path}"),
                None => assert!(table.is_open(&path), "{path}"),
            }
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_shut() {
        let table = RoleTable::new(&routes());
        for path in ["/", "/v1/limits/a/b/c", "/v1/meters/a/close", "/healthz/"] {
            assert!(!table.is_open(path), "{path}");
            assert_eq!(table.wanted(&Method::HEAD, path), Role::Read, "{path}");
            assert_eq!(table.wanted(&Method::PATCH, path), Role::Admin, "{path}");
        }
    }
}
