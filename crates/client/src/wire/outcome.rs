//! What came of starts, as it travels.

use super::call::{CallWire, as_json_or_base64};
use super::time::SpanWire;
use crate::error::Problem;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_core::lanes::{Act, Settlement};
use tollgate_engine::{Outcome, OutcomeParts};

/// What came of one start, and what follows from it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SettlementWire {
    pub(crate) lease: Arc<str>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<SpanWire>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    actual: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    report_base64: Option<String>,
    /// What a task gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    enqueue: Vec<CallWire>,
}

/// What came of a settlement.
#[derive(Debug, Deserialize)]
pub(crate) struct SettledWire {
    pub(crate) settled: bool,
    #[serde(default)]
    pub(crate) enqueued: Vec<String>,
    pub(crate) problem: Option<Problem>,
}

/// What came of several, in order.
#[derive(Debug, Deserialize)]
pub(crate) struct SettledPageWire {
    pub(crate) settled: Vec<SettledWire>,
}

impl SettlementWire {
    /// Settles a start so. What a server cannot be told, changes of records and the like, is refused.
    pub(crate) fn new(lease: Arc<str>, outcome: Outcome) -> Result<Self, &'static str> {
        let OutcomeParts { settlement, actual, enqueue, then, report } = outcome.into_parts();
        if then != Act::default() {
            return Err(
                "records and joins cannot be changed over the network: enqueue calls alone",
            );
        }
        let (outcome, after) = match settlement {
            Settlement::Done => ("done", None),
            Settlement::Retry(after) => ("retry", after),
            Settlement::Release => ("release", None),
            Settlement::Dead => ("dead", None),
            Settlement::Limited(after) => ("limited", Some(after)),
        };
        let enqueue = enqueue.into_iter().map(|(queue, call)| CallWire::from(call).of_queue(queue));
        let (report, report_base64) = as_json_or_base64(&report);
        Ok(Self {
            lease,
            outcome,
            after: after.map(SpanWire),
            actual: actual.into_iter().collect(),
            report,
            report_base64,
            output: None,
            enqueue: enqueue.collect(),
        })
    }

    /// It failed, and is tried again.
    pub(crate) fn failed(lease: Arc<str>) -> Self {
        let (actual, enqueue) = (BTreeMap::new(), Vec::new());
        let (report, report_base64, output) = (None, None, None);
        let outcome = "retry";
        Self { lease, outcome, after: None, actual, report, report_base64, output, enqueue }
    }

    /// The same of a task: what one that is done reports is what it gave.
    pub(crate) fn giving_output(self) -> Self {
        match self.outcome {
            "done" => Self { output: self.report, report: None, ..self },
            _ => self,
        }
    }

    /// The same without what it cost at a limit; whether there was such a cost.
    pub(crate) fn forget_cost(&mut self, limit: Option<&str>) -> bool {
        match limit {
            Some(limit) => self.actual.remove(limit).is_some(),
            None => !std::mem::take(&mut self.actual).is_empty(),
        }
    }

    /// The same without what is said about it; whether there was such a report.
    pub(crate) fn forget_report(&mut self) -> bool {
        self.report.take().is_some() | self.report_base64.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tollgate_core::Span;
    use tollgate_engine::Call;

    #[test]
    fn an_outcome_is_told_with_all_that_follows() {
        let outcome = Outcome::limited(Span::from_secs(3))
            .actual("tpm", 940)
            .report(r#"{"status":429}"#)
            .enqueue("next", Call::new("acme").body("{}"));
        let wire = SettlementWire::new("L".into(), outcome).unwrap();
        let next = json!({"queue": "next", "lane": "acme", "body": {}, "priority": 0});
        let told = json!({"lease": "L", "outcome": "limited", "after": "3s",
            "actual": {"tpm": 940}, "report": {"status": 429}, "enqueue": [next]});
        assert_eq!(serde_json::to_value(wire).unwrap(), told);
        let done = SettlementWire::new("L".into(), Outcome::done()).unwrap();
        assert_eq!(serde_json::to_value(done).unwrap(), json!({"lease": "L", "outcome": "done"}));
        let torn = SettlementWire::new("L".into(), Outcome::dead().report(b"\xff")).unwrap();
        let told = json!({"lease": "L", "outcome": "dead", "report_base64": "/w=="});
        assert_eq!(serde_json::to_value(torn).unwrap(), told);
    }
}
