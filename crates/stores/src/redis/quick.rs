//! The hot path: asks that start now or are refused are decided by a script, in one round trip.
//!
//! What the script wrote is what the original would have: so that is asked afterwards, of what was
//! there before, and says all that there is to tell.

use super::request::Request;
use super::slow::value;
use super::{RedisCells, fault};
use crate::shared::cells::{Decide, Found, Wanted};
use crate::shared::quick::Quick;
use redis::aio::ConnectionLike;
use redis::{Cmd, Value};
use tollgate_core::Now;
use tollgate_core::contract::Answer;

/// Room for a key, most often.
const KEY_BYTES: usize = 64;

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
        let Some(request) = Request::new(wanted, quick) else { return Ok(Tried::Declined) };
        Ok(match self.within_deadline(self.take(wanted, &request)).await? {
            Took::All { now, found, written, refused } => {
                let granted = request.granted(quick, &refused).ok_or_else(fault::strange)?;
                Tried::Taken(Taken { now, granted, written, found })
            }
            Took::Busy => Tried::Busy,
            Took::Declined => Tried::Declined,
        })
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
                Took::All { now, found, written, .. } => {
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

    pub(super) async fn take(&self, wanted: Wanted<'_>, request: &Request) -> Answer<Took> {
        let now = self.settings.time.as_ref().map(|time| time());
        let mut call = self.call(wanted);
        request.write(now, &mut call);
        match self.run(&self.scripts.consume, &call).await? {
            Value::Int(0) => Ok(Took::Declined),
            Value::Int(1) => Ok(Took::Busy),
            Value::Array(answer) => self.took(answer, now, request).ok_or_else(fault::strange),
            _ => Err(fault::strange()),
        }
    }

    /// Calls the script: each key is written where it is sent from, for there are many.
    fn call(&self, wanted: Wanted<'_>) -> Cmd {
        let cells = wanted.read.iter().chain(wanted.change);
        let keys = 1 + wanted.read.len() + wanted.change.len();
        let mut call = Cmd::with_capacity(keys + 8, 1_024 + keys * KEY_BYTES);
        call.arg("EVALSHA").arg(self.scripts.consume.hash()).arg(keys);
        call.arg(self.keys.intents(wanted.change.first()));
        let mut key = String::with_capacity(KEY_BYTES);
        for cell in cells {
            key.clear();
            self.keys.write_cell(cell, &mut key);
            call.arg(&*key);
        }
        call
    }

    /// What the script answered; `None` if it is something else.
    fn took(&self, answer: Vec<Value>, now: Option<Now>, request: &Request) -> Option<Took> {
        let [_, seconds, nanos, refused, written, before] = answer.try_into().ok()?;
        let (Value::Array(refused), Value::Array(before)) = (refused, before) else { return None };
        let now = match now {
            Some(now) => now,
            None => self.now(count(&seconds)?, count(&nanos)?),
        };
        let refused = refused.iter().map(count).collect::<Option<_>>()?;
        // Those that are only read are as they were expected.
        let before = before.into_iter().skip(request.expects().len());
        let change = before.map(value).collect::<Option<_>>()?;
        let found = Found { read: request.expects().to_vec(), change };
        let written = usize::try_from(count(&written)?).ok()?;
        Some(Took::All { now, refused, written, found })
    }
}

/// What the script did.
pub(super) enum Took {
    /// Of rows whose last asks were refused it tells the number, and how many were granted.
    All {
        now: Now,
        refused: Vec<u64>,
        written: usize,
        found: Found,
    },
    Busy,
    Declined,
}

fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Int(count) => u64::try_from(*count).ok(),
        _ => None,
    }
}
