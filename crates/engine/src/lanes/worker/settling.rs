//! Settling what workers made of their calls: all that ended meanwhile in one go, and nothing is
//! forgotten while the store has no room for it.

use super::{Engine, Outcome};
use crate::error::Error;
use std::future::{Future, pending};
use std::pin::Pin;
use tollgate_core::Span;
use tollgate_core::contract::{Lanes, StoreError};
use tollgate_core::lanes::{Act, ActError, Lease, Settle};

/// How long a store without room is left alone.
const FULL_RETRY: Span = Span::from_millis(250);

pub(super) struct Settling<S> {
    engine: Engine<S>,
    /// What was not sent yet.
    waiting: Vec<(Lease, Outcome)>,
    /// What was sent, and the answer.
    sent: Vec<Lease>,
    answer: Option<Answer>,
}

type Answer = Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>>;

impl<S: Lanes + 'static> Settling<S> {
    pub(super) fn new(engine: Engine<S>) -> Self {
        Self { engine, waiting: Vec::new(), sent: Vec::new(), answer: None }
    }

    pub(super) fn settle(&mut self, lease: Lease, outcome: Outcome) {
        self.waiting.push((lease, outcome));
    }

    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.answer.is_none()
    }

    /// The leases that are still to be held.
    pub(super) fn leases(&self) -> impl Iterator<Item = Lease> {
        self.sent.iter().copied().chain(self.waiting.iter().map(|(lease, _)| *lease))
    }

    /// Waits until something is settled; says how many leases were lost. Never, if there is nothing.
    pub(super) async fn next(&mut self) -> Result<u64, Error> {
        if self.answer.is_none() && !self.waiting.is_empty() {
            let outcomes = std::mem::take(&mut self.waiting);
            self.sent = outcomes.iter().map(|(lease, _)| *lease).collect();
            self.answer = Some(Box::pin(settle(self.engine.clone(), outcomes)));
        }
        let Some(answer) = &mut self.answer else { return pending().await };
        let lost = answer.await;
        self.answer = None;
        self.sent.clear();
        lost
    }
}

async fn settle<S: Lanes + 'static>(
    engine: Engine<S>,
    outcomes: Vec<(Lease, Outcome)>,
) -> Result<u64, Error> {
    let now = engine.now().await?;
    let mut acts = Vec::with_capacity(outcomes.len());
    for (lease, outcome) in outcomes {
        let settlement = outcome.settlement();
        let bare = || {
            let settle = Settle { lease, settlement, actual: Vec::new() };
            Act { settle: vec![settle], ..Act::default() }
        };
        acts.push((lease, bare(), outcome.into_act(lease, now).unwrap_or_else(|error| {
            tracing::error!(call = lease.call.0, %error, "what follows from a call cannot be done");
            bare()
        })));
    }
    let mut lost = 0;
    while !acts.is_empty() {
        let told = acts.iter().map(|(_, _, act)| act.clone()).collect();
        match engine.store().act(told).await {
            Ok(answers) => {
                let refused =
                    acts.into_iter().zip(answers).filter_map(|((lease, bare, _), answer)| {
                        answer.err().and_then(|error| again(lease, bare, &error, &mut lost))
                    });
                acts = refused.collect();
            }
            Err(StoreError::Failed { reason }) => return Err(StoreError::Failed { reason }.into()),
            Err(error) => {
                tracing::warn!(%error, "calls cannot be settled yet: tried again");
                let pulse = &engine.parts.pulse;
                pulse.sleep_until(engine.parts.pulse.clock.now().plus(FULL_RETRY)).await;
            }
        }
    }
    Ok(lost)
}

/// What is tried in place of an act that was refused: a call is settled, even if what should follow
/// from it cannot be done.
fn again(lease: Lease, bare: Act, error: &ActError, lost: &mut u64) -> Option<(Lease, Act, Act)> {
    let call = lease.call.0;
    if matches!(error, ActError::LeaseLost { .. }) {
        *lost += 1;
        tracing::warn!(call, "a call came too late to be settled: its lease was lost");
        return None;
    }
    tracing::error!(call, %error, "what follows from a call was refused: it is settled alone");
    Some((lease, bare.clone(), bare))
}
