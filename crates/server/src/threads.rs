//! The threads that requests are answered on, and what would keep them from others for long.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::block_in_place;

/// How a user of tokio says how many workers there are.
const WORKERS: &str = "TOKIO_WORKER_THREADS";

/// A runtime with a worker for each core, but those that so many other threads keep busy: a store in a folder
/// has one that decides and one that syncs, which hardly ever do so at once. A worker that is woken from there
/// wakes the next, and on two cores the second would find nothing to do and stand in the way.
pub fn runtime_beside(threads: usize) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if std::env::var_os(WORKERS).is_none() {
        builder.worker_threads(cores().saturating_sub(threads).max(1));
    }
    builder.enable_all().build()
}

/// What takes more than so many bytes takes milliseconds.
const LONG_BYTES: usize = 512 * 1024;

/// How many workers do something that takes long.
static AT_LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Does something that takes as long as there are bytes. If those are many, another thread does meanwhile what
/// this one would have done next: one for each core at most, for more would only share them.
pub(crate) fn at_length<T>(bytes: usize, act: impl FnOnce() -> T) -> T {
    if bytes <= LONG_BYTES || !has_workers() {
        return act();
    }
    let others = AT_LENGTH.fetch_add(1, Ordering::Relaxed);
    let _ends = Ends;
    match others < cores() {
        true => block_in_place(act),
        false => act(),
    }
}

/// Whether another thread can take over.
fn has_workers() -> bool {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    matches!(flavor, Ok(RuntimeFlavor::MultiThread))
}

/// Counts one less, also if what was done panics.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        AT_LENGTH.fetch_sub(1, Ordering::Relaxed);
    }
}

fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// What takes long here is to wait for another task.
    async fn waits_for_another() -> bool {
        let (say, heard) = channel();
        tokio::spawn(async move { say.send(()) });
        at_length(usize::MAX, || heard.recv_timeout(Duration::from_secs(60)).is_ok())
    }

    #[test]
    fn what_takes_long_holds_back_no_other() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let waited = runtime.block_on(async { tokio::spawn(waits_for_another()).await });
        assert!(waited.unwrap());
    }

    #[test]
    fn what_takes_long_is_done_on_any_runtime() {
        let runtime = Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(async { at_length(usize::MAX, || 7) }), 7);
        assert_eq!(at_length(usize::MAX, || 7), 7);
    }

    #[test]
    fn there_is_always_a_worker() {
        for busy in [0, 1, usize::MAX] {
            let runtime = runtime_beside(busy).unwrap();
            assert!(runtime.metrics().num_workers() >= 1);
        }
    }
}
