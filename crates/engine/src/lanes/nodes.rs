//! An engine among others of one store, each in a process of its own: what another one changed is read
//! again, and what one left behind that is gone is taken back.

use super::acquire::{QUEUE, Waiting};
use super::driver::Driver;
use super::limits::PREFIX as LIMITS;
use super::schedules::PREFIX as SCHEDULES;
use super::ways::ByLanes;
use super::{Engine, LimitsSettings, Parts};
use crate::clock::Clock;
use crate::error::Error;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use tollgate_core::contract::{Lanes, PAGE_MAX};
use tollgate_core::lanes::{Act, ActError, QueueSpec, Revision, Write};
use tollgate_core::{Key, LimitName, QueueName, Span, Timestamp};

/// Where nodes say that somebody waits for a pass there.
const THERE: &str = "tollgate/waits/";
/// A node that has not said so for so long is gone: one says so every ten seconds.
const GONE_AFTER: Span = Span::from_secs(60);
/// How often it is looked for those.
const LOOKED_EVERY: Span = Span::from_secs(30);
/// How long a store is left alone that could not say what was changed.
const AGAIN: Span = Span::from_secs(1);
/// Where runs are, those that live and those that ended.
const RUNS: [&str; 2] = ["tollgate/run/", "tollgate/ended/"];

/// What other nodes changed.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    /// Queues that were defined, changed or removed.
    pub queues: Vec<QueueName>,
    /// Keys of records that were written or removed.
    pub records: Vec<Key>,
    /// Anything may have changed, beyond what is named.
    pub is_all: bool,
}

fn not_understood(error: &Error) {
    tracing::warn!(%error, "what another node changed is not understood here");
}

impl<S: Lanes + Clone + 'static> Engine<S> {
    /// Drives a store that others drive, too, by the store's clock. What the others change is told one
    /// after the other.
    pub async fn start_among<F>(
        store: S,
        clock: Arc<dyn Clock>,
        mut changed: impl FnMut() -> F + Send + 'static,
    ) -> Result<Self, Error>
    where
        F: Future<Output = Elsewhere> + Send,
    {
        let settings = LimitsSettings { waiting_max: 0, ..LimitsSettings::default() };
        let run = clock.wall();
        let node = RandomState::new().hash_one(run.as_nanos());
        let waiting = Waiting::of_node(run, &format!("{node:016x}"));
        let parts = Parts::new(store.clone(), clock, Box::new(ByLanes), settings);
        let parts = Arc::new(Parts { waiting, ..parts });
        let driver = Arc::new(Driver::start(store, &parts.pulse, &parts.claims)?);
        parts.load_audit().await?;
        parts.learn_limits().await?;
        parts.load_schedules().await?;
        let heeding = parts.clone();
        parts.pulse.go_on_with(async move {
            loop {
                let news = changed().await;
                while let Err(error) = heeding.heed(&news).await {
                    if !error.may_pass() {
                        not_understood(&error);
                        break;
                    }
                    tracing::debug!(%error, "what another node changed cannot be read yet");
                    heeding.pulse.sleep(AGAIN).await;
                }
            }
        });
        let sweeping = parts.clone();
        parts.pulse.go_on_with(async move {
            loop {
                if let Err(error) = sweeping.forget_who_is_gone().await {
                    tracing::debug!(%error, "it is looked later for nodes that are gone");
                }
                sweeping.pulse.sleep(LOOKED_EVERY).await;
            }
        });
        Ok(Self { parts, driver })
    }

    /// Ready when another node changed a record whose key begins so, after this was first polled.
    pub async fn changed_elsewhere(&self, prefix: &str) {
        self.parts.elsewhere.until_told(prefix).await;
    }
}

impl<S: Lanes + 'static> Parts<S> {
    /// Reads again what another node changed, as far as it is kept at hand here.
    async fn heed(self: &Arc<Self>, news: &Elsewhere) -> Result<(), Error> {
        let Elsewhere { queues, records, is_all } = news;
        if *is_all {
            let alone = self.known.changing.lock().await;
            self.pushed.forget_all();
            drop(alone);
            self.learn_limits().await?;
            self.load_schedules().await?;
            self.runs.told_each(|_| true);
            self.elsewhere.told_each(|_| true);
        }
        if !queues.is_empty() {
            let _alone = self.known.changing.lock().await;
            queues.iter().for_each(|queue| self.pushed.forget(queue));
        }
        if !queues.is_empty() || *is_all {
            self.queues.notify_one();
        }
        for key in records {
            match self.heed_record(key).await {
                // The others may be understood.
                Err(error) if !error.may_pass() => not_understood(&error),
                heeded => heeded?,
            }
        }
        Ok(())
    }

    async fn heed_record(self: &Arc<Self>, key: &str) -> Result<(), Error> {
        if let Some(limit) = key.strip_prefix(LIMITS) {
            self.learn_changed(&LimitName::new(limit)?).await?;
        } else if let Some(schedule) = key.strip_prefix(SCHEDULES) {
            self.learn_schedule(schedule).await?;
        } else if let Some(run) = RUNS.iter().find_map(|prefix| key.strip_prefix(*prefix)) {
            self.runs.told(run);
        } else {
            self.elsewhere.told_each(|prefix| key.starts_with(prefix));
        }
        Ok(())
    }

    /// Makes the queue of those who wait for a pass here, and tells other nodes that somebody does.
    pub(super) async fn be_there(&self) -> Result<(), Error> {
        self.say_there().await?;
        let spec = QueueSpec { crashes_max: 1, dead_max: 0, ..QueueSpec::default() };
        Ok(self.store.define_queue(QueueName::new(self.waiting.queue())?, spec).await??)
    }

    /// Tells other nodes that somebody waits here: before there is a queue, so that one is always found.
    async fn say_there(&self) -> Result<(), Error> {
        let Some(node) = self.waiting.node() else { return Ok(()) };
        let key = Key::new(&format!("{THERE}{node}"))?;
        let now = self.store.now().await?.at.as_nanos().to_be_bytes();
        let found = self.store.records(vec![key.clone()]).await?.pop().flatten();
        let expected = found.map_or(Revision(0), |found| found.revision);
        let write = vec![Write { key, expected, bytes: Some(Box::new(now)) }];
        match self.act(Act { write, ..Act::default() }).await {
            // Somebody took it for gone: it says so again the next time.
            Err(Error::Act(ActError::RevisionDiffers { .. })) => Ok(()),
            acted => acted.map(drop),
        }
    }

    /// Takes back the calls of those who waited at nodes that are gone.
    async fn forget_who_is_gone(&self) -> Result<(), Error> {
        let now = self.store.now().await?.at;
        let there = self.store.records_of(THERE.to_owned(), None, PAGE_MAX).await?;
        for (key, record) in there {
            let said = record.bytes[..].try_into().map(u64::from_be_bytes).unwrap_or_default();
            let node = key.strip_prefix(THERE).unwrap_or_default();
            if Timestamp::from_nanos(said).plus(GONE_AFTER) >= now
                || self.waiting.node() == Some(node)
            {
                continue;
            }
            let queue = format!("{QUEUE}:{node}");
            self.forget_who_waited(&queue).await?;
            tracing::info!(node, "who waited for a pass at a node that is gone is forgotten");
            let expected = record.revision;
            let write = vec![Write { key: key.clone(), expected, bytes: None }];
            match self.act(Act { write, ..Act::default() }).await {
                // It is there after all, or another node was faster.
                Err(Error::Act(ActError::RevisionDiffers { .. })) => continue,
                acted => drop(acted?),
            }
            // One that has calls again stays: so it is there.
            let _ = self.store.remove_queue(QueueName::new(&queue)?).await?;
        }
        Ok(())
    }
}
