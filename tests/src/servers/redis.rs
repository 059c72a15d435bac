//! Redis: one server for all tests, and servers that one test may stop.

use super::certificates::Certificates;
use super::{Server, folder, free_port};
use std::env;
use std::sync::LazyLock;

/// Where a Redis is that tests may write to; without it one is started.
const VARIABLE: &str = "TOLLGATE_TEST_REDIS";

/// The url of a Redis that all tests share: each keeps to a prefix of its own.
pub(crate) fn shared() -> &'static str {
    static SHARED: LazyLock<(String, Option<RedisServer>)> = LazyLock::new(|| {
        if let Ok(url) = env::var(VARIABLE) {
            return (url, None);
        }
        let server = RedisServer::start();
        (server.url(), Some(server))
    });
    &SHARED.0
}

/// A Redis of one test's own, empty at the start.
pub(crate) struct RedisServer {
    pub(crate) server: Server,
    port: u16,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        Self::start_on(free_port(), &[])
    }

    /// On a port that was one's before, with more settings.
    pub(crate) fn start_on(port: u16, settings: &[&str]) -> Self {
        let (folder, text) = (folder(), port.to_string());
        let mut command = vec!["redis-server", "--port", &text, "--bind", "127.0.0.1"];
        command.extend(["--dir", &folder, "--save", "", "--appendonly", "no"]);
        command.extend(settings);
        let is_ready = |line: &str| line.contains("Ready to accept connections");
        Self { server: Server::start(&command, &folder, is_ready), port }
    }

    /// One that lets nobody in but over an encrypted connection.
    pub(crate) fn start_encrypted(certificates: &Certificates) -> Self {
        let (port, Certificates { certificate, key, authority, .. }) = (free_port(), certificates);
        let text = port.to_string();
        let tls = ["--tls-port", &text, "--tls-cert-file", certificate, "--tls-key-file", key];
        let others = ["--tls-ca-cert-file", authority, "--tls-auth-clients", "no"];
        // Port 0 is none: what comes later counts.
        let settings = [["--port", "0"].as_slice(), &tls, &others].concat();
        Self::start_on(port, &settings)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}
