//! What is written about the API: `openapi.json` and `docs/http.md` tell of each route and code.

use super::started::Started;
use serde_json::Value;
use std::collections::BTreeSet;
use tollgate_server::{OPENAPI, Role, codes, routes};

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// The page for people.
const PAGE: &str = include_str!("../../../docs/http.md");

fn description() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

#[tokio::test]
async fn the_description_is_served() {
    let server = Started::new().await;
    assert_eq!(server.get("/openapi.json").await.success(), description());
}

#[test]
fn every_route_is_described_and_every_description_is_a_route() {
    let described = description();
    let paths = described["paths"].as_object().unwrap().iter();
    let described: BTreeSet<String> = paths
        .flat_map(|(path, operations)| {
            let methods = METHODS.iter().filter(|method| operations.get(**method).is_some());
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let routed: BTreeSet<String> =
        routes().iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    assert_eq!(described, routed);
}

#[test]
fn every_operation_says_its_role() {
    let described = description();
    for route in routes() {
        let operation = &described["paths"][route.path][route.method.to_lowercase()];
        let role = route.role.map(Role::as_str);
        assert_eq!(operation["x-role"].as_str(), role, "{} {}", route.method, route.path);
    }
}

#[test]
fn every_code_is_described_with_its_status() {
    let problem = &description()["components"]["schemas"]["Problem"];
    let listed = problem["properties"]["code"]["enum"].as_array().unwrap();
    let listed: BTreeSet<&str> = listed.iter().map(|code| code.as_str().unwrap()).collect();
    assert_eq!(listed, codes().map(|(code, _)| code).collect());
    let table = problem["description"].as_str().unwrap();
    for (code, status) in codes() {
        assert!(table.contains(&format!("| {code} | {status} | ")), "{code}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let description = description();
    let mut rest = vec![&description];
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    let target = description.pointer(reference.trim_start_matches('#'));
                    assert!(target.is_some(), "{reference}");
                }
                rest.extend(fields.values());
            }
            Value::Array(values) => rest.extend(values),
            _ => {}
        }
    }
}

#[test]
fn every_operation_has_a_name_a_summary_and_an_answer() {
    let description = description();
    let mut names = BTreeSet::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for operation in METHODS.iter().filter_map(|method| operations.get(*method)) {
            assert!(operation["summary"].is_string(), "{path}");
            assert!(operation["responses"]["200"]["content"].is_object(), "{path}");
            assert!(names.insert(operation["operationId"].as_str().unwrap()), "{path}");
        }
    }
}

#[test]
fn the_page_for_people_shows_every_route() {
    for route in routes() {
        let title = format!("{} {}", route.method, route.path);
        assert!(PAGE.contains(&title), "docs/http.md does not show {title}");
    }
}
