//! Readiness: what it says of a disk that is full, and of one that fails.

use super::started::Started;
use serde_json::json;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::time::timeout;
use tollgate::embedded::{Disk, DiskFile, RealDisk};
use tollgate::{ManualClock, Tollgate};
use tollgate_server::Settings;

const SOUND: u8 = 0;
const FULL: u8 = 1;
const BROKEN: u8 = 2;

/// How a disk is, and its files.
#[derive(Debug, Clone, Default)]
struct Trouble(Arc<AtomicU8>);

impl Trouble {
    fn set(&self, trouble: u8) {
        self.0.store(trouble, Ordering::SeqCst);
    }

    fn is(&self, trouble: u8) -> bool {
        self.0.load(Ordering::SeqCst) == trouble
    }
}

/// A disk that has no space, or whose syncs fail, when it is told to.
#[derive(Debug)]
struct TroubledDisk(RealDisk, Trouble);

#[derive(Debug)]
struct TroubledFile(Arc<dyn DiskFile>, Trouble);

impl TroubledDisk {
    fn troubled(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(TroubledFile(file, self.1.clone()))
    }
}

impl Disk for TroubledDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.create(name).map(|file| self.troubled(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.open(name).map(|file| self.troubled(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

impl DiskFile for TroubledFile {
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        if self.1.is(FULL) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.0.append(bytes)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, bytes)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        if self.1.is(BROKEN) {
            return Err(io::Error::other("the disk is broken"));
        }
        self.0.sync()
    }
}

/// A server on a disk that obeys.
async fn started() -> (Started, Trouble) {
    let (folder, trouble) = (tempfile::tempdir().unwrap(), Trouble::default());
    let disk = TroubledDisk(RealDisk::open(folder.path()).unwrap(), trouble.clone());
    let clock = ManualClock::new();
    let builder = Tollgate::builder().clock(clock.clone());
    let gate = builder.open_on(Arc::new(disk)).await.unwrap();
    let settings = Settings::new(([127, 0, 0, 1], 0).into());
    (Started::serving((gate, clock), folder, settings).await, trouble)
}

impl Started {
    /// Returns once `/readyz` answers with that status.
    pub(super) async fn until_ready_says(&self, status: u16) {
        let wait = async { while self.get("/readyz").await.status != status {} };
        timeout(super::started::PATIENCE, wait).await.expect("it says something else");
    }
}

#[tokio::test]
async fn a_full_disk_is_not_ready_until_there_is_space() {
    let (server, trouble) = started().await;
    assert_eq!(server.get("/readyz").await.success(), json!({"status": "ready"}));
    trouble.set(FULL);
    let queue = server.ask("PUT", "/v1/queues/q", &[], "");
    let full = async {
        server.until_ready_says(503).await;
        server.get("/readyz").await.problem(503, "store_full");
        assert!(server.get("/metrics").await.text.contains("\ntollgate_ready 0\n"));
        server.get("/healthz").await.success();
        trouble.set(SOUND);
        server.until_ready_says(200).await;
    };
    let (queue, ()) = tokio::join!(queue, full);
    queue.success();
}

#[tokio::test]
async fn a_store_that_failed_is_not_ready_and_the_rest_is_still_counted() {
    let (server, trouble) = started().await;
    trouble.set(BROKEN);
    server.ask("PUT", "/v1/queues/q", &[], "").await.problem(503, "store_failed");
    server.until_ready_says(503).await;
    server.get("/readyz").await.problem(503, "store_failed");
    let told = server.get("/metrics").await;
    assert_eq!(told.status, 200);
    assert!(told.text.contains("\ntollgate_ready 0\n"), "{}", told.text);
}
