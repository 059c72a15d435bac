//! Limits: defined, changed, pinned, overridden, removed, and looked at.

use super::{Tollgate, on_store};
use tollgate_core::{Definition, Limit, LimitName};
use tollgate_engine::{Audited, Error, LimitState};

impl Tollgate {
    /// Defines a limit, or changes it: at once, for waiting calls too, keeping what was spent.
    pub async fn limit(&self, name: &str, limit: Limit) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => limiter.define(name, limit).map(|_| ()),
            engine => engine.define(name, limit).await,
        }
    }

    /// Defines a limit and writes into its history who did.
    pub async fn limit_as(&self, who: &str, name: &str, limit: Limit) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => limiter.define_as(who, name, limit).map(|_| ()),
            engine => engine.define_as(who, name, limit).await,
        }
    }

    /// Removes a limit with all its meters.
    pub async fn remove(&self, who: &str, name: &str) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => Ok(limiter.remove(who, name)?),
            engine => engine.remove(who, name).await,
        }
    }

    /// Gives one partition a definition of its own; `None` takes it away.
    pub async fn override_partition(
        &self,
        name: &str,
        partition: &str,
        limit: Option<Limit>,
    ) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => Ok(limiter.override_partition(name, partition, limit)?),
            engine => engine.override_partition(name, partition, limit).await,
        }
    }

    /// Gives one partition a definition of its own and writes into the audit log who did.
    pub async fn override_partition_as(
        &self,
        who: &str,
        name: &str,
        partition: &str,
        limit: Option<Limit>,
    ) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => Ok(limiter.override_partition(name, partition, limit)?),
            engine => engine.override_partition_as(who, name, partition, limit).await,
        }
    }

    /// Changes of limits and queues and operations on them, who made them and what was before: the newest
    /// first, before one, up to 1,000. The latest 10,000 are kept where calls are kept; there is no such log
    /// in memory, nor in a store of limits alone.
    pub async fn audit(&self, before: Option<u64>, most: usize) -> Result<Vec<Audited>, Error> {
        self.engine()?.audit(before, most).await
    }

    /// Puts a value over what callers define (`None`: takes it away again): a rate over their rates, calls at
    /// a time over theirs. What it does not say is as they say.
    pub async fn pin(&self, who: &str, name: &str, limit: Option<Limit>) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => match limit {
                Some(limit) => Ok(limiter.pin(who, name, limit)?),
                None => Ok(limiter.unpin(who, name)?),
            },
            engine => engine.pin(who, name, limit).await,
        }
    }

    /// Limits that come along with calls, checked, as they go along in their act: see
    /// [`Act::define`](crate::lanes::Act::define). One that an operator defined or pinned is changed here, as
    /// callers change it: the newest definition wins, unless it is pinned. If nobody says who, it stays as it is.
    pub async fn coming_along(
        &self,
        who: Option<&str>,
        limits: Vec<(String, Limit)>,
    ) -> Result<Vec<(LimitName, Definition)>, Error> {
        self.engine()?.coming_along(who, limits).await
    }

    /// Whether a limit is defined so, as this process knows it: cheaper than to look at it.
    pub fn is_defined_as(&self, name: &str, limit: &Limit) -> bool {
        on_store! {
            &self.backend,
            limiter => limiter.is_defined_as(name, limit),
            engine => engine.is_defined_as(name, limit),
        }
    }

    /// A limit as it stands, with its history.
    pub async fn limit_state(&self, name: &str) -> Result<Option<LimitState>, Error> {
        on_store! {
            &self.backend,
            limiter => Ok(limiter.limit(name)),
            engine => engine.limit(name).await,
        }
    }

    /// Limits by name, after one, up to 1,000.
    pub async fn limits_after(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<LimitState>, Error> {
        on_store! {
            &self.backend,
            limiter => {
                let limits = limiter.limits().into_iter();
                let is_after = |limit: &LimitState| after.is_none_or(|after| *limit.name > *after);
                Ok(limits.filter(is_after).take(most).collect())
            },
            engine => engine.limits_after(after, most).await,
        }
    }

    /// All limits, sorted by name.
    pub async fn limits(&self) -> Result<Vec<LimitState>, Error> {
        on_store! {
            &self.backend,
            limiter => Ok(limiter.limits()),
            engine => engine.limits().await,
        }
    }
}
