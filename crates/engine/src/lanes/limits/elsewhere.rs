//! Limits that other processes define otherwise: the newest definition wins, and both are named in a
//! warning, once for each change.

use super::record::LimitRecord;
use super::{Engine, Known, PAGE, PREFIX, Parts};
use crate::error::Error;
use std::future::Future;
use std::sync::Arc;
use tollgate_core::contract::{Lanes, Meters};
use tollgate_core::{Limit, LimitName, Span, Timestamp};

/// How long it takes until a store is asked again that could not say what became of a limit.
const AGAIN: Span = Span::from_secs(1);

impl<S: Meters + 'static> Engine<S> {
    /// Heeds a store that finds out which limits were changed, for as long as this engine is there: what
    /// is known of them is looked up again, and one that was defined by way of this process, and is
    /// defined otherwise now, is warned of.
    pub fn heed<F>(&self, mut changed: impl FnMut() -> F + Send + 'static)
    where
        F: Future<Output = LimitName> + Send,
    {
        let parts = self.parts.clone();
        self.parts.pulse.go_on_with(async move {
            loop {
                let name = changed().await;
                while let Err(error) = parts.look_again(&name).await {
                    if !error.may_pass() {
                        tracing::warn!(limit = name.as_str(), %error, "a limit that changed is not understood");
                        break;
                    }
                    tracing::debug!(limit = name.as_str(), %error, "a limit that changed cannot be read");
                    parts.pulse.sleep(AGAIN).await;
                }
            }
        });
    }
}

impl<S: Meters + 'static> Parts<S> {
    async fn look_again(self: &Arc<Self>, name: &LimitName) -> Result<(), Error> {
        // Not between a change that is made here and what is then known of it.
        let _alone = self.known.changing.lock().await;
        if !self.known.is_known(name) {
            return Ok(());
        }
        self.learn(name).await
    }

    /// Learns what another node wrote down of a limit, also of one that is new here.
    pub(in crate::lanes) async fn learn_changed(&self, name: &LimitName) -> Result<(), Error> {
        let _alone = self.known.changing.lock().await;
        self.learn(name).await
    }

    async fn learn(&self, name: &LimitName) -> Result<(), Error> {
        let (record, _) = self.limit_record(name).await?;
        if let Some(declared) = self.known.replaced(name, record.defined.as_ref()) {
            let (before, after) = (declared.to_string(), told(record.defined.as_ref()));
            let latest = record.latest();
            let who = latest.map_or("", |change| &change.who);
            let at_ms = latest.map_or(0, |change| millis(change.at));
            tracing::warn!(
                limit = name.as_str(),
                before,
                after,
                who,
                at_ms,
                "another process defined a limit otherwise, and that counts"
            );
        }
        self.known.note(name, &record);
        Ok(())
    }

    /// Warns if what is replaced was not defined by way of this process.
    pub(super) fn warn_of_replacing(
        &self,
        name: &LimitName,
        before: &LimitRecord,
        after: &LimitRecord,
    ) {
        let Some(defined) = before.defined.as_ref() else { return };
        if after.defined.as_ref() == Some(defined) || self.known.is_declared_as(name, defined) {
            return;
        }
        let (before, after) = (before, told(after.defined.as_ref()));
        let latest = before.latest();
        let who = latest.map_or("", |change| &change.who);
        let at_ms = latest.map_or(0, |change| millis(change.at));
        tracing::warn!(
            limit = name.as_str(),
            before = defined.to_string(),
            after,
            who,
            at_ms,
            "a limit was defined otherwise by another process, and what this one says counts"
        );
    }
}

impl<S: Lanes + 'static> Parts<S> {
    /// Learns what was written down, where others define limits, too: it is in force as the store has it.
    pub(in crate::lanes) async fn learn_limits(&self) -> Result<(), Error> {
        let _alone = self.known.changing.lock().await;
        let mut after = None;
        loop {
            let found = self.store.records_of(PREFIX.to_owned(), after.take(), PAGE).await?;
            let is_last = found.len() < PAGE;
            for (key, record) in found {
                let name = key.strip_prefix(PREFIX).and_then(|name| LimitName::new(name).ok());
                match (name, LimitRecord::read(&record.bytes)) {
                    (Some(name), Ok(record)) => self.known.note(&name, &record),
                    _ => tracing::error!(%key, "the record of a limit cannot be read"),
                }
                after = Some(key);
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

impl Known {
    /// What was defined by way of this process and is defined as `by` now, if that was not said yet.
    fn replaced(&self, name: &LimitName, by: Option<&Limit>) -> Option<Limit> {
        let mut limits = self.limits.write();
        let known = limits.get_mut(name)?;
        let declared = known.declared.as_ref()?;
        if by == Some(declared) {
            known.replaced_by = None;
            return None;
        }
        let is_said = by.is_some() && known.replaced_by.as_ref() == by;
        known.replaced_by = by.cloned();
        (!is_said).then(|| declared.clone())
    }
}

fn told(limit: Option<&Limit>) -> String {
    limit.map_or_else(|| "removed".to_owned(), Limit::to_string)
}

fn millis(at: Timestamp) -> u64 {
    at.as_nanos() / 1_000_000
}
