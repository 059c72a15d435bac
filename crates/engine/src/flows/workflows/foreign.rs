//! Tasks that are made by workers elsewhere: they claim, and say what came of it.

use super::card::Card;
use super::task_queue;
use super::tasks::TaskOutcome;
use crate::envelope::Envelope;
use crate::error::Error;
use crate::flows::worker::given_up;
use crate::flows::{FlowError, Flows};
use crate::lanes::{Engine, Outcome};
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{Act, ActError, Claimed, Lease, Settle, Settlement};
use tollgate_core::{LimitName, Span, Timestamp};

/// How long a task waits for another worker, where nothing is said.
const LEASE: Span = Span::from_secs(30);

/// A task that a worker is to make now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedTask {
    /// Its call: the body is what the task gets, as JSON.
    pub call: Claimed,
    /// Of which run it is.
    pub card: Card,
    /// When it will have taken too long, in limit time: the attempt has failed then, and nobody holds it for longer.
    pub until: Timestamp,
}

impl<S: Lanes + 'static> Flows<S> {
    /// Starts up to `most` tasks of a type, as soon as one may, within `wait`. Who claims them makes them, and says
    /// with [`Self::settle_task`] what came of each. A lease lasts for 30 s unless it is said otherwise.
    pub async fn claim_tasks(
        &self,
        type_name: &str,
        most: usize,
        wait: impl Into<Span>,
        lease: Option<Span>,
    ) -> Result<Vec<ClaimedTask>, Error> {
        let (queue, lease) = (task_queue(type_name)?, lease.unwrap_or(LEASE));
        let until = self.engine.clock_now().plus(wait.into());
        loop {
            let wait = until.since(self.engine.clock_now());
            let claimed = self.engine.claim_own(&queue, most, wait, Some(lease)).await?;
            let is_over = claimed.is_empty();
            let leases = claimed.iter().map(|call| call.started.lease).collect();
            let mut unmade = Unmade { engine: &self.engine, leases };
            let (mut tasks, mut failed) = (Vec::with_capacity(claimed.len()), None);
            for call in claimed {
                let lease = call.started.lease;
                match self.handed_out(call).await {
                    Ok(Some(task)) => tasks.push(task),
                    Ok(None) => unmade.leases.retain(|held| *held != lease),
                    // It waits again; the others go on.
                    Err(error) => failed = Some(error),
                }
            }
            if let (Some(error), true) = (failed, tasks.is_empty()) {
                return Err(error);
            }
            if is_over || !tasks.is_empty() {
                let is_handed =
                    |held: &Lease| tasks.iter().any(|it| it.call.started.lease == *held);
                unmade.leases.retain(|held| !is_handed(held));
                return Ok(tasks);
            }
        }
    }

    /// A task that goes to a worker; one that is tried no more ends here.
    async fn handed_out(&self, call: Claimed) -> Result<Option<ClaimedTask>, Error> {
        let (start, tried) = (call.started.lease, call.started.attempts);
        let Some(card) = card_of(&call) else {
            tracing::error!(call = start.call.0, "a call of a task's queue is not of a run");
            self.settle_left(start, Outcome::dead()).await?;
            return Ok(None);
        };
        let (timeout, retry) = self.bounds_of(&card).await?;
        if let Some(reason) = given_up(tried, retry.crashes_max) {
            let settle = Settle::new(start, Settlement::Done);
            let failed = TaskOutcome::Failed { reason };
            let left = self.settle_made(settle, &card, tried, failed).await?;
            self.settle_left(start, left).await?;
            return Ok(None);
        }
        let until = call.started.at.plus(timeout);
        Ok(Some(ClaimedTask { call, card, until }))
    }

    /// Says what came of a task that was [claimed](Self::claim_tasks), and what it really cost at limits that it
    /// pays. What follows in its run happens in the same act.
    pub async fn settle_task(
        &self,
        lease: Lease,
        outcome: TaskOutcome,
        actual: Vec<(LimitName, u64)>,
    ) -> Result<(), Error> {
        let lost = || Error::from(ActError::LeaseLost { at: 0 });
        let call = self.engine.call(lease.call).await?.ok_or_else(lost)?;
        let payload = self.engine.payload(lease.call).await?.ok_or_else(lost)?;
        let card = Envelope::of(&payload).ok().as_ref().and_then(Card::of);
        let card = card.ok_or(FlowError::NotOfTask { call: lease.call })?;
        let settle = Settle { actual, ..Settle::new(lease, Settlement::Done) };
        let left = self.settle_made(settle, &card, call.attempts, outcome).await?;
        self.settle_left(lease, left).await
    }

    /// Settles what the change of a run did not settle.
    async fn settle_left(&self, lease: Lease, outcome: Outcome) -> Result<(), Error> {
        if outcome.is_settled() {
            return Ok(());
        }
        let act: Act = outcome.into_act(lease, self.engine.now().await?)?;
        self.engine.act_own(act).await.map(|_| ())
    }
}

/// Tasks that were claimed and are not in a worker's hands: let go, they wait again at once.
struct Unmade<'a, S: Lanes + 'static> {
    engine: &'a Engine<S>,
    leases: Vec<Lease>,
}

impl<S: Lanes + 'static> Drop for Unmade<'_, S> {
    fn drop(&mut self) {
        if !self.leases.is_empty() {
            self.engine.release(std::mem::take(&mut self.leases));
        }
    }
}

fn card_of(claimed: &Claimed) -> Option<Card> {
    Card::of(&Envelope::of(&claimed.payload).ok()?)
}
