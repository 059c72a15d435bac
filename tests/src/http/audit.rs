//! `/v1/audit`: what is told of changes, and to whom.

use super::holders::{admin_of, holder};
use super::started::Started;
use serde_json::{Value, json};
use tollgate::Limit;
use tollgate::lanes::QueueSpec;
use tollgate_server::Role;

/// Two namespaces, of which each changed something; `None` in memory, where there is no log.
async fn changed() -> Option<Started> {
    if std::env::var_os("TOLLGATE_TESTS_IN_MEMORY").is_some() {
        return None;
    }
    let all = holder("all", &[Role::Admin], None);
    let server = Started::with_tokens(vec![admin_of("acme"), admin_of("globex"), all]).await;
    for (limit, who) in [(1, "acme"), (2, "globex"), (3, "acme"), (4, "acme")] {
        let rule = json!({"rule": "concurrency", "limit": limit});
        server.ask_as(who, ("PUT", "/v1/limits/stripe"), &rule).await.success();
    }
    let own = json!({"rule": "concurrency", "limit": 5});
    let path = "/v1/limits/stripe/partitions/big";
    server.ask_as("acme", ("PUT", path), &own).await.success();
    server.gate.queue_as("acme", "acme/mail", QueueSpec::default()).await.unwrap();
    Some(server)
}

/// Who, kind, name, action and the part of it, of the newest change that is told.
async fn newest(server: &Started) -> String {
    let page = server.ask_as("acme", ("GET", "/v1/audit?limit=1"), &Value::Null).await.success();
    let fields = ["who", "kind", "name", "action", "partition", "lane", "for_ms", "reason"];
    let change = &page["changes"][0];
    let told = fields.iter().filter_map(|field| change.get(*field));
    let told = told.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    told.collect::<Vec<_>>().join(" ")
}

/// Kind and name of each change that is told, and `next`.
async fn told(server: &Started, who: &str, query: &str) -> (Vec<String>, Value) {
    let path = format!("/v1/audit{query}");
    let page = server.ask_as(who, ("GET", &path), &Value::Null).await.success();
    let changes = page["changes"].as_array().unwrap().iter().map(|change| {
        format!("{} {}", change["kind"].as_str().unwrap(), change["name"].as_str().unwrap())
    });
    (changes.collect(), page["next"].clone())
}

#[tokio::test]
async fn changes_are_told_to_those_whose_they_are() {
    let Some(server) = changed().await else { return };
    let own = ["queue mail", "override stripe", "limit stripe", "limit stripe", "limit stripe"];
    assert_eq!(told(&server, "acme", "").await, (own.map(String::from).to_vec(), Value::Null));
    let (globex, _) = told(&server, "globex", "").await;
    assert_eq!(globex, ["limit stripe"]);
    assert_eq!(told(&server, "all", "").await.0.len(), 6);
}

#[tokio::test]
async fn changes_come_page_by_page() {
    let Some(server) = changed().await else { return };
    let (first, next) = told(&server, "acme", "?limit=3").await;
    assert_eq!(first, ["queue mail", "override stripe", "limit stripe"]);
    let rest = format!("?limit=3&after={}", next.as_str().unwrap());
    let (second, next) = told(&server, "acme", &rest).await;
    assert_eq!((second.len(), next), (2, Value::Null));
    let wrong = server.ask_as("acme", ("GET", "/v1/audit?after=x"), &Value::Null).await;
    wrong.problem(400, "invalid_query");
}

#[tokio::test]
async fn a_change_tells_who_and_what_was_before() {
    let Some(server) = changed().await else { return };
    let page = server.ask_as("acme", ("GET", "/v1/audit"), &Value::Null).await.success();
    let change = &page["changes"][2];
    assert_eq!(change["who"], "acme");
    assert_eq!(change["before"], json!({"rule": "concurrency", "limit": 3}));
    assert_eq!(change["after"], json!({"rule": "concurrency", "limit": 4}));
    assert_eq!(page["changes"][1]["partition"], "big");
    assert_eq!(page["changes"][0]["after"]["order"], "strict");
}

#[tokio::test]
async fn whatever_an_operator_does_has_a_line() {
    let Some(server) = changed().await else { return };
    for (path, told) in [
        ("limits/stripe/pause", "limit stripe pause"),
        ("limits/stripe/resume", "limit stripe resume"),
        ("queues/mail/pause", "queue mail pause"),
        ("queues/mail/resume", "queue mail resume"),
        ("queues/mail/lanes/a/pause", "lane mail pause a"),
        ("queues/mail/lanes/a/resume", "lane mail resume a"),
        ("meters/stripe/big/close", "meter stripe close big 30000 maintenance"),
        ("meters/stripe/big/reopen", "meter stripe reopen big"),
        ("meters/stripe/big/reset", "meter stripe reset big"),
        ("meters/stripe/close", "meter stripe close 30000 maintenance"),
        ("meters/stripe/reopen", "meter stripe reopen"),
        ("meters/stripe/reset", "meter stripe reset"),
    ] {
        let is_closed = path.ends_with("/close");
        let body =
            if is_closed { json!({"for": "30s", "reason": "maintenance"}) } else { json!({}) };
        server.ask_as("acme", ("POST", &format!("/v1/{path}")), &body).await.success();
        assert_eq!(newest(&server).await, format!("acme {told}"));
    }
    let (globex, _) = told(&server, "globex", "").await;
    assert_eq!(globex, ["limit stripe"], "what others do is not told");
}

#[tokio::test]
async fn changes_of_one_name_and_kind_are_found_behind_all_others() {
    let Some(server) = changed().await else { return };
    // More than one look takes, of another limit.
    for limit in 1..=1_001 {
        server.gate.limit_as("acme", "acme/busy", Limit::concurrency(limit)).await.unwrap();
    }
    let (first, next) = told(&server, "acme", "?name=stripe&limit=3").await;
    assert_eq!(first, ["override stripe", "limit stripe", "limit stripe"]);
    let rest = format!("?name=stripe&limit=3&after={}", next.as_str().unwrap());
    assert_eq!(told(&server, "acme", &rest).await, (vec!["limit stripe".to_owned()], Value::Null));
    let (queues, _) = told(&server, "acme", "?kind=queue,lane").await;
    assert_eq!(queues, ["queue mail"]);
    assert_eq!(told(&server, "acme", "?name=stripe&kind=override").await.0.len(), 1);
    assert_eq!(told(&server, "globex", "?name=stripe").await.0.len(), 1);
    assert_eq!(told(&server, "globex", "?name=busy").await.0.len(), 0);
    for query in ["kind=limits", "kind=", "kind=limit,", "names=stripe"] {
        let path = format!("/v1/audit?{query}");
        server.ask_as("acme", ("GET", &path), &Value::Null).await.problem(400, "invalid_query");
    }
}
