//! Why a call waits, and until when.

use super::call::{Attempts, CallId};
use crate::meter::Blocker;
use crate::name::{LimitName, Partition};
use crate::time::Timestamp;

/// What is known of a call that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Which call.
    pub id: CallId,
    /// How often it was tried.
    pub attempts: Attempts,
    /// How many calls of its lane go before it, those in flight not counted. `None` if it is in
    /// flight, or has not joined its lane.
    pub position: Option<u64>,
    /// Everything that is in its way as things stand. Others may come before it that were not tried
    /// yet: a head is told where it must stand when a worker asks for it.
    pub reasons: Vec<Reason>,
    /// It does not start before, as limits and clocks stand now, whatever the workers do; `None` if
    /// it hangs on something that no one can compute.
    pub not_before: Option<Timestamp>,
    /// When it starts if workers ask at all times, all who go before it start as soon as its meters
    /// let them and end at once, and nobody comes in between; `None` if that cannot be said.
    pub expected: Option<Timestamp>,
}

/// One thing that is in a call's way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It is in flight: started, and not settled.
    InFlight {
        /// When its lease ends.
        expires: Timestamp,
    },
    /// Its queue is held back.
    QueuePaused,
    /// Its lane is held back.
    LanePaused,
    /// A dead call holds its lane.
    LaneHeld,
    /// It was to wait, until this instant of the wall clock.
    NotDue {
        /// When it joins its lane.
        wall: Timestamp,
    },
    /// It failed, and rests.
    Resting {
        /// Until when.
        until: Timestamp,
    },
    /// As many calls of its lane are in flight as may be.
    LaneBusy {
        /// How many.
        in_flight: u32,
    },
    /// Others of its lane go first.
    Behind {
        /// How many.
        calls: u64,
    },
    /// A meter does not let it pass.
    Meter {
        /// Which limit.
        limit: LimitName,
        /// Which of its meters; `None` for the global one.
        partition: Option<Partition>,
        /// Why, and when it opens.
        blocker: Blocker,
    },
}
