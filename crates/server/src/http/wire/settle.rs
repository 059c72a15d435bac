//! What came of starts, as it travels.

use super::id::IdWire;
use super::items::Items;
use super::new_call::{CallWire, Desk, even_null};
use super::object::Object;
use super::problem::ProblemWire;
use super::report;
use super::span::SpanWire;
use super::units::Units;
use crate::http::caller::Caller;
use crate::http::problem::{Problem, invalid_field, kinds};
use crate::lease;
use crate::seal::Seal;
use crate::traces::Attempt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tollgate::lanes::{Act, Acted, CallId, LimitName, Settle, Settlement};
use tollgate::{AskError, Error, NameError, Now, UNITS_MAX};

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
    /// The act that settles a start so.
    pub(in crate::http) fn act(
        &self,
        seal: &Seal,
        caller: &Caller,
        now: Now,
    ) -> Result<Act, Problem> {
        let lease = lease::decode(&self.lease, caller.namespace(), seal);
        let lease = lease.ok_or_else(|| {
            let why = "this is no lease of this server: send it as the claim gave it";
            Problem::new(kinds::LEASE_UNKNOWN, why).field("lease")
        })?;
        let settlement = self.settlement()?;
        if let Some(Units(actual)) = self.actual.values().find(|units| units.0 > UNITS_MAX) {
            return Err(Error::from(AskError::ActualTooLarge { actual: *actual }).into());
        }
        let named = |(limit, units): (&String, &Units)| -> Result<_, NameError> {
            Ok((LimitName::new(&caller.inner(limit))?, units.0))
        };
        let actual =
            self.actual.iter().map(named).collect::<Result<_, _>>().map_err(Error::from)?;
        let mut enqueue = Vec::with_capacity(self.enqueue.0.len());
        for (nth, Object(call)) in self.enqueue.0.iter().enumerate() {
            let new_call = call.new_call(Desk { caller, queue: None, now, trace: None });
            let at = format!("enqueue[{nth}]");
            enqueue.push(new_call.map_err(|fault| fault.problem(&at))?);
        }
        Ok(Act {
            settle: vec![Settle { lease, settlement, actual, report: self.report_bytes()? }],
            enqueue,
            ..Act::default()
        })
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
        let (lease, carried) = lease::decode_carrying(&self.lease, caller.namespace(), seal)?;
        Some((lease.call, Attempt::from_bytes(&carried)?))
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
                let enqueued = acted.enqueued.into_iter().map(IdWire).collect();
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
