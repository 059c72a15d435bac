//! What came of starts, as it travels.

use super::id::IdWire;
use super::items::Items;
use super::new_call::{CallWire, HandedIn, even_null};
use super::object::Object;
use super::problem::ProblemWire;
use super::report;
use super::span::SpanWire;
use super::units::Units;
use crate::http::caller::Caller;
use crate::http::problem::{Problem, invalid_field, kinds};
use crate::lease::{self, Held};
use crate::seal::Seal;
use crate::traces::Attempt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tollgate::flows::TaskOutcome;
use tollgate::lanes::{Act, Acted, CallId, Lease, LimitName, Settle, Settlement};
use tollgate::{AskError, Error, NameError, Now, UNITS_MAX};

/// What came of a task, and what it really cost at limits.
pub(in crate::http) type Made = (TaskOutcome, Vec<(LimitName, u64)>);

/// What came of one start, and what follows from it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct SettlementWire<'a> {
    #[serde(borrow)]
    lease: Cow<'a, str>,
    outcome: OutcomeWire,
    after: Option<SpanWire>,
    #[serde(default)]
    actual: BTreeMap<String, Units>,
    /// What there is to say about it: any JSON.
    #[serde(borrow, default, deserialize_with = "even_null")]
    report: Option<&'a RawValue>,
    /// The same if it is not JSON.
    report_base64: Option<Cow<'a, str>>,
    /// What a task gave: any JSON.
    #[serde(borrow, default, deserialize_with = "even_null")]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    /// Calls that are enqueued in the same act, each with its queue.
    enqueue: Items<Object<CallWire<'a>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeWire {
    Done,
    Retry,
    Release,
    Dead,
    Limited,
}

/// Which leases to hold, and for how long from now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RenewWire<'a> {
    #[serde(borrow)]
    pub(in crate::http) leases: Items<Cow<'a, str>>,
    #[serde(rename = "for")]
    pub(in crate::http) span: SpanWire,
}

/// Of each lease, whether it was still held.
#[derive(Debug, Serialize)]
pub(in crate::http) struct RenewedWire {
    pub(in crate::http) renewed: Vec<bool>,
}

/// What came of each settlement, in order.
#[derive(Debug, Serialize)]
pub(in crate::http) struct SettledPageWire {
    pub(in crate::http) settled: Vec<SettledWire>,
}

/// What came of a settlement.
#[derive(Debug, Serialize)]
pub(in crate::http) struct SettledWire {
    settled: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    enqueued: Vec<IdWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<ProblemWire>,
}

impl SettlementWire<'_> {
    /// The lease that it settles.
    pub(in crate::http) fn held(&self, seal: &Seal, caller: &Caller) -> Result<Held, Problem> {
        lease::decode(&self.lease, caller.namespace(), seal).ok_or_else(|| {
            let why = "this is no lease of this server: send it as the claim gave it";
            Problem::new(kinds::LEASE_UNKNOWN, why).field("lease")
        })
    }

    /// The act that settles a start so.
    pub(in crate::http) fn act(
        &self,
        lease: Lease,
        caller: &Caller,
        now: Now,
    ) -> Result<Act, Problem> {
        if self.output.is_some() {
            let why = "the call of this lease is no task: what there is to say goes into `report`";
            return Err(invalid_field("output", why));
        }
        let (settlement, actual) = (self.settlement()?, self.actual(caller)?);
        let mut enqueue = Vec::with_capacity(self.enqueue.0.len());
        for (nth, Object(call)) in self.enqueue.0.iter().enumerate() {
            let new_call = call.new_call(HandedIn { caller, queue: None, now, trace: None });
            let at = format!("enqueue[{nth}]");
            enqueue.push(new_call.map_err(|fault| fault.problem(&at))?);
        }
        Ok(Act {
            settle: vec![Settle { lease, settlement, actual, report: self.report_bytes()? }],
            enqueue,
            ..Act::default()
        })
    }

    /// What came of a task, and what it really cost; `None` if it is handed back unmade. Whatever came of one that
    /// took too long, it has failed.
    pub(in crate::http) fn of_task(
        &self,
        caller: &Caller,
        is_late: bool,
    ) -> Result<Option<Made>, Problem> {
        if !self.enqueue.0.is_empty() {
            let why = "what follows a task is said by its workflow: enqueue calls apart from it";
            return Err(invalid_field("enqueue", why));
        }
        if self.output.is_some() && self.outcome != OutcomeWire::Done {
            return Err(invalid_field("output", "only a task that is done gives something"));
        }
        let outcome = match self.settlement()? {
            Settlement::Done | Settlement::Retry(_) if is_late => {
                let reason = "it took longer than its workflow allows".to_owned();
                TaskOutcome::Retry { reason, after: None }
            }
            Settlement::Done => {
                TaskOutcome::Done(self.output.map_or("null", RawValue::get).as_bytes().into())
            }
            Settlement::Retry(after) => TaskOutcome::Retry { reason: self.reason()?, after },
            Settlement::Dead => TaskOutcome::Failed { reason: self.reason()? },
            Settlement::Limited(pause) => TaskOutcome::Limited(pause),
            _ => return Ok(None),
        };
        Ok(Some((outcome, self.actual(caller)?)))
    }

    /// Why a task failed: a text as it is, and other reports as they are written.
    fn reason(&self) -> Result<String, Problem> {
        let bytes = self.report_bytes()?;
        if bytes.is_empty() {
            return Ok("its worker does not say why".to_owned());
        }
        let text = serde_json::from_slice::<String>(&bytes);
        Ok(text.unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn actual(&self, caller: &Caller) -> Result<Vec<(LimitName, u64)>, Problem> {
        if let Some(Units(actual)) = self.actual.values().find(|units| units.0 > UNITS_MAX) {
            return Err(Error::from(AskError::ActualTooLarge { actual: *actual }).into());
        }
        let named = |(limit, units): (&String, &Units)| -> Result<_, NameError> {
            Ok((LimitName::new(&caller.inner(limit))?, units.0))
        };
        let actual = self.actual.iter().map(named).collect::<Result<_, _>>();
        Ok(actual.map_err(Error::from)?)
    }

    fn report_bytes(&self) -> Result<Box<[u8]>, Problem> {
        report::bytes(self.report, self.report_base64.as_deref())
            .map_err(|why| invalid_field("report_base64", &why))
    }

    /// The attempt that it ends, if that is traced.
    pub(in crate::http) fn attempt(
        &self,
        seal: &Seal,
        caller: &Caller,
    ) -> Option<(CallId, Attempt)> {
        let held = lease::decode(&self.lease, caller.namespace(), seal)?;
        Some((held.lease.call, Attempt::from_bytes(&held.trace)?))
    }

    /// The outcome as it was written, and whether the attempt failed.
    pub(in crate::http) fn outcome(&self) -> (&'static str, bool) {
        match self.outcome {
            OutcomeWire::Done => ("done", false),
            OutcomeWire::Retry => ("retry", true),
            OutcomeWire::Release => ("release", false),
            OutcomeWire::Dead => ("dead", true),
            OutcomeWire::Limited => ("limited", true),
        }
    }

    fn settlement(&self) -> Result<Settlement, Problem> {
        let after = self.after.map(|span| span.0);
        match (self.outcome, after) {
            (OutcomeWire::Retry, after) => Ok(Settlement::Retry(after)),
            (OutcomeWire::Limited, Some(after)) => Ok(Settlement::Limited(after)),
            (OutcomeWire::Limited, None) => {
                Err(invalid_field("after", "say how long the upstream asked to wait, as in \"3s\""))
            }
            (_, Some(_)) => {
                let why = "only what is tried again has a time: leave it out, or settle with \"retry\" or \"limited\"";
                Err(invalid_field("after", why))
            }
            (OutcomeWire::Done, None) => Ok(Settlement::Done),
            (OutcomeWire::Release, None) => Ok(Settlement::Release),
            (OutcomeWire::Dead, None) => Ok(Settlement::Dead),
        }
    }
}

impl SettledWire {
    pub(in crate::http) fn is_settled(&self) -> bool {
        self.settled
    }

    pub(in crate::http) fn new(settled: Result<Acted, Problem>, caller: &Caller) -> Self {
        match settled {
            Ok(acted) => {
                let enqueued = acted.enqueued.iter().copied().map(IdWire).collect();
                Self { settled: true, enqueued, problem: None }
            }
            Err(problem) => Self {
                settled: false,
                enqueued: Vec::new(),
                problem: Some(problem.into_wire(caller)),
            },
        }
    }
}
