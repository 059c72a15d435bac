//! Paying at meters without a lane.

use super::ways::{Line, lines, owes, stands_at};
use super::{Call, Naive};
use crate::contract::{
    Ask, AskError, Cost, DELAY_MAX, MeterName, MeterState, Paid, PaidLine, RECEIPT_LIFE_MAX,
    Receipt, ReceiptError, Refusal,
};
use crate::gate;
use crate::limit::Definition;
use crate::meter::{Holding, Meter, Payment, Standing};
use crate::rule::slots::HoldId;
use crate::time::{Now, Span};
use crate::turn::{Company, Place, Priority};

impl Naive {
    /// Pays all tolls of an ask, or none.
    pub fn consume(&mut self, ask: &Ask, now: Now) -> Result<Paid, AskError> {
        self.advance(now);
        if ask.tolls.is_empty() {
            return Err(AskError::NoToll);
        }
        self.check_tolls(&ask.tolls, &[])?;
        let owed = lines(&ask.tolls);
        if ask.delay_max.is_some() {
            self.check_slots(&owed)?;
        }
        let latest = ask.delay_max.map(|most| now.at.plus(most.min(DELAY_MAX)));
        let tried = self.tried(&owed, ask.priority, now);
        let ahead = |at: usize| self.weight_ahead(&owed[at], now);
        let starts = match gate::reserve(&tried, ahead, latest, now) {
            Ok(starts) => starts,
            Err((at, blocker)) => {
                let (limit, partition) = owed[at].meter.clone();
                let (cause, opening) = (blocker.cause, blocker.opening);
                let standing = tried[at].standing(now);
                let now = now.at;
                let refusal = Refusal { limit, partition, cause, opening, standing, now };
                self.count_refused(ask, &refusal);
                return Err(AskError::Refused(refusal));
            }
        };
        self.last_token += 1;
        let id = self.last_token;
        let expires = starts.plus(ask.life.min(RECEIPT_LIFE_MAX));
        let holding = Holding { id: HoldId(id), expires };
        let mut paid = Vec::new();
        for line in &owed {
            let Some(definition) = self.definition(&line.meter).cloned() else { continue };
            let fresh = || Meter::new(&definition, now.at);
            let meter = self.meters.entry(line.meter.clone()).or_insert_with(fresh);
            let payment = meter.pay(&definition, line.weight, (now, starts), Some(holding));
            self.admit(&line.meter, line.weight);
            let (limit, partition) = line.meter.clone();
            paid.push(PaidLine { limit, partition, payment });
        }
        let (tightest, standing) = gate::tightest(&self.tried(&owed, ask.priority, now), now);
        Ok(Paid { receipt: Receipt { id, expires, lines: paid }, starts, tightest, standing })
    }

    /// Says what would come of an ask: it is paid, and everything put back as it was.
    pub fn peek(&mut self, ask: &Ask, now: Now) -> Result<Standing, AskError> {
        self.advance(now);
        let (meters, token) = (self.meters.clone(), self.last_token);
        let counted = (self.admitted.clone(), self.totals.clone());
        let standing = gate::tightest(&self.tried(&lines(&ask.tolls), ask.priority, now), now).1;
        let answer = self.consume(ask, now).map(|_| standing);
        (self.meters, self.last_token) = (meters, token);
        (self.admitted, self.totals) = counted;
        answer
    }

    /// Settles a receipt, once.
    pub fn settle_receipt(
        &mut self,
        receipt: &Receipt,
        cost: &Cost,
        now: Now,
    ) -> Result<(), ReceiptError> {
        self.advance(now);
        let actual = match cost {
            Cost::Told(told) => receipt.actual(told)?,
            Cost::Nothing => vec![0; receipt.lines.len()],
        };
        if receipt.expires <= now.at || self.settled.contains_key(&receipt.id) {
            return Err(ReceiptError::Spent);
        }
        let longest = now.at.plus(RECEIPT_LIFE_MAX).max(receipt.expires);
        let holds = receipt.holds().next().is_some();
        self.settled.insert(receipt.id, if holds { longest } else { receipt.expires });
        for (line, actual) in receipt.lines.iter().zip(actual) {
            let meter = (line.limit.clone(), line.partition.clone());
            self.settle_line(&meter, &line.payment, actual, now);
        }
        Ok(())
    }

    /// Holds a receipt's slots for longer.
    pub fn renew_receipt(
        &mut self,
        receipt: &Receipt,
        life: Span,
        now: Now,
    ) -> Result<Receipt, ReceiptError> {
        self.advance(now);
        let expires = receipt.expires.max(now.at.plus(life.min(RECEIPT_LIFE_MAX)));
        let held: Vec<MeterName> =
            receipt.holds().map(|line| (line.limit.clone(), line.partition.clone())).collect();
        if held.is_empty() {
            return Err(ReceiptError::NothingHeld);
        }
        let hold = HoldId(receipt.id);
        let is_held = |meter: &MeterName| {
            self.meters.get(meter).is_some_and(|meter| meter.holds(hold, now.at))
        };
        if self.settled.contains_key(&receipt.id) || !held.iter().all(is_held) {
            return Err(ReceiptError::Spent);
        }
        for meter in &held {
            if let Some(meter) = self.meters.get_mut(meter) {
                meter.extend(hold, expires, now.at);
            }
        }
        Ok(Receipt { expires, ..receipt.clone() })
    }

    /// How a meter stands; `None` if its limit is not defined.
    pub fn inspect(&self, meter: &MeterName, now: Now) -> Option<MeterState> {
        let definition = self.definition(meter).filter(|_| !self.has_gone(&meter.0, now))?;
        let waiting = self.heads.values().filter(|head| stands_at(head, meter)).count();
        let fresh = Meter::new(definition, now.at);
        let kept = self.meters.get(meter).unwrap_or(&fresh);
        let (admitted, of_limit) = (self.admitted.get(meter), self.limit_totals(&meter.0));
        let admitted = admitted.copied().unwrap_or_default();
        let state = MeterState::new(kept, definition, waiting as u64, now);
        let is_paused = self.limits.get(&meter.0).is_some_and(|limit| limit.is_paused);
        Some(MeterState { is_paused, admitted, of_limit, ..state })
    }

    /// The true cost of a payment, or its slots alone if the limit is gone.
    pub(super) fn settle_line(
        &mut self,
        meter: &MeterName,
        payment: &Payment,
        actual: u64,
        now: Now,
    ) {
        let definition = self.definition(meter).cloned();
        let Some(meter) = self.meters.get_mut(meter) else { return };
        match (definition, payment.hold) {
            (Some(definition), _) => meter.settle(&definition, payment, actual, now),
            (None, Some(hold)) => {
                meter.release(hold);
            }
            (None, None) => {}
        }
    }

    fn check_slots(&self, owed: &[Line]) -> Result<(), AskError> {
        let has_slots =
            |meter: &MeterName| self.definition(meter).is_some_and(Definition::has_slots);
        match owed.iter().find(|line| has_slots(&line.meter)) {
            Some(line) => Err(AskError::DelayWithSlots { limit: line.meter.0.clone() }),
            None => Ok(()),
        }
    }

    /// What matters to someone who came just now, at each meter.
    fn tried(&self, owed: &[Line], priority: Priority, now: Now) -> Vec<gate::Line<'_>> {
        let place = Place::new(priority, u64::MAX, u64::MAX);
        let each = owed.iter().map(|line| gate::Line {
            definition: self.definition(&line.meter),
            is_paused: self.limits.get(&line.meter.0).is_some_and(|limit| limit.is_paused),
            meter: self.meters.get(&line.meter),
            weight: line.weight,
            place,
            company: self.company_of_newcomer(&line.meter, now),
        });
        each.collect()
    }

    fn asking(&self, now: Now) -> impl Iterator<Item = (&Call, &super::Head)> {
        self.heads().filter(move |(call, _)| {
            let queue = self.queues.get(&call.new.queue);
            queue.is_some_and(|queue| now.at < queue.asks_until && !queue.is_paused)
        })
    }

    fn company_of_newcomer(&self, meter: &MeterName, now: Now) -> Company {
        let standing = self.asking(now).filter(|(_, head)| stands_at(head, meter));
        let mut seniors =
            self.asking(now).filter(|(call, head)| head.is_senior && owes(call, meter));
        Company {
            first: standing.map(|(call, _)| self.place(call, meter)).min(),
            senior: seniors.next().map(|(call, _)| self.place(call, meter)),
        }
    }

    fn weight_ahead(&self, line: &Line, now: Now) -> u64 {
        let standing = self.asking(now).filter(|(_, head)| stands_at(head, &line.meter));
        let weights = standing.flat_map(|(call, _)| {
            let all = lines(&call.new.tolls).into_iter();
            all.filter(|owed| owed.meter == line.meter).map(|owed| owed.weight)
        });
        weights.fold(0, u64::saturating_add)
    }
}
