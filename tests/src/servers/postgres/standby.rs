//! A second PostgreSQL that has all that a first one has, and may take its place.

use super::{PostgresServer, as_user, folder, free_port, give_to_user, program, run, serving};
use crate::servers::Server;
use tokio_postgres::NoTls;

/// What a first one is started with, so that nothing is safe before its standby has it. It writes by itself
/// so seldom that whatever is there was waited for.
pub(crate) const SYNCHRONOUS: &[&str] = &["synchronous_standby_names=*", "wal_writer_delay=10s"];

/// A standby that streams, and is asked nothing but reads.
pub(crate) struct Standby {
    _server: Server,
    port: u16,
}

impl Standby {
    /// Copies a server that runs, and follows it from then on.
    pub(crate) fn of(primary: &PostgresServer) -> Self {
        let (folder, port) = (folder(), free_port());
        give_to_user(&folder);
        let data = format!("{folder}/data");
        let copying = as_user(&program("pg_basebackup"));
        let from = format!("host=127.0.0.1 port={} user=postgres", primary.port());
        let told = ["-D", &data, "-d", &from, "-R", "-X", "stream", "-c", "fast", "--no-sync"];
        let arguments: Vec<&str> = copying.iter().map(String::as_str).chain(told).collect();
        run(arguments[0], &arguments[1..]);
        Self { _server: serving(port, &data, &["hot_standby=on"], &folder), port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Makes it a server of its own. It returns when that takes writes.
    pub(crate) async fn promote(&self) {
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", self.port);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let promoted = client.query_one("SELECT pg_promote()", &[]).await.unwrap();
        assert!(promoted.get::<_, bool>(0), "the standby took too long");
    }
}
