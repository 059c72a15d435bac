//! The console: pages for people, built into the binary. They hold no data; what they show they ask the API for, as anyone
//! does, and with the token of who looks.

use crate::http::problem::{Problem, method_not_allowed, unknown_route};
use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Where the first page is.
const PAGE: &str = "/";
/// Below this is all that the page is made of.
const PARTS: &str = "/console/";

/// Nothing from elsewhere is loaded, run, asked or framed; what is on the page came with the binary.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What has its content in its address stays as it is for ever: a year is as long as anyone keeps it.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// All else is asked for again, and answered with 304 if it is the same.
const ASK_AGAIN: &str = "no-cache";

/// Bytes of the hash that tell one content from another.
const TAG_BYTES: usize = 8;

/// One file as it was built.
struct Asset {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

/// A file of `console/dist`, at its path.
macro_rules! asset {
    ($path:expr, $name:literal, $kind:literal) => {
        Asset {
            path: $path,
            kind: $kind,
            bytes: include_bytes!(concat!("../console/dist/", $name)),
        }
    };
}

const ASSETS: [Asset; 6] = [
    asset!(PAGE, "index.html", "text/html; charset=utf-8"),
    asset!("/console/console.js", "console.js", "text/javascript; charset=utf-8"),
    asset!("/console/console.css", "console.css", "text/css; charset=utf-8"),
    asset!("/console/icon.svg", "icon.svg", "image/svg+xml"),
    asset!("/console/sans.woff2", "sans.woff2", "font/woff2"),
    asset!("/console/mono.woff2", "mono.woff2", "font/woff2"),
];

/// The files with what tells their contents apart.
pub(crate) struct Console {
    tagged: Vec<(Asset, String)>,
}

impl Console {
    pub(crate) fn new() -> Self {
        let tagged = ASSETS.into_iter().map(|asset| {
            let tag = tag(asset.bytes);
            (asset, tag)
        });
        Self { tagged: tagged.collect() }
    }

    /// Whether this path is the console's.
    pub(crate) fn is_at(path: &str) -> bool {
        path == PAGE || path.starts_with(PARTS)
    }

    /// Answers who asks for a page. Nobody needs a token for it.
    pub(crate) async fn answer(&self, method: Method, uri: Uri, headers: &HeaderMap) -> Response {
        let Some((asset, tag)) = self.tagged.iter().find(|(asset, _)| asset.path == uri.path())
        else {
            return unknown_route(uri).await.into_response();
        };
        if !matches!(method, Method::GET | Method::HEAD) {
            return not_allowed(method, uri).await.into_response();
        }
        let is_dated = uri.query().is_some_and(|query| query.strip_prefix("v=") == Some(tag));
        let known = headers.get(IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        let mut response = match known {
            Some(tags) if tags.contains(tag.as_str()) => StatusCode::NOT_MODIFIED.into_response(),
            _ if method == Method::HEAD => whole(asset, Body::empty()),
            _ => whole(asset, Body::from(asset.bytes)),
        };
        let kept = if is_dated { FOR_EVER } else { ASK_AGAIN };
        set(&mut response, CACHE_CONTROL, kept);
        set(&mut response, ETAG, &format!("\"{tag}\""));
        set(&mut response, CONTENT_SECURITY_POLICY, POLICY);
        set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(&mut response, REFERRER_POLICY, "no-referrer");
        response
    }
}

fn whole(asset: &Asset, body: Body) -> Response {
    let mut response = Response::new(body);
    set(&mut response, CONTENT_TYPE, asset.kind);
    response.headers_mut().insert(CONTENT_LENGTH, asset.bytes.len().into());
    response
}

fn set(response: &mut Response, name: HeaderName, value: &str) {
    // All values are ours, and text.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    let problem = method_not_allowed(method, uri).await;
    problem.header(ALLOW, HeaderValue::from_static("GET,HEAD"))
}

/// Tells a content from any other; `build.mjs` writes the same behind the addresses in the page.
fn tag(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(TAG_BYTES).fold(String::new(), |mut tag, byte| {
        // Writing to a text cannot fail.
        let _ = write!(tag, "{byte:02x}");
        tag
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_for_its_parts_as_they_are_and_for_no_others() {
        let page = std::str::from_utf8(ASSETS[0].bytes).unwrap();
        let asked = page.split('"').filter(|text| text.starts_with(PARTS));
        let asked: Vec<&str> = asked.collect();
        assert!(asked.len() >= 3, "{asked:?}");
        let console = Console::new();
        for address in asked {
            let (path, version) = address.split_once("?v=").unwrap();
            let found = console.tagged.iter().find(|(asset, _)| asset.path == path);
            assert_eq!(found.map(|(_, tag)| tag.as_str()), Some(version), "{address}");
        }
    }
}
