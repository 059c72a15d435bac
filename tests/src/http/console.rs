//! The console as it is served: a page that holds no data and loads nothing from elsewhere.

use super::client::request;
use super::started::Started;

/// The parts that the page asks for, as they are written in it.
fn parts(page: &str) -> Vec<String> {
    let texts = page.split('"').filter(|text| text.starts_with("/console/"));
    texts.map(str::to_owned).collect()
}

#[tokio::test]
async fn the_page_needs_no_token_and_loads_nothing_from_elsewhere() {
    let server = Started::with_token("s3cret").await;
    let page = server.get("/").await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
    assert!(policy.ends_with("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert!(!page.text.contains("://"), "something is loaded from elsewhere");
    server.get("/v1/limits").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn parts_are_kept_for_ever_under_the_name_of_their_content() {
    let server = Started::new().await;
    let page = server.get("/").await;
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    for address in parts(&page.text) {
        let part = server.get(&address).await;
        assert_eq!(part.status, 200, "{address}");
        assert_eq!(part.header("cache-control"), Some("public, max-age=31536000, immutable"));
        let (path, tag) = address.split_once("?v=").unwrap();
        assert_eq!(part.header("etag"), Some(&*format!("\"{tag}\"")));
        let other = server.get(&format!("{path}?v=0123456789abcdef")).await;
        assert_eq!((other.status, other.header("cache-control")), (200, Some("no-cache")));
    }
}

#[tokio::test]
async fn what_is_known_is_not_sent_again() {
    let server = Started::new().await;
    let first = server.get("/").await;
    let tag = first.header("etag").unwrap().to_owned();
    let again = server.ask("GET", "/", &[("if-none-match", &tag)], "").await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));
    let other = server.ask("GET", "/", &[("if-none-match", "\"0123456789abcdef\"")], "").await;
    assert_eq!((other.status, &other.text), (200, &first.text));
    let mut client = server.client().await;
    client.send(&request("HEAD", "/", &[], "")).await;
    assert_eq!(client.line().await.trim_end(), "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn the_console_is_only_looked_at() {
    let server = Started::with_token("s3cret").await;
    for method in ["POST", "PUT", "DELETE"] {
        let answer = server.ask(method, "/", &[], "").await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("GET,HEAD"));
    }
    for path in ["/console/", "/console/nothing.js", "/console/../v1/limits"] {
        server.get(path).await.problem(404, "unknown_route");
    }
}
