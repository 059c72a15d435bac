//! A server in a process of its own, in a folder on this disk, or servers that share a database.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, ensure};
use tollgate::push::address::AddressPolicy;
use tollgate::{Span, Tollgate};
use tollgate_server::{Server, Settings, runtime_beside};

use super::connection::Connection;
use crate::folder::{Folder, database};
use crate::process;

/// How much history is kept.
const HISTORY_BYTES: u64 = 8 << 30;

/// The child's command.
pub(crate) const COMMAND: &str = "serve";

/// A server that runs until this is dropped.
pub(super) struct Served {
    pub(super) address: SocketAddr,
    child: Child,
    _folder: Folder,
}

impl Served {
    pub(super) fn start() -> anyhow::Result<Self> {
        Self::start_in(&schema())
    }

    /// So many servers on one database, in a schema of that name.
    pub(super) fn start_nodes(nodes: usize, schema: &str) -> anyhow::Result<Vec<Self>> {
        ensure!(database().is_some(), "TOLLGATE_BENCH_STORE names no database");
        (0..nodes).map(|_| Self::start_in(schema)).collect()
    }

    fn start_in(schema: &str) -> anyhow::Result<Self> {
        let folder = Folder::new("calls")?;
        let mut child = Command::new(std::env::current_exe()?)
            .args([COMMAND.as_ref(), folder.path.as_os_str(), schema.as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("no address: {line:?}"))?;
        Ok(Self { address, child, _folder: folder })
    }

    pub(super) async fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(self.address).await
    }

    /// Tells the server something that it must agree to.
    pub(super) async fn tell(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<String> {
        let mut connection = self.connect().await?;
        let answer = connection.ask(method, path, body.as_bytes()).await?;
        Ok(String::from_utf8(answer.to_vec())?)
    }

    /// The processor time of the server so far.
    pub(super) fn cpu_ns(&self) -> anyhow::Result<u64> {
        process::cpu_ns_of(self.child.id())
    }

    /// The memory of the server now.
    pub(super) fn resident_bytes(&self) -> anyhow::Result<u64> {
        process::memory_bytes_of(self.child.id(), "VmRSS")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The name of a schema with nothing in it.
pub(super) fn schema() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("bench_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Serves a folder, or the schema of a database, until the parent is gone.
pub(crate) fn serve_here(
    (folder, schema): (&str, &str),
    say: impl FnOnce(SocketAddr),
) -> anyhow::Result<()> {
    ensure!(!folder.is_empty() && !schema.is_empty(), "a folder and a schema are needed");
    // As `tollgate serve` has it.
    let runtime = runtime_beside(usize::from(database().is_none()))?;
    runtime.block_on(async {
        // What is looked at afterwards must all be there.
        let builder = Tollgate::builder().history(Span::from_days(1), HISTORY_BYTES);
        let gate = match database() {
            Some(url) => builder.prefix(schema).connect(&url).await?,
            None => builder.open(folder).await?,
        };
        let mut settings = Settings::new(([127, 0, 0, 1], 0).into());
        settings.push.addresses = AddressPolicy { allowed: vec!["127.0.0.0/8".parse()?] };
        let server = Server::bind(gate, settings).await?;
        say(server.address());
        let (gone, parent) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let _ = std::io::stdin().lines().count();
            drop(gone);
        });
        server.serve(async { drop(parent.await) }).await;
        Ok(())
    })
}
