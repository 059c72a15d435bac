//! A store with lanes: the contracts, kept by a scheduler in memory, and a home where what it did
//! lasts. A folder is such a home, and so is a Postgres database.
//!
//! A command is a function of the state. The home does one after the other, and sends an answer of
//! success once all that it saw and did lasts.

mod acts;
mod bodies;
mod claiming;
pub(crate) mod command;
pub(crate) mod condition;
mod contract;
pub(crate) mod elsewhere;
mod ends;
pub(crate) mod home;
pub(crate) mod slices;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod together;
mod totals;
pub(crate) mod wakes;

pub use elsewhere::Changed;

use command::{Kind, Task};
use home::{Body, Home, Past};
use state::{BodyAt, State};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::{CallId, Scheduler};
use tollgate_core::{Now, Span};

/// Something for each call.
type ByCall<T> = HashMap<CallId, T, BuildHasherDefault<Placing>>;

/// Lets calls fall [where they should](CallId::place).
#[derive(Debug, Default)]
struct Placing(u64);

impl Hasher for Placing {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, call: u64) {
        self.0 = CallId(self.0 ^ call).place();
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Where the time comes from: the machine's clocks, or a test's.
pub type TimeSource = Arc<dyn Fn() -> Now + Send + Sync>;

/// Most commands that wait for an answer, of up to [`COMMAND_BYTES`] each; a larger one counts for
/// several. Whoever comes then waits to be let in.
const COMMANDS_MAX: usize = 65_536;
const COMMAND_BYTES: usize = 16 << 10;

/// Calls, limits and meters in a home. Clones are the same store; when the last one is dropped, what
/// was asked for is finished and the home let go.
#[derive(Clone)]
pub struct Store {
    home: Arc<dyn Home>,
    room: Arc<Semaphore>,
}

impl Store {
    pub(crate) fn at(home: impl Home + 'static) -> Self {
        Self { home: Arc::new(home), room: Arc::new(Semaphore::new(COMMANDS_MAX)) }
    }

    /// Polls what tells this store several things: they reach it together when this returns, and are done in one go.
    pub fn together<T>(&self, poll: impl FnOnce() -> T) -> T {
        together::together(self.home.commands(), poll)
    }

    /// Lets the home do something, and waits for the answer.
    async fn tell<T: Send + 'static>(
        &self,
        kind: Kind,
        act: impl FnOnce(&mut State, Now) -> T + Send + 'static,
    ) -> Answer<T> {
        self.tell_of(kind, 0, act).await
    }

    /// As [`Self::tell`], with a command that holds so many bytes.
    async fn tell_of<T: Send + 'static>(
        &self,
        kind: Kind,
        bytes: usize,
        act: impl FnOnce(&mut State, Now) -> T + Send + 'static,
    ) -> Answer<T> {
        let permit = self.room_for(bytes).await?;
        let (reply, answer) = oneshot::channel();
        self.home.commands().take(Box::new(Task { kind, act, reply, permit }));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// A place among the commands that may wait, for one that holds so many bytes.
    async fn room_for(&self, bytes: usize) -> Answer<OwnedSemaphorePermit> {
        let counts_for = (1 + bytes / COMMAND_BYTES).min(COMMANDS_MAX);
        let counts_for = u32::try_from(counts_for).unwrap_or(1);
        self.room.clone().acquire_many_owned(counts_for).await.map_err(|_| closed())
    }

    /// How many events history has dropped since the store was opened: those that came faster than
    /// they could be written, or that were refused.
    pub fn history_dropped(&self) -> u64 {
        self.home.past().map_or(0, |past| past.dropped())
    }

    /// Whether it takes writes: what the last one found. One that finds no room, or nobody there, is
    /// tried again, so that this is soon true again once it can be. Costs no write.
    pub fn takes_writes(&self) -> Answer<()> {
        self.home.listeners().condition.told()
    }

    /// A copy of all there is but the bodies of calls, and the time: for who asks what would become of it.
    /// `None` if there are more calls than that, or four times as many lanes and meters. Nothing else is done
    /// while it is made.
    pub async fn copied(&self, calls_max: u64) -> Answer<Option<(Scheduler, Now)>> {
        self.tell(Kind::Look, move |state, now| {
            let queues = state.scheduler.queues(None, usize::MAX);
            let calls: u64 = queues.iter().map(|it| it.waiting + it.in_flight + it.dead).sum();
            let is_small = calls <= calls_max && state.scheduler.kept() as u64 / 4 <= calls_max;
            is_small.then(|| (state.scheduler.clone(), now))
        })
        .await
    }

    /// For how long the oldest transaction has been open that holds back what the database clears away, as
    /// it was seen some seconds ago; zero if there is none. `None`: the store is in a folder.
    pub fn oldest_transaction(&self) -> Option<Span> {
        self.home.oldest_transaction()
    }

    /// The store's own time, for as long as anybody asks: it does not hold the store open.
    pub fn time(&self) -> TimeSource {
        self.home.time()
    }

    /// What other nodes changed since this was asked last, as soon as they have; never, where there are
    /// none. One at a time may ask. Dropped before it is ready, nothing is lost.
    pub async fn changed_elsewhere(&self) -> Changed {
        self.home.listeners().elsewhere.changed().await
    }

    /// History, with all in it that was answered before.
    async fn past_now(&self) -> Answer<Option<&dyn Past>> {
        let Some(past) = self.home.past() else { return Ok(None) };
        self.tell(Kind::Change, |state, now| state.scheduler.advance(now)).await?;
        past.flushed().await;
        Ok(Some(past))
    }

    /// The bodies of calls, in order; fewer than asked for once they have so many bytes.
    async fn bodies(&self, wanted: Vec<(CallId, BodyAt)>, bytes_max: usize) -> Vec<Answer<Body>> {
        let (mut bodies, mut unread) = (Vec::with_capacity(wanted.len()), VecDeque::new());
        for (place, (id, at)) in wanted.into_iter().enumerate() {
            bodies.push(match at {
                BodyAt::Here(body) => Ok(Body::There(body)),
                BodyAt::Gone => Ok(Body::Gone),
                BodyAt::Home(kept) => {
                    unread.push_back((place, (id, kept)));
                    Ok(Body::Gone)
                }
            });
        }
        let mut bytes = 0;
        while !unread.is_empty() && bytes < bytes_max {
            let these: Vec<_> = unread.iter().map(|(_, wanted)| *wanted).collect();
            let read = self.home.read(&these, bytes_max - bytes).await;
            for body in read {
                let Some((place, before)) = unread.pop_front() else { break };
                bytes += length(&body);
                bodies[place] = match body {
                    Ok(Body::Gone) => self.read_again(before).await,
                    read => read,
                };
            }
        }
        bodies.truncate(unread.front().map_or(bodies.len(), |(place, _)| *place));
        let mut room = bytes_max;
        let fitting = bodies.iter().take_while(|body| {
            let has_room = room > 0;
            room = room.saturating_sub(length(body));
            has_room
        });
        let fitting = fitting.count();
        bodies.truncate(fitting);
        bodies
    }

    /// A body that was not where it should be; nothing, if its call has ended.
    async fn read_again(&self, (id, mut before): (CallId, u64)) -> Answer<Body> {
        loop {
            let at = match self.tell(Kind::Look, move |state, _| state.body(id)).await? {
                BodyAt::Gone => return Ok(Body::Gone),
                BodyAt::Here(body) => return Ok(Body::There(body)),
                BodyAt::Home(at) => at,
            };
            if at == before {
                let reason = format!("the body of call {} is not where it should be", id.0);
                return Ok(Body::Damaged(reason));
            }
            before = at;
            if let Some(body) = self.home.read(&[(id, at)], usize::MAX).await.pop() {
                match body {
                    Ok(Body::Gone) => {}
                    read => return read,
                }
            }
        }
    }
}

fn length(body: &Answer<Body>) -> usize {
    body.as_ref().map_or(0, Body::bytes)
}

pub(crate) fn closed() -> StoreError {
    StoreError::Failed { reason: "it failed, or is closed".to_owned() }
}
