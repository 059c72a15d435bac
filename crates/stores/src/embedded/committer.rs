//! A thread that commits batches, so that the next one is filled while the last one is synced.
//!
//! What is submitted is done in order, and answered in order. One batch may wait while another is
//! being committed: a producer that finds no room goes on filling its batch, and the slower the
//! disk, the more goes into one sync.

use super::log::{Batch, BatchPlace, Log, LogError, Reader, SegmentNumber};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

/// How many jobs wait while one is being done. With more than one, a batch would be closed to new
/// records before its turn comes.
const WAITING_MAX: usize = 1;
/// How many emptied batches are kept: one is being filled, one waits, one is being committed.
const SPARES_MAX: usize = 3;
/// A batch that took more memory than this gives it back: it was an exception.
const SPARE_BYTES_MAX: usize = 16 << 20;

/// What is called on the committer's thread once a batch lasts, or was refused.
///
/// It should be quick, for nothing is committed meanwhile; and it must not panic, for that ends the
/// thread: what waits is then never answered, and what is submitted later is refused.
pub type Done = Box<dyn FnOnce(Result<BatchPlace, Refused>) + Send>;

/// What is called on the committer's thread once a job is done that is not a batch.
pub type JobDone<T> = Box<dyn FnOnce(Result<T, LogError>) + Send>;

/// A batch that was not committed, with its records.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub error: LogError,
    /// The batch as it was submitted.
    pub batch: Batch,
}

/// There was no room for a batch.
pub struct Busy {
    /// The batch, to be filled further.
    pub batch: Batch,
    /// What was to be called.
    pub done: Done,
}

/// Commits what one producer submits.
///
/// A batch that is refused, for want of space or for good, stops the committer: later batches,
/// which may build on it, and rotations are refused with the same error until the producer has
/// seen it and calls [`Committer::resume`]. So the log never has a batch without those before it.
///
/// Dropping it commits what was submitted, closes the log and waits for that.
#[derive(Debug)]
pub struct Committer {
    /// Taken only by `drop`.
    jobs: Option<SyncSender<Job>>,
    spares: Receiver<Batch>,
    unfinished: Arc<AtomicUsize>,
    reader: Reader,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Starts the thread, which owns the log from now on.
    pub fn start(log: Log) -> Result<Self, LogError> {
        let (jobs, submitted) = sync_channel(WAITING_MAX);
        let (emptied, spares) = sync_channel(SPARES_MAX);
        let unfinished = Arc::new(AtomicUsize::new(0));
        let reader = log.reader();
        let worker =
            Worker { log, spares: emptied, unfinished: unfinished.clone(), stopped_by: None };
        let thread = thread::Builder::new().name("tollgate-committer".to_owned());
        let thread = thread.spawn(move || worker.run(submitted));
        let thread = thread.map_err(|error| LogError::failed("starting its thread", error))?;
        Ok(Self { jobs: Some(jobs), spares, unfinished, reader, thread: Some(thread) })
    }

    /// An empty batch, one that was committed before if there is one.
    pub fn batch(&self) -> Batch {
        self.spares.try_recv().unwrap_or_default()
    }

    /// Whether nothing is being committed and nothing waits.
    pub fn is_idle(&self) -> bool {
        self.unfinished.load(Ordering::Acquire) == 0
    }

    /// Hands over a batch; blocks while another one waits.
    pub fn submit(&self, batch: Batch, done: Done) {
        self.send(Job::Commit { batch, done });
    }

    /// Hands over a batch, unless another one waits.
    pub fn try_submit(&self, batch: Batch, done: Done) -> Result<(), Busy> {
        match self.try_send(Job::Commit { batch, done }) {
            Err(Job::Commit { batch, done }) => Err(Busy { batch, done }),
            _ => Ok(()),
        }
    }

    /// Lets batches through again after one was refused. Those that were submitted before are
    /// refused still.
    pub fn resume(&self) {
        self.send(Job::Resume);
    }

    /// Starts a new segment after what was submitted before; see [`Log::rotate`].
    pub fn rotate(&self, done: JobDone<SegmentNumber>) {
        self.send(Job::Rotate { done });
    }

    /// Removes segments after what was submitted before; see [`Log::drop_before`]. Also done while
    /// batches are refused, for it makes room.
    pub fn drop_before(&self, segment: SegmentNumber, done: JobDone<()>) {
        self.send(Job::DropBefore { segment, done });
    }

    /// Reads records back, from any thread.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    fn send(&self, job: Job) {
        self.unfinished.fetch_add(1, Ordering::AcqRel);
        let unsent = match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|unsent| unsent.0),
            None => Some(job),
        };
        unsent.into_iter().for_each(|job| self.refuse(job));
    }

    fn try_send(&self, job: Job) -> Result<(), Job> {
        self.unfinished.fetch_add(1, Ordering::AcqRel);
        let unsent = match &self.jobs {
            Some(jobs) => jobs.try_send(job),
            None => Err(TrySendError::Disconnected(job)),
        };
        match unsent {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(job)) => {
                self.unfinished.fetch_sub(1, Ordering::AcqRel);
                Err(job)
            }
            Err(TrySendError::Disconnected(job)) => {
                self.refuse(job);
                Ok(())
            }
        }
    }

    /// Answers a job that no thread is left to do.
    fn refuse(&self, job: Job) {
        self.unfinished.fetch_sub(1, Ordering::AcqRel);
        let ended = io::Error::other("a callback of an earlier job panicked");
        job.refuse(LogError::failed("because its thread has ended", ended));
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A callback may hold the last share of the committer: the thread ends on its own then.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

enum Job {
    Commit { batch: Batch, done: Done },
    Rotate { done: JobDone<SegmentNumber> },
    DropBefore { segment: SegmentNumber, done: JobDone<()> },
    Resume,
}

impl Job {
    fn refuse(self, error: LogError) {
        match self {
            Self::Commit { batch, done } => done(Err(Refused { error, batch })),
            Self::Rotate { done } => done(Err(error)),
            Self::DropBefore { done, .. } => done(Err(error)),
            Self::Resume => {}
        }
    }
}

/// The thread's side.
struct Worker {
    log: Log,
    spares: SyncSender<Batch>,
    unfinished: Arc<AtomicUsize>,
    /// Why a batch was refused, until the producer has taken note.
    stopped_by: Option<LogError>,
}

impl Worker {
    fn run(mut self, jobs: Receiver<Job>) {
        for job in jobs {
            self.work(job);
            self.unfinished.fetch_sub(1, Ordering::AcqRel);
        }
        // Should it fail, nothing is lost: there is only no header to vouch for the last frame.
        let _ = self.log.close();
    }

    fn work(&mut self, job: Job) {
        match (job, &self.stopped_by) {
            (Job::Resume, _) => self.stopped_by = None,
            (Job::DropBefore { segment, done }, _) => done(self.log.drop_before(segment)),
            (job, Some(error)) => job.refuse(error.clone()),
            (Job::Commit { batch, done }, None) => self.commit(batch, done),
            (Job::Rotate { done }, None) => done(self.log.rotate()),
        }
    }

    fn commit(&mut self, mut batch: Batch, done: Done) {
        match self.log.commit(&mut batch) {
            Ok(place) => {
                if batch.bytes() <= SPARE_BYTES_MAX {
                    batch.clear();
                    // Before the answer, so that whoever hears it finds the batch.
                    let _ = self.spares.try_send(batch);
                }
                done(Ok(place));
            }
            Err(error) => {
                self.stopped_by = Some(error.clone());
                done(Err(Refused { error, batch }));
            }
        }
    }
}

#[cfg(test)]
mod tests;
