//! Pages in a browser: this server's own may act on it, those from elsewhere may not.
//!
//! A page can send requests to a server on its user's machine, and without a token nothing else
//! would tell them from the user's.

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use std::net::{IpAddr, SocketAddr};

/// Whether a page from elsewhere sends this. Only browsers say where a request comes from, and not even
/// they do of what a page reads from what it takes for its own server: then the host's name tells.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(origin) = headers.get(ORIGIN) else { return host.is_some_and(is_domain) };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    match (origin, host) {
        (Some((_, origin)), Some(host)) => origin != host || !is_local(host),
        _ => true,
    }
}

/// Endings of names that nobody can buy.
const PRIVATE: [&str; 5] = [".localhost", ".internal", ".local", ".test", ".home.arpa"];

/// Whether the host is a name that somebody could have bought, and made to lead here.
fn is_domain(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_end_matches('.');
    let is_private = PRIVATE.iter().any(|ending| name.ends_with(ending));
    !is_local(host) && name.contains('.') && !is_private
}

/// Whether nobody else can make the host's name lead here, as they can with a domain of theirs.
fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == "localhost" || host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_foreign_at(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        is_foreign(&headers)
    }

    #[test]
    fn who_is_no_browser_may_come() {
        assert!(!is_foreign_at("tollgate.internal", None));
    }

    #[test]
    fn a_name_that_can_be_bought_may_be_a_trap() {
        assert!(is_foreign_at("evil.example", None) && is_foreign_at("evil.example.:8655", None));
    }

    #[test]
    fn the_pages_of_this_server_may_act_on_it() {
        for host in ["localhost:8655", "127.0.0.1:8655", "[::1]:8655", "localhost", "127.0.0.1"] {
            assert!(!is_foreign_at(host, Some(&format!("http://{host}"))), "{host}");
        }
    }

    #[test]
    fn a_page_from_elsewhere_may_not() {
        for origin in ["https://evil.example", "http://localhost:3000", "null", "file://"] {
            assert!(is_foreign_at("localhost:8655", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn a_domain_that_was_made_to_lead_here_does_not_help() {
        assert!(is_foreign_at("evil.example:8655", Some("http://evil.example:8655")));
    }
}
