//! Paying, settling and looking.

use super::{KeptMeter, Till};
use crate::contract::{
    Ask, AskError, Cost, DELAY_MAX, MeterName, MeterState, Paid, PaidLine, RECEIPT_LIFE_MAX,
    Receipt, ReceiptError, Refusal,
};
use crate::gate;
use crate::meter::{Holding, Standing};
use crate::name::LimitName;
use crate::rule::slots::HoldId;
use crate::time::{Now, Span, Timestamp};
use crate::toll::{self, Toll, TollError};
use crate::turn::{Company, Place};
use smallvec::SmallVec;
use std::sync::Arc;

/// What an ask owes: at which places, and how much.
type Owed = SmallVec<[(usize, u64); 2]>;

/// A line of the gate, as it is here.
type Line<'a> = gate::Line<'a>;

impl Till {
    /// Pays all tolls of an ask, or none.
    pub fn consume(&mut self, ask: &Ask) -> Result<Paid, AskError> {
        let (owed, starts) = self.decided(ask)?;
        let id = self.next_id(&owed);
        let expires = starts.plus(ask.life.min(RECEIPT_LIFE_MAX));
        let holding = Holding { id: HoldId(id), expires };
        let now = self.now;
        let mut lines = Vec::with_capacity(owed.len());
        for (place, weight) in &owed {
            let KeptMeter { meter, definition, .. } = self.meters.changed(*place);
            let payment = meter.pay(definition, *weight, (now, starts), Some(holding));
            let name = self.meters.name(*place);
            let (limit, partition) = name.clone();
            lines.push(PaidLine { limit, partition, payment });
            self.changes.paid.push((name.clone(), payment));
        }
        let (tightest, standing) = gate::tightest(&self.lines(&owed, ask), now);
        Ok(Paid { receipt: Receipt { id, expires, lines }, starts, tightest, standing })
    }

    /// Says what [`Self::consume`] would, and pays nothing.
    pub fn peek(&mut self, ask: &Ask) -> Result<Standing, AskError> {
        let (owed, _) = self.decided(ask)?;
        Ok(gate::tightest(&self.lines(&owed, ask), self.now).1)
    }

    /// What an ask owes, and when it starts if it may.
    fn decided(&mut self, ask: &Ask) -> Result<(Owed, Timestamp), AskError> {
        if ask.tolls.is_empty() {
            return Err(AskError::NoToll);
        }
        toll::check(&ask.tolls, |toll| {
            self.rules_of(&toll.limit, toll.partition.as_ref()).map(Arc::as_ref)
        })?;
        if let Some(limit) = self.spread_among(ask) {
            return Err(TollError::Spread { limit: limit.clone() }.into());
        }
        let owed = self.owed(ask)?;
        let latest = ask.delay_max.map(|most| self.now.at.plus(most.min(DELAY_MAX)));
        let lines = self.lines(&owed, ask);
        let starts = gate::reserve(&lines, |_| 0, latest, self.now).map_err(|(at, blocker)| {
            let (limit, partition) = self.meters.name(owed[at].0).clone();
            let (cause, opening) = (blocker.cause, blocker.opening);
            let standing = lines[at].standing(self.now);
            let now = self.now.at;
            AskError::Refused(Refusal { limit, partition, cause, opening, standing, now })
        })?;
        drop(lines);
        Ok((owed, starts))
    }

    /// A limit that is spread, of an ask at several meters.
    fn spread_among<'a>(&self, ask: &'a Ask) -> Option<&'a LimitName> {
        let (first, others) = ask.tolls.split_first()?;
        let is_at_first =
            |toll: &Toll| toll.limit == first.limit && toll.partition == first.partition;
        if others.iter().all(is_at_first) {
            return None;
        }
        ask.tolls.iter().map(|toll| &toll.limit).find(|limit| self.is_spread(limit))
    }

    /// What an ask owes by meter: tolls at one meter add up.
    fn owed(&mut self, ask: &Ask) -> Result<Owed, AskError> {
        let mut owed = Owed::new();
        for toll in &ask.tolls {
            let name = (toll.limit.clone(), toll.partition.clone());
            let Some(place) = self.at(name) else {
                return Err(TollError::UnknownLimit { limit: toll.limit.clone() }.into());
            };
            if ask.delay_max.is_some() && self.meters.kept(place).definition.has_slots() {
                return Err(AskError::DelayWithSlots { limit: toll.limit.clone() });
            }
            match owed.iter_mut().find(|(other, _)| *other == place) {
                Some((_, weight)) => *weight = weight.saturating_add(toll.weight),
                None => owed.push((place, toll.weight)),
            }
        }
        Ok(owed)
    }

    /// All that matters at the meters of an ask.
    fn lines(&self, owed: &Owed, ask: &Ask) -> SmallVec<[Line<'_>; 2]> {
        let place = Place::new(ask.priority, u64::MAX, u64::MAX);
        let line = |(at, weight): &(usize, u64)| {
            let KeptMeter { meter, definition, .. } = self.meters.kept(*at);
            Line {
                definition: Some(definition.as_ref()),
                is_paused: false,
                meter: Some(meter),
                weight: *weight,
                place,
                company: Company::default(),
            }
        };
        owed.iter().map(line).collect()
    }

    /// Higher than any at the meters of an ask: so long as it is one at each of them, it need not be
    /// one anywhere else.
    fn next_id(&self, owed: &Owed) -> u64 {
        let latest = owed.iter().map(|(place, _)| self.meters.kept(*place).meter.sequence());
        self.now.at.as_nanos().max(latest.max().unwrap_or(0)).saturating_add(1)
    }

    /// Settles a receipt at its true cost, once.
    pub fn settle(&mut self, receipt: &Receipt, cost: &Cost) -> Result<(), ReceiptError> {
        let actual = self.spend(receipt, cost)?;
        for (line, actual) in receipt.lines.iter().zip(actual) {
            self.settle_line(line, actual);
        }
        Ok(())
    }

    /// The first half of settling: from here on the receipt is spent. Says what each line cost.
    pub fn spend(&mut self, receipt: &Receipt, cost: &Cost) -> Result<Vec<u64>, ReceiptError> {
        let actual = match cost {
            Cost::Told(told) => receipt.actual(told)?,
            Cost::Nothing => vec![0; receipt.lines.len()],
        };
        let Some(key) = receipt.key() else { return Err(ReceiptError::Spent) };
        if receipt.expires <= self.now.at || self.settled.contains(&key) {
            return Err(ReceiptError::Spent);
        }
        // One that holds slots may have been renewed: other copies of it live longer.
        let longest = self.now.at.plus(RECEIPT_LIFE_MAX).max(receipt.expires);
        let is_renewable = receipt.holds().next().is_some();
        let remembered = if is_renewable { longest } else { receipt.expires };
        self.settled.insert(key.clone());
        self.changes.settled.push((key, remembered));
        Ok(actual)
    }

    /// The other half: the true cost at one meter, or its slots alone if the limit is gone. The caller sees to it that
    /// a payment settles once.
    pub fn settle_line(&mut self, line: &PaidLine, actual: u64) {
        let name = (line.limit.clone(), line.partition.clone());
        let now = self.now;
        if let Some(place) = self.at(name.clone()) {
            let KeptMeter { meter, definition, .. } = self.meters.changed(place);
            meter.settle(definition, &line.payment, actual, now);
        } else if let (Some(place), Some(hold)) = (self.meters.place(&name), line.payment.hold) {
            self.meters.changed(place).meter.release(hold);
        }
    }

    /// Holds a receipt's slots for `life` from now.
    pub fn renew(&mut self, receipt: &Receipt, life: Span) -> Result<Receipt, ReceiptError> {
        let names = receipt.holds().map(|line| (line.limit.clone(), line.partition.clone()));
        let names: SmallVec<[MeterName; 2]> = names.collect();
        if names.is_empty() {
            return Err(ReceiptError::NothingHeld);
        }
        // A limit that counts no slots any more holds none.
        for name in &names {
            let _ = self.at(name.clone());
        }
        let (hold, now) = (HoldId(receipt.id), self.now.at);
        let is_held = |place: usize| self.meters.kept(place).meter.holds(hold, now);
        let held = names.iter().map(|name| self.meters.place(name).filter(|it| is_held(*it)));
        let held: Option<SmallVec<[usize; 2]>> = held.collect();
        let is_settled = receipt.key().is_none_or(|key| self.settled.contains(&key));
        let Some(held) = held.filter(|_| !is_settled) else { return Err(ReceiptError::Spent) };
        // Of a receipt from before the clock was set back, the meters know how long it lives.
        let until = |place: &usize| self.meters.kept(*place).meter.held_until(hold);
        let until = held.iter().filter_map(until).max().unwrap_or(now);
        let expires = receipt.expires.min(until).max(now.plus(life.min(RECEIPT_LIFE_MAX)));
        for place in held {
            self.meters.changed(place).meter.extend(hold, expires, now);
        }
        Ok(Receipt { expires, ..receipt.clone() })
    }

    /// How a meter stands; `None` if its limit is not defined.
    pub fn inspect(&mut self, name: &MeterName) -> Option<MeterState> {
        let now = self.now;
        let place = self.at(name.clone())?;
        let KeptMeter { meter, definition, .. } = self.meters.kept(place);
        Some(MeterState::new(meter, definition, 0, now))
    }
}

impl KeptMeter {
    /// How long it must be kept: until it is as new.
    pub fn life(&self, now: Now) -> Span {
        let Self { meter, definition, .. } = self;
        meter.kept_for(definition, now)
    }
}
