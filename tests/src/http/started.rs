//! A server in this process, on any free port, with a clock that is moved by hand.

use super::client::{Answer, Client, request};
use crate::kept::opened;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;
use tollgate::{ManualClock, Tollgate};
use tollgate_server::{Reloader, Server, Settings, Token, TokenSpec};

/// Longest wait for something that happens at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Declares a body as JSON.
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// Where limits and calls are.
pub(crate) enum Kept {
    InMemory,
    InFolder,
}

/// A server that runs, and what is behind it.
pub(crate) struct Started {
    pub(crate) address: SocketAddr,
    pub(crate) gate: Tollgate,
    pub(crate) clock: ManualClock,
    pub(crate) reloader: Reloader,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Started {
    pub(crate) async fn new() -> Self {
        Self::with_tokens(Vec::new()).await
    }

    /// Wants this token, which may do everything.
    pub(crate) async fn with_token(token: &str) -> Self {
        Self::with_tokens(vec![TokenSpec::admin(&Token::new(token).unwrap())]).await
    }

    pub(crate) async fn with_tokens(tokens: Vec<TokenSpec>) -> Self {
        Self::with(Settings { tokens, ..Settings::new(([127, 0, 0, 1], 0).into()) }).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        // Limits answer alike on all: `./test` runs these tests on each.
        let in_memory = std::env::var_os("TOLLGATE_TESTS_IN_MEMORY").is_some();
        Self::on(if in_memory { Kept::InMemory } else { Kept::InFolder }, settings).await
    }

    /// With calls, and so in a folder whatever `./test` says.
    pub(crate) async fn kept() -> Self {
        Self::kept_with(Vec::new()).await
    }

    /// With calls, and these tokens.
    pub(crate) async fn kept_with(tokens: Vec<TokenSpec>) -> Self {
        let settings = Settings { tokens, ..Settings::new(([127, 0, 0, 1], 0).into()) };
        Self::on(Kept::InFolder, settings).await
    }

    /// With a strict queue `q`, and a limit `l` of so many per second, all at once.
    pub(crate) async fn with_queue(limit: u64) -> Self {
        let server = Self::kept().await;
        server.put("/v1/queues/q", &json!({})).await.success();
        let rule = json!({"rule": "token_bucket", "limit": limit, "per": "1s"});
        server.put("/v1/limits/l", &rule).await.success();
        server
    }

    pub(crate) async fn on(kept: Kept, settings: Settings) -> Self {
        let clock = ManualClock::new();
        let (folder, builder) = (tempfile::tempdir().unwrap(), Tollgate::builder());
        let builder = builder.clock(clock.clone());
        let gate = match kept {
            Kept::InMemory => builder.memory(),
            Kept::InFolder => opened(&folder, &clock).await,
        };
        Self::serving((gate, clock), folder, settings).await
    }

    /// In front of that gate, which counts by that clock.
    pub(crate) async fn serving(
        (gate, clock): (Tollgate, ManualClock),
        folder: tempfile::TempDir,
        settings: Settings,
    ) -> Self {
        let server = Server::bind(gate.clone(), settings).await.unwrap();
        let (address, reloader) = (server.address(), server.reloader());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Self { address, gate, clock, reloader, stop: Some(stop), served, _folder: folder }
    }

    /// Defines a limit of so many per second, all at once.
    pub(crate) async fn per_second(name: &str, limit: u64) -> Self {
        let server = Self::new().await;
        let rule = json!({"rule": "token_bucket", "limit": limit, "per": "1s"});
        server.put(&format!("/v1/limits/{name}"), &rule).await.success();
        server
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.send(&request(method, path, headers, body)).await
    }

    /// Sends bytes as they are and reads one answer.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Answer {
        let mut client = self.client().await;
        client.send(bytes).await;
        timeout(PATIENCE, client.answer()).await.expect("no answer").expect("connection closed")
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, &[], "").await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.ask("PUT", path, &[JSON], &body.to_string()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[JSON], &body.to_string()).await
    }

    /// Hands in calls to the queue `q`; their ids.
    pub(crate) async fn enqueue(&self, calls: &Value) -> Vec<String> {
        let answer = self.post("/v1/queues/q/calls", calls).await.success();
        let ids = answer["ids"].as_array().unwrap().iter();
        ids.map(|id| id.as_str().unwrap().to_owned()).collect()
    }

    /// Claims calls of the queue `q`.
    pub(crate) async fn claim(&self, claim: &Value) -> Vec<Value> {
        let answer = self.post("/v1/queues/q/claim", claim).await.success();
        answer["calls"].as_array().unwrap().clone()
    }

    /// Settles one start; what came of it.
    pub(crate) async fn settle(&self, settlement: &Value) -> Value {
        self.post("/v1/settle", settlement).await.success()["settled"][0].clone()
    }

    /// Sends a request and leaves its answer for later.
    pub(crate) async fn begin(&self, path: &str, body: &Value) -> Client {
        let mut client = self.client().await;
        client.send(&request("POST", path, &[JSON], &body.to_string())).await;
        client
    }

    /// Returns once so many claims wait for calls of the queue `q`.
    pub(crate) async fn until_asking(&self, claims: usize) {
        let wait = async {
            while self.gate.asking("q") != claims {
                yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the claims do not come or go");
    }

    /// Returns once so many calls of the queue `q` wait.
    pub(crate) async fn until_waiting_calls(&self, calls: u64) {
        let wait = async {
            while self.gate.queue_state("q").await.unwrap().unwrap().waiting != calls {
                yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the calls do not come");
    }

    /// Returns once so many calls of the queue `q` wait, and so many are in flight.
    pub(crate) async fn until_counts(gate: &Tollgate, counts: (u64, u64)) {
        let wait = async {
            loop {
                let state = gate.queue_state("q").await.unwrap().unwrap();
                if (state.waiting, state.in_flight) == counts {
                    return;
                }
                yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the calls are elsewhere");
    }

    /// Returns once a call explains its waiting by a reason.
    pub(crate) async fn until_reason(&self, id: &str, reason: &str) {
        let wait = async {
            loop {
                let call = self.get(&format!("/v1/calls/{id}")).await.success();
                let reasons = call["waiting"]["reasons"].as_array().unwrap();
                if reasons.iter().any(|found| found["reason"] == reason) {
                    return;
                }
            }
        };
        timeout(PATIENCE, wait).await.expect("the call does not wait for that");
    }

    pub(crate) async fn consume(&self, body: &Value) -> Answer {
        self.post("/v1/consume", body).await
    }

    /// Sends a call and leaves its answer for later.
    pub(crate) async fn begin_consume(&self, body: &Value) -> Client {
        let mut client = self.client().await;
        client.send(&request("POST", "/v1/consume", &[JSON], &body.to_string())).await;
        client
    }

    /// Returns when calls of that weight wait at a limit's global meter.
    pub(crate) async fn until_waiting(&self, limit: &str, weight: u64) {
        let wait = async {
            while self.gate.meter(limit, None).await.unwrap().waiting != weight {
                yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the calls did not come to wait");
    }

    /// Asks the server to end.
    pub(crate) fn begin_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Another server on the same folder, once this one, which was asked to end, has let go of it.
    pub(crate) async fn opened_again(self, settings: Settings) -> Self {
        let Self { gate, clock, reloader, served, _folder: folder, .. } = self;
        served.await.unwrap();
        drop(reloader);
        gate.shut_down().await;
        let gate = opened(&folder, &clock).await;
        Self::serving((gate, clock), folder, settings).await
    }

    /// Returns when the server has ended.
    pub(crate) async fn ended(self) {
        self.served.await.unwrap();
    }
}
