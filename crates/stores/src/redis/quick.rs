//! The hot path: asks that start now or are refused are decided by a script, in one round trip.
//!
//! What the script wrote is what the original would have: so that is asked afterwards, of what was
//! there before, and says all that there is to tell.

use super::request::Request;
use super::slow::value;
use super::{RedisCells, fault};
use crate::shared::cells::{Decide, Found, Wanted};
use crate::shared::quick::Quick;
use redis::Value;
use redis::aio::ConnectionLike;
use tollgate_core::Now;
use tollgate_core::contract::Answer;

/// What came of asks that were handed to the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    /// They were decided, and what was granted is paid.
    Taken(Taken),
    /// Someone is about to change one of the meters: try again soon. Nothing was changed.
    Busy,
    /// There is something among it that the script does not decide. Nothing was changed.
    Declined,
}

/// Asks that were decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// When.
    pub now: Now,
    /// Which of them were granted.
    pub granted: Vec<bool>,
    /// How many meters were written.
    pub written: usize,
    /// What was there before.
    pub found: Found,
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> RedisCells<C> {
    /// Hands asks to the script, once. [`Cells::change`](crate::shared::cells::Cells::change) does that
    /// by itself, and does otherwise what is declined.
    ///
    /// # Errors
    /// As a change.
    pub async fn try_quick(&self, wanted: Wanted<'_>, quick: &Quick) -> Answer<Tried> {
        match Request::new(wanted, quick) {
            Some(request) => self.within_deadline(self.take(wanted, &request)).await,
            None => Ok(Tried::Declined),
        }
    }

    /// Says whether the change was done.
    pub(super) async fn change_quickly(
        &self,
        wanted: Wanted<'_>,
        decide: &mut dyn Decide,
    ) -> Answer<bool> {
        let request = decide.quick().and_then(|quick| Request::new(wanted, quick));
        let Some(request) = request else { return Ok(false) };
        for tries in 0.. {
            match self.take(wanted, &request).await? {
                Tried::Taken(Taken { now, found, written, .. }) => {
                    let changed = decide.decide(now, &found).len();
                    if changed != written {
                        tracing::error!(written, changed, "the script decided otherwise");
                    }
                    break;
                }
                Tried::Busy => self.pause(tries).await,
                Tried::Declined => return Ok(false),
            }
        }
        Ok(true)
    }

    pub(super) async fn take(&self, wanted: Wanted<'_>, request: &Request) -> Answer<Tried> {
        let mut script = self.scripts.consume.prepare_invoke();
        script.key(self.keys.intents(wanted.change.first()));
        for cell in wanted.read.iter().chain(wanted.change) {
            script.key(self.keys.cell(cell));
        }
        let now = self.settings.time.as_ref().map(|time| time());
        script.arg(request.packed(now));
        match self.run(&script).await? {
            Value::Int(0) => Ok(Tried::Declined),
            Value::Int(1) => Ok(Tried::Busy),
            Value::Array(answer) => {
                let taken = self.taken(answer, now, request).ok_or_else(fault::strange)?;
                Ok(Tried::Taken(taken))
            }
            _ => Err(fault::strange()),
        }
    }

    /// What the script answered; `None` if it is something else.
    fn taken(&self, answer: Vec<Value>, now: Option<Now>, request: &Request) -> Option<Taken> {
        let [_, seconds, nanos, granted, written, before] = answer.try_into().ok()?;
        let (Value::Array(granted), Value::Array(before)) = (granted, before) else { return None };
        let now = match now {
            Some(now) => now,
            None => self.now(count(&seconds)?, count(&nanos)?),
        };
        let mut each = Vec::new();
        for (alike, granted) in request.rows.iter().zip(&granted) {
            let granted = usize::try_from(count(granted)?).ok()?;
            each.extend((0..*alike).map(|place| place < granted));
        }
        let change = before.into_iter().map(value).collect::<Option<_>>()?;
        let found = Found { read: request.expects().to_vec(), change };
        let written = usize::try_from(count(&written)?).ok()?;
        Some(Taken { now, granted: each, written, found })
    }
}

fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Int(count) => u64::try_from(*count).ok(),
        _ => None,
    }
}
