//! Browsing: what there is, page by page. A cursor is the last name or id of the page before.

use super::{LimitTotals, MeterState};
use crate::lanes::{Attempts, CallId, Death, QueueSpec};
use crate::limit::Definition;
use crate::name::{LaneName, LimitName, Partition, QueueName};
use crate::time::Timestamp;
use crate::tolls::Tolls;
use crate::turn::Priority;

/// Most things on one page, whatever is asked for: a page is made at once, and held in memory whole.
pub const PAGE_MAX: usize = 1_000;

/// A queue, and how much is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    /// Its name.
    pub name: QueueName,
    /// How its lanes behave.
    pub spec: QueueSpec,
    /// An operator holds it back.
    pub is_paused: bool,
    /// Calls that wait, also those that rest or are not due.
    pub waiting: u64,
    /// Calls that are started and not settled.
    pub in_flight: u64,
    /// Calls that are dead.
    pub dead: u64,
    /// Lanes that are known, some of them empty perhaps and not forgotten yet.
    pub lanes: u64,
}

/// A lane of which something is known: it has calls, or an operator changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneState {
    /// Its name.
    pub name: LaneName,
    /// Calls that wait, also those that rest or are not due.
    pub waiting: u64,
    /// Calls that are started and not settled.
    pub in_flight: u64,
    /// Calls that are dead.
    pub dead: u64,
    /// An operator holds it back.
    pub is_paused: bool,
    /// A dead call holds it.
    pub is_held: bool,
    /// How many times as much it is served as others.
    pub weight: u32,
    /// The call that may start next.
    pub head: Option<CallId>,
}

/// Where a call is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallState {
    /// In its lane, to start when its turn comes.
    Waiting,
    /// Not in its lane yet.
    NotDue,
    /// It failed, and rests.
    Resting,
    /// Started, and not settled.
    InFlight,
    /// Not to be tried again unless it is revived.
    Dead,
}

/// Which calls are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallsQuery {
    /// Of which queue.
    pub queue: QueueName,
    /// Of which lane; `None`: of all.
    pub lane: Option<LaneName>,
    /// In which state; `None`: in any.
    pub state: Option<CallState>,
    /// Those that come after it.
    pub after: Option<CallId>,
    /// At most so many, up to [`PAGE_MAX`].
    pub most: usize,
}

/// A call as it is, but for its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallView {
    /// Its name.
    pub id: CallId,
    /// Its queue.
    pub queue: QueueName,
    /// Its lane.
    pub lane: LaneName,
    /// Who goes first in the lane and at the meters.
    pub priority: Priority,
    /// What it owes, one toll for each meter.
    pub tolls: Tolls,
    /// Where it is in its life.
    pub state: CallState,
    /// How often it was tried.
    pub attempts: Attempts,
    /// When it joins its lane, on the wall clock, if it has not.
    pub not_before: Option<Timestamp>,
    /// When it ends unstarted, on the wall clock, if it does.
    pub expires: Option<Timestamp>,
    /// Until when it rests, in limit time, if it does.
    pub rests_until: Option<Timestamp>,
    /// When its lease ends, in limit time, if it is in flight.
    pub lease_expires: Option<Timestamp>,
    /// Why and when it died, if it is dead.
    pub death: Option<Death>,
}

/// A limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitView {
    /// Its name.
    pub name: LimitName,
    /// Its rules.
    pub definition: Definition,
    /// An operator holds it back.
    pub is_paused: bool,
    /// What happened at its meters.
    pub totals: LimitTotals,
}

/// A meter of a limit, `None` for the global one, and how it stands.
pub type MeterPage = Vec<(Option<Partition>, MeterState)>;
