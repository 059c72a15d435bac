//! Namespaces: what is in one does not exist for the others, whichever route is asked.

use super::client::{Answer, request};
use super::holders::{admin_of, holder};
use super::started::Started;
use serde_json::{Value, json};
use tollgate_server::{Role, Route, routes};

/// What `acme` has and nobody else may learn: a number, and what all its names and reasons contain.
const SECRETS: [&str; 2] = ["7919", "acme"];

/// What is looked at to see that nothing of acme's changed. A new kind of thing is added here, in
/// `make_calls` and, with a request for each of its routes, in `example`.
const LOOKS: [&str; 4] =
    ["/v1/limits", "/v1/limits/stripe", "/v1/meters/stripe", "/v1/meters/stripe/big"];
/// The same for what is kept in a folder.
const LOOKS_AT_CALLS: [&str; 10] = [
    "/v1/queues",
    "/v1/queues/charges",
    "/v1/queues/charges/lanes",
    "/v1/queues/charges/calls",
    "/v1/calls/{id}",
    "/v1/dead?queue=charges",
    "/v1/queues/hooks",
    "/v1/queues/hooks/calls",
    "/v1/schedules",
    "/v1/schedules/stripe",
];

/// A server for acme, globex and one who sees everything.
struct World {
    server: Started,
    /// Of acme: it holds a slot.
    receipt: String,
    calls: Calls,
}

/// What acme has of calls: the lease of one in flight, the names of one that waits and of a dead one.
#[derive(Default)]
struct Calls {
    lease: String,
    waiting: String,
    dead: String,
}

impl World {
    /// A world in which acme has one of each.
    async fn new() -> Self {
        let tokens =
            vec![admin_of("acme"), admin_of("globex"), holder("all", &[Role::Admin], None)];
        let server = Started::with_tokens(tokens).await;
        let receipt = make_limits(&server).await;
        let calls = if is_in_memory() { Calls::default() } else { make_calls(&server).await };
        Self { server, receipt, calls }
    }

    async fn ask(&self, token: &str, at: (&str, &str), body: &Value) -> Answer {
        self.server.ask_as(token, at, body).await
    }

    /// All that acme sees of its things.
    async fn seen(&self) -> Vec<Value> {
        let calls = if is_in_memory() { &[][..] } else { &LOOKS_AT_CALLS };
        let mut seen = Vec::new();
        for path in LOOKS.iter().chain(calls) {
            let path = path.replace("{id}", &self.calls.waiting);
            seen.push(self.ask("acme", ("GET", &path), &Value::Null).await.success());
        }
        seen
    }

    /// Sends what the route takes, about things of acme's names, with acme's receipt and lease.
    async fn ask_route(&self, token: &str, route: &Route) -> Answer {
        let names = [
            ("{name}", "stripe"),
            ("{partition}", "big"),
            ("{receipt}", &self.receipt),
            ("{queue}", "charges"),
            ("{lane}", "big"),
            ("{id}", &self.calls.waiting),
        ];
        let named = |path: String, (place, name): &(&str, &str)| path.replace(place, name);
        let mut path = names.iter().fold(route.path.to_owned(), named);
        if route.path == "/v1/dead" {
            path.push_str("?queue=charges");
        }
        self.ask(token, (route.method, &path), &self.example(route)).await
    }

    /// The body that a route takes; null for none.
    fn example(&self, route: &Route) -> Value {
        match (route.method, route.path) {
            ("PUT", "/v1/queues/{queue}") => json!({"lease": "5s"}),
            ("PUT", "/v1/queues/{queue}/lanes/{lane}") => json!({"weight": 3}),
            ("PUT", "/v1/schedules/{name}") => {
                json!({"queue": "charges", "at": "2030-01-01T00:00:00Z", "call": {"lane": "big"}})
            }
            ("PUT", _) => json!({"rule": "token_bucket", "limit": 5, "per": "1s"}),
            ("POST", "/v1/consume") => json!({"tolls": [{"limit": "stripe", "partition": "big"}]}),
            ("POST", "/v1/queues/{queue}/calls") => json!({"lane": "big"}),
            ("POST", "/v1/queues/{queue}/claim") => json!({}),
            ("POST", "/v1/settle") => {
                json!([{"lease": self.calls.lease, "outcome": "done", "report": "acme paid 7919"}])
            }
            ("POST", "/v1/leases/renew") => json!({"leases": [self.calls.lease], "for": "50s"}),
            ("POST", path) if path.starts_with("/v1/dead/") => json!({"ids": [self.calls.dead]}),
            ("POST", path) if path.ends_with("/close") => json!({"for": "1m"}),
            _ => Value::Null,
        }
    }
}

fn is_in_memory() -> bool {
    std::env::var_os("TOLLGATE_TESTS_IN_MEMORY").is_some()
}

/// A limit with all that makes it acme's own; a receipt that holds a slot there.
async fn make_limits(server: &Started) -> String {
    let ask = async |method, path, body: Value| {
        server.ask_as("acme", (method, path), &body).await.success()
    };
    let rules = json!({"rules": [
        {"rule": "token_bucket", "limit": 7919, "per": "1m"},
        {"rule": "concurrency", "limit": 100},
    ]});
    ask("PUT", "/v1/limits/stripe", rules.clone()).await;
    ask("PUT", "/v1/limits/stripe/pin", rules.clone()).await;
    ask("PUT", "/v1/limits/stripe/partitions/big", rules).await;
    let call = json!({"tolls": [{"limit": "stripe", "partition": "big"}], "receipt": "10m"});
    let granted = ask("POST", "/v1/consume", call).await;
    let closure = json!({"for": "1m", "reason": "acme is closed"});
    ask("POST", "/v1/meters/stripe/close", closure).await;
    granted["receipt"].as_str().unwrap().to_owned()
}

/// A queue with a dead call, one in flight and one that waits, one whose calls are delivered, and a
/// schedule.
async fn make_calls(server: &Started) -> Calls {
    let ask = async |method, path, body: Value| {
        server.ask_as("acme", (method, path), &body).await.success()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    ask("PUT", "/v1/queues/charges", json!({"depth_max": 7919})).await;
    let call = |lane: &str| json!({"lane": lane, "body": "acme pays 7919"});
    let start = async |lane| {
        let ids = ask("POST", "/v1/queues/charges/calls", call(lane)).await;
        let claimed = ask("POST", "/v1/queues/charges/claim", json!({})).await;
        (text(&ids["ids"][0]), text(&claimed["calls"][0]["lease"]))
    };
    let (dead, lease_of_dead) = start("dead").await;
    let (_, lease) = start("held").await;
    let settled = json!([{"lease": lease_of_dead, "outcome": "dead"}]);
    assert_eq!(ask("POST", "/v1/settle", settled).await["settled"][0]["settled"], true);
    let toll = json!({"limit": "stripe", "partition": "big"});
    let waits = json!({"lane": "big", "body": "acme pays 7919", "tolls": [toll], "delay": "1h"});
    let waiting = text(&ask("POST", "/v1/queues/charges/calls", waits).await["ids"][0]);
    let to = json!({"url": "https://acme.example/7919", "costs": {"acme": "header.x-7919"}});
    ask("PUT", "/v1/queues/hooks", json!({ "destination": to })).await;
    ask("POST", "/v1/queues/hooks/pause", json!({})).await;
    ask("POST", "/v1/queues/hooks/calls", json!({"lane": "big", "destination": to})).await;
    let tick = json!({"queue": "charges", "cron": "0 9 * * *", "call": call("big")});
    ask("PUT", "/v1/schedules/stripe", tick).await;
    Calls { lease, waiting, dead }
}

/// Whether there is such a thing: in memory there are limits alone.
fn is_served(route: &Route) -> bool {
    let in_memory = ["/v1/limits", "/v1/meters", "/v1/consume", "/v1/receipts"];
    let is_limit = in_memory.iter().any(|path| route.path.starts_with(path));
    // A stream has no end that could be waited for: a test of its own follows it.
    let is_stream = route.path == "/v1/events";
    let is_held_back = route.path.ends_with("/pause") || route.path.ends_with("/resume");
    !is_stream && (!is_in_memory() || is_limit && !is_held_back)
}

#[tokio::test]
async fn nothing_crosses_from_one_namespace_to_another() {
    for route in routes().into_iter().filter(is_served) {
        let (world, at) = (World::new().await, format!("{} {}", route.method, route.path));
        let before = world.seen().await;
        let answer = world.ask_route("globex", &route).await;
        for secret in SECRETS.into_iter().filter(|_| route.path != "/openapi.json") {
            assert!(!answer.text.contains(secret), "{at} tells {secret}: {}", answer.text);
        }
        assert_eq!(world.seen().await, before, "{at} changes what is acme's");
        let own = world.ask_route("acme", &route).await;
        // A queue with calls stays, and only who may see it is told of them.
        let is_kept = (route.method, route.path) == ("DELETE", "/v1/queues/{queue}");
        // Workflows, runs and forecasts are in no namespace, and told so.
        let whole = ["/v1/workflows", "/v1/runs", "/v1/forecast"];
        let is_whole = whole.iter().any(|it| route.path.starts_with(it));
        let done = if is_kept {
            409
        } else if is_whole {
            403
        } else {
            200
        };
        assert_eq!(own.status, done, "{at} is tried in vain: {}", own.text);
        assert!(!own.text.contains("false,\"problem"), "{at} is tried in vain: {}", own.text);
    }
}

#[tokio::test]
async fn two_namespaces_have_limits_of_one_name() {
    let world = World::new().await;
    let define = json!({"rule": "token_bucket", "limit": 1, "per": "1m"});
    let call = json!({"tolls": [{"limit": "stripe", "define": define}]});
    let granted = world.ask("globex", ("POST", "/v1/consume"), &call).await;
    assert_eq!(granted.success()["remaining"], 0);
    assert!(granted.header("ratelimit").unwrap().starts_with("\"stripe\";"));
    let refused = world.ask("globex", ("POST", "/v1/consume"), &call).await;
    assert!(refused.problem(429, "refused").starts_with("limit stripe refuses"));
    assert_eq!(refused.field("limit"), "stripe");
    assert!(refused.header("ratelimit-policy").unwrap().starts_with("\"stripe\";"));
    let page = world.ask("all", ("GET", "/v1/limits"), &Value::Null).await.success();
    let names = page["limits"].as_array().unwrap().iter().map(|limit| limit["name"].clone());
    // Those of pushes are Tollgate's own.
    let names = names.filter(|name| !name.as_str().unwrap().starts_with("tollgate:"));
    assert_eq!(names.collect::<Vec<_>>(), ["acme/stripe", "globex/stripe"]);
}

#[tokio::test]
async fn pages_of_a_namespace_are_its_own() {
    let world = World::new().await;
    let rule = json!({"rule": "concurrency", "limit": 1});
    for name in ["c", "a", "b"] {
        let path = format!("/v1/limits/{name}");
        world.ask("globex", ("PUT", &path), &rule).await.success();
    }
    let page = async |query: &str| {
        let path = format!("/v1/limits?limit=2{query}");
        let page = world.ask("globex", ("GET", &path), &Value::Null).await.success();
        let names = page["limits"].as_array().unwrap().iter().map(|limit| limit["name"].clone());
        (names.collect::<Vec<_>>(), page["next"].clone())
    };
    assert_eq!(page("").await, (vec![json!("a"), json!("b")], json!("b")));
    assert_eq!(page("&after=b").await, (vec![json!("c")], Value::Null));
}

#[tokio::test]
async fn a_receipt_is_good_in_its_own_namespace_alone() {
    let world = World::new().await;
    let path = format!("/v1/receipts/{}/settle", world.receipt);
    let actual = json!({"actual": {"stripe": 1}});
    for stranger in ["globex", "all"] {
        let answer = world.ask(stranger, ("POST", &path), &actual).await;
        answer.problem(404, "receipt_unknown");
    }
    let wrong = json!({"actual": {"paypal": 1}});
    let told = world.ask("acme", ("POST", &path), &wrong).await.problem(422, "not_paid");
    assert!(told.contains("limit paypal"), "{told}");
    world.ask("acme", ("POST", &path), &actual).await.success();
}

#[tokio::test]
async fn an_error_names_what_the_caller_named() {
    let world = World::new().await;
    let (unknown, long) = ("/v1/limits/acme%2Fstripe".to_owned(), "x".repeat(506));
    let told = world.ask("globex", ("GET", &unknown), &Value::Null).await;
    assert!(told.problem(404, "unknown_limit").starts_with("no limit is called \"acme/stripe\""));
    let rule = json!({"rule": "concurrency", "limit": 1});
    let told = world.ask("globex", ("PUT", &format!("/v1/limits/{long}")), &rule).await;
    let told = told.problem(422, "name_too_long");
    assert!(told.contains("up to 505 bytes, and this one has 506"), "{told}");
    let nameless = json!({"tolls": [{"limit": ""}]});
    world.ask("globex", ("POST", "/v1/consume"), &nameless).await.problem(422, "name_empty");
}

#[tokio::test]
async fn a_stream_of_events_tells_of_ones_own() {
    if is_in_memory() {
        return;
    }
    let world = World::new().await;
    world.ask("globex", ("PUT", "/v1/queues/charges"), &json!({})).await.success();
    let mut client = world.server.client().await;
    client.send(&request("GET", "/v1/events", &[("authorization", "Bearer globex")], "")).await;
    client.answer().await.unwrap();
    while !client.line().await.starts_with(": events after ") {}
    for (who, lane) in [("acme", "theirs"), ("globex", "own")] {
        let call = json!({"lane": lane});
        world.ask(who, ("POST", "/v1/queues/charges/calls"), &call).await.success();
    }
    loop {
        let line = client.line().await;
        if let Some(event) = line.strip_prefix("data: ") {
            assert!(event.contains("\"lane\":\"own\""), "{event}");
            assert!(event.contains("\"queue\":\"charges\""), "{event}");
            return;
        }
    }
}
