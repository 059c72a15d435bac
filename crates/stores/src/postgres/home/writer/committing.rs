//! Writing what was done in a round, and finding out what came of it.

use super::super::inbox::Waiting;
use super::super::link::Batch;
use super::following::{Trouble, cut, within};
use super::{Cargo, DOUBT_MAX, RETRY, Writer, elapsing};
use crate::store::home::Listeners;
use std::time::Instant;
use tollgate_core::Now;
use tollgate_core::contract::StoreError;

/// What the log says of a batch whose outcome was not known.
enum Outcome {
    Written,
    /// Nobody has written anything since: it can be written now.
    Open,
    /// Somebody else has: it cannot be written any more.
    Lost,
}

impl Writer {
    /// A round that changed nothing: what it saw lasts.
    pub(super) async fn end_unchanged(&mut self, mut cargo: Cargo) {
        if let Err(error) = self.let_go(false).await {
            self.link = None;
            self.means.listeners.condition.is_in_trouble(error.clone());
            return Self::answer(cargo, &Err(error));
        }
        self.means.listeners.condition.is_well();
        self.means.listeners.stream.tell(std::mem::take(&mut cargo.followed));
        Self::answer(cargo, &Ok(()));
    }

    /// Lets go of the lock, and waits until what others wrote is safe, if that is not known yet, and what this
    /// node wrote, if it did.
    async fn let_go(&mut self, is_own: bool) -> Result<(), StoreError> {
        let link = self.link.as_ref().ok_or_else(cut)?;
        within(self.means.patience, link.roll_back()).await.map_err(Trouble::told_while_open)?;
        if self.safe < self.last.0 || is_own {
            within(self.means.patience, link.flush()).await.map_err(Trouble::told_while_open)?;
            self.safe = self.last.0;
        }
        Ok(())
    }

    pub(super) fn answer(cargo: Cargo, outcome: &Result<(), StoreError>) {
        cargo.replies.into_iter().for_each(|reply| reply(outcome.clone()));
    }

    /// Writes what was done, and answers once it is known what came of it.
    pub(super) async fn commit(&mut self, mut cargo: Cargo, now: Now) {
        let began = elapsing();
        let mut error = match self.write(&cargo.batch, now).await {
            Ok(()) => return self.committed(cargo, now, began),
            Err(error) => error,
        };
        loop {
            self.link = None;
            if let StoreError::Failed { reason } = error {
                // The server says what is wrong with it: it will never be written, and those after it may be.
                let reason = format!("it was not done: {reason}");
                return self.lost(cargo, StoreError::Unreachable { reason });
            }
            self.means.listeners.condition.is_in_trouble(error.clone());
            if is_given_up(began) {
                for reply in std::mem::take(&mut cargo.replies) {
                    reply(Err(error.clone()));
                }
            }
            let is_closed = self.refuse_for_a_while(&error).await;
            error = match self.outcome().await {
                Ok(Outcome::Written) => match self.let_go(true).await {
                    Ok(()) => return self.committed(cargo, now, began),
                    Err(error) => error,
                },
                // Nobody waits for it any more, and nobody was told that it is so.
                Ok(Outcome::Open) if is_given_up(began) => return self.lost(cargo, error),
                Ok(Outcome::Open) => match self.write(&cargo.batch, now).await {
                    Ok(()) => return self.committed(cargo, now, began),
                    Err(error) => error,
                },
                Ok(Outcome::Lost) => return self.lost(cargo, undone()),
                Err(trouble) => self.put_down(trouble),
            };
            if is_closed {
                // It may have been written or not: what is handed back on the way out needs to know.
                return self.lost(cargo, error);
            }
        }
    }

    pub(super) async fn write(&mut self, batch: &Batch, now: Now) -> Result<(), StoreError> {
        let entry = (self.last.0 + 1, self.node);
        let link = self.link.as_ref().ok_or_else(cut)?;
        let writing = link.write(entry, now.at, batch);
        within(self.means.patience, writing).await.map_err(Trouble::told)
    }

    /// What became of the entry after the last one. The lock is waited for, so that a commit that is
    /// still under way is over; if it can be written, the lock is still held.
    async fn outcome(&mut self) -> Result<Outcome, Trouble> {
        let since = self.last.0;
        let patience = self.means.patience;
        let begun = within(patience, self.linked().await?.begin(since)).await?;
        let mut entries = begun.entries.into_iter();
        let known = entries.next().map(|entry| (entry.seq, entry.node));
        let next = entries.next().map(|entry| entry.node);
        let outcome = match next {
            None if known == Some(self.last) => return Ok(Outcome::Open),
            // The lock is let go of with the wait until it is safe.
            Some(node) if node == self.node => return Ok(Outcome::Written),
            _ => Outcome::Lost,
        };
        within(patience, self.held()?.roll_back()).await?;
        Ok(outcome)
    }

    /// Refuses what comes until it is time to try again; says whether nobody is left who could ask.
    async fn refuse_for_a_while(&mut self, error: &StoreError) -> bool {
        // Whoever only looks does not wait for as long as the server is away.
        std::mem::take(&mut self.looks).into_iter().for_each(|look| self.refuse(look, error));
        let until = elapsing() + RETRY;
        loop {
            let left = until.saturating_duration_since(elapsing());
            if left.is_zero() {
                return false;
            }
            let Waiting { commands, is_closed, .. } = self.means.inbox.wait(left).await;
            commands.into_iter().for_each(|command| self.refuse(command, error));
            if is_closed {
                return true;
            }
        }
    }

    /// What was done lasts.
    fn committed(&mut self, cargo: Cargo, now: Now, began: Instant) {
        let Cargo { batch, replies, accepted, followed } = cargo;
        self.last = (self.last.0 + 1, self.node);
        (self.wrote, self.safe) = (Some(elapsing()), self.last.0);
        self.means.growth.grow(batch.effects.len() as u64);
        self.written = self.written.max(now.at);
        self.state.count_commit(batch.bytes(), elapsing().duration_since(began));
        accepted.into_iter().for_each(|id| self.state.bodies.note_logged(id));
        let Listeners { condition, stream, .. } = &self.means.listeners;
        condition.is_well();
        if let Some(past) = &self.means.past {
            past.grow(batch.telling.bytes());
        }
        stream.tell(followed);
        replies.into_iter().for_each(|reply| reply(Ok(())));
    }

    /// What was done did not last, and will not any more. Whatever is held of the lock goes with the
    /// connection.
    fn lost(&mut self, cargo: Cargo, error: StoreError) {
        (self.is_spoiled, self.link) = (true, None);
        Self::answer(cargo, &Err(error));
    }
}

/// Whether a batch that was handed over then is not waited for any more.
fn is_given_up(began: Instant) -> bool {
    elapsing().duration_since(began) > DOUBT_MAX
}

/// What is told of a batch that another node went on without.
pub(super) fn undone() -> StoreError {
    let reason = "it was not done, for the connection broke: ask again".to_owned();
    StoreError::Unreachable { reason }
}
