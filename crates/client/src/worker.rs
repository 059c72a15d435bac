//! A worker: claims calls as it has hands free, runs a handler for each, and settles what comes of it.

mod claiming;
mod hands;
mod held;
mod settling;

use crate::calls::{CallId, Lease};
use crate::client::Client;
use crate::clock::random;
use crate::error::ClientError;
use crate::tasks::TaskOf;
use hands::Hands;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use tollgate_core::Span;
use tollgate_core::lanes::queue::{LEASE_MAX, RENEWED_LEASE_MIN};
use tollgate_engine::{Outcome, TraceParent, Worked};

/// How long a lease of a worker lasts unless it says otherwise.
const LEASE: Span = Span::from_secs(30);

/// A call that a handler is to make now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// Which call.
    pub id: CallId,
    /// The lane it is of.
    pub lane: String,
    /// What was handed in with it.
    pub body: Box<[u8]>,
    /// Which start of it, from 1: failures, crashes and pauses before it are counted.
    pub attempt: u32,
    /// Of which trace it is a part: spans of the handler are children of this one.
    pub trace: Option<TraceParent>,
    /// Of which run it is, if it is a task of a workflow.
    pub task: Option<TaskOf>,
    /// What it is settled with.
    pub lease: Lease,
}

/// A worker of a queue, to be set up and run.
#[must_use = "nothing is claimed until it runs"]
pub struct Worker {
    client: Client,
    setup: Setup,
    stop: Stop,
}

type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How a worker works.
#[derive(Debug, Clone)]
struct Setup {
    queue: String,
    /// Who it is, for the server's log.
    name: String,
    concurrency: usize,
    lease: Span,
    /// `None`: as the server says.
    start_by: Option<Span>,
    is_draining: bool,
    /// The report of a call that is done is what a task gave.
    gives_output: bool,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("setup", &self.setup).finish_non_exhaustive()
    }
}

impl Client {
    /// A worker of a queue.
    pub fn worker(&self, queue: &str) -> Worker {
        let [a, b, c, d] = random::<4>();
        let setup = Setup {
            queue: queue.to_owned(),
            name: format!("{}-{a:02x}{b:02x}{c:02x}{d:02x}", std::process::id()),
            concurrency: 1,
            lease: LEASE,
            start_by: None,
            is_draining: false,
            gives_output: false,
        };
        Worker { client: self.clone(), setup, stop: Box::pin(pending()) }
    }
}

impl Worker {
    /// How many calls it makes at a time; 1 by default.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.setup.concurrency = calls.max(1);
        self
    }

    /// How long a call is leased, from 100 ms to a day; 30 s by default. It is renewed for as long as the
    /// handler runs, so this is how long a call of a worker that died waits for another. If it cannot be
    /// renewed in time, another worker may have the call, and the handler's future is dropped.
    pub fn lease(mut self, lease: impl Into<Span>) -> Self {
        self.setup.lease = lease.into().clamp(RENEWED_LEASE_MIN, LEASE_MAX);
        self
    }

    /// A call that reaches the handler later than this after the server's answer is handed back: it paid
    /// for a start that the upstream would see too late. As the server says by default, which is 1 s.
    pub fn start_by(mut self, span: impl Into<Span>) -> Self {
        self.setup.start_by = Some(span.into());
        self
    }

    /// What the server calls it in its log.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.setup.name = name.into();
        self
    }

    /// What a call that is done reports is what its task gave.
    pub(crate) fn giving_output(mut self) -> Self {
        self.setup.gives_output = true;
        self
    }

    /// When this is ready, nothing more is claimed; those it has are finished and settled.
    pub fn until(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { stop: Box::pin(stop), ..self }
    }

    /// Ends when no call of the queue is left that waits or is in flight.
    pub fn until_drained(mut self) -> Self {
        self.setup.is_draining = true;
        self
    }

    /// Runs the handler for each call, until it is told to stop or the server refuses it; a server that is
    /// out of reach is waited for. A handler that panics has failed: its call is tried again, and the
    /// worker goes on. Dropped, it drops its handlers, and their calls wait until their leases end.
    pub async fn run<H, F>(self, handler: H) -> Result<Worked, ClientError>
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output: Into<Outcome>> + Send + 'static,
    {
        let Self { client, setup, stop } = self;
        Hands::new(client, setup, handler).work(stop).await
    }
}
