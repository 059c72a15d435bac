//! Defining limits that a store keeps: live, pinned, overridden for a partition, removed.
//!
//! The store knows what is in force. Who said so, what is pinned over it and what was before is a
//! record beside it, written in the same change.

mod cut_short;
mod elsewhere;
mod record;

use super::pulse::ended;
use super::{Engine, Parts};
use crate::error::{AskError, Error};
use crate::limits::{LimitState, UNSAID};
use parking_lot::RwLock;
use record::LimitRecord;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use tollgate_core::contract::{ConfigureError, Lanes, LimitView, Meters};
use tollgate_core::lanes::{Revision, Write};
use tollgate_core::{Definition, Key, Limit, LimitName, Partition};

/// Where the records of limits are.
pub(super) const PREFIX: &str = "tollgate/limit/";
/// How many limits are read at once.
const PAGE: usize = 1_000;

/// What is changed of a limit.
#[derive(Debug, Clone)]
enum Of {
    /// What callers define: the limit need not exist.
    Defined,
    /// What an operator says of it.
    Limit,
    /// The rules of one partition.
    Partition(Partition),
}

/// What this process knows of the limits.
#[derive(Default)]
pub(super) struct Known {
    limits: RwLock<HashMap<LimitName, KnownLimit>>,
    /// One change at a time: the record and what is in force go together.
    pub(super) changing: tokio::sync::Mutex<()>,
}

struct KnownLimit {
    /// As callers defined it last, and what is pinned over that.
    defined: Limit,
    pinned: Option<Limit>,
    /// What is in force counts calls at a time; and of partitions with rules of their own, theirs.
    has_slots: bool,
    overrides: HashMap<String, Own>,
    /// As it was defined last by way of this process.
    declared: Option<Limit>,
    /// What this process has warned of that replaced that.
    replaced_by: Option<Limit>,
}

/// Rules that a partition has of its own.
struct Own {
    limit: Limit,
    has_slots: bool,
}

impl Known {
    /// Whether a limit counts calls at a time, as far as is known here.
    pub(super) fn may_have_slots(&self, limit: &LimitName, partition: Option<&str>) -> bool {
        self.limits.read().get(limit).is_none_or(|known| {
            let own = partition.and_then(|partition| known.overrides.get(partition));
            own.map_or(known.has_slots, |own| own.has_slots)
        })
    }

    /// What is in force of a limit, as far as is known here, or would be with what comes along.
    pub(super) fn in_force(&self, limit: &LimitName, coming: Option<&Limit>) -> Option<Limit> {
        let limits = self.limits.read();
        let known = limits.get(limit);
        let defined = coming.or(known.map(|known| &known.defined))?;
        let pinned = known.and_then(|known| known.pinned.as_ref());
        Some(pinned.map_or_else(|| defined.clone(), |pinned| defined.under(pinned)))
    }

    /// The rules that a partition has of its own, as far as is known here.
    pub(super) fn own(&self, limit: &LimitName, partition: &str) -> Option<Limit> {
        Some(self.limits.read().get(limit)?.overrides.get(partition)?.limit.clone())
    }

    /// Whether anything is known of a limit.
    pub(super) fn is_known(&self, limit: &LimitName) -> bool {
        self.limits.read().contains_key(limit)
    }

    /// Forgets a limit; says whether it was known.
    pub(super) fn forget(&self, limit: &LimitName) -> bool {
        self.limits.write().remove(limit).is_some()
    }

    fn is_defined_as(&self, limit: &LimitName, definition: &Limit) -> bool {
        self.limits.read().get(limit).is_some_and(|known| known.defined == *definition)
    }

    /// Whether a limit was defined so by way of this process, and by nobody since but other processes: the
    /// newest definition wins, and whose was replaced does not insist.
    fn is_declared_as(&self, limit: &LimitName, definition: &Limit) -> bool {
        let limits = self.limits.read();
        let declared = limits.get(limit).and_then(|known| known.declared.as_ref());
        declared == Some(definition)
    }

    /// What is known of a limit is what was defined by way of this process.
    fn declare(&self, limit: &LimitName) {
        if let Some(known) = self.limits.write().get_mut(limit) {
            (known.declared, known.replaced_by) = (Some(known.defined.clone()), None);
        }
    }

    /// Whether it changes anything that callers define a limit so; `None` if there is no record of it.
    fn is_changed_by(&self, limit: &LimitName, definition: &Limit) -> Option<bool> {
        let limits = self.limits.read();
        let KnownLimit { defined, pinned, .. } = limits.get(limit)?;
        Some(match pinned {
            None => defined != definition,
            Some(pinned) => defined.under(pinned) != definition.under(pinned),
        })
    }

    fn note(&self, limit: &LimitName, record: &LimitRecord) {
        let mut limits = self.limits.write();
        let Some(defined) = record.defined.clone() else {
            limits.remove(limit);
            return;
        };
        let has_slots = |limit: &Limit| {
            Definition::new(limit.clone()).is_ok_and(|definition| definition.has_slots())
        };
        let overrides = record.overrides.iter();
        let own = |limit: &Limit| Own { limit: limit.clone(), has_slots: has_slots(limit) };
        let overrides = overrides.map(|(name, limit)| (name.clone(), own(limit))).collect();
        let has_slots = record.in_force().as_ref().is_some_and(has_slots);
        let pinned = record.pinned.clone();
        let before = limits.remove(limit);
        let (declared, replaced_by) =
            before.map_or((None, None), |known| (known.declared, known.replaced_by));
        let known = KnownLimit { defined, pinned, has_slots, overrides, declared, replaced_by };
        limits.insert(limit.clone(), known);
    }
}

impl<S: Meters + 'static> Engine<S> {
    /// Defines a limit, or changes it: at once, for waiting calls, too, keeping what was spent.
    pub async fn define(&self, name: &str, limit: Limit) -> Result<(), Error> {
        self.define_as(UNSAID, name, limit).await
    }

    /// Defines a limit and writes down who did.
    pub async fn define_as(&self, who: &str, name: &str, limit: Limit) -> Result<(), Error> {
        self.parts.define_as(who, &LimitName::new(name)?, limit).await
    }

    /// Puts a value over what callers define, a rate over their rates and calls at a time over theirs; `None`
    /// takes it away. The limit must exist.
    pub async fn pin(&self, who: &str, name: &str, limit: Option<Limit>) -> Result<(), Error> {
        let name = LimitName::new(name)?;
        limit.as_ref().map(|limit| checked(&name, limit)).transpose()?;
        let change = move |record: &mut LimitRecord| record.pinned.clone_from(&limit);
        self.parts.edit(who, &name, Of::Limit, change).await
    }

    /// Removes a limit with all its meters: calls that wait for it wait until it is defined again.
    pub async fn remove(&self, who: &str, name: &str) -> Result<(), Error> {
        let name = LimitName::new(name)?;
        self.parts.edit(who, &name, Of::Limit, |record| *record = LimitRecord::default()).await
    }

    /// Gives one partition a definition of its own, keeping what it spent; `None` takes it away.
    pub async fn override_partition(
        &self,
        name: &str,
        partition: &str,
        limit: Option<Limit>,
    ) -> Result<(), Error> {
        self.override_partition_as(UNSAID, name, partition, limit).await
    }

    /// Gives one partition a definition of its own and writes down who did.
    pub async fn override_partition_as(
        &self,
        who: &str,
        name: &str,
        partition: &str,
        limit: Option<Limit>,
    ) -> Result<(), Error> {
        let name = LimitName::new(name)?;
        let of = Of::Partition(Partition::new(partition)?);
        limit.as_ref().map(|limit| checked(&name, limit)).transpose()?;
        let partition = partition.to_owned();
        let change = move |record: &mut LimitRecord| {
            match limit.clone() {
                Some(limit) => record.overrides.insert(partition.clone(), limit),
                None => record.overrides.remove(&partition),
            };
        };
        self.parts.edit(who, &name, of, change).await
    }

    /// Limits that come along with calls, checked, as they go along in their act ([`Act::define`](tollgate_core::lanes::Act::define)). One that
    /// an operator defined or pinned is changed here, as callers change it: the newest definition wins,
    /// unless it is pinned. If nobody says who, it stays as it is.
    pub async fn coming_along(
        &self,
        who: Option<&str>,
        limits: Vec<(String, Limit)>,
    ) -> Result<Vec<(LimitName, Definition)>, Error> {
        self.parts.coming_along(who, limits).await
    }

    /// Whether a limit is defined so, as far as is known here: looks nowhere else.
    pub fn is_defined_as(&self, name: &str, limit: &Limit) -> bool {
        LimitName::new(name).is_ok_and(|name| self.parts.known.is_defined_as(&name, limit))
    }

    /// The limit as it stands, with its history; `None` if there is none of that name.
    pub async fn limit(&self, name: &str) -> Result<Option<LimitState>, Error> {
        let name = LimitName::new(name)?;
        let (record, _) = self.parts.limit_record(&name).await?;
        let kept = self.parts.store.inspect(vec![(name.clone(), None)]).await?.pop().flatten();
        // One that came along with calls has no record.
        let came = || kept.as_ref().map(|kept| LimitRecord::of(kept.definition.limit().clone()));
        let record = if record.defined.is_none() { came() } else { Some(record) };
        let seen = kept.as_ref().map(|kept| (kept.is_paused, kept.of_limit));
        Ok(record.and_then(|record| record.state(&name, seen)))
    }

    /// The limits after a name, sorted, up to so many.
    pub async fn limits_after(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<LimitState>, Error> {
        let after = after.map(LimitName::new).transpose()?;
        self.parts.limit_page(after.as_ref(), most).await
    }

    /// All limits, sorted by name.
    pub async fn limits(&self) -> Result<Vec<LimitState>, Error> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.parts.limit_page(after.as_ref(), PAGE).await?;
            after = page.last().map(|last| LimitName::new(&last.name)).transpose()?;
            all.extend(page);
            if after.is_none() {
                return Ok(all);
            }
        }
    }
}

impl<S: Meters + 'static> Parts<S> {
    /// The limits after a name, with what was counted there.
    async fn limit_page(
        &self,
        after: Option<&LimitName>,
        most: usize,
    ) -> Result<Vec<LimitState>, Error> {
        let found = self.store.limits(after.cloned(), most).await?;
        let keys = found.iter().map(|limit| key(&limit.name)).collect::<Result<_, _>>()?;
        let records = self.store.records(keys).await?.into_iter();
        let states = found.into_iter().zip(records).filter_map(|(limit, record)| {
            let LimitView { name, definition, is_paused, totals } = limit;
            let record = match record {
                Some(record) => LimitRecord::read(&record.bytes).ok()?,
                // It came along with calls.
                None => LimitRecord::of(definition.limit().clone()),
            };
            record.state(&name, Some((is_paused, totals)))
        });
        Ok(states.collect())
    }

    pub(super) async fn coming_along(
        self: &Arc<Self>,
        who: Option<&str>,
        limits: Vec<(String, Limit)>,
    ) -> Result<Vec<(LimitName, Definition)>, Error> {
        let mut coming = Vec::with_capacity(limits.len());
        for (name, limit) in limits {
            let name = LimitName::new(&name)?;
            // Goes along in any case: where the limit stands by then, the store leaves it as it is.
            coming.push((name.clone(), checked(&name, &limit)?));
            if let (Some(true), Some(who)) = (self.known.is_changed_by(&name, &limit), who) {
                self.define_as(who, &name, limit).await?;
            }
        }
        Ok(coming)
    }

    /// A limit that came along with an ask: the newest definition wins.
    pub(super) async fn define_inline(
        self: &Arc<Self>,
        name: &LimitName,
        limit: &Limit,
    ) -> Result<(), Error> {
        if self.known.is_declared_as(name, limit) {
            return Ok(());
        }
        self.define_as("inline", name, limit.clone()).await
    }

    async fn define_as(
        self: &Arc<Self>,
        who: &str,
        name: &LimitName,
        limit: Limit,
    ) -> Result<(), Error> {
        checked(name, &limit)?;
        let change = move |record: &mut LimitRecord| record.defined = Some(limit.clone());
        self.edit(who, name, Of::Defined, change).await
    }

    /// Changes what is written down of a limit, and what is in force. Once begun it is seen through,
    /// also if nobody waits for it any more.
    async fn edit(
        self: &Arc<Self>,
        who: &str,
        name: &LimitName,
        of: Of,
        change: impl Fn(&mut LimitRecord) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let (parts, who, name) = (self.clone(), who.to_owned(), name.clone());
        self.seen_through(async move { parts.edit_now(&who, &name, of, change).await }).await
    }

    /// Does what is not to be left half done: the driver sees it through if nobody waits for it.
    pub(super) async fn seen_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.pulse.see_through(async move {
            // Nobody need wait for it.
            let _ = reply.send(work.await);
        });
        answer.await.unwrap_or_else(|_| Err(ended().into()))
    }

    async fn edit_now(
        &self,
        who: &str,
        name: &LimitName,
        of: Of,
        change: impl Fn(&mut LimitRecord),
    ) -> Result<(), Error> {
        let _alone = self.known.changing.lock().await;
        let must_exist = !matches!(of, Of::Defined);
        loop {
            let (mut before, revision) = self.limit_record(name).await?;
            let has_record = before.defined.is_some();
            if must_exist && !has_record {
                let found = self.store.inspect(vec![(name.clone(), None)]).await?.pop().flatten();
                // One that came along with calls stands in its own right from now on.
                before.defined = found.map(|found| found.definition.limit().clone());
            }
            if must_exist && before.defined.is_none() {
                let name = name.chars().take(128).collect();
                return Err(AskError::UnknownLimit { name }.into());
            }
            let mut after = before.clone();
            let at = self.store.now().await?.wall;
            after.change(who, at, &change);
            if after == before {
                if !has_record {
                    return Ok(());
                }
                if !self.is_in_force(name, &of, &before).await?
                    && !self.put_in_force_again(name, &of, (&before, revision)).await?
                {
                    continue;
                }
                self.known.note(name, &before);
                if !must_exist {
                    self.known.declare(name);
                }
                return Ok(());
            }
            let mut change = before.changed_to(&after, name)?;
            if !has_record {
                change.limits = vec![(name.clone(), after.definition(name)?)];
            }
            let bytes = after.defined.is_some().then(|| after.written()).transpose()?;
            change.write.push(Write { key: key(name)?, expected: revision, bytes });
            let altered = before.altered(&after, name);
            change.write.extend(self.ways.audit_writes(self, who, at, altered).await?);
            match self.store.configure(change).await? {
                // Changed by someone else meanwhile: their change comes first.
                Err(ConfigureError::RevisionDiffers { .. }) => {
                    self.ways.load_audit(self).await?;
                    continue;
                }
                changed => changed?,
            }
            self.was_written();
            if !must_exist {
                self.warn_of_replacing(name, &before, &after);
            }
            self.known.note(name, &after);
            if !must_exist {
                self.known.declare(name);
            }
            self.crowds.wake_limit(name);
            tracing::info!(limit = name.as_str(), who, "limit changed");
            return Ok(());
        }
    }

    /// Learns what is known of a limit in the store.
    pub(super) async fn look_up(&self, name: &LimitName) -> Result<(), Error> {
        let (record, _) = self.limit_record(name).await?;
        if record.defined.is_some() {
            self.known.note(name, &record);
            return Ok(());
        }
        let found = self.store.inspect(vec![(name.clone(), None)]).await?.pop().flatten();
        let record = found.map(|found| LimitRecord::of(found.definition.limit().clone()));
        self.known.note(name, &record.unwrap_or_default());
        Ok(())
    }

    async fn limit_record(&self, name: &LimitName) -> Result<(LimitRecord, Revision), Error> {
        let found = self.store.records(vec![key(name)?]).await?.pop().flatten();
        let Some(record) = found else { return Ok(<_>::default()) };
        Ok((LimitRecord::read(&record.bytes)?, record.revision))
    }
}

impl<S: Lanes + 'static> Parts<S> {
    /// Learns what was written down. An earlier version wrote that first and let it be in force then:
    /// what was cut short between is made up for here.
    pub(super) async fn load_limits(&self) -> Result<(), Error> {
        let mut after = None;
        loop {
            let found = self.store.records_of(PREFIX.to_owned(), after.take(), PAGE).await?;
            let is_last = found.len() < PAGE;
            for (key, record) in found {
                let name = key.strip_prefix(PREFIX).and_then(|name| LimitName::new(name).ok());
                let record = LimitRecord::read(&record.bytes);
                match (name, record) {
                    (Some(name), Ok(record)) => match self.put_in_force(&name, &record).await {
                        Err(error @ Error::Store(_)) => return Err(error),
                        Err(error) => tracing::error!(%name, %error, "a limit is not in force"),
                        Ok(()) => {
                            self.known.note(&name, &record);
                            // Nobody else defines limits here.
                            self.known.declare(&name);
                        }
                    },
                    // It is in force as the store has it.
                    _ => tracing::error!(%key, "the record of a limit cannot be read"),
                }
                after = Some(key);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn put_in_force(&self, name: &LimitName, record: &LimitRecord) -> Result<(), Error> {
        let change = LimitRecord::default().changed_to(record, name)?;
        Ok(self.store.configure(change).await??)
    }
}

fn key(name: &LimitName) -> Result<Key, Error> {
    Ok(Key::new(&format!("{PREFIX}{name}"))?)
}

pub(super) fn checked(name: &LimitName, limit: &Limit) -> Result<Definition, AskError> {
    let name = || name.chars().take(128).collect();
    Definition::new(limit.clone()).map_err(|error| AskError::Limit { name: name(), error })
}
