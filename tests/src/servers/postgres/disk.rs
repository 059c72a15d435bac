//! A PostgreSQL whose disk is full when a test says so.

use super::{PostgresServer, as_user, folder, program, run};
use std::fs;

/// What stands between the server and its disk.
const LIBRARY: &str = include_str!("full.c");

/// The disk of a server.
pub(crate) struct Disk {
    /// While it is there, there is no room.
    full: String,
}

impl Disk {
    /// A server, and its disk. Nothing of the machine's own is filled, mounted or limited: the server is told
    /// by its C library what a full disk would tell it.
    pub(crate) fn with_server() -> (PostgresServer, Self) {
        let folder = folder();
        let (source, library) = (format!("{folder}/full.c"), format!("{folder}/full.so"));
        fs::write(&source, LIBRARY).unwrap();
        run("cc", &["-shared", "-fPIC", "-O1", "-o", &library, &source, "-ldl"]);
        // Whoever runs the server has to get there.
        run("chmod", &["755", &folder, &library]);
        let full = format!("{folder}/full");
        let told = [format!("LD_PRELOAD={library}"), format!("FULL={full}")];
        let postgres = as_user("env").into_iter().chain(told).chain([program("postgres")]);
        let server = PostgresServer::made(&postgres.collect::<Vec<_>>());
        (server, Self { full })
    }

    pub(crate) fn fill(&self) {
        fs::write(&self.full, "").unwrap();
    }

    pub(crate) fn make_room(&self) {
        fs::remove_file(&self.full).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let folder = std::path::Path::new(&self.full).parent().unwrap();
        let _ = fs::remove_dir_all(folder);
    }
}
