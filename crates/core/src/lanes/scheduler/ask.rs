//! Paying at meters without a lane: by those who make their calls themselves.

use super::Scheduler;
use super::calls::{Line, MeterSlot};
use super::meters::QueueSlot;
use crate::contract::{
    Ask, AskError, Cost, DELAY_MAX, MeterName, MeterState, Paid, PaidLine, RECEIPT_LIFE_MAX,
    Receipt, ReceiptError, Refusal,
};
use crate::gate::{self, LINES_MAX};
use crate::lanes::effect::Effect;
use crate::meter::{Blocker, Holding, Meter, Standing};
use crate::rule::slots::HoldId;
use crate::time::{Now, Span, Timestamp};
use crate::toll::Toll;
use crate::turn::{Place, Priority};
use smallvec::SmallVec;

/// What an ask owes at one meter.
type Owed = (MeterName, u64);

impl Scheduler {
    /// Pays all tolls of an ask, or none. Overtakes no call of its priority that waits and has a
    /// worker asking for it.
    pub fn consume(&mut self, ask: &Ask, now: Now) -> Result<Paid, AskError> {
        self.advance(now);
        self.make_way(ask, now);
        let decided = self.decided(ask, now);
        if let Err(AskError::Refused(refusal)) = &decided {
            self.count_refused(ask, refusal);
        }
        let (owed, starts) = decided?;
        let id = self.tokens + 1;
        let expires = starts.plus(ask.life.min(RECEIPT_LIFE_MAX));
        self.effects.push(Effect::Paid { id, owed: owed.clone().into(), now, starts, expires });
        let lines = self.paid(id, &owed, now, (starts, expires));
        self.count_paid(&owed);
        let newcomer = self.lines_of_newcomer(&owed, ask.priority, now);
        let (tightest, standing) = gate::tightest(&newcomer, now);
        Ok(Paid { receipt: Receipt { id, expires, lines }, starts, tightest, standing })
    }

    /// Says what [`Self::consume`] would, and pays nothing.
    pub fn peek(&mut self, ask: &Ask, now: Now) -> Result<Standing, AskError> {
        self.advance(now);
        self.make_way(ask, now);
        let (owed, _) = self.decided(ask, now)?;
        Ok(gate::tightest(&self.lines_of_newcomer(&owed, ask.priority, now), now).1)
    }

    /// Heads that are asked for elsewhere stand where they would there.
    fn make_way(&mut self, ask: &Ask, now: Now) {
        if !self.shares_asks {
            return;
        }
        for toll in &ask.tolls {
            if let Some(meter) = self.meters.find(&toll.limit, toll.partition.as_ref()) {
                self.try_elsewhere(meter, None, now);
            }
        }
    }

    /// What an ask owes, and when it starts if it may.
    fn decided(&self, ask: &Ask, now: Now) -> Result<(Vec<Owed>, Timestamp), AskError> {
        if ask.tolls.is_empty() {
            return Err(AskError::NoToll);
        }
        self.check_tolls(&ask.tolls, &[])?;
        let owed = ask.owed();
        if let Some(limit) = ask.delay_max.and_then(|_| self.slots_among(&owed)) {
            return Err(AskError::DelayWithSlots { limit });
        }
        let latest = ask.delay_max.map(|most| now.at.plus(most.min(DELAY_MAX)));
        let lines = self.lines_of_newcomer(&owed, ask.priority, now);
        let ahead = |at: usize| self.asking_weight(&owed[at].0, now);
        let starts = gate::reserve(&lines, ahead, latest, now)
            .map_err(|(at, blocker)| refusal(&owed[at].0, &lines[at], blocker, now))?;
        drop(lines);
        Ok((owed, starts))
    }

    /// Settles a receipt at its true cost, once.
    pub fn settle_receipt(
        &mut self,
        receipt: &Receipt,
        cost: &Cost,
        now: Now,
    ) -> Result<(), ReceiptError> {
        self.advance(now);
        let mut actual = match cost {
            Cost::Told(told) => receipt.actual(told)?,
            Cost::Nothing => vec![0; receipt.lines.len()],
        };
        if receipt.expires <= now.at || self.settled.contains(&receipt.id) {
            return Err(ReceiptError::Spent);
        }
        // One that holds slots may have been renewed: other copies of it live longer, by this much.
        let is_renewable = receipt.holds().next().is_some();
        let longest = if is_renewable { now.at.plus(RECEIPT_LIFE_MAX) } else { receipt.expires };
        let remembered = longest.max(receipt.expires);
        for (line, actual) in receipt.lines.iter().zip(&mut actual) {
            // A limit that went with its calls is owed nothing.
            if self.meters.limit(&line.limit).is_some() && self.there(&line.limit, now).is_none() {
                *actual = line.payment.weight;
            }
        }
        let (receipt, actual) = (Box::new(receipt.clone()), actual.into());
        self.emit(Effect::ReceiptSettled { receipt, actual, now, remembered });
        Ok(())
    }

    /// Holds a receipt's slots for `life` from now.
    pub fn renew_receipt(
        &mut self,
        receipt: &Receipt,
        life: Span,
        now: Now,
    ) -> Result<Receipt, ReceiptError> {
        self.advance(now);
        if receipt.holds().next().is_none() {
            return Err(ReceiptError::NothingHeld);
        }
        let is_held = |line: &PaidLine| {
            let slot = self.meters.find(&line.limit, line.partition.as_ref());
            let meter = slot.and_then(|slot| self.meters[slot].meter.as_deref());
            meter.is_some_and(|meter| meter.holds(HoldId(receipt.id), now.at))
        };
        if self.settled.contains(&receipt.id) || !receipt.holds().all(is_held) {
            return Err(ReceiptError::Spent);
        }
        let expires = receipt.expires.max(now.at.plus(life.min(RECEIPT_LIFE_MAX)));
        let meters = receipt.holds().map(|line| (line.limit.clone(), line.partition.clone()));
        self.emit(Effect::ReceiptRenewed {
            id: receipt.id,
            meters: meters.collect(),
            now,
            expires,
        });
        Ok(Receipt { expires, ..receipt.clone() })
    }

    /// How a meter stands; `None` if its limit is not defined.
    pub fn inspect(&self, meter: &MeterName, now: Now) -> Option<MeterState> {
        let (limit, partition) = meter;
        let definition = self.rules(limit, partition.as_ref(), now)?;
        let found = self.meters.find(limit, partition.as_ref());
        let fresh = Meter::new(definition, now.at);
        let kept = found.and_then(|slot| self.meters[slot].meter.as_deref()).unwrap_or(&fresh);
        let waiting = found.map_or(0, |slot| self.meters[slot].standing());
        let admitted = found.map(|slot| self.meters[slot].admitted).unwrap_or_default();
        let (of_limit, is_paused) = (self.meters.totals(limit), self.meters.is_held_back(limit));
        let state = MeterState::new(kept, definition, waiting, now);
        Some(MeterState { is_paused, admitted, of_limit, ..state })
    }

    /// A limit that counts calls at a time.
    fn slots_among(&self, owed: &[Owed]) -> Option<crate::name::LimitName> {
        let has_slots = |((limit, partition), _): &&Owed| {
            let definition = self.rules(limit, partition.as_ref(), self.present);
            definition.is_some_and(|definition| definition.has_slots())
        };
        owed.iter().find(has_slots).map(|((limit, _), _)| limit.clone())
    }

    /// All that matters at its meters to someone who came just now: behind all of its priority.
    fn lines_of_newcomer(
        &self,
        owed: &[Owed],
        priority: Priority,
        now: Now,
    ) -> SmallVec<[gate::Line<'_>; 2]> {
        let place = Place::new(priority, u64::MAX, u64::MAX);
        let line = |((limit, partition), weight): &Owed| {
            let book = self.meters.limit(limit).map(|limit| self.meters.book(limit));
            let slot = self.meters.find(limit, partition.as_ref());
            gate::Line {
                definition: book.and_then(|book| book.definition_of(partition.as_ref())),
                is_paused: book.is_some_and(|book| book.is_paused()),
                meter: slot.and_then(|slot| self.meters[slot].meter.as_deref()),
                weight: *weight,
                place,
                company: slot
                    .map(|slot| self.company(None, slot, |queue| self.is_asking(queue, now)))
                    .unwrap_or_default(),
            }
        };
        owed.iter().take(LINES_MAX).map(line).collect()
    }

    /// What those weigh who stand at a meter and have a worker asking for them.
    fn asking_weight(&self, (limit, partition): &MeterName, now: Now) -> u64 {
        let slot = self.meters.find(limit, partition.as_ref());
        let crowds = slot.into_iter().flat_map(|slot| self.meters[slot].crowds.iter());
        let asking = crowds.filter(|crowd| self.is_asking(crowd.queue, now));
        asking.fold(0, |sum, crowd| sum.saturating_add(crowd.weight))
    }

    pub(super) fn is_asking(&self, queue: QueueSlot, now: Now) -> bool {
        let queue = self.lanes.queue(queue);
        now.at < queue.asked_until() && !queue.is_paused
    }

    /// Takes tolls that were found open.
    pub(super) fn paid(
        &mut self,
        id: u64,
        owed: &[Owed],
        now: Now,
        (starts, expires): (Timestamp, Timestamp),
    ) -> Vec<PaidLine> {
        self.tokens = self.tokens.max(id);
        let holding = Holding { id: HoldId(id), expires };
        let mut lines = Vec::with_capacity(owed.len());
        for ((limit, partition), weight) in owed {
            let Some(book) = self.meters.limit(limit) else { continue };
            let slot = self.meters.at(book, partition.as_ref());
            let paid = self.meters.change(slot, now, |meter, definition| {
                meter.pay(definition, *weight, (now, starts), Some(holding))
            });
            if let Some(payment) = paid {
                let (limit, partition) = (limit.clone(), partition.clone());
                lines.push(PaidLine { limit, partition, payment });
            }
            self.used(slot);
        }
        lines
    }

    pub(super) fn receipt_settled(
        &mut self,
        receipt: &Receipt,
        actual: &[u64],
        now: Now,
        remembered: Timestamp,
    ) {
        self.now = self.now.max(now.at);
        self.settled.insert(receipt.id);
        self.timers.receipts.insert((remembered, receipt.id));
        for (line, actual) in receipt.lines.iter().zip(actual) {
            // A debt is owed also where all else was forgotten.
            if let Some(limit) = self.meters.limit(&line.limit) {
                let slot = self.meters.at(limit, line.partition.as_ref());
                self.settle_payment(slot, &line.payment, *actual, now);
                self.refresh(slot);
                self.used(slot);
            }
        }
    }

    pub(super) fn receipt_renewed(
        &mut self,
        id: u64,
        meters: &[MeterName],
        now: Now,
        expires: Timestamp,
    ) {
        for (limit, partition) in meters {
            if let Some(slot) = self.meters.find(limit, partition.as_ref()) {
                self.meters.change(slot, now, |meter, _| meter.extend(HoldId(id), expires, now.at));
                self.refresh(slot);
            }
        }
    }

    /// A call's tolls by meter: those at one meter add up.
    pub(super) fn resolve(&mut self, tolls: &[Toll]) -> SmallVec<[Line; 1]> {
        let mut lines: SmallVec<[Line; 1]> = SmallVec::with_capacity(tolls.len());
        for toll in tolls {
            let meter: MeterSlot = self.meters.owed_at(&toll.limit, toll.partition.as_ref());
            match lines.iter_mut().find(|line| line.meter == meter) {
                Some(line) => {
                    line.weight = line.weight.saturating_add(toll.weight);
                    line.hears_feedback |= toll.hears_feedback;
                }
                None => {
                    let (weight, hears_feedback) = (toll.weight, toll.hears_feedback);
                    lines.push(Line { meter, weight, hears_feedback });
                }
            }
        }
        lines
    }
}

fn refusal(
    (limit, partition): &MeterName,
    line: &gate::Line<'_>,
    blocker: Blocker,
    now: Now,
) -> AskError {
    AskError::Refused(Refusal {
        limit: limit.clone(),
        partition: partition.clone(),
        cause: blocker.cause,
        opening: blocker.opening,
        standing: line.standing(now),
        now: now.at,
    })
}
