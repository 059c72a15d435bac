//! What producers and workers did and were told, and when.

use crate::LEASE;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A lane, and which of its calls, from 0 on.
pub(crate) type CallKey = (u64, u64);

/// A call, and which of the starts of it that workers saw.
pub(crate) type StartId = (CallKey, usize);

/// What came of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    Done,
    Retry,
}

/// That it was said what came of a start, and what was answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settling {
    pub(crate) came: Came,
    pub(crate) sent: Duration,
    /// When, and whether it counts. None came: nobody knows.
    pub(crate) answered: Option<(Duration, bool)>,
}

/// A start that a worker was told of. It was decided after the claim was sent and before the answer came.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) attempt: u64,
    pub(crate) asked: Duration,
    pub(crate) told: Duration,
    /// Its lease does not end before.
    pub(crate) held: Duration,
    pub(crate) settlings: Vec<Settling>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    /// What it was called when it was claimed.
    pub(crate) claimed_as: Option<String>,
    pub(crate) starts: Vec<Start>,
}

pub(crate) struct Record {
    began: Instant,
    pub(crate) calls: Mutex<BTreeMap<CallKey, Call>>,
    /// How many of each lane were settled for good.
    settled: Mutex<BTreeMap<u64, u64>>,
    pub(crate) faults: Mutex<Vec<String>>,
}

impl Default for Record {
    fn default() -> Self {
        let (calls, settled, faults) = Default::default();
        Self { began: Instant::now(), calls, settled, faults }
    }
}

impl Record {
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn settled_of(&self, lane: u64) -> u64 {
        self.settled.lock().get(&lane).copied().unwrap_or_default()
    }

    pub(crate) fn accepted(&self, call: CallKey, id: &str) {
        self.calls.lock().entry(call).or_default().id = Some(id.to_owned());
    }

    /// Notes a start that a claim was answered with.
    pub(crate) fn started(&self, asked: Duration, claimed: &Value) -> StartId {
        let lane = claimed["lane"].as_str().unwrap().parse().unwrap();
        let key = (lane, claimed["body"].as_u64().unwrap());
        let start = Start {
            attempt: claimed["attempt"].as_u64().unwrap(),
            asked,
            told: self.now(),
            held: asked + LEASE,
            settlings: Vec::new(),
        };
        let mut calls = self.calls.lock();
        let call = calls.entry(key).or_default();
        let id = claimed["id"].as_str().unwrap();
        if call.claimed_as.as_deref().is_some_and(|known| known != id) {
            self.faults.lock().push(format!("{key:?} is there twice, as {id} and {call:?}"));
        }
        call.claimed_as = Some(id.to_owned());
        call.starts.push(start);
        (key, call.starts.len() - 1)
    }

    pub(crate) fn renewed(&self, (key, start): StartId, sent: Duration) {
        let mut calls = self.calls.lock();
        let start = &mut calls.get_mut(&key).unwrap().starts[start];
        start.held = start.held.max(sent + LEASE);
    }

    /// It is about to be said what came of a start.
    pub(crate) fn settling(&self, (key, start): StartId, came: Came) -> usize {
        let settling = Settling { came, sent: self.now(), answered: None };
        let mut calls = self.calls.lock();
        let settlings = &mut calls.get_mut(&key).unwrap().starts[start].settlings;
        settlings.push(settling);
        if came == Came::Done && settlings.len() == 1 {
            *self.settled.lock().entry(key.0).or_default() += 1;
        }
        settlings.len() - 1
    }

    pub(crate) fn settled(&self, (key, start): StartId, settling: usize, answer: &Value) {
        let (is_settled, code) = (answer["settled"] == true, &answer["problem"]["code"]);
        if !is_settled && code != "lease_lost" {
            self.faults.lock().push(format!("{key:?} was settled, and answered {answer}"));
        }
        let now = self.now();
        let mut calls = self.calls.lock();
        let start = &mut calls.get_mut(&key).unwrap().starts[start];
        start.settlings[settling].answered = Some((now, is_settled));
    }

    pub(crate) fn summary(&self) -> String {
        let calls = self.calls.lock();
        let starts = || calls.values().flat_map(|call| &call.starts);
        let settlings = || starts().flat_map(|start| &start.settlings);
        let unanswered = settlings().filter(|settling| settling.answered.is_none()).count();
        let kept = starts().filter(|start| start.settlings.is_empty()).count();
        format!(
            "{} calls, {} starts seen, {kept} never settled, {} settlings, {unanswered} unanswered",
            calls.len(),
            starts().count(),
            settlings().count(),
        )
    }
}
