//! The door: what callers may name, and what is refused before the store sees it.

use super::Parts;
use crate::error::{AskError, Error, RESERVED, RESERVED_QUEUE};
use crate::flows::is_of_runs;
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::Act;
use tollgate_core::{QueueName, UNITS_MAX};

impl<S: Lanes> Parts<S> {
    /// Refuses an act that reaches for what is not the caller's.
    pub(super) async fn check(&self, act: &Act) -> Result<(), Error> {
        self.check_reach(act).await?;
        self.check_pushed(act).await
    }

    /// As [`Self::check`], whoever makes the calls.
    pub(super) async fn check_reach(&self, act: &Act) -> Result<(), Error> {
        check(act)?;
        let ended = [&act.cancel[..], &act.delete].concat();
        if !ended.is_empty() {
            let found = self.store.look(ended).await?;
            if let Some(found) = found.into_iter().flatten().find(|found| is_of_runs(&found.queue))
            {
                let run = found.lane.as_str().to_owned();
                return Err(AskError::CallOfRun { call: found.id, run }.into());
            }
        }
        Ok(())
    }
}

/// The name of a queue that callers may have.
pub(super) fn queue_name(text: &str) -> Result<QueueName, Error> {
    let name = QueueName::new(text)?;
    check_queue(&name)?;
    Ok(name)
}

/// The name of a queue that callers may hand in to and claim from.
pub(super) fn open_queue_name(text: &str) -> Result<QueueName, Error> {
    let name = queue_name(text)?;
    if is_of_runs(&name) {
        return Err(AskError::OfRuns { queue: name.as_str().to_owned() }.into());
    }
    Ok(name)
}

pub(super) fn check_queue(name: &QueueName) -> Result<(), Error> {
    if name.starts_with(RESERVED_QUEUE) {
        return Err(AskError::ReservedQueue.into());
    }
    Ok(())
}

/// Refuses an act that reaches for what is Tollgate's own, or that charges more than there can be.
fn check(act: &Act) -> Result<(), Error> {
    if act.write.iter().any(|write| write.key.starts_with(RESERVED)) {
        return Err(AskError::ReservedKey.into());
    }
    for call in act.new_calls() {
        let _ = open_queue_name(&call.queue)?;
    }
    for (_, actual) in act.settle.iter().flat_map(|settle| &settle.actual) {
        if *actual > UNITS_MAX {
            return Err(AskError::ActualTooLarge { actual: *actual }.into());
        }
    }
    Ok(())
}
