//! What lasts of a scheduler, as facts that need no history: a checkpoint is a list of them.

use super::call::{Attempts, CallId, Death, NewCall};
use super::event::LineWaits;
use crate::contract::MeterName;
use crate::meter::Payment;
use crate::name::{Key, LaneName, QueueName};
use crate::time::{Now, Timestamp};

/// One thing as it is.
// Not `non_exhaustive`: the stores write each of them down, and are to be told of a new one when they
// are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// Where the counters stand.
    Counters {
        /// The next call.
        ids: u64,
        /// The last lease or receipt.
        tokens: u64,
        /// The next arrival.
        arrivals: u64,
        /// The last revision.
        revisions: u64,
        /// Limit time.
        now: Timestamp,
    },
    /// A meter that is not as new. Its limit comes before it.
    Meter {
        /// Which.
        name: MeterName,
        /// See [`Meter::to_words`](crate::Meter::to_words).
        words: Box<[u64]>,
        /// Until when it is closed, and why.
        closed: Option<(Timestamp, Box<str>)>,
    },
    /// A lane that is not as others. Its queue comes before it.
    Lane {
        /// Of which queue.
        queue: QueueName,
        /// Which.
        lane: LaneName,
        /// An operator holds it.
        is_paused: bool,
        /// A dead call holds it.
        is_held: bool,
        /// How many times as much it is served as others.
        weight: u32,
    },
    /// A call that has not ended, or is dead. Its queue and its limits come before it.
    Call {
        /// Its name.
        id: CallId,
        /// As it was handed in, its dedupe key aside.
        call: Box<NewCall>,
        /// Its place in its lane; `None` if it joins later.
        arrival: Option<u64>,
        /// How often it was tried; `None` if it never started.
        attempts: Option<Attempts>,
        /// Not to start again before.
        rests_until: Timestamp,
        /// It is not to be tried again.
        is_cancelled: bool,
        /// Its start that is not settled.
        flight: Option<KeptFlight>,
        /// It is dead.
        death: Option<Death>,
    },
    /// How a call came to be in flight. The call comes before it.
    Start {
        /// Which call.
        id: CallId,
        /// When it was started.
        started: Now,
        /// What it waited for before.
        waits: LineWaits,
    },
    /// A dedupe key that is remembered.
    Dedupe {
        /// Of which queue.
        queue: QueueName,
        /// Which.
        key: Key,
        /// The first call of it.
        id: CallId,
        /// Until when.
        until: Timestamp,
    },
    /// A receipt that was settled.
    Receipt {
        /// Which.
        id: u64,
        /// Until when that is remembered.
        until: Timestamp,
    },
}

/// A start that is not settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFlight {
    /// Which start.
    pub token: u64,
    /// When its lease ends.
    pub expires: Timestamp,
    /// What it paid, at each meter.
    pub payments: Box<[Payment]>,
}
