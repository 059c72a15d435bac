//! PostgreSQL: one server for all tests, and servers that one test may stop.

mod disk;
mod standby;

pub(crate) use disk::Disk;
pub(crate) use standby::{SYNCHRONOUS, Standby};

use super::certificates::Certificates;
use super::{Server, folder, free_port};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

/// Where a PostgreSQL is that tests may make schemas in; without it one is started.
const VARIABLE: &str = "TOLLGATE_TEST_POSTGRES";
/// Where Debian puts the programs, a folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The url of a database that all tests share: each keeps to a schema of its own.
pub(crate) fn shared() -> &'static str {
    static SHARED: LazyLock<(String, Option<PostgresServer>)> = LazyLock::new(|| {
        if let Ok(url) = env::var(VARIABLE) {
            return (url, None);
        }
        let server = PostgresServer::start();
        (server.url(), Some(server))
    });
    &SHARED.0
}

/// A PostgreSQL of one test's own, empty at the start.
pub(crate) struct PostgresServer {
    /// The one that went on after it was stopped: it goes before the folder does.
    again: Option<Server>,
    server: Server,
    data: String,
    port: u16,
}

impl PostgresServer {
    pub(crate) fn start() -> Self {
        Self::start_on(free_port(), &[])
    }

    /// On a port that was one's before, with more settings.
    pub(crate) fn start_on(port: u16, settings: &[&str]) -> Self {
        Self::made_on(port, settings, &as_user(&program("postgres")))
    }

    /// Run by this command.
    fn made(command: &[String]) -> Self {
        Self::made_on(free_port(), &[], command)
    }

    fn made_on(port: u16, settings: &[&str], command: &[String]) -> Self {
        let folder = folder();
        give_to_user(&folder);
        let data = format!("{folder}/data");
        let initdb = as_user(&program("initdb"));
        let made = ["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"];
        let arguments: Vec<&str> =
            initdb.iter().map(String::as_str).chain(made).chain(["--no-sync"]).collect();
        run(arguments[0], &arguments[1..]);
        let server = run_by(command, (port, &data), settings, &folder);
        Self { again: None, server, data, port }
    }

    /// Ends it at once, as a crash does: what it has committed is on its disk.
    pub(crate) fn stop(&self) {
        self.again.as_ref().unwrap_or(&self.server).signal("QUIT");
        let lock = format!("{}/postmaster.pid", self.data);
        while Path::new(&lock).exists() {
            std::thread::yield_now();
        }
    }

    /// Starts it again after it was stopped, on what it had.
    pub(crate) fn go_on(&mut self) {
        self.again = Some(serving(self.port, &self.data, &[], &folder()));
    }

    /// One that takes encrypted connections, too.
    pub(crate) fn start_encrypted(certificates: &Certificates) -> Self {
        let Certificates { certificate, key, .. } = certificates;
        if is_root() {
            let folder = Path::new(key).parent().and_then(Path::to_str).unwrap();
            run("chown", &["-R", "postgres", folder]);
        }
        run("chmod", &["0600", key]);
        let (certificate, key) =
            (format!("ssl_cert_file={certificate}"), format!("ssl_key_file={key}"));
        Self::start_on(free_port(), &["ssl=on", &certificate, &key])
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

/// A server of a data folder, and the folder that goes with it.
fn serving(port: u16, data: &str, settings: &[&str], folder: &str) -> Server {
    run_by(&as_user(&program("postgres")), (port, data), settings, folder)
}

fn run_by(
    command: &[String],
    (port, data): (u16, &str),
    settings: &[&str],
    folder: &str,
) -> Server {
    let port = port.to_string();
    let mut command: Vec<&str> = command.iter().map(String::as_str).collect();
    command.extend(["-D", data, "-p", &port, "-c", "listen_addresses=127.0.0.1"]);
    command.extend(["-c", "unix_socket_directories=", "-c", "fsync=off"]);
    command.extend(["-c", "max_connections=300"]);
    command.extend(settings.iter().flat_map(|setting| ["-c", setting]));
    let is_ready = |line: &str| line.contains("database system is ready to accept ");
    // Killed, it would leave shared memory behind.
    Server::start_until("QUIT", &command, folder, is_ready)
}

/// The path of a program of PostgreSQL: of the newest version, or wherever the shell finds it.
fn program(name: &str) -> String {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| Path::new(&format!("{VERSIONS}/{version}/bin/{name}")).exists())
        .max();
    newest.map_or_else(|| name.to_owned(), |version| format!("{VERSIONS}/{version}/bin/{name}"))
}

/// Lets the one who runs servers into a folder.
pub(super) fn give_to_user(folder: &str) {
    if is_root() {
        run("chown", &["-R", "postgres", folder]);
    }
}

/// PostgreSQL does not run as root.
pub(super) fn as_user(program: &str) -> Vec<String> {
    let user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"];
    let user = user.into_iter().take(if is_root() { 6 } else { 0 });
    user.chain([program]).map(str::to_owned).collect()
}

fn is_root() -> bool {
    let said = Command::new("id").arg("-u").output().expect("id runs").stdout;
    said.trim_ascii() == b"0"
}

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).current_dir("/").output();
    let done = done.unwrap_or_else(|error| panic!("{program} does not run: {error}: install it"));
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}
