//! Roles: each route takes one, and who does not have it is told which.

use super::holders::holder;
use super::started::{JSON, Started};
use serde_json::{Value, json};
use tollgate_server::{Role, routes};

const RULE: &str = "{\"rule\":\"concurrency\",\"limit\":1}";

#[tokio::test]
async fn every_route_wants_its_role() {
    let tokens = Role::ALL.map(|role| holder(role.as_str(), &[role], None));
    let server = Started::with_tokens(tokens.into()).await;
    for route in routes() {
        for held in Role::ALL {
            let at = (route.method, route.path);
            let answer = server.ask_as(held.as_str(), at, &Value::Null).await;
            let wanted = route.role.filter(|wanted| held != *wanted && held != Role::Admin);
            match wanted {
                Some(wanted) => {
                    let told = answer.problem(403, "forbidden");
                    let named = format!("the role {wanted}, which the token \"{held}\"");
                    assert!(told.contains(&named), "{told}");
                }
                None => assert!(![401, 403].contains(&answer.status), "{at:?} {held}"),
            }
        }
    }
}

#[tokio::test]
async fn roles_add_up() {
    let both = holder("both", &[Role::Read, Role::Work], None);
    let server = Started::with_tokens(vec![both]).await;
    server.ask_as("both", ("GET", "/v1/limits"), &Value::Null).await.success();
    let call = json!({"tolls": []});
    server.ask_as("both", ("POST", "/v1/consume"), &call).await.problem(422, "no_toll");
    let answer = server.ask_as("both", ("DELETE", "/v1/limits/a"), &Value::Null).await;
    answer.problem(403, "forbidden");
}

#[tokio::test]
async fn a_partition_called_like_an_action_is_for_readers() {
    let tokens = [Role::Read, Role::Work].map(|role| holder(role.as_str(), &[role], None));
    let server = Started::with_tokens(tokens.into()).await;
    let at = ("GET", "/v1/meters/stripe/close");
    server.ask_as("work", at, &Value::Null).await.problem(403, "forbidden");
    server.ask_as("read", at, &Value::Null).await.problem(404, "unknown_limit");
}

#[tokio::test]
async fn a_change_is_written_down_with_the_token_and_who_used_it() {
    let server = Started::with_tokens(vec![holder("ci", &[Role::Admin], None)]).await;
    let bearer = ("authorization", "Bearer ci");
    server.ask("PUT", "/v1/limits/a", &[JSON, bearer], RULE).await.success();
    let said = [JSON, bearer, ("tollgate-actor", "ana")];
    let other = RULE.replace('1', "2");
    let state = server.ask("PUT", "/v1/limits/a", &said, &other).await.success();
    let who = state["history"].as_array().unwrap().iter().map(|change| change["who"].clone());
    assert_eq!(who.collect::<Vec<_>>(), ["ci", "ana via ci"]);
}

/// Who works may bring along a limit that is new, and change none.
#[tokio::test]
async fn a_worker_changes_no_limit_by_the_way() {
    let tokens = vec![holder("w", &[Role::Work], None), holder("a", &[Role::Admin], None)];
    let server = Started::with_tokens(tokens).await;
    let call = |limit: u64| {
        let define = json!({"rule": "token_bucket", "limit": limit, "per": "1h"});
        json!({"tolls": [{"limit": "stripe", "define": define}]})
    };
    let consume =
        async |who: &str, limit| server.ask_as(who, ("POST", "/v1/consume"), &call(limit)).await;
    assert_eq!(consume("w", 5).await.success()["remaining"], 4);
    assert_eq!(consume("w", 5).await.success()["remaining"], 3);
    let told = consume("w", 1_000_000).await.problem(403, "forbidden");
    assert!(told.contains("stripe"), "{told}");
    assert_eq!(consume("a", 10).await.success()["remaining"], 7);
}
