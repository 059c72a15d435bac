//! `/v1/audit`: what is told of changes, and to whom.

use super::holders::{admin_of, holder};
use super::started::Started;
use serde_json::{Value, json};
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
