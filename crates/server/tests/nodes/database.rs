//! A PostgreSQL of the test's own that is killed with all its processes, and goes on with what is on disk.

use crate::free_port;
use crate::node::Wrong;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where Debian puts the programs, a folder for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

pub(crate) struct Database {
    child: Child,
    data: PathBuf,
    port: u16,
}

impl Database {
    /// Starts one whose files are in this folder.
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, None)
    }

    /// With a clock that is wrong.
    pub(crate) fn start_with(folder: &Path, wrong: Option<&Wrong>) -> Self {
        let (folder, port) = (folder.join("database"), free_port());
        fs::create_dir(&folder).unwrap();
        if is_root() {
            // Whoever runs it has to get there.
            run(Command::new("chmod").arg("711").arg(folder.parent().unwrap()));
            run(Command::new("chown").arg("postgres").arg(&folder));
        }
        let data = folder.join("data");
        let made = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
        run(program("initdb").arg("-D").arg(&data).args(made));
        Self { child: started(port, &data, wrong), data, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Kills all of it at once, as a machine that loses its power would.
    pub(crate) fn kill(&mut self) {
        let parent = self.child.id();
        // Held still it makes no more processes.
        signal("STOP", parent);
        while state(parent).is_some_and(|state| state != 'T') {
            std::thread::yield_now();
        }
        let children = self.processes();
        children.iter().for_each(|child| signal("KILL", *child));
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // One that waits for the disk dies later, and has the memory that the next server finds in use.
        for child in children {
            while state(child).is_some_and(|state| state != 'Z') {
                std::thread::yield_now();
            }
        }
    }

    /// Kills one of the processes that serve connections: PostgreSQL ends all others then, and recovers.
    pub(crate) fn kill_one(&self, choose: impl FnOnce(usize) -> usize) {
        let named = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline"));
        let serves = |pid: &u32| named(pid).is_ok_and(|name| name.contains("127.0.0.1"));
        let serving: Vec<u32> = self.processes().into_iter().filter(serves).collect();
        if !serving.is_empty() {
            signal("KILL", serving[choose(serving.len())]);
        }
    }

    pub(crate) fn start_again(&mut self) {
        self.child = started(self.port, &self.data, None);
    }

    fn processes(&self) -> Vec<u32> {
        let pid = self.child.id();
        let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        listed.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Killed, it would leave shared memory behind.
        signal("QUIT", self.child.id());
        let _ = self.child.wait();
    }
}

/// What the kernel says of a process: `T` for one that is held still, `Z` for one that is dead. `None` if it is gone.
fn state(pid: u32) -> Option<char> {
    let told = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name stands in brackets before it, and may have any letters.
    told.rsplit_once(") ")?.1.chars().next()
}

/// A server of a data folder, once it is ready. It writes through to the disk.
fn started(port: u16, data: &Path, wrong: Option<&Wrong>) -> Child {
    let mut command = program("postgres");
    command.arg("-D").arg(data).args(["-p", &port.to_string()]);
    command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    if let Some(wrong) = wrong {
        wrong.put_before(&mut command);
    }
    let mut child = command.spawn().expect("install PostgreSQL");
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut log = String::new();
    while !log.contains("database system is ready to accept connections") {
        assert!(said.read_line(&mut log).unwrap() > 0, "PostgreSQL did not start:\n{log}");
    }
    // A full pipe would stop the server, a closed one may end it.
    std::thread::spawn(move || std::io::copy(&mut said.by_ref(), &mut std::io::sink()));
    child
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

/// Sends a process a signal. It may have ended meanwhile.
fn signal(name: &str, pid: u32) {
    let _ = Command::new("kill").args(["-s", name, &pid.to_string()]).output().unwrap();
}

fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
