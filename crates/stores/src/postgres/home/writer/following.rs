//! Catching up with what other nodes wrote: under the lock, before a round, and without it.

use super::super::frames::{self, Frame, Note};
use super::super::link::{Begun, Entry, Link};
use super::super::load;
use super::{Writer, elapsing};
use crate::embedded::codec::CodecError;
use crate::postgres::fault;
use crate::store::elsewhere::Changed;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_postgres::Error;
use tollgate_core::Now;
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::Watch;

/// Why a round could not begin.
pub(in crate::postgres::home) enum Trouble {
    Database(Error),
    Other(StoreError),
}

/// A node that did not look for so long may be far behind.
const BEHIND: Duration = Duration::from_secs(3);
/// How long what cannot be read is left alone.
const UNREAD: Duration = Duration::from_secs(10);

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl Trouble {
    pub(in crate::postgres::home) fn told(self) -> StoreError {
        match self {
            Self::Database(error) => fault::of(error),
            Self::Other(error) => error,
        }
    }

    /// Once the store is open, only what cannot be read is for good.
    pub(super) fn told_while_open(self) -> StoreError {
        match self {
            Self::Database(error) => fault::while_open(fault::of(error)),
            Self::Other(error) => error,
        }
    }
}

impl Writer {
    /// Begins a round; a connection that has broken since it was used last is made anew.
    pub(super) async fn begin_surely(&mut self) -> Result<Now, StoreError> {
        let is_new = self.link.is_none();
        match self.begin().await {
            Ok(now) => Ok(now),
            // Who waited in vain is told so, and does not wait once more.
            Err(Trouble::Database(error)) if !is_new && !fault::is_out_of_time(&error) => {
                self.link = None;
                self.begin().await.map_err(|trouble| self.put_down(trouble))
            }
            Err(trouble) => Err(self.put_down(trouble)),
        }
    }

    pub(super) fn put_down(&mut self, trouble: Trouble) -> StoreError {
        self.link = None;
        trouble.told_while_open()
    }

    /// Locks all others out, lets happen what they wrote, and reads the clock.
    async fn begin(&mut self) -> Result<Now, Trouble> {
        let is_behind = |at| elapsing().duration_since(at) > BEHIND;
        if self.caught_up.is_none_or(is_behind) {
            // What takes long is not done while others wait.
            self.follow_once().await?;
        }
        loop {
            self.reload_if_spoiled().await?;
            let since = self.last.0;
            let patience = self.means.patience;
            let link = self.linked().await?;
            let Begun { server, mut entries } = within(patience, link.begin(since)).await?;
            loop {
                let may_have_more = Link::may_have_more(&entries);
                if !self.happen(entries)? {
                    within(self.means.patience, self.held()?.roll_back()).await?;
                    break;
                }
                if !may_have_more {
                    self.caught_up = Some(elapsing());
                    return Ok(self.means.clock.read(server, self.written));
                }
                let reading = self.held()?.read(self.last.0);
                entries = within(self.means.patience, reading).await?;
            }
        }
    }

    /// Lets happen what others wrote, without a lock.
    pub(super) async fn follow(&mut self) -> Result<Now, StoreError> {
        let followed = self.follow_once().await;
        followed.map_err(|trouble| self.put_down(trouble))?;
        Ok(self.means.clock.now())
    }

    async fn follow_once(&mut self) -> Result<(), Trouble> {
        loop {
            self.reload_if_spoiled().await?;
            let since = self.last.0;
            let patience = self.means.patience;
            let entries = within(patience, self.linked().await?.read(since)).await?;
            let may_have_more = Link::may_have_more(&entries);
            if self.happen(entries)? && !may_have_more {
                self.state.scheduler.catch_up(self.means.clock.now());
                self.caught_up = Some(elapsing());
                return Ok(());
            }
        }
    }

    /// Lets entries of the log happen, of which the first is known already. `false`: what is known is
    /// not what is in the log, and the state is to be read again.
    fn happen(&mut self, entries: Vec<Entry>) -> Result<bool, Trouble> {
        let mut entries = entries.into_iter();
        let known = entries.next().map(|entry| (entry.seq, entry.node));
        if known != Some(self.last) {
            tracing::warn!(
                known = self.last.0,
                found = known.map(|known| known.0),
                "the log is not what this node remembers: it reads all of it again"
            );
            self.is_spoiled = true;
            return Ok(false);
        }
        // Whoever decided it tells history.
        if self.watch() == Watch::History {
            self.state.scheduler.watch(Watch::Nothing);
        }
        let happened = self.happen_each(entries);
        let watch = self.watch();
        self.state.scheduler.watch(watch);
        happened
    }

    fn happen_each(&mut self, entries: impl Iterator<Item = Entry>) -> Result<bool, Trouble> {
        for Entry { seq, node, limit_time, effects } in entries {
            if seq != self.last.0 + 1 {
                self.is_spoiled = true;
                return Ok(false);
            }
            let now = self.means.clock.now().moved_to(limit_time);
            let (effects, mut changed) = (effects.unwrap_or_default(), Changed::default());
            self.means.growth.grow(effects.len() as u64);
            self.state.scheduler.follow_level(now);
            let followed = frames::each(&effects, |frame| {
                match frame {
                    Frame::Note(Note::Levelled) => self.state.scheduler.follow_level(now),
                    Frame::Effect(effect) => {
                        changed.add(&effect);
                        self.state.follow(&effect, now);
                    }
                    Frame::Note(note) => self.asks.hear(node, note, &mut self.state.scheduler),
                }
                Ok(())
            });
            if let Err(error) = followed {
                // Some of it may have happened.
                self.is_spoiled = true;
                return Err(Trouble::Other(unreadable(seq, &error)));
            }
            // Whatever comes next levels before anything else, with all that stand where they stand.
            self.state.scheduler.catch_up(now);
            self.asks.hear_of(node, elapsing());
            self.last = (seq, node);
            self.written = self.written.max(limit_time);
            self.means.listeners.elsewhere.note(changed);
            self.tell_elsewhere();
        }
        Ok(true)
    }

    /// Tells those who follow what happened elsewhere.
    fn tell_elsewhere(&mut self) {
        let mut events = Vec::new();
        self.state.scheduler.move_events(&mut events);
        self.means.listeners.stream.tell(events);
    }

    async fn reload_if_spoiled(&mut self) -> Result<(), Trouble> {
        if !self.is_spoiled {
            return Ok(());
        }
        // It may be all that there is, and does not read better a second later.
        if let Some((error, until)) = &self.unread
            && elapsing() < *until
        {
            return Err(Trouble::Other(error.clone()));
        }
        let client = within(self.means.patience, (self.means.connector)()).await?;
        match load::load(&client.client, &self.means.loading).await? {
            Ok(loaded) => self.begin_with(loaded),
            Err(error) => {
                self.unread = Some((error.clone(), elapsing() + UNREAD));
                return Err(Trouble::Other(error));
            }
        }
        // What was written under the old name may have gone, and another be there in its place.
        self.node = super::super::node();
        self.means.node.store(self.node, Ordering::Relaxed);
        let changed = Changed { is_all: true, ..Changed::default() };
        self.means.listeners.elsewhere.note(changed);
        Ok(())
    }

    pub(super) async fn linked(&mut self) -> Result<&Link, Trouble> {
        let link = match self.link.take().filter(|link| !link.is_closed()) {
            Some(link) => link,
            None => {
                let opening = Link::open(&self.means.connector, &self.means.sql);
                within(self.means.patience, opening).await?
            }
        };
        Ok(self.link.insert(link))
    }

    /// The connection that holds the lock: no other will do.
    pub(super) fn held(&self) -> Result<&Link, Trouble> {
        self.link.as_ref().ok_or_else(|| Trouble::Other(cut()))
    }
}

/// Waits for the server's answer, and not for ever: a network may lose it.
pub(in crate::postgres::home) async fn within<T>(
    patience: Duration,
    asking: impl Future<Output = Result<T, Error>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(patience, asking).await {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            let reason = format!("PostgreSQL did not answer within {patience:?}");
            Err(Trouble::Other(StoreError::Unreachable { reason }))
        }
    }
}

pub(super) fn cut() -> StoreError {
    StoreError::Unreachable { reason: "the connection is gone".to_owned() }
}

fn unreadable(seq: i64, error: &CodecError) -> StoreError {
    let reason = format!("entry {seq} of the log cannot be read: {error}");
    StoreError::Failed { reason }
}
