//! A server in this process, on any free port, with a clock that is moved by hand.

use super::client::{Answer, Client, request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;
use tollgate::{ManualClock, Tollgate};
use tollgate_server::{Reloader, Server, Settings, Token, TokenSpec};

/// Longest wait for something that happens at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// Declares a body as JSON.
pub(super) const JSON: (&str, &str) = ("content-type", "application/json");

/// A server that runs, and what is behind it.
pub(super) struct Started {
    pub(super) address: SocketAddr,
    pub(super) gate: Tollgate,
    pub(super) clock: ManualClock,
    pub(super) reloader: Reloader,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Started {
    pub(super) async fn new() -> Self {
        Self::with_tokens(Vec::new()).await
    }

    /// Wants this token, which may do everything.
    pub(super) async fn with_token(token: &str) -> Self {
        Self::with_tokens(vec![TokenSpec::admin(&Token::new(token).unwrap())]).await
    }

    pub(super) async fn with_tokens(tokens: Vec<TokenSpec>) -> Self {
        Self::with(Settings { tokens, ..Settings::new(([127, 0, 0, 1], 0).into()) }).await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        let clock = ManualClock::new();
        let (folder, builder) = (tempfile::tempdir().unwrap(), Tollgate::builder());
        let builder = builder.clock(clock.clone());
        // Both answer alike: `./test` runs these tests on each.
        let gate = match std::env::var_os("TOLLGATE_TESTS_IN_MEMORY") {
            Some(_) => builder.memory(),
            None => builder.open(folder.path()).await.unwrap(),
        };
        let server = Server::bind(gate.clone(), settings).await.unwrap();
        let (address, reloader) = (server.address(), server.reloader());
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Self { address, gate, clock, reloader, stop: Some(stop), served, _folder: folder }
    }

    /// Defines a limit of so many per second, all at once.
    pub(super) async fn per_second(name: &str, limit: u64) -> Self {
        let server = Self::new().await;
        let rule = json!({"rule": "token_bucket", "limit": limit, "per": "1s"});
        server.put(&format!("/v1/limits/{name}"), &rule).await.success();
        server
    }

    pub(super) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Sends one request on a connection of its own.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.send(&request(method, path, headers, body)).await
    }

    /// Sends bytes as they are and reads one answer.
    pub(super) async fn send(&self, bytes: &[u8]) -> Answer {
        let mut client = self.client().await;
        client.send(bytes).await;
        timeout(PATIENCE, client.answer()).await.expect("no answer").expect("connection closed")
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    pub(super) async fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, &[], "").await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.ask("PUT", path, &[JSON], &body.to_string()).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[JSON], &body.to_string()).await
    }

    pub(super) async fn consume(&self, body: &Value) -> Answer {
        self.post("/v1/consume", body).await
    }

    /// Sends a call and leaves its answer for later.
    pub(super) async fn begin_consume(&self, body: &Value) -> Client {
        let mut client = self.client().await;
        client.send(&request("POST", "/v1/consume", &[JSON], &body.to_string())).await;
        client
    }

    /// Returns when calls of that weight wait at a limit's global meter.
    pub(super) async fn until_waiting(&self, limit: &str, weight: u64) {
        let wait = async {
            while self.gate.meter(limit, None).await.unwrap().waiting != weight {
                yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.expect("the calls did not come to wait");
    }

    /// Asks the server to end.
    pub(super) fn begin_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Returns when the server has ended.
    pub(super) async fn ended(self) {
        self.served.await.unwrap();
    }
}
