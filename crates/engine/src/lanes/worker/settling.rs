//! Settling what workers made of their calls: all that ended meanwhile in one go, and nothing is
//! forgotten while the store has no room for it.

use super::{Engine, Outcome};
use crate::error::Error;
use crate::lanes::pulse::ended;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use tollgate_core::Span;
use tollgate_core::contract::{Lanes, StoreError};
use tollgate_core::lanes::{Act, ActError, Lease, Settle, Settlement};

/// Most answers that are waited for at once.
const SENT_MAX: usize = 64;
/// How often room in a queue is waited for before the call that would follow counts as failed.
const ROOM_TRIES: u32 = 40;
/// How long a store without room is left alone.
const FULL_RETRY: Span = Span::from_millis(250);

pub(super) struct Settling<S> {
    engine: Engine<S>,
    /// What was not sent yet.
    waiting: Vec<(Lease, Outcome)>,
    /// What was sent, and the answers: one that waits for room holds up no other.
    sent: Vec<(Vec<Lease>, Answer)>,
}

type Answer = Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>>;

impl<S: Lanes + 'static> Settling<S> {
    pub(super) fn new(engine: Engine<S>) -> Self {
        Self { engine, waiting: Vec::new(), sent: Vec::new() }
    }

    pub(super) fn settle(&mut self, lease: Lease, outcome: Outcome) {
        self.waiting.push((lease, outcome));
    }

    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    /// The leases that are still to be held.
    pub(super) fn leases(&self) -> impl Iterator<Item = Lease> {
        let sent = self.sent.iter().flat_map(|(leases, _)| leases).copied();
        sent.chain(self.waiting.iter().map(|(lease, _)| *lease))
    }

    /// Waits until something is settled; says how many leases were lost. Never, if there is nothing.
    pub(super) async fn next(&mut self) -> Result<u64, Error> {
        if !self.waiting.is_empty() && self.sent.len() < SENT_MAX {
            let outcomes = std::mem::take(&mut self.waiting);
            let leases = outcomes.iter().map(|(lease, _)| *lease).collect();
            self.sent.push((leases, Box::pin(settle(self.engine.clone(), outcomes))));
        }
        poll_fn(|context| {
            for place in 0..self.sent.len() {
                if let Poll::Ready(answer) = self.sent[place].1.as_mut().poll(context) {
                    drop(self.sent.swap_remove(place));
                    return Poll::Ready(answer);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// How a start is settled.
struct Settled {
    lease: Lease,
    act: Act,
    /// If what follows from it cannot be done, it is settled without; otherwise it failed then.
    stands_alone: bool,
    /// How often it was refused for want of room.
    had_no_room: u32,
}

/// Settles starts; says how many leases were lost.
pub(crate) async fn settle<S: Lanes + 'static>(
    engine: Engine<S>,
    outcomes: Vec<(Lease, Outcome)>,
) -> Result<u64, Error> {
    let now = engine.now().await?;
    let mut acts = Vec::with_capacity(outcomes.len());
    for (lease, outcome) in outcomes {
        let stands_alone = outcome.stands_alone();
        let act = outcome.into_act(lease, now).unwrap_or_else(|error| {
            tracing::error!(call = lease.call.0, %error, "what follows from a call cannot be done: it failed");
            failed(lease)
        });
        acts.push(Settled { lease, act, stands_alone, had_no_room: 0 });
    }
    let mut lost = 0;
    while !acts.is_empty() {
        if engine.parts.pulse.has_ended() {
            return Err(ended().into());
        }
        let told = acts.iter().map(|settled| settled.act.clone()).collect();
        match engine.store().act(told).await {
            Ok(answers) => {
                let mut waits_for_room = false;
                let refused = acts.into_iter().zip(answers).filter_map(|(settled, answer)| {
                    let error = answer.err()?;
                    waits_for_room |= matches!(error, ActError::QueueFull { .. });
                    again(settled, &error, &mut lost)
                });
                acts = refused.collect();
                if waits_for_room {
                    engine.parts.pulse.sleep(FULL_RETRY).await;
                }
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

/// What is tried in place of an act that was refused. A queue that is full is waited for, for a while: the
/// call stays leased meanwhile. If what follows from a call cannot be done, it is not done either, unless
/// it stands alone.
fn again(mut settled: Settled, error: &ActError, lost: &mut u64) -> Option<Settled> {
    let call = settled.lease.call.0;
    match error {
        // Its own is the last.
        ActError::LeaseLost { at } if at + 1 == settled.act.settle.len() => {
            *lost += 1;
            tracing::warn!(call, "a call came too late to be settled: its lease was lost");
            None
        }
        ActError::QueueFull { .. } if settled.had_no_room < ROOM_TRIES => {
            settled.had_no_room += 1;
            tracing::warn!(call, %error, "what follows from a call waits for room");
            Some(settled)
        }
        // What it follows from was taken back meanwhile.
        ActError::RecordMissing { .. } if settled.stands_alone => {
            tracing::debug!(call, %error, "a call is settled without what would follow");
            Some(without_what_follows(settled))
        }
        ActError::NotPaid { limit, .. } => {
            tracing::error!(call, %error, "a cost is left out: the call paid nothing there");
            let settles = settled.act.settle.iter_mut();
            settles.for_each(|it| it.actual.retain(|(it, _)| it != limit));
            Some(settled)
        }
        _ => {
            tracing::error!(call, %error, "what follows from a call was refused: it is settled without, or tried again");
            Some(without_what_follows(settled))
        }
    }
}

/// A start of which nothing follows: it failed, unless it stands alone.
fn without_what_follows(settled: Settled) -> Settled {
    let Settled { lease, act, stands_alone, had_no_room } = settled;
    let act = match (stands_alone, act.settle.into_iter().next_back()) {
        (true, Some(settle)) => Act { settle: vec![settle], ..Act::default() },
        _ => failed(lease),
    };
    // Refused once more, it failed.
    Settled { lease, act, stands_alone: false, had_no_room }
}

/// The call failed, and is tried again.
fn failed(lease: Lease) -> Act {
    let settle = vec![Settle::new(lease, Settlement::Retry(None))];
    Act { settle, ..Act::default() }
}
