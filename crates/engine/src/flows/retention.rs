//! Runs that ended are kept for a while, and then go.

use super::record::Ended;
use super::workflows::{idempotency_key, output_key};
use super::{Flows, run_key};
use crate::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::contract::{Lanes, PAGE_MAX};
use tollgate_core::lanes::{Act, Record, Write};
use tollgate_core::{Key, Span, Timestamp};

/// Where the records of runs are that ended.
const ENDED: &str = "tollgate/ended/";
/// How long a run is kept after it ended.
pub const ENDED_KEPT: Span = Span::from_days(1);
/// How often it is looked for those that go.
const LOOKED_EVERY: Span = Span::from_minutes(1);

/// How many records go with a run in one act.
const WITH_MAX: usize = 20_000;

/// When it is looked next for runs that go.
#[derive(Debug, Default)]
pub(crate) struct Sweeps(AtomicU64);

impl Sweeps {
    /// Whether it is time, for one of those who ask.
    fn is_due(&self, now: Timestamp) -> bool {
        let next = now.plus(LOOKED_EVERY).as_nanos();
        let due = |at: u64| (at <= now.as_nanos()).then_some(next);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_ok()
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// Lets old runs go, now and then.
    pub(super) fn sweep_in_time(&self) {
        if !self.engine.sweeps().is_due(self.engine.clock_now()) {
            return;
        }
        let flows = self.clone();
        self.engine.see_through(async move {
            if let Err(error) = flows.sweep().await {
                tracing::warn!(%error, "runs that ended are kept for longer");
            }
        });
    }

    /// Lets those go that ended so long ago. Runs stand in the order in which they began, and none ended
    /// before: who began lately is not looked at.
    pub async fn sweep(&self) -> Result<u64, Error> {
        let wall = self.engine.now().await?.wall;
        let (mut after, mut gone) = (None, 0);
        loop {
            let page = self.engine.records_of(ENDED, after.as_deref(), PAGE_MAX).await?;
            let mut write = Vec::new();
            for (key, record) in &page {
                let run = key.as_str().trim_start_matches(ENDED);
                if began(run).plus(ENDED_KEPT) > wall {
                    gone += self.remove(write).await?;
                    return Ok(gone);
                }
                if self.may_go(run, record, wall).await? {
                    let (key, expected) = (key.clone(), record.revision);
                    let own = Write { key, expected, bytes: None };
                    match self.left_by(run, record).await? {
                        given if given.is_empty() => write.push(own),
                        given => gone += self.remove_with(own, given).await?,
                    }
                }
            }
            gone += self.remove(write).await?;
            match page.last() {
                Some((key, _)) => after = Some(key.as_str().to_owned()),
                None => return Ok(gone),
            }
        }
    }

    /// A run may go when it is old enough, and no other waits for what it gave.
    async fn may_go(&self, run: &str, record: &Record, wall: Timestamp) -> Result<bool, Error> {
        if Ended::read(&record.bytes)?.ended.plus(ENDED_KEPT) > wall {
            return Ok(false);
        }
        let Some(parent) = parent(run) else { return Ok(true) };
        Ok(self.engine.record(&run_key(parent)).await?.is_none())
    }

    /// What tasks of a run gave, its input, and its idempotency key.
    async fn left_by(&self, run: &str, record: &Record) -> Result<Vec<Write>, Error> {
        let ended = Ended::read(&record.bytes)?;
        let mut given = Vec::new();
        if ended.progress.is_none() {
            return Ok(given);
        }
        if let Some(key) = &ended.correlation {
            let key = idempotency_key(&ended.name, key);
            let kept = self.engine.record(&key).await?;
            if let Some(own) = kept.filter(|kept| *kept.bytes == *run.as_bytes()) {
                given.push(super::write(&key, own.revision, None)?);
            }
        }
        let input = output_key(run, None);
        if let Some(kept) = self.engine.record(&input).await? {
            given.push(super::write(&input, kept.revision, None)?);
        }
        let (prefix, mut after) = (format!("{input}/"), None::<String>);
        loop {
            let page = self.engine.records_of(&prefix, after.as_deref(), PAGE_MAX).await?;
            let Some((last, _)) = page.last() else { return Ok(given) };
            after = Some(last.as_str().to_owned());
            let gone = |(key, record): (Key, Record)| Write {
                key,
                expected: record.revision,
                bytes: None,
            };
            given.extend(page.into_iter().map(gone));
        }
    }

    /// Removes a run with what it gave, unless it lives again meanwhile; says how many runs went. What is more than an
    /// act may hold goes before it, part by part.
    async fn remove_with(&self, own: Write, mut given: Vec<Write>) -> Result<u64, Error> {
        while given.len() > WITH_MAX {
            let part = given.split_off(given.len() - WITH_MAX);
            self.remove(part).await?;
        }
        given.push(own);
        match self.engine.act_own(Act { write: given, ..Act::default() }).await {
            Ok(_) => Ok(1),
            Err(Error::Act(_)) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Removes records but for those that somebody else changed or removed meanwhile; says how many.
    async fn remove(&self, write: Vec<Write>) -> Result<u64, Error> {
        let mut gone = 0;
        let mut groups = vec![write];
        while let Some(group) = groups.pop() {
            let act = Act { write: group.clone(), ..Act::default() };
            match self.engine.act_own(act).await {
                Ok(_) => gone += group.len() as u64,
                // One of them is in the way: it is looked for in either half.
                Err(Error::Act(_)) if group.len() > 1 => {
                    let (first, second) = group.split_at(group.len() / 2);
                    groups.extend([first.to_vec(), second.to_vec()]);
                }
                Err(Error::Act(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(gone)
    }
}

/// When a run began, as its name tells; one that was named otherwise, at once.
fn began(run: &str) -> Timestamp {
    let millis = run.get(..11).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Timestamp::from_nanos(millis.unwrap_or_default().saturating_mul(1_000_000))
}

/// The run that a child is of.
fn parent(run: &str) -> Option<&str> {
    let (turn, _) = run.rsplit_once('.')?;
    Some(turn.rsplit_once('.')?.0)
}
