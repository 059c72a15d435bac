//! A server of its own process, which is killed and started again on the same port.

use crate::free_port;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) struct Node {
    child: Child,
    port: u16,
    url: String,
    log: PathBuf,
}

impl Node {
    pub(crate) fn start(url: &str, log: &Path) -> Self {
        let port = free_port();
        Self { child: started(port, url, log), port, url: url.to_owned(), log: log.to_owned() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How it ended, if it did without having been killed.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().unwrap()?;
        Some(format!("the node of {} ended by itself: {status}", self.log.display()))
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn start_again(&mut self) {
        self.child = started(self.port, &self.url, &self.log);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn started(port: u16, url: &str, log: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    for name in ["TOKEN", "LOG", "STORE", "PREFIX", "DATA", "MEMORY"] {
        command.env_remove(format!("TOLLGATE_{name}"));
    }
    let log = File::options().create(true).append(true).open(log).unwrap();
    command.args(["serve", "--store", url, "--listen", &format!("127.0.0.1:{port}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().unwrap()
}
