//! What a configuration file wants of limits, put in force as soon as the store is there.

use crate::clock;
use crate::config::Desired;
use std::future::pending;
use std::time::Duration;
use tollgate::lanes::StoreError as KeptError;
use tollgate::{Error, StoreError, Tollgate};

/// Who changes limits and queues as the file says.
const ACTOR: &str = "config";
/// How long after the first failure it is tried again; twice as long after each more.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Longest time between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What the store has yet to take.
#[derive(Debug)]
pub(super) struct Awaited {
    desired: Option<Desired>,
    pause: Duration,
}

impl Awaited {
    pub(super) fn nothing() -> Self {
        Self { desired: None, pause: PAUSE_MIN }
    }

    /// Puts this in force, and nothing that was said before. If the store is out of reach it does so
    /// later, with [`Self::again`].
    pub(super) async fn put(&mut self, gate: &Tollgate, desired: Desired) -> Result<(), Error> {
        *self = Self::nothing();
        match desired.put_in_force(gate, ACTOR).await {
            Err(error) if is_for_now(&error) => self.desired = Some(desired),
            done => return done,
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.desired.is_none()
    }

    /// Tries once more after a pause; never ready if there is nothing to do. Dropped, it is tried again
    /// from the start the next time.
    pub(super) async fn again(&mut self, gate: &Tollgate) {
        let Some(desired) = &self.desired else { return pending().await };
        clock::rest(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        match desired.put_in_force(gate, ACTOR).await {
            Ok(()) => tracing::info!("what the configuration says of limits is in force"),
            Err(error) if is_for_now(&error) => {
                tracing::debug!(%error, "the limits of the configuration wait for the store");
                return;
            }
            Err(error) => {
                tracing::error!(%error, "the limits of the configuration were not taken");
            }
        }
        *self = Self::nothing();
    }
}

fn is_for_now(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::Kept(KeptError::Unreachable { .. })))
}
