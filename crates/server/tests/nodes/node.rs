//! A server of its own process, which is killed and started again on the same port.

use crate::free_port;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What makes the wall clock of a program wrong.
const CLOCK: &str = include_str!("clock.c");

/// How wrong the wall clock of a program is.
#[derive(Debug, Clone)]
pub(crate) struct Wrong {
    pub(crate) library: PathBuf,
    pub(crate) seconds: i64,
}

impl Wrong {
    /// Makes what it takes, in this folder.
    pub(crate) fn library(folder: &Path) -> PathBuf {
        let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
        fs::write(&source, CLOCK).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]).arg("-ldl");
        assert!(compiler.status().unwrap().success());
        library
    }

    /// For what the command runs.
    pub(crate) fn put_before<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.library).env("SECONDS_WRONG", self.seconds.to_string())
    }
}

pub(crate) struct Node {
    child: Child,
    port: u16,
    url: String,
    log: PathBuf,
    wrong: Option<Wrong>,
}

impl Node {
    pub(crate) fn start(url: &str, log: &Path) -> Self {
        Self::start_with(url, log, None)
    }

    /// With a clock that is wrong.
    pub(crate) fn start_with(url: &str, log: &Path, wrong: Option<Wrong>) -> Self {
        let (port, url, log) = (free_port(), url.to_owned(), log.to_owned());
        Self { child: started(port, &url, &log, wrong.as_ref()), port, url, log, wrong }
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
        self.child = started(self.port, &self.url, &self.log, self.wrong.as_ref());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn started(port: u16, url: &str, log: &Path, wrong: Option<&Wrong>) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    for name in ["TOKEN", "LOG", "STORE", "PREFIX", "DATA", "MEMORY"] {
        command.env_remove(format!("TOLLGATE_{name}"));
    }
    let log = File::options().create(true).append(true).open(log).unwrap();
    command.args(["serve", "--store", url, "--listen", &format!("127.0.0.1:{port}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    if let Some(wrong) = wrong {
        wrong.put_before(&mut command);
    }
    command.spawn().unwrap()
}
