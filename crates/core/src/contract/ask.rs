//! Asking at meters without a lane: pay now, or pay now and start later; settle the receipt.

use super::MeterName;
use crate::meter::{Cause, Payment, Standing};
use crate::name::{LimitName, Partition};
use crate::rule::Opening;
use crate::time::{Span, Timestamp};
use crate::toll::TollError;
use crate::tolls::Tolls;
use crate::turn::Priority;

/// Furthest start that is promised.
pub const DELAY_MAX: Span = Span::from_days(1);
/// Longest life of a receipt, from the start of its call or from its last renewal.
pub const RECEIPT_LIFE_MAX: Span = Span::from_days(1);

/// A call that its caller makes: what it owes, and whether it would start later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What it owes, at least one toll. Two at one meter add up.
    pub tolls: Tolls,
    /// Who goes first: no call of this priority or a higher one that waits is overtaken.
    pub priority: Priority,
    /// It pays now and starts at the first instant that all its meters allow, if that is no later
    /// than so long from now; `None`: it starts now or is refused.
    pub delay_max: Option<Span>,
    /// How long its receipt lives from its start: so long slots are held, and the true cost can be
    /// told.
    pub life: Span,
}

/// An ask that was granted, and paid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Paid {
    /// What settles it.
    pub receipt: Receipt,
    /// When the call may start: now, or later if it was reserved.
    pub starts: Timestamp,
    /// Which line of the receipt is of its tightest meter.
    pub tightest: usize,
    /// How that meter stands.
    pub standing: Standing,
}

/// Proof of tolls paid. It holds all that settling needs: the store remembers settled ones alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Which one; slots are held under this name.
    pub id: u64,
    /// Until when it can be settled, and holds its slots.
    pub expires: Timestamp,
    /// What was paid, by meter.
    pub lines: Vec<PaidLine>,
}

/// What a call cost in truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cost {
    /// So much at these limits, for all tolls of that name; at the others what was paid.
    Told(Vec<(LimitName, u64)>),
    /// Nothing: it never started, and everything is handed back.
    Nothing,
}

/// What was paid at one meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaidLine {
    /// Which limit.
    pub limit: LimitName,
    /// Which of its meters; `None` for the global one.
    pub partition: Option<Partition>,
    /// How much, and when.
    pub payment: Payment,
}

/// Why an ask was not granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// Not now: ask again later.
    #[error("limit {} refuses: {}", .0.limit, .0.cause.reason())]
    Refused(Refusal),
    /// Never as it is.
    #[error(transparent)]
    Toll(#[from] TollError),
    /// Nothing to pay.
    #[error("an ask needs at least one toll")]
    NoToll,
    /// Slots cannot be promised for later.
    #[error(
        "{limit} counts calls at a time, and no one knows when a slot is freed: wait in a lane instead"
    )]
    DelayWithSlots {
        /// Which limit.
        limit: LimitName,
    },
}

/// The meter that opens last for an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which limit.
    pub limit: LimitName,
    /// Which of its meters; `None` for the global one.
    pub partition: Option<Partition>,
    /// What is in the way there.
    pub cause: Cause,
    /// When to ask again, if anyone can know.
    pub opening: Opening,
    /// How that meter stands.
    pub standing: Standing,
    /// When this was so.
    pub now: Timestamp,
}

/// Why a receipt was not settled or renewed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// It was settled before, or has expired.
    #[error("this receipt was settled before, or has expired: what it paid stays spent")]
    Spent,
    /// It names a limit that was not paid.
    #[error("the call paid nothing at {limit}")]
    NotPaid {
        /// What was named.
        limit: LimitName,
    },
    /// It holds no slots that could be held longer.
    #[error("this receipt holds no slots: there is nothing to renew")]
    NothingHeld,
}

impl Ask {
    /// What it owes by meter: tolls at one meter add up.
    pub fn owed(&self) -> Vec<(MeterName, u64)> {
        let mut owed: Vec<(MeterName, u64)> = Vec::with_capacity(self.tolls.len());
        for toll in &self.tolls {
            let is_it = |((limit, partition), _): &&mut (MeterName, u64)| {
                *limit == toll.limit && *partition == toll.partition
            };
            match owed.iter_mut().find(is_it) {
                Some((_, weight)) => *weight = weight.saturating_add(toll.weight),
                None => owed.push(((toll.limit.clone(), toll.partition.clone()), toll.weight)),
            }
        }
        owed
    }
}

impl Receipt {
    /// Names it where ids are one at a meter alone: the meter of its first line, and its id there.
    pub fn key(&self) -> Option<(MeterName, u64)> {
        let first = self.lines.first()?;
        Some(((first.limit.clone(), first.partition.clone()), self.id))
    }

    /// Its lines that hold slots.
    pub fn holds(&self) -> impl Iterator<Item = &PaidLine> {
        self.lines.iter().filter(|line| line.payment.hold.is_some())
    }

    /// The true cost of each line, of what was told; all that was not named cost what it paid.
    pub fn actual(&self, told: &[(LimitName, u64)]) -> Result<Vec<u64>, ReceiptError> {
        let is_paid = |limit: &LimitName| self.lines.iter().any(|line| line.limit == *limit);
        if let Some((limit, _)) = told.iter().find(|(limit, _)| !is_paid(limit)) {
            return Err(ReceiptError::NotPaid { limit: limit.clone() });
        }
        let cost = |line: &PaidLine| {
            let named = told.iter().find(|(limit, _)| *limit == line.limit);
            named.map_or(line.payment.weight, |(_, actual)| *actual)
        };
        Ok(self.lines.iter().map(cost).collect())
    }
}
