//! What is asked of NATS: a change, and the names of cells.

use super::bucket::{ABSENT, Conflict, Entry};
use super::{Inside, NatsCells, key, value};
use crate::shared::cells::{Change, Decide, Found, Kind, Wanted};
use futures_util::future::{join_all, try_join_all};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::time::Duration;
use tollgate_core::contract::Answer;
use tollgate_core::{Now, Timestamp};

/// How many keys are read at a time.
const READS_MAX: usize = 64;
/// Longest pause before the first new try; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_micros(200);
/// How often it doubles.
const PAUSE_DOUBLINGS: u32 = 7;

/// A cell that may be changed.
struct Seen {
    key: String,
    revision: u64,
    /// Its value then, and when that expires.
    before: Option<(Timestamp, Vec<u8>)>,
}

/// A cell that was written.
struct Written {
    at: usize,
    revision: u64,
}

impl NatsCells {
    /// Makes a change, as often as somebody else is faster.
    pub(super) async fn change_until_done(
        &self,
        wanted: Wanted<'_>,
        decide: &mut dyn Decide,
    ) -> Answer<()> {
        let mut tries = 0;
        loop {
            let looked = match self.inside.look(wanted).await {
                Err(error) if !self.inside.bucket.make_again().await? => return Err(error),
                // It came back empty.
                Err(_) => self.inside.look(wanted).await,
                looked => looked,
            };
            let (now, found, seen) = looked?;
            let mut changes = decide.decide(now, &found);
            changes.retain(|change| change.at < seen.len());
            changes.sort_by_key(|change| change.at);
            if self.write_in_order(&seen, changes, now, decide).await? {
                return Ok(());
            }
            pause(tries).await;
            tries += 1;
        }
    }

    /// Writes cell by cell. Says `false`, and takes back what it wrote, if somebody else was faster.
    async fn write_in_order(
        &self,
        seen: &[Seen],
        changes: Vec<Change>,
        now: Now,
        decide: &mut dyn Decide,
    ) -> Answer<bool> {
        let (mut written, mut added) = (Vec::with_capacity(changes.len()), 0);
        let mut answer = Ok(true);
        for change in changes {
            let Some(cell) = seen.get(change.at) else { continue };
            match self.inside.write(&cell.key, cell.revision, &change, now).await {
                Ok(Ok(revision)) => {
                    added += u64::from(cell.revision == ABSENT);
                    written.push(Written { at: change.at, revision });
                }
                Ok(Err(Conflict)) => {
                    answer = Ok(false);
                    break;
                }
                Err(error) => {
                    answer = Err(error);
                    break;
                }
            }
        }
        self.sweeper.wrote(added);
        if !matches!(answer, Ok(true)) {
            // The last first: what says that a receipt is spent goes when nothing is given back for it.
            while let Some(last) = written.pop() {
                let Some(cell) = seen.get(last.at) else { continue };
                self.inside.take_back(cell, last, decide).await?;
            }
        }
        answer
    }
}

impl Inside {
    /// Reads cells, and then the clock.
    async fn look(&self, wanted: Wanted<'_>) -> Answer<(Now, Found, Vec<Seen>)> {
        let keys = wanted.change.iter().chain(wanted.read);
        let keys: Vec<String> = keys.map(key::encode).collect();
        let (entries, refreshed) =
            tokio::join!(self.read_all(&keys), self.clock.refresh(&self.bucket));
        let entries = entries?;
        refreshed?;
        let now = self.clock.now();
        let mut found = Found::default();
        let mut seen = Vec::with_capacity(wanted.change.len());
        for (key, entry) in keys.into_iter().zip(entries) {
            let live = entry.as_ref().and_then(|entry| entry.live(now.at)).map(<[u8]>::to_vec);
            if seen.len() < wanted.change.len() {
                let revision = entry.as_ref().map_or(ABSENT, |entry| entry.revision);
                let before = entry.and_then(|entry| entry.cell).filter(|_| live.is_some());
                seen.push(Seen { key, revision, before });
                found.change.push(live);
            } else {
                found.read.push(live);
            }
        }
        Ok((now, found, seen))
    }

    async fn read_all(&self, keys: &[String]) -> Answer<Vec<Option<Entry>>> {
        let mut entries = Vec::with_capacity(keys.len());
        for keys in keys.chunks(READS_MAX) {
            entries.extend(try_join_all(keys.iter().map(|key| self.bucket.read(key))).await?);
        }
        Ok(entries)
    }

    /// Makes one change of a cell that has this revision; says its new one.
    async fn write(
        &self,
        key: &str,
        revision: u64,
        change: &Change,
        now: Now,
    ) -> Answer<Result<u64, Conflict>> {
        match &change.value {
            Some(bytes) => {
                let expires = change.life.map_or(Timestamp::MAX, |life| now.at.plus(life));
                self.bucket.write(key, revision, value::encode(expires, bytes)).await
            }
            None if revision == ABSENT => Ok(Ok(ABSENT)),
            None => Ok(self.bucket.remove(key, revision).await?.map(|()| ABSENT)),
        }
    }

    /// Takes back what was written to a cell, whatever others made of it since.
    async fn take_back(
        &self,
        cell: &Seen,
        Written { at, revision }: Written,
        decide: &mut dyn Decide,
    ) -> Answer<()> {
        if self.put_back(cell, revision).await?.is_ok() {
            return Ok(());
        }
        for tries in 0.. {
            let entry = self.bucket.read(&cell.key).await?;
            let now = self.clock.now();
            let live = entry.as_ref().and_then(|entry| entry.live(now.at));
            let Some(change) = decide.take_back(at, now, live) else { break };
            let revision = entry.as_ref().map_or(ABSENT, |entry| entry.revision);
            if self.write(&cell.key, revision, &change, now).await?.is_ok() {
                break;
            }
            pause(tries).await;
        }
        Ok(())
    }

    /// Has a cell be as it was, if it is still as it was written.
    async fn put_back(&self, cell: &Seen, written: u64) -> Answer<Result<(), Conflict>> {
        match &cell.before {
            Some((expires, value)) => {
                let value = value::encode(*expires, value);
                Ok(self.bucket.write(&cell.key, written, value).await?.map(drop))
            }
            None if written == ABSENT => Ok(Ok(())),
            None => self.bucket.remove(&cell.key, written).await,
        }
    }

    /// The names of cells of a kind. All keys of it are listed, since a bucket has no order of its own.
    pub(super) async fn names(
        &self,
        kind: Kind,
        after: Option<&str>,
        most: usize,
    ) -> Answer<Vec<Box<str>>> {
        let prefix = key::prefix(kind);
        let (keys, refreshed) =
            tokio::join!(self.bucket.keys(&prefix), self.clock.refresh(&self.bucket));
        refreshed?;
        let mut named: BTreeMap<Box<str>, Vec<String>> = BTreeMap::new();
        for key in keys? {
            if let Some(name) = key::name(&key) {
                named.entry(name).or_default().push(key);
            }
        }
        let now = self.clock.now().at;
        let mut names = Vec::new();
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = named.range::<str, _>((start, Bound::Unbounded));
        while names.len() < most {
            // No more at a time than are wanted, most of which are there.
            let next: Vec<_> = rest.by_ref().take((most - names.len()).min(READS_MAX)).collect();
            if next.is_empty() {
                break;
            }
            let live = join_all(next.iter().map(|(_, keys)| self.is_one_live(keys, now))).await;
            for ((name, _), is_live) in next.into_iter().zip(live) {
                if is_live? {
                    names.push(name.clone());
                }
            }
        }
        Ok(names)
    }

    async fn is_one_live(&self, keys: &[String], now: Timestamp) -> Answer<bool> {
        for key in keys {
            if self.bucket.read(key).await?.is_some_and(|entry| entry.live(now).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Lets others finish first, for a time that differs from process to process.
async fn pause(tries: u32) {
    let longest = PAUSE_FIRST * 2_u32.pow(tries.min(PAUSE_DOUBLINGS));
    let part = RandomState::new().hash_one(tries) % 1_024;
    let length = longest * u32::try_from(part).unwrap_or_default() / 1_024;
    let _ = tokio::time::timeout(length, std::future::pending::<()>()).await;
}
