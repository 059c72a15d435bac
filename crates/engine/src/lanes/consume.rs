//! Paying in a store: now or be refused, now for a start later, or look without paying.

use super::alone::Start;
use super::holds::{Given, HOLD, bare};
use super::out_of_reach::Instead;
use super::{Engine, Parts};
use crate::ask::{Ask, Asking, TOLLS_MAX, Toll};
use crate::error::{AskError, Error, Refusal, TryError};
use crate::pass::{Pass, Receipt};
use crate::report;
use std::sync::Arc;
use tollgate_core::contract::{self, Cost, Meters, Paid, RECEIPT_LIFE_MAX, ReceiptError};
use tollgate_core::{LimitName, Opening, Partition, Span, Standing, TollError, Tolls, UNITS_MAX};

/// What is asked of a store, and of what the true cost can be told.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) ask: contract::Ask,
    pub(super) estimates: Vec<LimitName>,
    pub(super) has_slots: bool,
    /// Without an estimate, the true cost can be told at every limit.
    pub(super) is_open: bool,
}

impl<S: Meters + 'static> Engine<S> {
    /// Pays all tolls now, or none. Never overtakes a call that waits. Dropped before there is an answer,
    /// it may have been paid: slots come back after half a minute.
    pub async fn consume<'a>(&self, ask: impl Asking<'a>) -> Result<Pass, Error> {
        self.pay(&ask.into_ask(), None).await
    }

    /// Pays now for a start at the first instant that the limits allow; the pass says how long to wait.
    /// Refused if that is over `max_wait`.
    pub async fn consume_delayed<'a>(
        &self,
        ask: impl Asking<'a>,
        max_wait: impl Into<Span>,
    ) -> Result<Pass, Error> {
        let max_wait = max_wait.into();
        self.pay(&ask.into_ask(), Some(max_wait)).await
    }

    async fn pay(&self, ask: &Ask<'_>, delay_max: Option<Span>) -> Result<Pass, Error> {
        let (start, mut failures) = (delay_max.map_or(Start::Now, Start::Within), 0);
        let paid = loop {
            let paid = match self.pay_for(ask, delay_max).await {
                // A limit that comes along is defined again if it was removed elsewhere.
                Err(error) if self.parts.was_removed(ask, &error) => {
                    self.pay_for(ask, delay_max).await
                }
                paid => paid,
            };
            let Err(error) = paid else { break paid };
            match self.parts.instead(error, &mut failures).await {
                Ok(Instead::Again) => {}
                Ok(Instead::Alone(error)) => break self.pay_alone(ask, start, &error),
                Err(error) => break Err(error),
            }
        };
        paid.inspect_err(report::failed)
    }

    async fn pay_for(&self, ask: &Ask<'_>, delay_max: Option<Span>) -> Result<Pass, Error> {
        if let Some(error) = self.parts.reach.left_alone() {
            return Err(error);
        }
        let mut asked = self.parts.asked(ask).await?;
        (asked.ask.delay_max, asked.is_open) = (delay_max, delay_max.is_some());
        if !asked.has_slots && !asked.is_open && asked.estimates.is_empty() {
            // Nobody settles it: it need not be known by itself.
            asked.ask.life = Span::ZERO;
        }
        self.pay_asked(asked).await
    }

    pub(super) async fn pay_asked(&self, asked: Asked) -> Result<Pass, Error> {
        self.parts.check_turn(&asked.ask)?;
        let paid = self.parts.pay_once(&asked).await?;
        Ok(self.pass(paid.map_err(|error| self.parts.refused(error))?, asked))
    }

    /// Decides each toll on its own, all in one go.
    pub async fn consume_many(&self, tolls: &[Toll<'_>]) -> Vec<Result<Pass, TryError>> {
        let mut failures = 0;
        loop {
            let error = match self.pay_each(tolls).await {
                Ok(each) => return each,
                Err(error) => error,
            };
            match self.parts.instead(error, &mut failures).await {
                Ok(Instead::Again) => {}
                Ok(Instead::Alone(error)) => {
                    let alone = |toll: &Toll<'_>| {
                        Ok(self.pay_alone(&(*toll).into(), Start::Now, &error)?)
                    };
                    return tolls.iter().map(alone).collect();
                }
                Err(error) => return tolls.iter().map(|_| Err(error.clone().into())).collect(),
            }
        }
    }

    /// Asks the store for each, in one go.
    async fn pay_each(&self, tolls: &[Toll<'_>]) -> Result<Vec<Result<Pass, TryError>>, Error> {
        if let Some(error) = self.parts.reach.left_alone() {
            return Err(error);
        }
        let mut asked = Vec::with_capacity(tolls.len());
        for toll in tolls {
            match self.parts.asked(&(*toll).into()).await {
                Err(error) if error.may_pass() => return Err(error),
                one => {
                    asked.push(one.and_then(|one| self.parts.check_turn(&one.ask).map(|()| one)))
                }
            }
        }
        let asks = asked.iter().flatten().map(|asked| asked.ask.clone()).collect();
        let answers = self.parts.heard(self.parts.store.consume(asks).await)?;
        let (mut answers, mut each) = (answers.into_iter(), Vec::with_capacity(tolls.len()));
        for asked in asked {
            let answer = match asked {
                Ok(asked) => self.answer(asked, answers.next()).await,
                Err(error) => Err(error),
            };
            each.push(answer.map_err(TryError::from));
        }
        Ok(each)
    }

    async fn answer(
        &self,
        asked: Asked,
        answer: Option<Result<Paid, contract::AskError>>,
    ) -> Result<Pass, Error> {
        let paid = answer.unwrap_or(Err(contract::AskError::NoToll));
        let paid = self.parts.as_expected(&asked, paid).await?;
        Ok(self.pass(paid.map_err(|error| self.parts.refused(error))?, asked))
    }

    /// Says what `consume` would, and pays nothing.
    pub async fn peek<'a>(&self, ask: impl Asking<'a>) -> Result<Standing, Error> {
        let (ask, mut failures) = (ask.into_ask(), 0);
        loop {
            let error = match self.peek_once(&ask).await {
                Err(error) => error,
                standing => return standing,
            };
            match self.parts.instead(error, &mut failures).await? {
                Instead::Again => {}
                Instead::Alone(error) => return self.peek_alone(&ask, &error),
            }
        }
    }

    async fn peek_once(&self, ask: &Ask<'_>) -> Result<Standing, Error> {
        if let Some(error) = self.parts.reach.left_alone() {
            return Err(error);
        }
        let asked = self.parts.asked(ask).await?;
        self.parts.check_turn(&asked.ask)?;
        // One that is full may still be looked at: that it answers this says nothing.
        let answers = self.parts.store.peek(vec![asked.ask]).await;
        let mut answers = answers.map_err(|error| self.parts.noted(error.into()))?;
        let answer = answers.pop().unwrap_or(Err(contract::AskError::NoToll));
        answer.map_err(|error| self.parts.refused(error))
    }

    /// Settles a receipt: each limit named at its true cost, all others at what they paid. Once.
    pub async fn settle_receipt(
        &self,
        receipt: &Receipt,
        actual: &[(&str, u64)],
    ) -> Result<(), Error> {
        if let Some((_, actual)) = actual.iter().find(|(_, actual)| *actual > UNITS_MAX) {
            return Err(AskError::ActualTooLarge { actual: *actual }.into());
        }
        let named = actual.iter().map(|(limit, units)| Ok((LimitName::new(limit)?, *units)));
        self.parts.spend(receipt, Cost::Told(named.collect::<Result<_, Error>>()?)).await
    }

    /// Hands back a call that was never started. Once.
    pub async fn hand_back(&self, receipt: &Receipt) -> Result<(), Error> {
        self.parts.spend(receipt, Cost::Nothing).await
    }

    /// Holds a receipt's slots for `life` from now.
    pub async fn renew(&self, receipt: &Receipt, life: impl Into<Span>) -> Result<Receipt, Error> {
        let life = life.into();
        if let Some(lease) = receipt.lease {
            let expires = self.parts.pulse.clock.now().plus(life);
            let parts = &self.parts;
            let held = parts.ways.renew_leases(&parts.store, vec![lease], life).await?;
            let is_held = held == [true];
            return is_held
                .then(|| Receipt { expires, ..receipt.clone() })
                .ok_or_else(|| AskError::ReceiptSpent.into());
        }
        let (receipt, mut failures) = (receipt.to_kept()?, 0);
        let mut renewed = loop {
            let renewed = self.parts.store.renew(vec![receipt.clone()], life).await;
            let error = match self.parts.heard(renewed) {
                Ok(renewed) => break renewed,
                Err(error) => error,
            };
            match self.parts.instead(error, &mut failures).await? {
                Instead::Again => {}
                Instead::Alone(error) => return Err(error),
            }
        };
        Ok(renewed.pop().unwrap_or(Err(ReceiptError::Spent))?.into())
    }

    fn pass(&self, paid: Paid, asked: Asked) -> Pass {
        let has_slots = paid.receipt.holds().next().is_some();
        if !has_slots && !asked.is_open && asked.estimates.is_empty() {
            return bare(&paid);
        }
        Given::new(self.clone(), paid, asked).into_pass()
    }
}

impl Asked {
    /// The limits whose true cost can be told.
    pub(super) fn open(self, receipt: &contract::Receipt) -> Vec<LimitName> {
        if self.is_open && self.estimates.is_empty() {
            return receipt.lines.iter().map(|line| line.limit.clone()).collect();
        }
        self.estimates
    }
}

impl<S: Meters + 'static> Parts<S> {
    /// An ask as the store takes it, with limits defined that come along.
    pub(super) async fn asked(self: &Arc<Self>, ask: &Ask<'_>) -> Result<Asked, Error> {
        let (mut tolls, mut estimates, mut has_slots) = (Tolls::new(), Vec::new(), false);
        // Nothing is defined for an ask that can never pass.
        let count = ask.tolls.len();
        if count > TOLLS_MAX {
            return Err(AskError::TooManyTolls { count }.into());
        }
        for toll in &ask.tolls {
            let limit = LimitName::new(toll.name())?;
            if let Some(definition) = toll.definition {
                let defined = self.define_inline(&limit, definition).await;
                defined.map_err(|error| self.noted(error))?;
            }
            if !self.known.is_known(&limit) {
                let found = self.ways.look_up(self, &limit).await;
                found.map_err(|error| self.noted(error))?;
            }
            has_slots |= self.known.may_have_slots(&limit, toll.partition());
            if toll.is_estimate && !estimates.contains(&limit) {
                estimates.push(limit.clone());
            }
            let partition = toll.partition().map(Partition::new).transpose()?;
            let (weight, hears_feedback) = (toll.weight, false);
            tolls.push(tollgate_core::Toll { limit, partition, weight, hears_feedback });
        }
        // Slots are renewed while the pass lives; rates are not, and can be settled for a day.
        let life = if has_slots { HOLD } else { RECEIPT_LIFE_MAX };
        let ask = contract::Ask { tolls, priority: ask.priority, delay_max: None, life };
        Ok(Asked { ask, estimates, has_slots, is_open: false })
    }

    /// Refuses an ask that would overtake who stands in line here.
    pub(super) fn check_turn(&self, ask: &contract::Ask) -> Result<(), Error> {
        match self.crowds.refusal(ask, || self.pulse.clock.now()) {
            Some(refusal) => Err(refusal.into()),
            None => Ok(()),
        }
    }

    /// Asks the store once.
    pub(super) async fn pay_once(
        self: &Arc<Self>,
        asked: &Asked,
    ) -> Result<Result<Paid, contract::AskError>, Error> {
        let mut answers = self.heard(self.store.consume(vec![asked.ask.clone()]).await)?;
        let paid = answers.pop().unwrap_or(Err(contract::AskError::NoToll));
        self.as_expected(asked, paid).await
    }

    /// What the store answered, if it holds slots as it was expected to. If not, the limit was changed
    /// elsewhere, and is looked up again.
    pub(super) async fn as_expected(
        self: &Arc<Self>,
        asked: &Asked,
        paid: Result<Paid, contract::AskError>,
    ) -> Result<Result<Paid, contract::AskError>, Error> {
        let Ok(paid) = paid else { return Ok(paid) };
        let has_slots = paid.receipt.holds().next().is_some();
        if has_slots == asked.has_slots {
            return Ok(Ok(paid));
        }
        let lines = paid.receipt.lines.iter().map(|line| line.limit.clone());
        let known: Vec<LimitName> = lines.filter(|limit| self.known.is_known(limit)).collect();
        if !known.is_empty() {
            let parts = self.clone();
            self.pulse.see_through(async move {
                for limit in known {
                    // If it cannot be looked up now, the next one finds out.
                    let _ = parts.ways.look_up(&parts, &limit).await;
                }
            });
        }
        if !has_slots {
            return Ok(Ok(paid));
        }
        // They would be held for a day if this process died: what lives as long as a sign of life is
        // asked for instead.
        match self.hand_back_surely(paid.receipt).await {
            // One that nobody was to settle has let go of them already.
            Err(Error::Invalid(AskError::ReceiptSpent)) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        let ask = contract::Ask { life: HOLD, ..asked.ask.clone() };
        let mut answers = self.store.consume(vec![ask]).await?;
        Ok(answers.pop().unwrap_or(Err(contract::AskError::NoToll)))
    }

    /// Whether an ask was refused because a limit that comes along with it was removed elsewhere: it is
    /// defined again when it is asked again.
    pub(super) fn was_removed(&self, ask: &Ask<'_>, error: &Error) -> bool {
        let Error::Invalid(AskError::UnknownLimit { name }) = error else { return false };
        let mut tolls = ask.tolls.iter();
        let comes_along = tolls.any(|toll| toll.name() == name && toll.definition.is_some());
        comes_along && LimitName::new(name).is_ok_and(|limit| self.known.forget(&limit))
    }

    /// Why an ask was not granted, as its caller is told.
    pub(super) fn refused(&self, error: contract::AskError) -> Error {
        match error {
            contract::AskError::Refused(refusal) => refused(refusal).into(),
            contract::AskError::Toll(error) => from_toll(error).into(),
            contract::AskError::DelayWithSlots { limit } => {
                AskError::DelayWithSlots { name: limit.as_str().to_owned() }.into()
            }
            _ => AskError::NoToll.into(),
        }
    }

    async fn spend(&self, receipt: &Receipt, cost: Cost) -> Result<(), Error> {
        use super::holds::{Hold, Told};
        if let Some(lease) = receipt.lease {
            let told = match cost {
                Cost::Told(actual) => Told::Cost(actual),
                Cost::Nothing => Told::NeverStarted,
            };
            return self.try_finish(&Hold::Lease(lease), &told).await.map_err(lease_lost);
        }
        let (receipt, mut failures) = (receipt.to_kept()?, 0);
        loop {
            let error = match self.settle_now(receipt.clone(), cost.clone()).await {
                // The time before, whose answer was lost, it was settled.
                Err(Error::Invalid(AskError::ReceiptSpent)) if failures > 0 => return Ok(()),
                Err(error) => error,
                Ok(()) => return Ok(()),
            };
            match self.instead(error, &mut failures).await? {
                Instead::Again => {}
                // Whoever has the receipt can settle it later.
                Instead::Alone(error) => return Err(error),
            }
        }
    }
}

/// A lease that is gone is a receipt that is spent.
fn lease_lost(error: Error) -> Error {
    use tollgate_core::lanes::ActError;
    match error {
        Error::Act(ActError::LeaseLost { .. }) => AskError::ReceiptSpent.into(),
        Error::Act(ActError::NotPaid { limit, .. }) => {
            AskError::NotPaid { name: limit.as_str().to_owned() }.into()
        }
        other => other,
    }
}

pub(super) fn refused(refusal: contract::Refusal) -> Refusal {
    let contract::Refusal { limit, partition, cause, opening, standing, now } = refusal;
    let retry_after = match opening {
        Opening::At(at) => Some(at.since(now)),
        Opening::OnRelease => None,
    };
    let partition = partition.map(|partition| partition.as_str().into());
    Refusal { limit: limit.as_str().into(), partition, cause, retry_after, standing }
}

fn from_toll(error: TollError) -> AskError {
    let name = |limit: LimitName| limit.as_str().to_owned();
    match error {
        TollError::WeightZero { limit } => AskError::WeightZero { name: name(limit) },
        TollError::WeightOverCapacity { limit, weight, capacity } => {
            AskError::WeightOverCapacity { name: name(limit), weight, capacity }
        }
        TollError::TooMany { count } => AskError::TooManyTolls { count },
        TollError::UnknownLimit { limit } => AskError::UnknownLimit { name: name(limit) },
        other => AskError::Toll(other),
    }
}
