//! NATS with JetStream: one server for all tests, and servers that one test may stop.

use super::certificates::Certificates;
use super::{Server, folder, free_port};
use std::path::Path;
use std::sync::LazyLock;
use std::{env, fs};

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
    pub(crate) server: Server,
    port: u16,
}

impl NatsServer {
    pub(crate) fn start() -> Self {
        let folder = folder();
        Self::run(free_port(), &folder, &["--jetstream", "--store_dir", &folder])
    }

    /// On a port that was one's before, with data that is the test's to keep.
    pub(crate) fn start_on(port: u16, data: &Path) -> Self {
        let data = data.to_str().expect("its path is text");
        Self::run(port, &folder(), &["--jetstream", "--store_dir", data])
    }

    /// One whose JetStream has no more room than this.
    pub(crate) fn start_with_room(bytes: u64) -> Self {
        let folder = folder();
        let settings = format!("jetstream {{ store_dir: \"{folder}\", max_file: {bytes} }}\n");
        let file = format!("{folder}/settings.conf");
        fs::write(&file, settings).expect("the folder takes a file");
        Self::run(free_port(), &folder, &["--config", &file])
    }

    /// One that lets nobody in but over an encrypted connection.
    pub(crate) fn start_encrypted(certificates: &Certificates) -> Self {
        let (folder, Certificates { certificate, key, .. }) = (folder(), certificates);
        let tls = ["--tls", "--tlscert", certificate, "--tlskey", key];
        let settings = [["--jetstream", "--store_dir", &folder].as_slice(), &tls].concat();
        Self::run(free_port(), &folder, &settings)
    }

    /// One that keeps nothing.
    pub(crate) fn start_without_jetstream() -> Self {
        Self::run(free_port(), &folder(), &[])
    }

    fn run(port: u16, folder: &str, settings: &[&str]) -> Self {
        let text = port.to_string();
        let mut command = vec!["nats-server", "--addr", "127.0.0.1", "--port", &text];
        command.extend(settings);
        let is_ready = |line: &str| line.contains("Server is ready");
        Self { server: Server::start(&command, folder, is_ready), port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}
