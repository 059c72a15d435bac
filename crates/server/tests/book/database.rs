//! A PostgreSQL of a page's own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

/// Where Debian puts the programs, a folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

pub(crate) struct Database {
    child: Child,
    port: u16,
}

impl Database {
    /// Starts one whose files are in this folder.
    pub(crate) fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (folder, port) = (folder.join("database"), listener.local_addr().unwrap().port());
        drop(listener);
        fs::create_dir(&folder).unwrap();
        if is_root() {
            // Whoever runs it has to get there.
            run(Command::new("chmod").arg("711").arg(folder.parent().unwrap()));
            run(Command::new("chown").arg("postgres").arg(&folder));
        }
        let data = folder.join("data");
        let made = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
        run(program("initdb").arg("-D").arg(&data).args(made));
        let mut command = program("postgres");
        command.arg("-D").arg(&data).args(["-p", &port.to_string(), "-c", "fsync=off"]);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|why| panic!("install PostgreSQL: {why}"));
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut log = String::new();
        while !log.contains("database system is ready to accept connections") {
            assert!(said.read_line(&mut log).unwrap() > 0, "PostgreSQL did not start:\n{log}");
        }
        // A full pipe would stop the server, a closed one may end it.
        thread::spawn(move || std::io::copy(&mut said.by_ref(), &mut std::io::sink()));
        Self { child, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Killed, it would leave shared memory behind.
        let _ = Command::new("kill").args(["-s", "QUIT", &self.child.id().to_string()]).output();
        let _ = self.child.wait();
    }
}

/// A program of PostgreSQL, of the newest version or wherever the shell finds it. None runs as root.
fn program(name: &str) -> Command {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| Path::new(&format!("{VERSIONS}/{version}/bin/{name}")).exists())
        .max();
    let path =
        newest.map_or_else(|| name.to_owned(), |newest| format!("{VERSIONS}/{newest}/bin/{name}"));
    let mut command = Command::new(if is_root() { "setpriv" } else { &path });
    if is_root() {
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", &path]);
    }
    command.current_dir("/");
    command
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
