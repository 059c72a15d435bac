//! The audit log: every change of a limit or a queue and every operation on one, who made it, and what was
//! before.
//!
//! A change of a limit is written in the act that writes the limit's own record; a change of a queue and
//! an operation before the store does it. The latest are kept.

mod record;

use super::{Engine, Operation, Parts};
use crate::error::Error;
use record::AuditRecord;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::contract::{Lanes, PAGE_MAX};
use tollgate_core::lanes::{Act, ActError, QueueSpec, Revision, Write};
use tollgate_core::{Key, Limit, QueueName, Timestamp};

/// Where the records are: numbered backwards, so that the newest comes first.
const PREFIX: &str = "tollgate/audit/";
/// How many changes are kept: years of them where people make them, at a few hundred bytes each.
const KEPT_MAX: u64 = 10_000;

/// A change of a limit or a queue, or an operation on one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Counts the changes: those before one are asked for by its number.
    pub number: u64,
    /// When, by the wall clock.
    pub at: Timestamp,
    /// Who, as they said.
    pub who: String,
    /// What was changed.
    pub what: Altered,
}

/// What was changed, and what was before: `None` for what was not there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Altered {
    /// What callers define.
    Limit {
        /// The limit's name.
        name: String,
        /// What it was.
        before: Option<Limit>,
        /// What it is.
        after: Option<Limit>,
    },
    /// What an operator put over it.
    Pin {
        /// The limit's name.
        name: String,
        /// What it was.
        before: Option<Limit>,
        /// What it is.
        after: Option<Limit>,
    },
    /// What one partition has of its own.
    Override {
        /// The limit's name.
        name: String,
        /// Whose.
        partition: String,
        /// What it was.
        before: Option<Limit>,
        /// What it is.
        after: Option<Limit>,
    },
    /// A queue.
    Queue {
        /// Its name.
        name: String,
        /// What it was.
        before: Option<Box<QueueSpec>>,
        /// What it is.
        after: Option<Box<QueueSpec>>,
    },
    /// Nothing was defined: an operator did this.
    Operated(Operation),
}

impl Altered {
    /// The name of the limit or queue.
    pub fn name(&self) -> &str {
        match self {
            Self::Limit { name, .. }
            | Self::Pin { name, .. }
            | Self::Override { name, .. }
            | Self::Queue { name, .. } => name,
            Self::Operated(operation) => operation.name(),
        }
    }
}

/// The number that the next change gets.
#[derive(Default)]
pub(super) struct Numbers(AtomicU64);

impl<S: Lanes + 'static> Engine<S> {
    /// Changes of limits and queues, and operations on them, the newest first, before one, up to 1,000. The
    /// latest 10,000 are kept.
    pub async fn audit(&self, before: Option<u64>, most: usize) -> Result<Vec<Audited>, Error> {
        let before = before.map(key).transpose()?;
        let most = most.min(PAGE_MAX);
        let found = self.parts.store.records_of(PREFIX.to_owned(), before, most).await?;
        let read = |(key, record): &(Key, _)| record::read(number(key)?, record);
        let changes = found.iter().filter_map(|found| {
            let change = read(found);
            if change.is_none() {
                tracing::error!(key = %found.0, "a record of the audit log cannot be read");
            }
            change
        });
        Ok(changes.collect())
    }
}

impl<S> Parts<S> {
    /// The writes were made: the next change gets the next number.
    pub(super) fn was_written(&self) {
        self.numbers.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl<S: Lanes + 'static> Parts<S> {
    /// Learns how far the log goes.
    pub(super) async fn load_audit(&self) -> Result<(), Error> {
        let newest = self.store.records_of(PREFIX.to_owned(), None, 1).await?;
        let newest = newest.first().and_then(|(key, _)| number(key));
        self.numbers.0.store(newest.map_or(0, |newest| newest + 1), Ordering::Relaxed);
        Ok(())
    }

    /// What writes a change down, and takes the oldest away if there are too many. Whoever calls it
    /// changes alone, and says so with [`Parts::was_written`].
    pub(super) async fn audit_writes(
        &self,
        who: &str,
        at: Timestamp,
        what: Altered,
    ) -> Result<Vec<Write>, Error> {
        let next = self.numbers.0.load(Ordering::Relaxed);
        let bytes = Some(record::written(&AuditRecord::new(who, at, what))?);
        let mut writes = vec![Write { key: key(next)?, expected: Revision(0), bytes }];
        if let Some(oldest) = next.checked_sub(KEPT_MAX) {
            let key = key(oldest)?;
            let found = self.store.records(vec![key.clone()]).await?.pop().flatten();
            writes.extend(found.map(|it| Write { key, expected: it.revision, bytes: None }));
        }
        Ok(writes)
    }

    /// Defines a queue and writes down who did.
    pub(super) async fn define_queue_as(
        self: &Arc<Self>,
        who: &str,
        queue: QueueName,
        spec: QueueSpec,
    ) -> Result<(), Error> {
        // The log tells of nothing that is refused.
        spec.check()?;
        let (parts, who) = (self.clone(), who.to_owned());
        self.seen_through(async move {
            let _alone = parts.known.changing.lock().await;
            let before = parts.queue_spec(&queue).await?;
            if before.as_deref() != Some(&spec) {
                let (name, after) = (queue.as_str().to_owned(), Some(Box::new(spec.clone())));
                parts.write_down(&who, Altered::Queue { name, before, after }).await?;
            }
            let defined = parts.store.define_queue(queue.clone(), spec).await;
            // Whatever came of it: it is read again when it is asked for.
            parts.pushed.forget(&queue);
            Ok(defined??)
        })
        .await
    }

    /// Removes a queue that has no calls and writes down who did; says whether there was one.
    pub(super) async fn remove_queue_as(
        self: &Arc<Self>,
        who: &str,
        queue: QueueName,
    ) -> Result<bool, Error> {
        let (parts, who) = (self.clone(), who.to_owned());
        self.seen_through(async move {
            let _alone = parts.known.changing.lock().await;
            let before = parts.queue_spec(&queue).await?;
            // After it is done: the log tells of nothing that is refused.
            let is_removed = parts.store.remove_queue(queue.clone()).await;
            parts.pushed.forget(&queue);
            let is_removed = is_removed??;
            if is_removed {
                let (name, after) = (queue.as_str().to_owned(), None);
                parts.write_down(&who, Altered::Queue { name, before, after }).await?;
            }
            Ok(is_removed)
        })
        .await
    }

    /// Writes a change down. Whoever calls it changes alone.
    pub(super) async fn write_down(&self, who: &str, what: Altered) -> Result<(), Error> {
        let at = self.store.now().await?.wall;
        loop {
            let write = self.audit_writes(who, at, what.clone()).await?;
            match self.act(Act { write, ..Act::default() }).await {
                // One whose answer was lost took the number.
                Err(Error::Act(ActError::RevisionDiffers { .. })) => self.load_audit().await?,
                Err(error) => return Err(error),
                Ok(_) => {
                    self.was_written();
                    return Ok(());
                }
            }
        }
    }

    async fn queue_spec(&self, queue: &QueueName) -> Result<Option<Box<QueueSpec>>, Error> {
        Ok(self.queue_named(queue).await?.map(|found| Box::new(found.spec)))
    }
}

fn key(number: u64) -> Result<Key, Error> {
    Ok(Key::new(&format!("{PREFIX}{:020}", u64::MAX - number))?)
}

fn number(key: &Key) -> Option<u64> {
    key.strip_prefix(PREFIX)?.parse().ok().map(|backwards: u64| u64::MAX - backwards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_changes_come_first() {
        let keys = [0, 1, 9, 10, 10_000, u64::MAX].map(|number| key(number).unwrap());
        assert!(keys.windows(2).all(|pair| pair[1] < pair[0]), "{keys:?}");
        assert_eq!(keys.each_ref().map(|key| number(key).unwrap())[4], 10_000);
    }
}
