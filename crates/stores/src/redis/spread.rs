//! Changes of cells that lie apart: a cluster changes no two of them as one.
//!
//! Rules are read where they are, just before or after the meter is; a meter knows which rules it has
//! gone along with. What belongs to several meters is written one after the other, and taken back if
//! somebody was faster in between.

use super::RedisCells;
use super::quick::Took;
use super::request::Request;
use super::slow::{owner, value};
use crate::shared::cells::{CellKey, Change, Decide, Found, Wanted};
use crate::shared::quick::Quick;
use redis::aio::ConnectionLike;
use redis::{RedisError, Value};
use std::collections::BTreeMap;
use tollgate_core::Now;
use tollgate_core::contract::Answer;

/// Cells of a change that lie together.
#[derive(Default)]
struct Part {
    read: Vec<CellKey>,
    change: Vec<CellKey>,
    /// Which they are of those wanted.
    read_at: Vec<usize>,
    change_at: Vec<usize>,
}

impl Part {
    fn wanted(&self) -> Wanted<'_> {
        Wanted { read: &self.read, change: &self.change }
    }
}

/// All that was read.
struct Seen {
    now: Now,
    found: Found,
    /// Of each part.
    parts: Vec<Found>,
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> RedisCells<C> {
    pub(super) async fn change_apart(
        &self,
        wanted: Wanted<'_>,
        decide: &mut dyn Decide,
    ) -> Answer<()> {
        let parts = self.parts(wanted);
        if self.change_apart_quickly(&parts, wanted, decide).await? {
            return Ok(());
        }
        let (owner, mut tries) = (owner(), 0);
        loop {
            if let Some(seen) = self.read_parts(&parts, wanted, &owner).await? {
                let changes = decide.decide(seen.now, &seen.found);
                if self.write_parts(&parts, &seen, changes, (&owner, decide)).await? {
                    self.ended.notify_waiters();
                    return Ok(());
                }
            }
            self.pause(tries).await;
            tries += 1;
        }
    }

    /// The cells by where they lie: those that are changed first, for what is read after them is at
    /// least as new.
    fn parts(&self, wanted: Wanted<'_>) -> Vec<Part> {
        let mut parts: BTreeMap<String, Part> = BTreeMap::new();
        for (at, cell) in wanted.read.iter().enumerate() {
            let part = parts.entry(self.keys.tag(cell)).or_default();
            part.read.push(cell.clone());
            part.read_at.push(at);
        }
        for (at, cell) in wanted.change.iter().enumerate() {
            let part = parts.entry(self.keys.tag(cell)).or_default();
            part.change.push(cell.clone());
            part.change_at.push(at);
        }
        let mut parts: Vec<Part> = parts.into_values().collect();
        parts.sort_by_key(|part| part.change.is_empty());
        parts
    }

    /// By the script that takes asks, if all is paid at one place and nothing is but read elsewhere.
    async fn change_apart_quickly(
        &self,
        parts: &[Part],
        wanted: Wanted<'_>,
        decide: &mut dyn Decide,
    ) -> Answer<bool> {
        let ([meters, rules], Some(quick)) = (parts, decide.quick()) else { return Ok(false) };
        if !meters.read.is_empty() || !rules.change.is_empty() {
            return Ok(false);
        }
        let expects = quick.expects.clone();
        let alone = Quick { expects: Vec::new(), ..quick.clone() };
        let wanted = Wanted { read: &[], change: wanted.change };
        let Some(request) = Request::new(wanted, &alone) else { return Ok(false) };
        for tries in 0.. {
            if self.values(&rules.read).await? != Some(expects.clone()) {
                return Ok(false);
            }
            match self.take(wanted, &request).await? {
                Took::All { now, found, written, .. } => {
                    let found = Found { read: expects, ..found };
                    let changed = decide.witness(now, &found);
                    if changed != written {
                        tracing::error!(written, changed, "the script decided otherwise");
                    }
                    break;
                }
                Took::Busy => self.pause(tries).await,
                Took::Declined => return Ok(false),
            }
        }
        Ok(true)
    }

    /// What is in cells that lie together; `None` if that cannot be told.
    async fn values(&self, cells: &[CellKey]) -> Answer<Option<Vec<Option<Vec<u8>>>>> {
        let mut read = redis::cmd("MGET");
        cells.iter().for_each(|cell| {
            read.arg(self.keys.cell(cell));
        });
        let ask = async || {
            let mut connection = self.connection.clone();
            read.query_async::<Value>(&mut connection).await
        };
        let mut answer: Result<Value, RedisError> = ask().await;
        if answer.is_err() {
            // It changes nothing: it may be asked twice.
            answer = ask().await;
        }
        let Value::Array(values) = answer.map_err(super::fault::of)? else { return Ok(None) };
        Ok(values.into_iter().map(value).collect())
    }

    /// `None` if someone else is about to change something of it.
    async fn read_parts(
        &self,
        parts: &[Part],
        wanted: Wanted<'_>,
        owner: &str,
    ) -> Answer<Option<Seen>> {
        let mut read = vec![None; wanted.read.len()];
        let mut change = vec![None; wanted.change.len()];
        let (mut now, mut founds): (Option<Now>, _) = (None, Vec::with_capacity(parts.len()));
        for part in parts {
            let attempt = self.attempt(part.wanted(), owner);
            let Some((here, found)) = self.read(&attempt).await? else { return Ok(None) };
            // The time is that of the meters, and of the latest of them.
            if !part.change.is_empty() || now.is_none() {
                now = now.filter(|other| other.at > here.at).or(Some(here));
            }
            for (at, value) in part.read_at.iter().zip(&found.read) {
                read[*at].clone_from(value);
            }
            for (at, value) in part.change_at.iter().zip(&found.change) {
                change[*at].clone_from(value);
            }
            founds.push(found);
        }
        let found = Found { read, change };
        Ok(now.map(|now| Seen { now, found, parts: founds }))
    }

    /// Whether it was written: if not all of it can be, what was is taken back.
    async fn write_parts(
        &self,
        parts: &[Part],
        seen: &Seen,
        changes: Vec<Change>,
        (owner, decide): (&str, &mut dyn Decide),
    ) -> Answer<bool> {
        let mut written: Vec<(&Part, Vec<Change>)> = Vec::new();
        for (part, found) in parts.iter().zip(&seen.parts) {
            let own = changes.iter().filter_map(|change| {
                let at = part.change_at.iter().position(|at| *at == change.at)?;
                Some(Change { at, ..change.clone() })
            });
            let own: Vec<Change> = own.collect();
            let done = self.write(&self.attempt(part.wanted(), owner), found, &own).await;
            if !matches!(done, Ok(true)) {
                for (part, own) in written.iter().rev() {
                    self.take_back(part, own, (owner, &mut *decide)).await?;
                }
                return done;
            }
            written.push((part, own));
        }
        Ok(true)
    }

    /// Takes back what was written to cells, whatever others made of them since. Only payments are ever
    /// written to several places, and they can be given back from what is there: nothing is put back as it
    /// was, for its life is not known.
    async fn take_back(
        &self,
        part: &Part,
        written: &[Change],
        (owner, decide): (&str, &mut dyn Decide),
    ) -> Answer<()> {
        let attempt = self.attempt(part.wanted(), owner);
        for tries in 0.. {
            if let Some((now, found)) = self.read(&attempt).await? {
                let back = written.iter().filter_map(|Change { at, .. }| {
                    let there = found.change.get(*at)?.as_deref();
                    let all_at = *part.change_at.get(*at)?;
                    Some(Change { at: *at, ..decide.take_back(all_at, now, there)? })
                });
                let back: Vec<Change> = back.collect();
                if self.write(&attempt, &found, &back).await? {
                    break;
                }
            }
            self.pause(tries).await;
        }
        Ok(())
    }
}
