//! What would become of all that waits: as limits are, and as they might be.

use super::{Tollgate, on_a_thread};
use crate::lanes::{Forecast, Work};
use crate::{Error, Limit};
use tollgate_core::lanes::Scheduler;
use tollgate_core::{Definition, LimitName, Now};
use tollgate_engine::AskError;

/// Of more calls none is made: they are copied first, and nothing starts meanwhile.
const CALLS_MAX: u64 = 1_000_000;

/// What becomes of what waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// As limits are.
    pub now: Forecast,
    /// If they were changed as was asked; `None` if nothing was.
    pub then: Option<Forecast>,
}

impl Tollgate {
    /// What becomes of all that waits if it is worked on so, and if these limits were in force instead of
    /// what is. Found out by the scheduler itself, on a copy and on time that is thought of: nothing
    /// changes. A million starts take about five seconds of one core, and the store stands still while that
    /// many calls are copied, less than a tenth of a second.
    ///
    /// # Errors
    /// A limit that cannot be, and more than a million calls.
    pub async fn forecast(
        &self,
        limits: Vec<(String, Limit)>,
        work: Work,
    ) -> Result<Outlook, Error> {
        let mut changes = Vec::with_capacity(limits.len());
        for (name, limit) in limits {
            let definition = Definition::new(limit)
                .map_err(|error| AskError::Limit { name: name.clone(), error })?;
            changes.push((LimitName::new(&name).map_err(AskError::Name)?, definition));
        }
        let copied = self.engine()?.store().copied(CALLS_MAX).await?;
        let (scheduler, now) = copied.ok_or(AskError::ForecastTooLarge { calls_max: CALLS_MAX })?;
        let forecast = move || outlook(scheduler, &changes, work, now);
        Ok(on_a_thread(forecast).await?)
    }
}

fn outlook(
    scheduler: Scheduler,
    changes: &[(LimitName, Definition)],
    work: Work,
    now: Now,
) -> Outlook {
    let changed = (!changes.is_empty()).then(|| {
        let mut scheduler = scheduler.clone();
        for (name, definition) in changes {
            scheduler.define_limit(name, Some(definition.clone()), now);
        }
        scheduler
    });
    let then = changed.map(|scheduler| scheduler.forecast(&work, now));
    Outlook { now: scheduler.forecast(&work, now), then }
}
