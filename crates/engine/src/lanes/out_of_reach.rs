//! What is done when a store that processes share cannot be asked: as it was chosen, and said once.
//!
//! That goes for one that is out of reach or full, which passes by itself. One that has failed is told
//! as it is whatever was chosen, for somebody must mend it.

use super::Parts;
use super::pulse::ended;
use crate::clock::Clock;
use crate::error::Error;
use crate::limiter::{Limiter, Settings, WAITING_MAX};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tollgate_core::contract::{Answer, Meters};
use tollgate_core::lanes::{Backoff, CallId};
use tollgate_core::{Limit, Span, Timestamp};

/// What becomes of an ask while the store that processes share is out of reach, or full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OutOfReach {
    /// It fails, within the store's deadline. Who acquires waits for as long as it would anyway.
    #[default]
    Fail,
    /// It waits until the store answers, or until whoever asks gives up.
    Wait,
    /// It is granted: nothing is counted, and the pass stands at no meter.
    Admit,
    /// It is decided in this process, which has one of so many equal parts of each limit, as far as the
    /// limit is known here.
    Share {
        /// How many processes share the limits.
        parts: u32,
    },
}

/// How limits are kept in a store without lanes.
#[derive(Debug, Clone, Copy)]
pub struct LimitsSettings {
    /// Most who may wait for passes at once.
    pub waiting_max: usize,
    /// What becomes of asks while the store is out of reach.
    pub out_of_reach: OutOfReach,
}

impl Default for LimitsSettings {
    fn default() -> Self {
        Self { waiting_max: WAITING_MAX, out_of_reach: OutOfReach::default() }
    }
}

/// How a store that is out of reach is asked again: not by all processes at once.
const BACKOFF: Backoff =
    Backoff { first: Span::from_millis(100), most: Span::from_secs(5), jitter: 50 };
/// How it is asked again while all is decided without it: who asks then may wait for its deadline, and
/// what is decided meanwhile is not shared.
const LOOK_AGAIN: Backoff =
    Backoff { first: Span::from_millis(100), most: Span::from_secs(1), jitter: 50 };

/// Whether the store is in reach, and what is done while it is not.
pub(super) struct Reach {
    pub(super) choice: OutOfReach,
    /// Tells this process from others where they would do the same at once.
    seed: u64,
    turns: AtomicU64,
    is_out: AtomicBool,
    outage: Mutex<Outage>,
    clock: Arc<dyn Clock>,
    limiter: OnceLock<Limiter>,
    /// The rules of their own that partitions have in that limiter.
    pub(super) own: Mutex<HashMap<(String, String), Limit>>,
}

/// A time without the store.
#[derive(Default)]
struct Outage {
    error: Option<Error>,
    failures: u32,
    /// Until then nobody asks, where it can be done without.
    ask_at: Timestamp,
    /// How many asks were decided without it.
    alone: u64,
}

/// What is done instead of asking the store.
pub(super) enum Instead {
    /// It is asked again.
    Again,
    /// It is done without; this is why.
    Alone(Error),
}

impl Reach {
    pub(super) fn new(choice: OutOfReach, clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self {
            choice,
            seed,
            turns: AtomicU64::new(0),
            is_out: AtomicBool::new(false),
            outage: Mutex::default(),
            clock,
            limiter: OnceLock::new(),
            own: Mutex::default(),
        }
    }

    /// Whether asks are decided without the store while it is out of reach.
    pub(super) fn does_without(&self) -> bool {
        matches!(self.choice, OutOfReach::Admit | OutOfReach::Share { .. })
    }

    /// The meters of this process alone. They are kept when the store is back: a store that comes and
    /// goes gives nothing twice.
    pub(super) fn limiter(&self) -> &Limiter {
        self.limiter.get_or_init(|| {
            Limiter::new(Settings { clock: self.clock.clone(), ..Settings::default() })
        })
    }

    /// Why the store is not to be asked now: it was out of reach just before, and it can be done without.
    /// Otherwise whoever asks this asks the store, and others leave it alone meanwhile.
    pub(super) fn left_alone(&self) -> Option<Error> {
        if !self.does_without() || !self.is_out.load(Ordering::Acquire) {
            return None;
        }
        let (mut outage, now) = (self.outage.lock(), self.clock.now());
        if now < outage.ask_at {
            return outage.error.clone();
        }
        outage.ask_at = now.plus(LOOK_AGAIN.delay(CallId(self.seed), outage.failures));
        None
    }

    /// When the store is asked again.
    pub(super) fn ask_at(&self) -> Timestamp {
        self.outage.lock().ask_at
    }

    /// After how long it is asked again that failed so often in a row.
    pub(super) fn again_after(&self, failures: u32) -> Span {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        BACKOFF.delay(CallId(self.seed.wrapping_add(turn)), failures)
    }

    /// The store could not be asked. Said once.
    pub(super) fn is_lost(&self, error: &Error) {
        let (mut outage, now) = (self.outage.lock(), self.clock.now());
        if !self.is_out.swap(true, Ordering::AcqRel) {
            *outage = Outage::default();
            tracing::warn!(%error, instead = ?self.choice, "the store cannot be asked");
        }
        outage.failures = outage.failures.saturating_add(1);
        outage.error = Some(error.clone());
        outage.ask_at = now.plus(LOOK_AGAIN.delay(CallId(self.seed), outage.failures));
    }

    /// The store answers. Said once, with how many asks were decided without it.
    pub(super) fn is_back(&self) {
        if !self.is_out.load(Ordering::Acquire) {
            return;
        }
        let outage = std::mem::take(&mut *self.outage.lock());
        if self.is_out.swap(false, Ordering::AcqRel) {
            tracing::info!(instead = ?self.choice, asks = outage.alone, "the store answers again");
        }
    }

    /// An ask was decided without the store.
    pub(super) fn count_alone(&self) {
        let mut outage = self.outage.lock();
        outage.alone = outage.alone.saturating_add(1);
    }
}

impl<S: Meters + 'static> Parts<S> {
    /// What the store said, and takes note of whether it is in reach.
    pub(super) fn heard<T>(&self, answer: Answer<T>) -> Result<T, Error> {
        match answer {
            Ok(answer) => {
                self.reach.is_back();
                Ok(answer)
            }
            Err(error) => Err(self.noted(error.into())),
        }
    }

    /// Takes note if the store is out of reach.
    pub(super) fn noted(&self, error: Error) -> Error {
        if error.may_pass() {
            self.reach.is_lost(&error);
        }
        error
    }

    /// What is done instead of asking a store that failed so; the error if that is all.
    pub(super) async fn instead(&self, error: Error, failures: &mut u32) -> Result<Instead, Error> {
        if !error.may_pass() {
            return Err(error);
        }
        match self.reach.choice {
            OutOfReach::Fail => Err(error),
            OutOfReach::Wait => {
                *failures = failures.saturating_add(1);
                self.pulse.sleep(self.reach.again_after(*failures)).await;
                if self.pulse.has_ended() { Err(ended().into()) } else { Ok(Instead::Again) }
            }
            OutOfReach::Admit | OutOfReach::Share { .. } => Ok(Instead::Alone(error)),
        }
    }
}
