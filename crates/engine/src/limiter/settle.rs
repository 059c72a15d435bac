//! Receipts: taking one, settling it once, renewing and handing it back.

use super::{Inner, Limiter};
use crate::error::{AskError, Error, StoreError};
use crate::locked::{Line, Locked};
use crate::pass::{PaidLine, Receipt, ReceiptLine};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use tollgate_core::{Payment, Span, Timestamp, UNITS_MAX};

/// Longest life of a receipt, and longest renewal.
const LIFE_MAX: Span = Span::from_hours(1);

/// Which receipts were settled, until they would have expired.
#[derive(Debug)]
pub(crate) struct Settled {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    ids: HashSet<u64>,
    by_expiry: BTreeMap<(Timestamp, u64), ()>,
}

impl Settled {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// Notes that a receipt is settled; refused if it was before.
    fn note(&self, receipt: &Receipt, now: Timestamp) -> Result<(), Error> {
        let mut kept = self.kept.lock();
        while let Some(first) = kept.by_expiry.first_entry().filter(|e| e.key().0 <= now) {
            let (_, id) = *first.key();
            first.remove();
            kept.ids.remove(&id);
        }
        if receipt.expires <= now || kept.ids.contains(&receipt.id) {
            return Err(AskError::ReceiptSpent.into());
        }
        if kept.ids.len() >= self.most {
            return Err(StoreError::ReceiptsFull { receipts: self.most }.into());
        }
        // One that holds slots may have been renewed: other copies of it live longer, by this much.
        let holds_slots = receipt.holds().next().is_some();
        let until = if holds_slots { now.plus(LIFE_MAX) } else { receipt.expires };
        kept.ids.insert(receipt.id);
        kept.by_expiry.insert((until, receipt.id), ());
        Ok(())
    }

    fn contains(&self, receipt: &Receipt) -> bool {
        self.kept.lock().ids.contains(&receipt.id)
    }
}

impl Limiter {
    /// Settles a receipt: each limit named at its true cost, all others at what they paid. Once.
    pub fn settle(&self, receipt: &Receipt, actual: &[(&str, u64)]) -> Result<(), Error> {
        for (name, actual) in actual {
            if *actual > UNITS_MAX {
                return Err(AskError::ActualTooLarge { actual: *actual }.into());
            }
            let can_settle = |line: &ReceiptLine| line.limit == *name && line.payment.weight > 0;
            if !receipt.lines.iter().any(can_settle) {
                let name = name.chars().take(128).collect();
                return Err(AskError::NotPaid { name }.into());
            }
        }
        self.spend(receipt, |line| {
            let named = actual.iter().find(|(name, _)| *name == line.limit);
            let named = named.filter(|_| line.payment.weight > 0);
            named.map_or(line.payment.weight, |(_, actual)| *actual)
        })
    }

    /// Hands back a call that was never started. Once.
    pub fn hand_back(&self, receipt: &Receipt) -> Result<(), Error> {
        self.spend(receipt, |_| 0)
    }

    /// Holds a receipt's slots for `life` from now, at most an hour, and returns the receipt with
    /// its new expiry; refused if it holds none or has lost them.
    pub fn renew(&self, receipt: &Receipt, life: impl Into<Span>) -> Result<Receipt, Error> {
        let expires = self.clock().now().plus(life.into().min(LIFE_MAX));
        if receipt.holds().next().is_none() {
            return Err(AskError::NothingHeld.into());
        }
        if self.inner.settled.contains(receipt) {
            return Err(AskError::ReceiptSpent.into());
        }
        for (line, hold) in receipt.holds() {
            let is_held =
                self.inner.with_line(line, |whole, now| whole.meter.renew(hold, expires, now));
            if is_held != Some(true) {
                return Err(AskError::ReceiptSpent.into());
            }
        }
        Ok(Receipt { expires, ..receipt.clone() })
    }

    fn spend(&self, receipt: &Receipt, actual: impl Fn(&ReceiptLine) -> u64) -> Result<(), Error> {
        self.inner.settled.note(receipt, self.clock().now())?;
        for line in &receipt.lines {
            if let Some(entry) = self.inner.limits.find(&line.limit) {
                let key = line.partition.as_deref().unwrap_or("");
                self.inner.settle_line(&entry, key, &line.payment, actual(line));
            }
        }
        Ok(())
    }
}

impl Inner {
    /// A receipt for what was paid: from now on the receipt holds the slots, not a pass.
    pub(crate) fn receipt(&self, paid: &[PaidLine], life: Span) -> Receipt {
        let expires = self.settings.clock.now().plus(life.min(LIFE_MAX));
        let lines = paid.iter().map(|line| ReceiptLine {
            limit: line.entry.name.as_ref().to_owned(),
            partition: Some(&*line.key).filter(|key| !key.is_empty()).map(str::to_owned),
            // What the pass has settled is not settled again; its slots go on being held.
            payment: if line.is_settled {
                Payment { weight: 0, ..line.payment }
            } else {
                line.payment
            },
        });
        let (id, lines) = (self.next_hold().0, lines.collect());
        let receipt = Receipt { id, expires, lines, lease: None };
        for (line, hold) in receipt.holds() {
            self.with_line(line, |whole, now| whole.meter.renew(hold, expires, now));
        }
        receipt
    }

    fn with_line<T>(
        &self,
        line: &ReceiptLine,
        change: impl FnOnce(&mut crate::table::Whole, Timestamp) -> T,
    ) -> Option<T> {
        let entry = self.limits.find(&line.limit)?;
        let address = entry.address(line.partition.as_deref());
        let lines = [Line { entry: &entry, address, weight: 1 }];
        let mut locked = Locked::new(&lines, || self.settings.clock.both());
        if locked.missing_meters() > 0 {
            return None;
        }
        let now = locked.now.at;
        locked.whole(0, |whole, _| change(whole, now))
    }
}
