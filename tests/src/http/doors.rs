//! Who may come in, and what is said to those who knock at the wrong door.

use super::started::{JSON, Started};
use tollgate::Tollgate;
use tollgate_server::{Server, Settings, StartError, Token, TokenSpec, routes};

#[tokio::test]
async fn an_unknown_route_is_said_to_be_unknown() {
    let server = Started::new().await;
    for path in [
        "/console/nothing",
        "/v1",
        "/v1/limits/",
        "/v1/limit",
        "/v3/limits",
        "/v1/limits/a/b/c",
        "//",
    ] {
        let answer = server.get(path).await;
        assert!(answer.problem(404, "unknown_route").contains("/openapi.json"));
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let server = Started::new().await;
    for (method, path, allow) in [
        ("GET", "/v1/consume", "POST"),
        ("POST", "/v1/limits/stripe", "PUT,GET,HEAD,DELETE"),
        ("PATCH", "/v1/limits", "GET,HEAD"),
        ("DELETE", "/v1/meters/stripe/acme", "GET,HEAD"),
        ("PUT", "/v1/meters/stripe/close", "POST,GET,HEAD"),
    ] {
        let answer = server.ask(method, path, &[], "").await;
        answer.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
    }
}

#[tokio::test]
async fn an_actor_has_a_name_that_can_be_kept() {
    let server = Started::new().await;
    let rule = "{\"rule\":\"concurrency\",\"limit\":1}";
    for who in [&"x".repeat(129), "ümit", ""] {
        let headers = [JSON, ("tollgate-actor", who)];
        let answer = server.ask("PUT", "/v1/limits/a", &headers, rule).await;
        answer.problem(400, "invalid_actor");
    }
    server.get("/v1/limits/a").await.problem(404, "unknown_limit");
}

#[tokio::test]
async fn the_server_says_that_it_lives() {
    let server = Started::new().await;
    assert_eq!(server.get("/healthz").await.success(), serde_json::json!({"status": "ok"}));
}

#[tokio::test]
async fn without_the_token_every_route_but_health_is_shut() {
    let server = Started::with_token("s3cret").await;
    for route in routes().iter().filter(|route| route.role.is_some()) {
        let answer = server.ask(route.method, route.path, &[], "").await;
        assert!(answer.problem(401, "unauthorized").contains("Authorization: Bearer"));
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    server.get("/nowhere").await.problem(401, "unauthorized");
    server.get("/healthz").await.success();
}

#[tokio::test]
async fn only_the_token_itself_opens() {
    let server = Started::with_token("s3cret").await;
    for wrong in ["s3cret", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret"] {
        let answer = server.ask("GET", "/v1/limits", &[("authorization", wrong)], "").await;
        answer.problem(401, "unauthorized");
    }
    for right in ["Bearer s3cret", "bearer s3cret"] {
        server.ask("GET", "/v1/limits", &[("authorization", right)], "").await.success();
    }
}

#[tokio::test]
async fn beyond_loopback_a_token_is_needed() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:10.0.0.1]:0"] {
        let settings = Settings::new(listen.parse().unwrap());
        let error = Server::bind(Tollgate::memory(), settings).await.unwrap_err();
        assert!(matches!(error, StartError::TokenMissing { .. }), "{listen}");
        assert!(error.to_string().contains("set TOLLGATE_TOKEN"), "{error}");
    }
    let tokens = vec![TokenSpec::admin(&Token::new("s3cret").unwrap())];
    let settings = Settings { tokens, ..Settings::new("0.0.0.0:0".parse().unwrap()) };
    Server::bind(Tollgate::memory(), settings).await.unwrap();
}

#[tokio::test]
async fn a_page_from_elsewhere_may_not_act() {
    let server = Started::per_second("stripe", 1).await;
    let origin = [("origin", "https://evil.example")];
    let answer = server.ask("POST", "/v1/meters/stripe/reset", &origin, "").await;
    answer.problem(403, "foreign_origin");
    let server = Started::with_token("s3cret").await;
    let shown = [origin[0], ("authorization", "Bearer s3cret")];
    server.ask("GET", "/v1/limits", &shown, "").await.success();
}

#[tokio::test]
async fn tokens_are_replaced_while_the_server_runs() {
    let admin = |token: &str| TokenSpec::admin(&Token::new(token).unwrap());
    let server = Started::with_token("old").await;
    server.reloader.replace_tokens(vec![admin("new")]).unwrap();
    let shown = |token: &'static str| [("authorization", token)];
    let old = server.ask("GET", "/v1/limits", &shown("Bearer old"), "").await;
    old.problem(401, "unauthorized");
    server.ask("GET", "/v1/limits", &shown("Bearer new"), "").await.success();
    // Two of one name do not do, and nothing is changed.
    server.reloader.replace_tokens(vec![admin("a"), admin("b")]).unwrap_err();
    server.ask("GET", "/v1/limits", &shown("Bearer new"), "").await.success();
    server.reloader.replace_tokens(Vec::new()).unwrap();
    server.get("/v1/limits").await.success();
}

#[tokio::test]
async fn the_last_token_stays_where_others_can_reach_the_server() {
    let tokens = vec![TokenSpec::admin(&Token::new("s3cret").unwrap())];
    let settings = Settings { tokens, ..Settings::new("0.0.0.0:0".parse().unwrap()) };
    let server = Server::bind(Tollgate::memory(), settings).await.unwrap();
    let error = server.reloader().replace_tokens(Vec::new()).unwrap_err();
    assert!(matches!(error, StartError::TokenMissing { .. }), "{error}");
}

/// A name that somebody bought may be made to lead to this machine: a page there could read all.
#[tokio::test]
async fn a_domain_that_leads_here_is_not_served_without_a_token() {
    let server = Started::new().await;
    let ask = async |host: &str| {
        let text = format!("GET /v1/limits HTTP/1.1\r\nhost: {host}\r\n\r\n");
        server.send(text.as_bytes()).await
    };
    for host in ["evil.example:8655", "evil.example", "evil.example."] {
        ask(host).await.problem(403, "foreign_origin");
    }
    for host in ["localhost:8655", "127.0.0.1:8655", "[::1]:8655", "tollgate", "a.localhost:1"] {
        ask(host).await.success();
    }
}
