//! PgBouncer: a pool between nodes and PostgreSQL.

use super::postgres::{PostgresServer, as_user, give_to_user};
use super::{Server, folder, free_port};
use std::fs;
use std::process::Command;

/// Where Debian puts it, which is on nobody's path but root's.
const PROGRAM: &str = "/usr/sbin/pgbouncer";
/// From this version on it knows which statements are whose.
const CAREFUL_FROM: (u32, u32) = (1, 21);

pub(crate) struct PgBouncer {
    _server: Server,
    port: u16,
}

impl PgBouncer {
    /// Before a server, with more settings, such as `pool_mode=transaction`.
    pub(crate) fn before(server: &PostgresServer, settings: &[&str]) -> Self {
        let (folder, port) = (folder(), free_port());
        let file = format!("{folder}/pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\n\
             listen_addr=127.0.0.1\nlisten_port={port}\nunix_socket_dir=\nauth_type=any\n{}\n",
            server.port(),
            settings.join("\n")
        );
        fs::write(&file, text).unwrap();
        give_to_user(&folder);
        let command: Vec<String> = as_user(program()).into_iter().chain([file]).collect();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let is_ready = |line: &str| line.contains("process up");
        Self { _server: Server::start(&command, &folder, is_ready), port }
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Whether it can be told to keep prepared statements apart.
    pub(crate) fn can_be_careful() -> bool {
        let said = Command::new(program()).arg("--version").output();
        let said = said.expect("pgbouncer runs: install it").stdout;
        let said = String::from_utf8(said).unwrap();
        let version = said.split_whitespace().nth(1).unwrap().split('.').map(str::parse);
        let version: Vec<u32> = version.take(2).map(Result::unwrap).collect();
        (version[0], version[1]) >= CAREFUL_FROM
    }
}

fn program() -> &'static str {
    if fs::exists(PROGRAM).unwrap_or_default() { PROGRAM } else { "pgbouncer" }
}
