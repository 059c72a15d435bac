//! Limits: defined, changed, pinned, overridden, removed, and looked at.

use crate::client::{Asked, Client};
use crate::error::ClientError;
use crate::path::{path, with_query};
use crate::wire::limit::{LimitPageWire, LimitStateWire, LimitWire};
use hyper::Method;
use serde::de::IgnoredAny;
use tollgate_core::Limit;
use tollgate_engine::LimitState;

/// Says who changes something.
const ACTOR: &str = "tollgate-actor";
/// How many are asked for at once.
pub(crate) const PAGE: &str = "1000";

impl Client {
    /// Defines a limit, or changes it: at once, for waiting calls too, keeping what was spent.
    pub async fn limit(&self, name: &str, limit: Limit) -> Result<(), ClientError> {
        let _: IgnoredAny = self.put(path(&["limits", name]), &LimitWire::from(&limit)).await?;
        Ok(())
    }

    /// Defines a limit and writes into its history who did.
    pub async fn limit_as(&self, who: &str, name: &str, limit: Limit) -> Result<(), ClientError> {
        let asked = Asked::new(Method::PUT, path(&["limits", name])).again();
        let asked = asked.json(&LimitWire::from(&limit))?.header(ACTOR, who)?;
        let _: IgnoredAny = self.ask(asked).await?;
        Ok(())
    }

    /// Removes a limit with all its meters.
    pub async fn remove(&self, who: &str, name: &str) -> Result<(), ClientError> {
        let asked = Asked::new(Method::DELETE, path(&["limits", name])).header(ACTOR, who)?;
        let _: IgnoredAny = self.ask(asked).await?;
        Ok(())
    }

    /// Gives one partition a definition of its own; `None` takes it away.
    pub async fn override_partition(
        &self,
        name: &str,
        partition: &str,
        limit: Option<Limit>,
    ) -> Result<(), ClientError> {
        self.set_limit(path(&["limits", name, "partitions", partition]), None, limit).await
    }

    /// Puts a value over what callers define (`None`: takes it away again).
    pub async fn pin(
        &self,
        who: &str,
        name: &str,
        limit: Option<Limit>,
    ) -> Result<(), ClientError> {
        self.set_limit(path(&["limits", name, "pin"]), Some(who), limit).await
    }

    async fn set_limit(
        &self,
        path: String,
        who: Option<&str>,
        limit: Option<Limit>,
    ) -> Result<(), ClientError> {
        let mut asked = match &limit {
            Some(limit) => Asked::new(Method::PUT, path).json(&LimitWire::from(limit))?,
            None => Asked::new(Method::DELETE, path),
        };
        if let Some(who) = who {
            asked = asked.header(ACTOR, who)?;
        }
        let _: IgnoredAny = self.ask(asked.again()).await?;
        Ok(())
    }

    /// Holds back all calls that pay at a limit.
    pub async fn pause_limit(&self, limit: &str) -> Result<(), ClientError> {
        let _: IgnoredAny = self.act(path(&["limits", limit, "pause"])).await?;
        Ok(())
    }

    /// Lets calls go on that pay at a limit.
    pub async fn resume_limit(&self, limit: &str) -> Result<(), ClientError> {
        let _: IgnoredAny = self.act(path(&["limits", limit, "resume"])).await?;
        Ok(())
    }

    /// A limit as it stands, with its history; `None` if there is none of that name.
    pub async fn limit_state(&self, name: &str) -> Result<Option<LimitState>, ClientError> {
        let read: Option<LimitStateWire> =
            if_known(self.fetch(path(&["limits", name])).await, "unknown_limit")?;
        Ok(read.map(LimitState::from))
    }

    /// All limits, sorted by name, without overrides and history.
    pub async fn limits(&self) -> Result<Vec<LimitState>, ClientError> {
        let mut limits = Vec::new();
        let mut after = None;
        loop {
            let query = [("after", after.as_deref()), ("limit", Some(PAGE))];
            let page: LimitPageWire = self.fetch(with_query(path(&["limits"]), &query)).await?;
            limits.extend(page.limits.into_iter().map(LimitState::from));
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(limits),
            }
        }
    }
}

/// What was found; `None` if the server says that it does not know it.
pub(crate) fn if_known<T>(
    answer: Result<T, ClientError>,
    unknown: &str,
) -> Result<Option<T>, ClientError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == Some(unknown) => Ok(None),
        Err(error) => Err(error),
    }
}
