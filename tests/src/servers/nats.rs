//! NATS with JetStream: one server for all tests, and servers that one test may stop.

use super::{Server, folder, free_port};
use std::env;
use std::sync::LazyLock;

/// Where a NATS is that tests may make buckets in; without it one is started.
const VARIABLE: &str = "TOLLGATE_TEST_NATS";

/// The url of a NATS that all tests share: each keeps to a bucket of its own.
pub(crate) fn shared() -> &'static str {
    static SHARED: LazyLock<(String, Option<NatsServer>)> = LazyLock::new(|| {
        if let Ok(url) = env::var(VARIABLE) {
            return (url, None);
        }
        let server = NatsServer::start();
        (server.url(), Some(server))
    });
    &SHARED.0
}

/// A NATS of one test's own, empty at the start.
pub(crate) struct NatsServer {
    _server: Server,
    port: u16,
}

impl NatsServer {
    pub(crate) fn start() -> Self {
        let folder = folder();
        Self::run(&folder, &["--jetstream", "--store_dir", &folder])
    }

    /// One that keeps nothing.
    pub(crate) fn start_without_jetstream() -> Self {
        Self::run(&folder(), &[])
    }

    fn run(folder: &str, settings: &[&str]) -> Self {
        let port = free_port();
        let text = port.to_string();
        let mut command = vec!["nats-server", "--addr", "127.0.0.1", "--port", &text];
        command.extend(settings);
        let is_ready = |line: &str| line.contains("Server is ready");
        Self { _server: Server::start(&command, folder, is_ready), port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}
