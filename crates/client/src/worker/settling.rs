//! What handlers made of their calls, until the server has it: all that ended meanwhile in one request.

use crate::calls::Lease;
use crate::clock::{self, Backoff};
use crate::error::{ClientError, Problem};
use crate::wire::outcome::{SettledWire, SettlementWire};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;
use tollgate_core::Span;
use tollgate_engine::Outcome;

/// Most settlements in one request.
const SETTLE_MAX: usize = 1_000;
/// How long what ended waits for others, and for a claim that takes it along.
const LINGER: Duration = Duration::from_millis(2);
/// How often room in a queue is waited for before the call that would follow counts as failed.
const ROOM_TRIES: u32 = 40;
/// How long a queue without room is left alone.
const FULL_RETRY: Duration = Duration::from_millis(250);
/// Longest pause before a server that does not answer is asked again.
const PAUSE_MAX: Span = Span::from_secs(5);

/// A settlement that the server does not have for certain.
#[derive(Debug)]
pub(super) struct Unsettled {
    pub(super) wire: SettlementWire,
    /// How often a queue had no room for what follows from it.
    room_tries: u32,
    /// It was sent, and nobody knows what came of it: a lost lease may mean that it was settled.
    is_doubtful: bool,
    /// It says that the call failed: there is nothing less to say.
    is_last: bool,
}

impl Unsettled {
    fn lease(&self) -> Lease {
        Lease(self.wire.lease.clone())
    }
}

/// What is to be settled.
#[derive(Debug)]
pub(super) struct Settling {
    waiting: Vec<Unsettled>,
    /// When they are sent, if no claim takes them along before.
    due: Option<Instant>,
    /// What waits for room in a queue, the longest first, and when it is sent: nothing else waits for it.
    for_room: VecDeque<(Instant, Unsettled)>,
    /// Until when a server that could not take a request is left alone.
    rests_until: Option<Instant>,
    backoff: Backoff,
    /// One was refused with all others of its request: they are sent one by one.
    is_alone: bool,
    /// What a call that is done reports is what its task gave.
    gives_output: bool,
}

/// What came of a request.
#[derive(Debug, Default)]
pub(super) struct Came {
    /// These are over.
    pub(super) over: Vec<Lease>,
    /// Starts that could not be settled.
    pub(super) lost: u64,
}

impl Default for Settling {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            due: None,
            for_room: VecDeque::new(),
            rests_until: None,
            backoff: Backoff::up_to(PAUSE_MAX),
            is_alone: false,
            gives_output: false,
        }
    }
}

/// Whether a request was refused for what is in it, and not for who sent it, when, or to whom.
pub(super) fn is_for_its_body(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| match problem.status {
        400 => matches!(&*problem.code, "malformed_json" | "invalid_body"),
        status => matches!(status, 413 | 422),
    })
}

impl Settling {
    /// Nothing is to be settled yet.
    pub(super) fn new(gives_output: bool) -> Self {
        Self { gives_output, ..Self::default() }
    }

    /// Takes in what a handler made of its call.
    pub(super) fn settle(&mut self, lease: &Lease, outcome: Outcome) {
        let wire =
            SettlementWire::new(lease.0.clone(), outcome.within_reason()).unwrap_or_else(|error| {
                tracing::error!(
                    error,
                    "what follows from a call cannot be done: it is tried again"
                );
                SettlementWire::failed(lease.0.clone())
            });
        let wire = if self.gives_output { wire.giving_output() } else { wire };
        let one = Unsettled { wire, room_tries: 0, is_doubtful: false, is_last: false };
        self.put_back([one], LINGER);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.for_room.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.for_room.len()
    }

    /// When something is to be sent.
    pub(super) fn due(&self) -> Option<Instant> {
        let tries_room = self.for_room.front().map(|(due, _)| *due);
        let due = self.due.into_iter().chain(tries_room).min()?;
        Some(self.rests_until.map_or(due, |rested| rested.max(due)))
    }

    /// What is sent now.
    pub(super) fn take(&mut self) -> Vec<Unsettled> {
        let now = clock::now();
        while let Some((_, one)) = self.for_room.pop_front_if(|(due, _)| *due <= now) {
            self.waiting.push(one);
        }
        let most = if self.is_alone { 1 } else { SETTLE_MAX };
        let rest = self.waiting.split_off(self.waiting.len().min(most));
        let taken = std::mem::replace(&mut self.waiting, rest);
        self.due = (!self.waiting.is_empty()).then_some(now);
        self.is_alone &= !self.waiting.is_empty();
        taken
    }

    /// What a claim may take along: all, unless they are to be sent otherwise.
    pub(super) fn take_along(&mut self) -> Vec<Unsettled> {
        let is_resting = self.rests_until.is_some_and(|rested| rested > clock::now() + LINGER);
        if self.is_alone || is_resting { Vec::new() } else { self.take() }
    }

    /// Nobody knows what came of these.
    pub(super) fn doubt(&mut self, sent: Vec<Unsettled>) {
        self.put_back(sent.into_iter().map(doubtful), LINGER);
    }

    /// The server did not take a claim that had these with it: what was wrong with which of them, if
    /// anything was, is told when they are sent by themselves.
    pub(super) fn claim_refused(&mut self, sent: Vec<Unsettled>) {
        self.is_alone = true;
        self.put_back(sent, Duration::ZERO);
    }

    /// The server did not take a request to settle. Whatever it says about who asks, and when, changes
    /// nothing about what was done: a call is not made twice for it.
    pub(super) fn refused(&mut self, sent: Vec<Unsettled>, error: &ClientError) -> Came {
        let mut came = Came::default();
        match error.problem() {
            Some(problem) if is_for_its_body(error) => match <[Unsettled; 1]>::try_from(sent) {
                Ok([one]) => self.again(one, problem, &mut came),
                Err(several) => {
                    self.is_alone = true;
                    self.put_back(several, Duration::ZERO);
                }
            },
            _ => {
                tracing::warn!(%error, "calls cannot be settled yet: tried again");
                self.put_back(sent.into_iter().map(doubtful), Duration::ZERO);
                self.rest();
            }
        }
        came
    }

    /// The server said what came of each.
    pub(super) fn answered(&mut self, sent: Vec<Unsettled>, answers: Vec<SettledWire>) -> Came {
        if sent.len() != answers.len() {
            let reason = "it does not say of each call what came of it".to_owned();
            return self.refused(sent, &ClientError::Protocol { url: String::new(), reason });
        }
        let could_all =
            |answer: &SettledWire| answer.problem.as_ref().is_none_or(|it| it.status < 500);
        if answers.iter().all(could_all) {
            (self.backoff, self.rests_until) = (Backoff::up_to(PAUSE_MAX), None);
        }
        let mut came = Came::default();
        for (one, answer) in sent.into_iter().zip(answers) {
            match answer.problem {
                Some(problem) if !answer.settled => self.again(one, &problem, &mut came),
                _ => came.over.push(one.lease()),
            }
        }
        came
    }

    /// What is tried in place of a settlement that was refused. A queue that is full is waited for, for a
    /// while: the call stays leased meanwhile. If what follows from a call cannot be done, it is not done
    /// either.
    fn again(&mut self, mut one: Unsettled, problem: &Problem, came: &mut Came) {
        let code = &*problem.code;
        match code {
            "lease_lost" | "lease_unknown" => {
                came.over.push(one.lease());
                if !one.is_doubtful {
                    came.lost += 1;
                    tracing::warn!(lease = %one.wire.lease, "a call came too late to be settled");
                }
            }
            "queue_full" if one.room_tries < ROOM_TRIES => {
                one.room_tries += 1;
                self.for_room.push_back((clock::now() + FULL_RETRY, one));
            }
            // The server could not, which says nothing about the settlement.
            _ if problem.status >= 500 => {
                tracing::warn!(code, %problem, "a call cannot be settled yet: tried again");
                self.put_back([doubtful(one)], Duration::ZERO);
                self.rest();
            }
            "not_paid" if one.wire.forget_cost(problem.limit()) => {
                tracing::error!(%problem, "a cost is left out: the call paid nothing there");
                self.put_back([one], Duration::ZERO);
            }
            // What was done is not done again for that.
            "report_too_long" | "body_too_large" if one.wire.forget_report() => {
                tracing::error!(%problem, "a report is left out");
                self.put_back([one], Duration::ZERO);
            }
            _ if one.is_last => {
                tracing::error!(code, %problem, "a call cannot be settled at all");
                came.over.push(one.lease());
                came.lost += 1;
            }
            _ => {
                tracing::error!(code, %problem, "what follows from a call was refused: it is tried again");
                let wire = SettlementWire::failed(one.wire.lease.clone());
                self.put_back([Unsettled { wire, is_last: true, ..one }], Duration::ZERO);
            }
        }
    }

    fn put_back(&mut self, unsettled: impl IntoIterator<Item = Unsettled>, pause: Duration) {
        self.waiting.extend(unsettled);
        if !self.waiting.is_empty() {
            let due = clock::now() + pause;
            self.due = Some(self.due.map_or(due, |known| known.min(due)));
        }
    }

    /// Leaves the server alone for a while: what comes meanwhile waits, too.
    fn rest(&mut self) {
        let now = clock::now();
        if self.rests_until.is_none_or(|rested| rested <= now) {
            self.rests_until = Some(now + self.backoff.next());
        }
    }
}

fn doubtful(one: Unsettled) -> Unsettled {
    Unsettled { is_doubtful: true, ..one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settling(leases: &[&str]) -> Settling {
        let mut it = Settling::default();
        for lease in leases {
            it.settle(&Lease((*lease).into()), Outcome::done());
        }
        it
    }

    fn problem(status: u16, code: &str) -> Value {
        json!({"status": status, "code": code, "detail": "why"})
    }

    fn refusal(status: u16, code: &str) -> ClientError {
        ClientError::Problem(Box::new(serde_json::from_value(problem(status, code)).unwrap()))
    }

    fn told(answers: &[Value]) -> Vec<SettledWire> {
        let wires = answers.iter().map(|answer| match answer {
            Value::Null => json!({"settled": true}),
            problem => json!({"settled": false, "problem": problem}),
        });
        wires.map(|wire| serde_json::from_value(wire).unwrap()).collect()
    }

    fn outcomes(settling: &Settling) -> Vec<Value> {
        let waiting = settling.waiting.iter();
        waiting.map(|one| serde_json::to_value(&one.wire).unwrap()["outcome"].clone()).collect()
    }

    #[tokio::test]
    async fn an_outcome_stays_what_it_is_when_the_request_is_refused() {
        for (status, code) in [(401, "unauthorized"), (403, "forbidden"), (408, "slow"), (503, "x")]
        {
            let mut it = settling(&["a"]);
            let sent = it.take();
            let came = it.refused(sent, &refusal(status, code));
            assert!(came.over.is_empty() && outcomes(&it) == ["done"], "{status}: {it:?}");
            assert!(it.due().unwrap() > clock::now(), "the server is not left alone: {it:?}");
            assert!(it.take_along().is_empty() && it.waiting[0].is_doubtful);
        }
        let mut it = settling(&["a"]);
        let sent = it.take();
        it.answered(sent, told(&[problem(500, "internal")]));
        assert_eq!(outcomes(&it), ["done"]);
    }

    #[tokio::test]
    async fn what_is_wrong_with_one_is_found_by_sending_it_alone() {
        let mut it = settling(&["a", "b"]);
        let sent = it.take();
        it.refused(sent, &refusal(413, "body_too_large"));
        assert_eq!(outcomes(&it), ["done", "done"]);
        let alone = it.take();
        assert_eq!(alone.len(), 1);
        it.refused(alone, &refusal(413, "body_too_large"));
        assert_eq!(outcomes(&it), ["done", "retry"]);
    }

    #[tokio::test]
    async fn a_report_that_is_too_long_is_left_out_and_what_was_done_stays_done() {
        for (status, code) in [(422, "report_too_long"), (413, "body_too_large")] {
            let mut it = Settling::default();
            it.settle(&Lease("a".into()), Outcome::done().report("much"));
            let sent = it.take();
            it.refused(sent, &refusal(status, code));
            let wire = serde_json::to_value(&it.waiting[0].wire).unwrap();
            assert_eq!(wire, json!({"lease": "a", "outcome": "done"}), "{code}");
        }
    }

    #[test]
    fn a_cost_that_there_cannot_be_is_left_out_and_no_other() {
        let mut it = Settling::default();
        let outcome = Outcome::done().actual("a", 7).actual("b", u64::MAX).actual("", 1);
        it.settle(&Lease("a".into()), outcome);
        let wire = serde_json::to_value(&it.waiting[0].wire).unwrap();
        assert_eq!(wire, json!({"lease": "a", "outcome": "done", "actual": {"a": 7}}));
    }

    #[tokio::test]
    async fn one_that_waits_for_room_holds_up_no_other() {
        let mut it = settling(&["a", "b"]);
        let sent = it.take();
        let came = it.answered(sent, told(&[problem(429, "queue_full"), Value::Null]));
        assert_eq!(came.over, [Lease("b".into())]);
        let tries_room = it.due().unwrap();
        assert!(tries_room > clock::now());
        it.settle(&Lease("c".into()), Outcome::done());
        assert!(it.due().unwrap() < tries_room, "{it:?}");
        assert_eq!(&*it.take_along()[0].wire.lease, "c");
        it.for_room[0].0 = clock::now();
        assert_eq!(&*it.take()[0].wire.lease, "a");
        assert!(it.is_empty());
    }
}
