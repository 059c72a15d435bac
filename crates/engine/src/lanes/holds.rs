//! What passes hold in a store: renewed while the pass lives, settled when it goes.

use super::consume::Asked;
use super::out_of_reach::OutOfReach;
use super::pulse::ended;
use super::{Engine, Parts};
use crate::error::{AskError, Error};
use crate::pass::{Pass, Receipt};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use tollgate_core::contract::{self, Cost, Meters, Paid};
use tollgate_core::lanes::Lease;
use tollgate_core::{LimitName, Span, Timestamp, UNITS_MAX};

/// How long slots are held after the last sign of life: a process that dies frees them so soon.
pub(super) const HOLD: Span = Span::from_secs(30);
/// How often there is a sign of life.
const BEAT: Span = Span::from_secs(10);
/// How soon there is another one after one that the store could not take.
const BEAT_AGAIN: Span = Span::from_secs(1);

/// Something under way.
pub(crate) type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a pass holds in a store.
pub(crate) trait Held: Send + Sync + fmt::Debug {
    /// The true cost at a limit.
    fn settle<'a>(&'a mut self, limit: &'a str, actual: u64) -> Doing<'a, Result<(), Error>>;

    /// Whether slots are held.
    fn holds_slots(&self) -> bool;

    /// It was never started.
    fn hand_back(self: Box<Self>) -> Doing<'static, ()>;

    /// Goes on without the pass, for so long.
    fn into_receipt(self: Box<Self>, life: Span) -> Doing<'static, Option<Receipt>>;
}

/// What settles a pass.
#[derive(Debug, Clone)]
pub(super) enum Hold {
    Receipt(contract::Receipt),
    Lease(Lease),
}

impl Hold {
    /// How long it may be worth while to settle it: slots that nobody lets go are held for so long.
    fn life(&self) -> Span {
        let Self::Receipt(receipt) = self else { return HOLD };
        let paid = receipt.holds().next().map(|line| line.payment.paid_at);
        paid.map_or(HOLD, |paid| receipt.expires.since(paid).max(HOLD))
    }
}

/// All that must be renewed.
#[derive(Default)]
pub(super) struct Holds {
    held: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    holds: HashMap<u64, Hold>,
    named: u64,
    is_beating: bool,
}

impl<S: Meters + 'static> Parts<S> {
    /// Renews a hold until it is let go.
    fn keep(self: &Arc<Self>, hold: Hold) -> u64 {
        let mut book = self.holds.held.lock();
        book.named += 1;
        let name = book.named;
        book.holds.insert(name, hold);
        if !std::mem::replace(&mut book.is_beating, true) {
            let (parts, now) = (self.clone(), self.pulse.clock.now());
            self.pulse.go_on_with(async move { parts.beat(now).await });
        }
        name
    }

    fn let_go(&self, name: u64) -> Option<Hold> {
        self.holds.held.lock().holds.remove(&name)
    }

    /// Renews whatever is held since then, for as long as anything is.
    async fn beat(&self, mut at: Timestamp) {
        let mut is_heard = true;
        loop {
            at = at.plus(if is_heard { BEAT } else { BEAT_AGAIN });
            self.pulse.sleep_until(at).await;
            let (mut leases, mut receipts, mut names) = (Vec::new(), Vec::new(), Vec::new());
            {
                let mut book = self.holds.held.lock();
                if book.holds.is_empty() {
                    book.is_beating = false;
                    return;
                }
                for (name, hold) in &book.holds {
                    match hold {
                        Hold::Lease(lease) => leases.push(*lease),
                        Hold::Receipt(receipt) => {
                            names.push(*name);
                            receipts.push(receipt.clone());
                        }
                    }
                }
            }
            // What cannot be renewed is lost; who holds it is told when it settles.
            if !leases.is_empty() {
                let _ = self.ways.renew_leases(&self.store, leases, HOLD).await;
            }
            let renewed = self.store.renew(receipts, HOLD).await;
            let renewed = renewed.map_err(|error| self.noted(error.into()));
            is_heard = !renewed.as_ref().is_err_and(Error::may_pass);
            let renewed = renewed.unwrap_or_default();
            let mut book = self.holds.held.lock();
            for (name, renewed) in names.into_iter().zip(renewed) {
                if let (Some(hold), Ok(renewed)) = (book.holds.get_mut(&name), renewed) {
                    *hold = Hold::Receipt(renewed);
                }
            }
        }
    }

    /// Settles what was held, once the store can. Told each time that it cannot yet.
    async fn finish(
        &self,
        hold: Hold,
        told: Told,
        mut not_yet: impl FnMut(&Error) + Send,
    ) -> Result<(), Error> {
        // By then what it holds has run out by itself.
        let until = self.pulse.clock.now().plus(hold.life());
        let mut failures = 0;
        loop {
            let is_over = || self.pulse.clock.now() >= until || self.pulse.has_ended();
            match self.try_finish(&hold, &told).await {
                Err(error) if error.may_pass() && !is_over() => {
                    tracing::debug!(%error, "a pass cannot be settled yet: tried again");
                    failures += 1;
                    let again = self.pulse.sleep(self.reach.again_after(failures));
                    not_yet(&error);
                    again.await;
                }
                // The time before, whose answer was lost, it was settled.
                Err(Error::Invalid(AskError::ReceiptSpent)) if failures > 0 => return Ok(()),
                outcome => return outcome,
            }
        }
    }

    /// Hands back what was paid for nothing; gone on with if the store cannot be asked now.
    pub(super) async fn hand_back_surely(
        self: &Arc<Self>,
        receipt: contract::Receipt,
    ) -> Result<(), Error> {
        let settled = self.settle_now(receipt.clone(), Cost::Nothing).await;
        if settled.as_ref().is_err_and(Error::may_pass) {
            let parts = self.clone();
            self.pulse.see_through(async move {
                let hold = Hold::Receipt(receipt);
                if let Err(error) = parts.finish(hold, Told::NeverStarted, |_| {}).await {
                    tracing::warn!(%error, "what was paid for nothing could not be handed back");
                }
            });
        }
        settled
    }

    /// What whoever waits for a settlement is told when it cannot be made yet; `None` if it waits.
    fn told_of_delay(&self, error: &Error) -> Option<Result<(), Error>> {
        match self.reach.choice {
            OutOfReach::Wait => None,
            // Who waits for a store of this process alone waits no longer than it would for a lane.
            OutOfReach::Fail if !self.ways.is_patient() => None,
            OutOfReach::Fail => Some(Err(error.clone())),
            OutOfReach::Admit | OutOfReach::Share { .. } => Some(Ok(())),
        }
    }

    pub(super) async fn try_finish(&self, hold: &Hold, told: &Told) -> Result<(), Error> {
        match hold {
            Hold::Receipt(receipt) => {
                let cost = match told {
                    Told::Cost(actual) => Cost::Told(actual.clone()),
                    Told::NeverStarted => Cost::Nothing,
                };
                self.settle_now(receipt.clone(), cost).await
            }
            Hold::Lease(lease) => self.ways.settle_lease(self, *lease, told.clone()).await,
        }
    }

    /// Settles a receipt, and wakes who may go now.
    pub(super) async fn settle_now(
        &self,
        receipt: contract::Receipt,
        cost: Cost,
    ) -> Result<(), Error> {
        let costs = match &cost {
            Cost::Told(told) => receipt.actual(told)?,
            Cost::Nothing => vec![0; receipt.lines.len()],
        };
        let answers = self.heard(self.store.settle(vec![(receipt.clone(), cost)]).await)?;
        answers.into_iter().collect::<Result<(), _>>()?;
        let given_back = receipt
            .lines
            .iter()
            .zip(costs)
            .filter(|(line, cost)| line.payment.hold.is_some() || *cost < line.payment.weight);
        for (line, _) in given_back {
            self.crowds.wake(&line.limit, line.partition.as_ref());
        }
        Ok(())
    }
}

/// What a call cost.
#[derive(Debug, Clone)]
pub(super) enum Told {
    Cost(Vec<(LimitName, u64)>),
    NeverStarted,
}

/// A pass whose tolls were paid in a store.
pub(super) struct KeptPass<S: Meters + 'static> {
    engine: Engine<S>,
    hold: Option<Hold>,
    /// Under this name it is renewed.
    kept: Option<u64>,
    has_slots: bool,
    /// The limits whose true cost can be told.
    open: Vec<LimitName>,
    told: Vec<(LimitName, u64)>,
    /// Someone has the pass: until then the call was not started.
    is_given: bool,
}

impl<S: Meters + 'static> KeptPass<S> {
    /// Holds a receipt whose cost at these limits can be told.
    pub(super) fn of_receipt(
        engine: Engine<S>,
        receipt: contract::Receipt,
        open: Vec<LimitName>,
    ) -> Self {
        let has_slots = receipt.holds().next().is_some();
        let kept = has_slots.then(|| engine.parts.keep(Hold::Receipt(receipt.clone())));
        let (hold, told, is_given) = (Some(Hold::Receipt(receipt)), Vec::new(), false);
        Self { engine, hold, kept, has_slots, open, told, is_given }
    }

    /// Holds a lease of a call whose cost at these limits can be told.
    pub(super) fn of_lease(
        engine: Engine<S>,
        lease: Lease,
        has_slots: bool,
        open: Vec<LimitName>,
    ) -> Self {
        let kept = Some(engine.parts.keep(Hold::Lease(lease)));
        let (hold, told, is_given) = (Some(Hold::Lease(lease)), Vec::new(), false);
        Self { engine, hold, kept, has_slots, open, told, is_given }
    }

    /// From here on someone has it.
    pub(super) fn is_given(&mut self) {
        self.is_given = true;
    }

    /// What is held, as it was renewed last; from here on it is not renewed any more.
    fn take(&mut self) -> Option<Hold> {
        let renewed = self.kept.take().and_then(|name| self.engine.parts.let_go(name));
        let hold = self.hold.take();
        renewed.or(hold)
    }

    async fn tell(&mut self, limit: &str, actual: u64) -> Result<(), Error> {
        let unpaid = || AskError::NotPaid { name: limit.chars().take(128).collect() };
        if actual > UNITS_MAX {
            return Err(AskError::ActualTooLarge { actual }.into());
        }
        if self.told.iter().any(|(told, _)| **told == *limit) {
            return Err(AskError::ReceiptSpent.into());
        }
        let place = self.open.iter().position(|open| **open == *limit).ok_or_else(unpaid)?;
        let name = self.open.swap_remove(place);
        self.told.push((name, actual));
        if self.has_slots || !self.open.is_empty() {
            return Ok(());
        }
        let Some(hold) = self.take() else { return Err(AskError::ReceiptSpent.into()) };
        let told = std::mem::take(&mut self.told);
        self.see_finished(hold, Told::Cost(told)).await
    }

    /// Settles what was held; seen through, also if nobody waits for it any more.
    async fn see_finished(&self, hold: Hold, told: Told) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        let engine = self.engine.clone();
        self.engine.parts.pulse.see_through(async move {
            let (parts, mut reply) = (&engine.parts, Some(reply));
            let not_yet = |error: &Error| {
                // Nobody need wait for what goes on by itself.
                if let Some(told) = parts.told_of_delay(error)
                    && let Some(reply) = reply.take()
                {
                    let _ = reply.send(told);
                }
            };
            let finished = parts.finish(hold, told, not_yet).await;
            match (reply, finished) {
                (Some(reply), finished) => drop(reply.send(finished)),
                (None, Err(error)) => {
                    tracing::warn!(%error, "what a pass held could not be settled");
                }
                (None, Ok(())) => {}
            }
        });
        answer.await.unwrap_or_else(|_| Err(ended().into()))
    }
}

/// A pass that nobody has yet: if nobody takes it, the call was not started.
pub(super) struct Given<S: Meters + 'static> {
    kept: KeptPass<S>,
    pass: Pass,
}

impl<S: Meters + 'static> Given<S> {
    pub(super) fn new(engine: Engine<S>, paid: Paid, asked: Asked) -> Self {
        let pass = bare(&paid);
        let open = asked.open(&paid.receipt);
        Self { kept: KeptPass::of_receipt(engine, paid.receipt, open), pass }
    }

    /// From here on someone has it.
    pub(super) fn into_pass(mut self) -> Pass {
        self.kept.is_given();
        self.pass.held(Box::new(self.kept))
    }
}

/// What is paid, as its caller sees it; by the store's clock alone.
pub(super) fn bare(paid: &Paid) -> Pass {
    let paid_at = paid.receipt.lines.first().map_or(paid.starts, |line| line.payment.paid_at);
    Pass::new(paid.starts.since(paid_at), (paid.tightest, paid.standing))
}

impl<S: Meters + 'static> fmt::Debug for KeptPass<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptPass").field("hold", &self.hold).finish_non_exhaustive()
    }
}

impl<S: Meters + 'static> Held for KeptPass<S> {
    fn settle<'a>(&'a mut self, limit: &'a str, actual: u64) -> Doing<'a, Result<(), Error>> {
        Box::pin(self.tell(limit, actual))
    }

    fn holds_slots(&self) -> bool {
        self.has_slots
    }

    fn hand_back(mut self: Box<Self>) -> Doing<'static, ()> {
        Box::pin(async move {
            let Some(hold) = self.take() else { return };
            // Settled in part, the rest cost what it paid.
            let told = std::mem::take(&mut self.told);
            let told = if told.is_empty() { Told::NeverStarted } else { Told::Cost(told) };
            if let Err(error) = self.see_finished(hold, told).await {
                tracing::warn!(%error, "a call that was not started could not be handed back");
            }
        })
    }

    fn into_receipt(mut self: Box<Self>, life: Span) -> Doing<'static, Option<Receipt>> {
        Box::pin(async move {
            let hold = self.take()?;
            let parts = &self.engine.parts;
            let told = std::mem::take(&mut self.told);
            if !told.is_empty() {
                // A receipt settles once, and this one has begun to.
                let _ = self.see_finished(hold, Told::Cost(told)).await;
                return None;
            }
            match hold {
                Hold::Lease(lease) => {
                    let expires = parts.pulse.clock.now().plus(life);
                    let held =
                        parts.ways.renew_leases(&parts.store, vec![lease], life).await.ok()?;
                    (held == [true]).then(|| Receipt::of_lease(lease, expires))
                }
                Hold::Receipt(receipt) if self.has_slots => {
                    let mut renewed = parts.store.renew(vec![receipt], life).await.ok()?;
                    renewed.pop()?.ok().map(Receipt::from)
                }
                Hold::Receipt(receipt) => {
                    let now = parts.store.now().await.ok()?.at;
                    let expires = receipt.expires.min(now.plus(life));
                    Some(contract::Receipt { expires, ..receipt }.into())
                }
            }
        })
    }
}

impl<S: Meters + 'static> Drop for KeptPass<S> {
    fn drop(&mut self) {
        let Some(hold) = self.take() else { return };
        let told = std::mem::take(&mut self.told);
        // What was paid at rates stays spent, and nothing else is held.
        let holds_nothing = matches!(hold, Hold::Receipt(_)) && !self.has_slots;
        if self.is_given && holds_nothing && told.is_empty() {
            return;
        }
        // The driver stays until the settlement is on its way.
        let engine = self.engine.clone();
        let told = if self.is_given { Told::Cost(told) } else { Told::NeverStarted };
        self.engine.parts.pulse.see_through(async move {
            if let Err(error) = engine.parts.finish(hold, told, |_| {}).await {
                tracing::warn!(%error, "what a pass held could not be settled");
            }
        });
    }
}
