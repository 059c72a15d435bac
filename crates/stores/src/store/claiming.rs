//! Claims on their way to the home and back: one that finds nothing may linger there.

use super::command::{Command, HandedOut, Kind, Reply, Unowned};
use super::home::{Body, Commands};
use super::state::{BodyAt, State};
use super::{Store, closed};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::claim::BACK_WITHIN;
use tollgate_core::lanes::{CallId, Claim, Claimed, Started};
use tollgate_core::{Now, Span, Timestamp};

/// A claim hands out no more calls once it has so many bytes of bodies: what is claimed is held in memory
/// until it is sent.
const CLAIM_BYTES: usize = 64 << 20;
/// A claim that finds nothing and comes no earlier than this would rather be tried again.
const MOMENT: Span = Span::from_millis(2);
/// A disk that stood still once is not waited for with each claim.
const ANSWERED_AFTER_MAX: Span = Span::from_millis(100);

impl Store {
    /// Starts calls, and finds their bodies. Says whether whoever claims is taken to ask until its claim ends: one
    /// that leaves with calls may not be.
    pub(super) async fn claim_calls(
        &self,
        claim: Claim,
        leaves: bool,
    ) -> Answer<(Vec<Claimed>, bool)> {
        let (permit, commands) = (self.room_for(0).await?, self.home.commands());
        let (reply, answer) = oneshot::channel();
        let (asks_until, answered) = (None, commands.clone());
        let claiming = Claiming { claim, leaves, asks_until, commands: answered, reply, permit };
        commands.take(Box::new(claiming));
        let HandedOver { starts, bodies, mut handed_out, goes_on } =
            answer.await.unwrap_or_else(|_| Err(closed()))?;
        let bodies = self.bodies(bodies, CLAIM_BYTES).await;
        let (mut claimed, mut unread, mut failed) = (Vec::new(), Vec::new(), None);
        let mut bodies = bodies.into_iter();
        for started in starts {
            match bodies.next() {
                Some(Ok(Body::There(payload))) => claimed.push(Claimed { started, payload }),
                // It ended meanwhile.
                Some(Ok(Body::Gone)) => {}
                Some(Ok(Body::Damaged(damage))) => {
                    tracing::error!(
                        call = started.lease.call.0,
                        damage,
                        "a call is given up: its body is damaged"
                    );
                    unread.push(Unowned { damage: Some(damage), ..Unowned::of(&started) });
                }
                Some(Err(error)) => {
                    unread.push(Unowned::of(&started));
                    failed = Some(error);
                }
                None => unread.push(Unowned::of(&started)),
            }
        }
        // Those that are too much or cannot be read go back as this ends; the others have an owner now.
        handed_out.starts = unread;
        match failed {
            Some(error) if claimed.is_empty() => Err(error),
            _ => Ok((claimed, goes_on)),
        }
    }
}

/// A claim, for whoever waits for its calls.
struct Claiming {
    claim: Claim,
    /// Whoever claims leaves as soon as it has calls.
    leaves: bool,
    /// Until when it asks, once it was tried.
    asks_until: Option<Timestamp>,
    commands: Arc<dyn Commands>,
    reply: oneshot::Sender<Answer<HandedOver>>,
    permit: OwnedSemaphorePermit,
}

/// Calls that were started, and where their bodies are.
struct HandedOver {
    starts: Vec<Started>,
    bodies: Vec<(CallId, BodyAt)>,
    /// Hands them back unless they have an owner.
    handed_out: HandedOut,
    /// Whoever claimed is taken to ask until its claim ends.
    goes_on: bool,
}

impl Claiming {
    fn hand_over(self, starts: Vec<Started>, goes_on: bool, state: &State) -> Reply {
        let Self { commands, reply, permit, .. } = self;
        let calls = starts.iter().map(|started| started.lease.call);
        let bodies = calls.map(|call| (call, state.body(call))).collect();
        let unowned = starts.iter().map(Unowned::of).collect();
        let handed_out = HandedOut { commands, starts: unowned };
        let over = HandedOver { starts, bodies, handed_out, goes_on };
        Box::new(move |outcome| {
            // Whoever asked may have gone.
            let _ = reply.send(outcome.map(|()| over));
            drop(permit);
        })
    }
}

impl Command for Claiming {
    fn kind(&self) -> Kind {
        Kind::Claim
    }

    fn perform(self: Box<Self>, state: &mut State, now: Now) -> Reply {
        let starts = state.scheduler.claim(&self.claim, now);
        self.hand_over(starts, true, state)
    }

    /// One that finds nothing would come again when the next limit of its queue opens, if it waits for so long.
    fn attempt(
        mut self: Box<Self>,
        state: &mut State,
        now: Now,
    ) -> Result<Reply, Box<dyn Command>> {
        if self.reply.is_closed() {
            return Ok(self.hand_over(Vec::new(), false, state));
        }
        let asks_until = *self.asks_until.get_or_insert(now.at.plus(self.claim.asks));
        let (asks, scheduler) = (asks_until.since(now.at), &mut state.scheduler);
        // For how long one asks that leaves is said below.
        self.claim.asks = if self.leaves { Span::ZERO } else { asks };
        let starts = scheduler.claim(&self.claim, now);
        self.claim.asks = asks;
        let (queue, soon) = (&self.claim.queue, asks_until.min(now.at.plus(MOMENT)));
        if starts.is_empty()
            && !asks.is_zero()
            && let Some(opens) = scheduler.opens_by(queue, soon)
        {
            scheduler.expect_back(queue, asks_until.min(opens.plus(BACK_WITHIN)));
            return Err(self);
        }
        let leaves = self.leaves && !starts.is_empty();
        match starts.len() < self.claim.most {
            true if leaves => {
                // From the answer on, which takes about as long as the last one.
                let answered = now.at.plus(state.answered_after.min(ANSWERED_AFTER_MAX));
                scheduler.expect_back(queue, asks_until.min(answered.plus(BACK_WITHIN)));
            }
            true => scheduler.goes_on_asking(queue, asks_until),
            false => {}
        }
        Ok(self.hand_over(starts, !leaves, state))
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}
