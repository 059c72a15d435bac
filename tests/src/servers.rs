//! Servers of other makers that tests need: started on loopback, and gone when the test binary is.

pub(crate) mod certificates;
pub(crate) mod cluster;
pub(crate) mod nats;
pub(crate) mod pgbouncer;
pub(crate) mod postgres;
pub(crate) mod proxy;
pub(crate) mod redis;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

/// Runs a server in a folder until whoever started it closes the pipe or dies, however it dies: then
/// the server gets a signal that ends it, and the folder is removed. The server's process says its id
/// first.
const KEEPER: &str = r#"trap '' HUP INT TERM; signal=$1 folder=$2; shift 2
sh -c 'echo "$$"; exec "$@"' sh "$@" 2>&1 & pid=$!; exec >/dev/null
read -r _; kill -s "$signal" "$pid"; kill -s CONT "$pid"; wait "$pid"; rm -rf "$folder""#;

/// Most lines that a server says before it is ready.
const LINES_MAX: usize = 500;

/// A server of our own.
pub(crate) struct Server {
    keeper: Child,
    pid: String,
}

impl Server {
    /// Starts a program, whose files are in a folder of its own that goes with it, and returns when it
    /// has said that it is ready.
    pub(crate) fn start(command: &[&str], folder: &str, is_ready: impl Fn(&str) -> bool) -> Self {
        Self::start_until("KILL", command, folder, is_ready)
    }

    /// As [`Self::start`]; this signal ends it at once.
    pub(crate) fn start_until(
        signal: &str,
        command: &[&str],
        folder: &str,
        is_ready: impl Fn(&str) -> bool,
    ) -> Self {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh", signal, folder])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh runs");
        let mut said = BufReader::new(keeper.stdout.take().expect("it is piped"));
        let mut pid = String::new();
        said.read_line(&mut pid).expect("the process says its id");
        let server = Self { keeper, pid: pid.trim().to_owned() };
        await_ready(command[0], said, is_ready);
        server
    }

    /// Holds the server where it is; returns when none of its threads runs any more, for that is after the signal.
    pub(crate) fn stand_still(&self) {
        self.signal("STOP");
        let threads = || fs::read_dir(format!("/proc/{}/task", self.pid)).expect("it is there");
        let stands = |thread: io::Result<fs::DirEntry>| {
            let stat = fs::read_to_string(thread.expect("threads are listed").path().join("stat"));
            // Behind its name, which may have any letters.
            stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|it| it.starts_with(" T")))
        };
        while !threads().all(stands) {
            thread::yield_now();
        }
    }

    /// Lets a server go on that stands still.
    pub(crate) fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args(["-s", name, &self.pid]).status().expect("kill runs");
        assert!(status.success(), "no process {} to send {name} to", self.pid);
    }
}

impl Drop for Server {
    /// Returns when the server is gone and its port is free.
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Reads what a server says until it is ready, and what it says from then on for nobody.
fn await_ready(program: &str, mut said: BufReader<ChildStdout>, is_ready: impl Fn(&str) -> bool) {
    let mut log = String::new();
    for _ in 0..LINES_MAX {
        let mut line = Vec::new();
        let count = said.read_until(b'\n', &mut line).expect("the server's log is read");
        let line = String::from_utf8_lossy(&line);
        let _ = write!(log, "{line}");
        if is_ready(&line) {
            // A full pipe would stop the server, a closed one may end it.
            thread::spawn(move || io::copy(&mut said.by_ref(), &mut io::sink()));
            return;
        }
        assert!(count > 0, "{program} did not start: install it, or give its url. It said:\n{log}");
    }
    panic!("{program} never said that it is ready:\n{log}");
}

/// A port of loopback that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
    listener.local_addr().expect("it is bound").port()
}

/// A new folder, which is the server's to keep.
pub(crate) fn folder() -> String {
    let folder = tempfile::tempdir().expect("a temporary folder").keep();
    folder.to_str().expect("its path is text").to_owned()
}
