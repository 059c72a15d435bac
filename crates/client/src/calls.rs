//! Calls: looked at, explained, settled and taken back.

use crate::client::{Asked, Client};
use crate::error::ClientError;
use crate::events::Event;
use crate::limits::if_known;
use crate::path::{path, with_query};
use crate::wire::call::{bytes, raw};
use crate::wire::outcome::{SettledPageWire, SettlementWire};
use crate::wire::time::{instant, maybe_instant};
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;
use tollgate_core::{Span, Timestamp};
use tollgate_engine::Outcome;

/// A call's name, as the server gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(Arc<str>);

/// What a start is settled with, as the server gave it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lease(pub(crate) Arc<str>);

impl CallId {
    /// The call of that name.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// As the server wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A call as it is, or as it ended.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct CallView {
    /// Its name.
    pub id: CallId,
    /// Its queue.
    pub queue: String,
    /// Its lane.
    pub lane: String,
    /// Where it is in its life: `waiting`, `not_due`, `resting`, `in_flight`, `dead`; or how it ended:
    /// `done`, `cancelled`, `expired`, `superseded`, `dropped`.
    pub state: String,
    /// Who goes first in the lane and at the meters.
    #[serde(default)]
    pub priority: u8,
    /// What it owes, one toll for each meter.
    #[serde(default)]
    pub tolls: Vec<OwedView>,
    /// How often it was tried.
    #[serde(default)]
    pub attempts: Attempts,
    /// When it joins its lane, if it has not.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub not_before: Option<Timestamp>,
    /// When it ends unstarted, if it does.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub expires_at: Option<Timestamp>,
    /// Until when it rests, if it does.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub rests_until: Option<Timestamp>,
    /// When its lease ends, if it is in flight.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub lease_expires_at: Option<Timestamp>,
    /// When it died, if it is dead.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub died_at: Option<Timestamp>,
    /// What it died of: `failed`, `crashed`, `limited` or `given_up`.
    pub died_of: Option<String>,
    #[serde(default, deserialize_with = "raw")]
    body: Option<Box<RawValue>>,
    body_base64: Option<String>,
    /// Why it waits; told of one call alone.
    pub waiting: Option<Explanation>,
    /// What happened to it, as long as that is kept; told of one call alone.
    #[serde(default)]
    pub history: Vec<Event>,
}

impl CallView {
    /// What was handed in with it; told of one call alone.
    pub fn body(&self) -> Result<Box<[u8]>, ClientError> {
        bytes(self.body.as_deref(), self.body_base64.as_deref()).map_err(ClientError::invalid)
    }
}

/// What a call owes at one meter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct OwedView {
    /// The limit's name.
    pub limit: String,
    /// The partition; `None` for the global meter.
    pub partition: Option<String>,
    /// How much.
    pub weight: u64,
    /// Whether the meter closes when the upstream asks for a pause.
    pub feedback: bool,
}

/// How often a call was tried, by what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct Attempts {
    /// It failed and was to be tried again.
    pub failures: u32,
    /// Its lease expired.
    pub crashes: u32,
    /// The upstream asked for a pause.
    pub limited: u32,
}

/// Why a call waits, and until when.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Explanation {
    /// How many calls of its lane go before it.
    pub position: Option<u64>,
    /// Everything that is in its way as things stand.
    pub reasons: Vec<Reason>,
    /// It does not start before, whatever the workers do; `None` if no one can compute it.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub not_before: Option<Timestamp>,
    /// When it starts if workers ask at all times, all who go before it start as soon as they may and end
    /// at once, and nobody comes in between.
    #[serde(default, deserialize_with = "maybe_instant")]
    pub expected: Option<Timestamp>,
}

/// One thing that is in a call's way.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It is in flight: started, and not settled.
    InFlight {
        /// When its lease ends.
        #[serde(deserialize_with = "instant")]
        lease_expires_at: Timestamp,
    },
    /// Its queue is held back.
    QueuePaused,
    /// Its lane is held back.
    LanePaused,
    /// A dead call holds its lane.
    LaneHeld,
    /// It was to wait.
    NotDue {
        /// When it joins its lane.
        #[serde(deserialize_with = "instant")]
        until: Timestamp,
    },
    /// It failed, and rests.
    Resting {
        /// Until when.
        #[serde(deserialize_with = "instant")]
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
        limit: String,
        /// Which of its meters; `None` for the global one.
        partition: Option<String>,
        /// What is in the way there: `spent`, `slots`, `closed`, `turn`, …
        cause: String,
        /// When it opens; `None` if that hangs on a call that ends.
        #[serde(default, deserialize_with = "maybe_instant")]
        opens_at: Option<Timestamp>,
    },
    /// Something that this version of the client does not know.
    #[serde(other)]
    Other,
}

/// Which calls are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallsQuery<'a> {
    /// Of which lane; `None`: of all.
    pub lane: Option<&'a str>,
    /// In which state; `None`: in any.
    pub state: Option<&'a str>,
    /// Those that come after it.
    pub after: Option<&'a str>,
    /// At most so many, up to 1,000.
    pub most: usize,
}

/// Some of many, and what to go on after; `None` after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// These.
    pub items: Vec<T>,
    /// Give it as `after` for the next.
    pub next: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct CallPageWire {
    calls: Vec<CallView>,
    next: Option<String>,
}

impl From<CallPageWire> for Page<CallView> {
    fn from(wire: CallPageWire) -> Self {
        Self { items: wire.calls, next: wire.next }
    }
}

#[derive(Deserialize)]
struct CancelledWire {
    cancelled: bool,
}

#[derive(Deserialize)]
struct RenewedWire {
    renewed: Vec<bool>,
}

impl Client {
    /// Calls of a queue in the order in which they were accepted.
    pub async fn calls(
        &self,
        queue: &str,
        query: CallsQuery<'_>,
    ) -> Result<Page<CallView>, ClientError> {
        let most = query.most.to_string();
        let parameters = [
            ("lane", query.lane),
            ("state", query.state),
            ("after", query.after),
            ("limit", Some(&*most)),
        ];
        let path = with_query(path(&["queues", queue, "calls"]), &parameters);
        Ok(self.fetch::<CallPageWire>(path).await?.into())
    }

    /// A call as it is, with its body, why it waits and its history; or how it ended, as long as that is
    /// kept. `None` if there is none of that name.
    pub async fn call(&self, call: &CallId) -> Result<Option<CallView>, ClientError> {
        if_known(self.fetch(path(&["calls", call.as_str()])).await, "unknown_call")
    }

    /// Why a call waits, and until when; `None` if it ended or never was.
    pub async fn explain(&self, call: &CallId) -> Result<Option<Explanation>, ClientError> {
        Ok(self.call(call).await?.and_then(|call| call.waiting))
    }

    /// Takes a call back: one that waits ends, one in flight is not tried again. Says whether it was
    /// there.
    pub async fn cancel(&self, call: &CallId) -> Result<bool, ClientError> {
        let answer = self.delete(path(&["calls", call.as_str()])).await;
        let cancelled: Option<CancelledWire> = if_known(answer, "unknown_call")?;
        Ok(cancelled.is_some_and(|it| it.cancelled))
    }

    /// Settles a start, and makes what follows from it, in one act; the names of calls that follow.
    pub async fn settle(
        &self,
        lease: &Lease,
        outcome: Outcome,
    ) -> Result<Vec<CallId>, ClientError> {
        let wire = SettlementWire::new(lease.0.clone(), outcome).map_err(ClientError::invalid)?;
        let asked = Asked::new(Method::POST, "/v1/settle").json(&[wire])?.again().ahead();
        let page: SettledPageWire = self.ask(asked).await?;
        let strange = || ClientError::invalid("the server does not say what came of it");
        let settled = page.settled.into_iter().next().ok_or_else(strange)?;
        match (settled.settled, settled.problem) {
            (true, _) => Ok(settled.enqueued.into_iter().map(CallId::new).collect()),
            (false, Some(problem)) => Err(ClientError::Problem(Box::new(problem))),
            (false, None) => Err(strange()),
        }
    }

    /// Holds leases for so long from now; says of each whether it was still held.
    pub async fn renew(
        &self,
        leases: &[Lease],
        lease: impl Into<Span>,
    ) -> Result<Vec<bool>, ClientError> {
        let body = json!({"leases": leases, "for": lease.into().to_string()});
        let asked = Asked::new(Method::POST, "/v1/leases/renew").json(&body)?.again().ahead();
        let RenewedWire { renewed } = self.ask(asked).await?;
        Ok(renewed)
    }
}
