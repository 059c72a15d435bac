//! The server over real sockets: every route, every mistake, in turn and to the end.

mod client;
mod consuming;
mod mistakes;
mod operating;
mod receipts;
mod stopping;

use client::{Answer, Client};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tollgate::{Clock, ManualClock, Tollgate};
use tollgate_server::{Server, Settings, Token};

/// A server on a free port, with a clock that stands still.
struct Served {
    clock: ManualClock,
    gate: Tollgate,
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn new() -> Self {
        Self::with_token(None).await
    }

    async fn with_token(token: Option<Token>) -> Self {
        let clock = ManualClock::new();
        let gate = Tollgate::builder().clock(clock.clone()).memory();
        let settings = Settings { listen: ([127, 0, 0, 1], 0).into(), token };
        let server = Server::bind(gate.clone(), settings).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Self { clock, gate, address, stop, serving }
    }

    /// With the limit `api` defined as told.
    async fn limited(definition: Value) -> Self {
        let served = Self::new().await;
        let answer = served.ask("PUT", "/v1/limits/api", &definition).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        served
    }

    async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.connect().await.ask(method, path, &body).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.connect().await.ask("GET", path, "").await
    }

    async fn consume(&self, request: Value) -> Answer {
        self.ask("POST", "/v1/consume", &request).await
    }

    /// Returns when so much weight waits at the meter.
    async fn until_waiting(&self, weight: u64) {
        while self.gate.meter("api", None).await.unwrap().waiting != weight {
            tokio::task::yield_now().await;
        }
    }
}

fn one_toll() -> Value {
    json!({ "tolls": [{ "limit": "api" }] })
}

#[tokio::test]
async fn a_server_beyond_loopback_needs_a_token() {
    let settings = Settings { listen: ([0, 0, 0, 0], 0).into(), token: None };
    let error = Server::bind(Tollgate::memory(), settings).await.unwrap_err();
    assert!(error.to_string().contains("set TOLLGATE_TOKEN"), "{error}");
}

#[tokio::test]
async fn a_request_without_the_token_is_turned_away_and_health_is_not() {
    let served = Served::with_token(Some(Token::new("open-sesame").unwrap())).await;
    assert_eq!(served.get("/v1/limits").await.status, 401);
    assert_eq!(served.get("/healthz").await.status, 200);
    let mut client = served.connect().await;
    let with =
        |token| format!("GET /v1/limits HTTP/1.1\r\nhost: t\r\nauthorization: {token}\r\n\r\n");
    for (token, status) in [("Bearer open-sesame", 200), ("Bearer other", 401), ("Basic x", 401)] {
        assert_eq!(client.send(&with(token)).await.status, status, "{token}");
    }
}

#[tokio::test]
async fn the_description_lists_every_route_and_no_other() {
    let served = Served::new().await;
    let described = served.get("/openapi.json").await.json;
    let mut listed: Vec<(String, String)> = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys();
        let verbs = ["get", "put", "post", "delete", "patch"];
        let methods = methods.filter(|method| verbs.contains(&method.as_str()));
        listed.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    let routes = tollgate_server::routes().into_iter();
    let mut routes: Vec<_> =
        routes.map(|route| (route.method.to_owned(), route.path.to_owned())).collect();
    listed.sort();
    routes.sort();
    assert_eq!(listed, routes);
}

#[tokio::test]
async fn the_clock_of_the_gate_is_the_clock_of_the_server() {
    let served = Served::limited(json!({ "rule": "token_bucket", "limit": 1, "per": "1m" })).await;
    assert_eq!(served.consume(one_toll()).await.status, 200);
    let before = served.clock.now();
    let refused = served.consume(one_toll()).await;
    assert_eq!(refused.json["retry_after_ms"], 60_000);
    served.clock.advance(std::time::Duration::from_secs(60));
    assert!(served.clock.now() > before);
    assert_eq!(served.consume(one_toll()).await.status, 200);
}
