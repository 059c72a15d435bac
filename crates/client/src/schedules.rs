//! Schedules: calls that are handed in at the ticks of a cron expression, or once.

use crate::calls::Page;
use crate::client::Client;
use crate::error::ClientError;
use crate::limits::{PAGE, if_known};
use crate::path::{path, with_query};
use crate::wire::call::CallWire;
use crate::wire::time::{InstantWire, maybe_instant};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_core::Timestamp;
use tollgate_engine::{Call, When};

/// A schedule as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ScheduleState {
    /// Its name.
    pub name: String,
    /// Where its calls are handed in.
    pub queue: String,
    /// When it ticks, if it does so again and again.
    pub cron: Option<String>,
    /// On the calendar of which zone.
    pub zone: Option<String>,
    /// When it ticks, if it does so once.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub at: Option<Timestamp>,
    /// What is handed in at each tick.
    pub call: Value,
    /// Nothing is handed in until it is resumed.
    #[serde(rename = "paused")]
    pub is_paused: bool,
    /// The next tick.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub next: Option<Timestamp>,
    /// The last tick.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub last: Option<Timestamp>,
    /// Why nothing came of the last tick.
    pub problem: Option<String>,
}

#[derive(Deserialize)]
struct SchedulePageWire {
    schedules: Vec<ScheduleState>,
    next: Option<String>,
}

#[derive(Serialize)]
struct ScheduleWire<'a> {
    queue: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<InstantWire>,
    call: CallWire,
}

impl Client {
    /// Hands in a call at each tick of a schedule. One of that name is replaced.
    pub async fn schedule(
        &self,
        name: &str,
        queue: &str,
        when: When,
        call: Call,
    ) -> Result<ScheduleState, ClientError> {
        let (cron, zone, at) = match &when {
            When::Cron(cron) => (Some(cron.to_string()), Some(cron.zone()), None),
            When::Once(at) => (None, None, Some(InstantWire(*at))),
        };
        let wire = ScheduleWire { queue, cron, zone, at, call: call.into() };
        self.put(path(&["schedules", name]), &wire).await
    }

    /// Removes a schedule; says whether there was one.
    pub async fn unschedule(&self, name: &str) -> Result<bool, ClientError> {
        let answer = self.delete::<IgnoredAny>(path(&["schedules", name])).await;
        Ok(if_known(answer, "unknown_schedule")?.is_some())
    }

    /// Hands in nothing more until the schedule is resumed; says whether there is one.
    pub async fn pause_schedule(&self, name: &str) -> Result<bool, ClientError> {
        let answer = self.act::<IgnoredAny>(path(&["schedules", name, "pause"])).await;
        Ok(if_known(answer, "unknown_schedule")?.is_some())
    }

    /// Goes on with a schedule's next tick from now; says whether there is one.
    pub async fn resume_schedule(&self, name: &str) -> Result<bool, ClientError> {
        let answer = self.act::<IgnoredAny>(path(&["schedules", name, "resume"])).await;
        Ok(if_known(answer, "unknown_schedule")?.is_some())
    }

    /// A schedule; `None` if there is none of that name.
    pub async fn schedule_state(&self, name: &str) -> Result<Option<ScheduleState>, ClientError> {
        if_known(self.fetch(path(&["schedules", name])).await, "unknown_schedule")
    }

    /// Schedules by name, after one.
    pub async fn schedules(&self, after: Option<&str>) -> Result<Page<ScheduleState>, ClientError> {
        let query = [("after", after), ("limit", Some(PAGE))];
        let page: SchedulePageWire = self.fetch(with_query(path(&["schedules"]), &query)).await?;
        Ok(Page { items: page.schedules, next: page.next })
    }
}
