//! Waiting one's turn at a store of limits alone: in line in this process, asking the store when it is
//! one's turn.

#[cfg(test)]
mod tests;

use super::Engine;
use super::consume::{Asked, refused};
use super::crowds::{Handed, Seat, Waiter};
use super::holds::{Doing, Given};
use super::pulse::ended;
use crate::error::{Error, Refusal};
use crate::pass::Pass;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate_core::contract::{self, Meters};
use tollgate_core::{Cause, Span, Timestamp};

/// How long the first in line leaves the store alone at most: other processes let go of slots and change
/// limits, and nobody is told.
const AGAIN: Span = Span::from_millis(500);

/// For how many behind it the first in line asks at most: a store is told of all who can go at once, and
/// not of a long line each time that one can.
const BEHIND_MAX: usize = 64;

/// What a store said to an ask.
pub(super) type Said = Result<Result<Handed, contract::AskError>, Error>;

impl<S: Meters + 'static> Engine<S> {
    /// Waits until all tolls can be paid. Dropped, it leaves nothing behind.
    pub(super) async fn wait_in_turn(
        &self,
        asked: Asked,
        max_wait: Option<Span>,
    ) -> Result<Pass, Error> {
        let clock = &self.parts.pulse.clock;
        let until = max_wait.map_or(Timestamp::MAX, |wait| clock.now().plus(wait));
        let mut waiter = self.parts.crowds.come(asked)?;
        // At once, if it is known to take longer.
        let mut patience = max_wait;
        loop {
            let is_late = patience.is_none() && clock.now() >= until;
            let gives_up =
                |told: &Refusal| is_late || patience.is_some_and(|it| is_longer(told, it));
            let next = match self.said_to(&mut waiter).await {
                Err(told) if gives_up(&told) => return Err(told.into()),
                // It is woken when it is the first.
                Err(_) => until,
                Ok(said) => match said {
                    Ok(Ok(handed)) => {
                        waiter.answered();
                        return Ok(handed());
                    }
                    Ok(Err(contract::AskError::Refused(refusal))) => {
                        let meter = (refusal.limit.clone(), refusal.partition.clone());
                        let (now, told) = (clock.now(), refused(refusal));
                        if gives_up(&told) {
                            return Err(told.into());
                        }
                        let opens = told.retry_after.unwrap_or(AGAIN).min(AGAIN);
                        waiter.stand(meter, now, told);
                        now.plus(opens)
                    }
                    Ok(Err(other)) => return Err(self.parts.refused(other)),
                    // It may have taken the store a while to say so.
                    Err(error)
                        if error.may_pass()
                            && clock.now() < until
                            && !self.parts.reach.does_without() =>
                    {
                        clock.now().plus(self.parts.reach.again_after(waiter.stand_by()))
                    }
                    Err(error) => return Err(error),
                },
            };
            patience = None;
            self.woken_or(&waiter, next.min(until)).await;
            if self.parts.pulse.has_ended() {
                return Err(ended().into());
            }
        }
    }

    /// What the store says to one who waits, and to those behind it, too; why it may not go if others go
    /// before it.
    async fn said_to(&self, waiter: &mut Waiter) -> Result<Said, Refusal> {
        if let Some(handed) = waiter.handed() {
            return Ok(Ok(Ok(handed)));
        }
        match waiter.stand_behind(self.parts.pulse.clock.now()) {
            Some(told) => Err(told),
            None => Ok(self.ask_now(&waiter.seat.asked, waiter.behind(BEHIND_MAX)).await),
        }
    }

    /// Asks the store, and for those who ask for the same, too, in their order. If this is dropped before
    /// there is an answer, what it granted is handed back, and the others are told as ever.
    pub(super) async fn ask_now(&self, asked: &Asked, behind: Vec<Arc<Seat>>) -> Said {
        let (engine, asked) = (self.clone(), asked.clone());
        let doing: Doing<'static, Said> = Box::pin(async move {
            let asks = [&asked].into_iter().chain(behind.iter().map(|seat| &seat.asked));
            let asks = asks.map(|asked| asked.ask.clone()).collect();
            let answers = engine.parts.heard(engine.parts.store.consume(asks).await)?;
            let mut answers = answers.into_iter();
            let own = engine.handed(asked, answers.next()).await;
            for (seat, answer) in behind.into_iter().zip(answers) {
                // Who is refused asks for itself when it is the first.
                if let Ok(Ok(handed)) = engine.handed(seat.asked.clone(), Some(answer)).await {
                    seat.hand(handed);
                }
            }
            own
        });
        SeenThrough { engine: self.clone(), doing: Some(doing) }.await
    }

    /// What the store answered, as a pass that can be taken.
    async fn handed(
        &self,
        asked: Asked,
        answer: Option<Result<contract::Paid, contract::AskError>>,
    ) -> Said {
        let paid = answer.unwrap_or(Err(contract::AskError::NoToll));
        let paid = self.parts.as_expected(&asked, paid).await?;
        Ok(paid.map(|paid| {
            let given = Given::new(self.clone(), paid, asked);
            Box::new(move || given.into_pass()) as Handed
        }))
    }

    /// Waits until it is woken, or until an instant.
    async fn woken_or(&self, waiter: &Waiter, at: Timestamp) {
        let mut woken = pin!(waiter.seat.woken());
        let mut late = pin!(self.parts.pulse.sleep_until(at));
        poll_fn(|context| {
            if woken.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            late.as_mut().poll(context)
        })
        .await;
    }
}

/// Whether it is known to take longer than this: slots may be let go at any time.
fn is_longer(told: &Refusal, wait: Span) -> bool {
    told.cause != Cause::Slots && told.retry_after.is_some_and(|span| span > wait)
}

/// Something under way that the driver goes on with if it is dropped.
struct SeenThrough<S: Meters + 'static> {
    engine: Engine<S>,
    doing: Option<Doing<'static, Said>>,
}

impl<S: Meters + 'static> Future for SeenThrough<S> {
    type Output = Said;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Said> {
        let Some(doing) = &mut self.doing else { return Poll::Ready(Err(ended().into())) };
        let said = std::task::ready!(doing.as_mut().poll(context));
        self.doing = None;
        Poll::Ready(said)
    }
}

impl<S: Meters + 'static> Drop for SeenThrough<S> {
    fn drop(&mut self) {
        if let Some(doing) = self.doing.take() {
            // A pass that nobody takes hands itself back.
            self.engine.parts.pulse.see_through(async move { drop(doing.await) });
        }
    }
}
