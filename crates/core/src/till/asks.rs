//! Paying, settling and looking.

use super::{KeptMeter, Till};
use crate::contract::{
    Ask, AskError, Cost, DELAY_MAX, MeterName, MeterState, Paid, PaidLine, RECEIPT_LIFE_MAX,
    Receipt, ReceiptError, Refusal,
};
use crate::gate;
use crate::meter::{Holding, Standing};
use crate::rule::slots::HoldId;
use crate::time::{Now, Span, Timestamp};
use crate::toll::{self, TollError};
use crate::turn::{Company, Place};
use smallvec::SmallVec;
use std::sync::Arc;

/// What an ask owes at one meter.
type Owed = (MeterName, u64);

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
        for (name, weight) in &owed {
            let Some(kept) = self.at(name) else { continue };
            let KeptMeter { meter, definition, .. } = kept;
            let payment = meter.pay(definition, *weight, (now, starts), Some(holding));
            let (limit, partition) = name.clone();
            lines.push(PaidLine { limit, partition, payment });
            self.changes.meters.insert(name.clone());
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
    fn decided(&mut self, ask: &Ask) -> Result<(Vec<Owed>, Timestamp), AskError> {
        if ask.tolls.is_empty() {
            return Err(AskError::NoToll);
        }
        toll::check(&ask.tolls, |toll| {
            self.rules(&(toll.limit.clone(), toll.partition.clone())).map(Arc::as_ref)
        })?;
        let owed = ask.owed();
        if owed.len() > 1
            && let Some(((limit, _), _)) = owed.iter().find(|((limit, _), _)| self.is_spread(limit))
        {
            return Err(TollError::Spread { limit: limit.clone() }.into());
        }
        for (name, _) in &owed {
            let definition = self.at(name).map(|kept| kept.definition.clone());
            let has_slots = definition.is_some_and(|definition| definition.has_slots());
            if has_slots && ask.delay_max.is_some() {
                return Err(AskError::DelayWithSlots { limit: name.0.clone() });
            }
        }
        let latest = ask.delay_max.map(|most| self.now.at.plus(most.min(DELAY_MAX)));
        let lines = self.lines(&owed, ask);
        let starts = gate::reserve(&lines, |_| 0, latest, self.now).map_err(|(at, blocker)| {
            let ((limit, partition), _) = owed[at].clone();
            let (cause, opening) = (blocker.cause, blocker.opening);
            let standing = lines[at].standing(self.now);
            let now = self.now.at;
            AskError::Refused(Refusal { limit, partition, cause, opening, standing, now })
        })?;
        drop(lines);
        Ok((owed, starts))
    }

    /// All that matters at the meters of an ask.
    fn lines(&self, owed: &[Owed], ask: &Ask) -> SmallVec<[Line<'_>; 2]> {
        let place = Place::new(ask.priority, u64::MAX, u64::MAX);
        let line = |(name, weight): &Owed| {
            let kept = self.meters.get(name);
            Line {
                definition: kept.map(|kept| kept.definition.as_ref()),
                is_paused: false,
                meter: kept.map(|kept| &kept.meter),
                weight: *weight,
                place,
                company: Company::default(),
            }
        };
        owed.iter().map(line).collect()
    }

    /// Higher than any at the meters of an ask: so long as it is one at each of them, it need not be
    /// one anywhere else.
    fn next_id(&self, owed: &[Owed]) -> u64 {
        let latest = owed.iter().filter_map(|(name, _)| self.meters.get(name));
        let latest = latest.map(|kept| kept.meter.sequence()).max().unwrap_or(0);
        self.now.at.as_nanos().max(latest).saturating_add(1)
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
        if let Some(KeptMeter { meter, definition, .. }) = self.at(&name) {
            meter.settle(definition, &line.payment, actual, now);
        } else if let (Some(kept), Some(hold)) = (self.meters.get_mut(&name), line.payment.hold) {
            kept.meter.release(hold);
        }
        self.changes.meters.insert(name);
    }

    /// Holds a receipt's slots for `life` from now.
    pub fn renew(&mut self, receipt: &Receipt, life: Span) -> Result<Receipt, ReceiptError> {
        let names = receipt.holds().map(|line| (line.limit.clone(), line.partition.clone()));
        let held: SmallVec<[MeterName; 2]> = names.collect();
        if held.is_empty() {
            return Err(ReceiptError::NothingHeld);
        }
        // A limit that counts no slots any more holds none.
        for name in &held {
            let _ = self.at(name);
        }
        let (hold, now) = (HoldId(receipt.id), self.now.at);
        let is_held = |name: &MeterName| {
            self.meters.get(name).is_some_and(|kept| kept.meter.holds(hold, now))
        };
        let is_settled = receipt.key().is_none_or(|key| self.settled.contains(&key));
        if is_settled || !held.iter().all(is_held) {
            return Err(ReceiptError::Spent);
        }
        // Of a receipt from before the clock was set back, the meters know how long it lives.
        let until = |name: &MeterName| self.meters.get(name)?.meter.held_until(hold);
        let until = held.iter().filter_map(until).max().unwrap_or(now);
        let expires = receipt.expires.min(until).max(now.plus(life.min(RECEIPT_LIFE_MAX)));
        for name in held {
            if let Some(kept) = self.meters.get_mut(&name) {
                kept.meter.extend(hold, expires, now);
            }
            self.changes.meters.insert(name);
        }
        Ok(Receipt { expires, ..receipt.clone() })
    }

    /// How a meter stands; `None` if its limit is not defined.
    pub fn inspect(&mut self, name: &MeterName) -> Option<MeterState> {
        let now = self.now;
        let KeptMeter { meter, definition, .. } = self.at(name)?;
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
