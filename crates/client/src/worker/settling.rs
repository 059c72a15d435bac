//! What handlers made of their calls, until the server has it: all that ended meanwhile in one request.

use crate::calls::Lease;
use crate::clock::{self, Backoff};
use crate::error::{ClientError, Problem};
use crate::wire::outcome::{SettledWire, SettlementWire};
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
    tries: u32,
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
    /// When it is sent, if no claim takes it along before.
    due: Option<Instant>,
    backoff: Backoff,
    /// One was refused with all others of its request: they are sent one by one.
    is_alone: bool,
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
        let backoff = Backoff::up_to(PAUSE_MAX);
        Self { waiting: Vec::new(), due: None, backoff, is_alone: false }
    }
}

impl Settling {
    /// Takes in what a handler made of its call.
    pub(super) fn settle(&mut self, lease: &Lease, outcome: Outcome) {
        let wire = SettlementWire::new(lease.0.clone(), outcome).unwrap_or_else(|error| {
            tracing::error!(error, "what follows from a call cannot be done: it is tried again");
            SettlementWire::failed(lease.0.clone())
        });
        self.waiting.push(Unsettled { wire, tries: 0, is_doubtful: false, is_last: false });
        self.due.get_or_insert_with(|| clock::now() + LINGER);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// When something is to be sent.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What is sent now.
    pub(super) fn take(&mut self) -> Vec<Unsettled> {
        let most = if self.is_alone { 1 } else { SETTLE_MAX };
        let rest = self.waiting.split_off(self.waiting.len().min(most));
        let taken = std::mem::replace(&mut self.waiting, rest);
        self.due = (!self.waiting.is_empty()).then(clock::now);
        self.is_alone &= !self.waiting.is_empty();
        taken
    }

    /// What a claim may take along: all, unless they are to be sent otherwise.
    pub(super) fn take_along(&mut self) -> Vec<Unsettled> {
        let is_resting = self.due.is_some_and(|due| due > clock::now() + LINGER);
        if self.is_alone || is_resting { Vec::new() } else { self.take() }
    }

    /// Nobody knows what came of these.
    pub(super) fn doubt(&mut self, sent: Vec<Unsettled>) {
        self.put_back(sent.into_iter().map(|it| Unsettled { is_doubtful: true, ..it }), LINGER);
    }

    /// The server did not take a request.
    pub(super) fn refused(&mut self, sent: Vec<Unsettled>, error: &ClientError) -> Came {
        let mut came = Came::default();
        match error.problem() {
            Some(problem) if !error.may_pass() => match <[Unsettled; 1]>::try_from(sent) {
                Ok([one]) => self.again(one, problem, &mut came),
                Err(several) => {
                    self.is_alone = true;
                    self.put_back(several.into_iter(), Duration::ZERO);
                }
            },
            _ => {
                let pause = self.backoff.next();
                tracing::warn!(%error, "calls cannot be settled yet: tried again");
                let doubtful = sent.into_iter().map(|it| Unsettled { is_doubtful: true, ..it });
                self.put_back(doubtful, pause);
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
        self.backoff = Backoff::up_to(PAUSE_MAX);
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
        one.tries += 1;
        let code = &*problem.code;
        match code {
            "lease_lost" | "lease_unknown" => {
                came.over.push(one.lease());
                if !one.is_doubtful {
                    came.lost += 1;
                    tracing::warn!(lease = %one.wire.lease, "a call came too late to be settled");
                }
            }
            "queue_full" if one.tries < ROOM_TRIES => self.put_back([one].into_iter(), FULL_RETRY),
            "not_paid" if one.wire.forget_cost(problem.limit()) => {
                tracing::error!(%problem, "a cost is left out: the call paid nothing there");
                self.put_back([one].into_iter(), Duration::ZERO);
            }
            _ if one.is_last => {
                tracing::error!(code, %problem, "a call cannot be settled at all");
                came.over.push(one.lease());
                came.lost += 1;
            }
            _ => {
                tracing::error!(code, %problem, "what follows from a call was refused: it is tried again");
                let wire = SettlementWire::failed(one.wire.lease.clone());
                let last = Unsettled { wire, is_last: true, ..one };
                self.put_back([last].into_iter(), Duration::ZERO);
            }
        }
    }

    fn put_back(&mut self, unsettled: impl Iterator<Item = Unsettled>, pause: Duration) {
        self.waiting.extend(unsettled);
        if !self.waiting.is_empty() {
            // What came meanwhile waits along: a server that rests is left alone.
            let due = clock::now() + pause;
            self.due = Some(self.due.map_or(due, |known| known.max(due)));
        }
    }
}
