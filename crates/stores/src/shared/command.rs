//! What a store of limits is told, each with the cells that it needs and what it does there.

use super::open::Opened;
use super::wants::{self, Wants};
use tollgate_core::contract::{
    Ask, AskError, Configure, ConfigureError, Cost, MeterError, MeterName, MeterState, Paid,
    PaidLine, Receipt, ReceiptError,
};
use tollgate_core::lanes::Record;
use tollgate_core::{Key, LimitName, Now, Span, Standing};

/// One thing that is asked of a store.
pub(super) trait Command: Send + 'static {
    /// What whoever asked is told.
    type Answer: Send + 'static;

    /// The cells it needs.
    fn wants(&self, wants: &mut Wants);

    /// Does it. Others may have been faster: then it is done again, on what is there by then.
    fn perform(&self, opened: &mut Opened) -> Self::Answer;

    /// What it asks for at once, if it does nothing else.
    fn asks(&self) -> Option<&[Ask]> {
        None
    }
}

/// The present.
pub(super) struct Tell;

impl Command for Tell {
    type Answer = Now;

    fn wants(&self, _: &mut Wants) {}

    fn perform(&self, opened: &mut Opened) -> Now {
        opened.till.now()
    }
}

pub(super) struct Consume(pub(super) Vec<Ask>);

impl Command for Consume {
    type Answer = Vec<Result<Paid, AskError>>;

    fn wants(&self, wants: &mut Wants) {
        let tolls = self.0.iter().flat_map(|ask| &ask.tolls);
        tolls.for_each(|toll| wants.pay_at(&(toll.limit.clone(), toll.partition.clone())));
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        self.0.iter().map(|ask| opened.till.consume(ask)).collect()
    }

    fn asks(&self) -> Option<&[Ask]> {
        Some(&self.0)
    }
}

/// Pays for more than is asked, as much as passes: see [`super::ahead`].
pub(super) struct Lend {
    pub(super) ask: Ask,
    pub(super) want: u64,
    /// No more is lent than this part of what the meter holds.
    pub(super) part: u64,
}

/// What was lent.
pub(super) struct Lent {
    pub(super) paid: Paid,
    /// What was asked for.
    pub(super) weight: u64,
    /// What was paid for.
    pub(super) units: u64,
    /// For how long the rules lend under which it was paid.
    pub(super) ahead: Span,
}

impl Command for Lend {
    type Answer = Result<Lent, AskError>;

    fn wants(&self, wants: &mut Wants) {
        let names = self.ask.owed();
        names.iter().for_each(|(name, _)| wants.pay_at(name));
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        let mut ask = self.ask.clone();
        let standing = opened.till.peek(&ask)?;
        let [toll] = &mut ask.tolls[..] else { return Err(AskError::NoToll) };
        let weight = toll.weight;
        let name = (toll.limit.clone(), toll.partition.clone());
        let rules = opened.till.rules(&name);
        let ahead = rules.map_or(Span::ZERO, |rules| rules.limit().taken_ahead());
        let most = rules.map_or(0, |rules| rules.capacity() / self.part);
        let there = u64::try_from(standing.remaining).unwrap_or(0);
        let most = if ahead.is_zero() { weight } else { self.want.min(most).min(there) };
        let units = most.max(weight);
        toll.weight = units;
        Ok(Lent { paid: opened.till.consume(&ask)?, weight, units, ahead })
    }
}

pub(super) struct Peek(pub(super) Vec<Ask>);

impl Command for Peek {
    type Answer = Vec<Result<Standing, AskError>>;

    fn wants(&self, wants: &mut Wants) {
        let tolls = self.0.iter().flat_map(|ask| &ask.tolls);
        tolls.for_each(|toll| wants.look_at(&(toll.limit.clone(), toll.partition.clone())));
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        self.0.iter().map(|ask| opened.till.peek(ask)).collect()
    }
}

pub(super) struct Settle(pub(super) Vec<(Receipt, Cost)>);

impl Command for Settle {
    type Answer = Vec<Result<(), ReceiptError>>;

    fn wants(&self, wants: &mut Wants) {
        for (receipt, _) in &self.0 {
            wants.pay_for(receipt);
            wants.change.extend(receipt.key().as_ref().map(wants::settled));
        }
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        let settle = |(receipt, cost): &_| opened.till.settle(receipt, cost);
        self.0.iter().map(settle).collect()
    }
}

/// The first half of settling, where cells are written one by one: from here on the receipt is spent.
pub(super) struct Spend(pub(super) Receipt, pub(super) Cost);

impl Command for Spend {
    type Answer = Result<Vec<u64>, ReceiptError>;

    fn wants(&self, wants: &mut Wants) {
        wants.change.extend(self.0.key().as_ref().map(wants::settled));
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        let Self(receipt, cost) = self;
        opened.till.spend(receipt, cost)
    }
}

/// The other half: the true cost at one meter.
pub(super) struct SettleLine(pub(super) PaidLine, pub(super) u64);

impl Command for SettleLine {
    type Answer = ();

    fn wants(&self, wants: &mut Wants) {
        wants.pay_at(&(self.0.limit.clone(), self.0.partition.clone()));
    }

    fn perform(&self, opened: &mut Opened) {
        opened.till.settle_line(&self.0, self.1);
    }
}

pub(super) struct Renew(pub(super) Vec<Receipt>, pub(super) Span);

impl Command for Renew {
    type Answer = Vec<Result<Receipt, ReceiptError>>;

    fn wants(&self, wants: &mut Wants) {
        for receipt in &self.0 {
            wants.pay_for(receipt);
            wants.read.extend(receipt.key().as_ref().map(wants::settled));
        }
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        self.0.iter().map(|receipt| opened.till.renew(receipt, self.1)).collect()
    }
}

pub(super) struct Inspect(pub(super) Vec<MeterName>);

impl Command for Inspect {
    type Answer = Vec<Option<MeterState>>;

    fn wants(&self, wants: &mut Wants) {
        self.0.iter().for_each(|name| wants.look_at(name));
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        self.0.iter().map(|name| opened.till.inspect(name)).collect()
    }
}

pub(super) struct Close(pub(super) MeterName, pub(super) Span, pub(super) String);

impl Command for Close {
    type Answer = Result<(), MeterError>;

    fn wants(&self, wants: &mut Wants) {
        wants.pay_at(&self.0);
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        opened.till.close(&self.0, self.1, &self.2)
    }
}

pub(super) struct Reset(pub(super) MeterName);

impl Command for Reset {
    type Answer = Result<(), MeterError>;

    fn wants(&self, wants: &mut Wants) {
        wants.pay_at(&self.0);
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        opened.till.reset(&self.0)
    }
}

pub(super) struct Reopen(pub(super) MeterName);

impl Command for Reopen {
    type Answer = ();

    fn wants(&self, wants: &mut Wants) {
        wants.pay_at(&self.0);
    }

    fn perform(&self, opened: &mut Opened) {
        opened.till.reopen(&self.0);
    }
}

pub(super) struct Records(pub(super) Vec<Key>);

impl Command for Records {
    type Answer = Vec<Option<Record>>;

    fn wants(&self, wants: &mut Wants) {
        wants.read.extend(self.0.iter().map(wants::record));
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        self.0.iter().map(|key| opened.record(key).cloned()).collect()
    }
}

/// The rules in force of limits.
pub(super) struct Look(pub(super) Vec<LimitName>);

impl Command for Look {
    type Answer = Vec<Option<tollgate_core::Definition>>;

    fn wants(&self, wants: &mut Wants) {
        wants.read.extend(self.0.iter().map(wants::limit));
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        let rules = |name| Some(opened.till.limit(name)?.in_force()?.as_ref().clone());
        self.0.iter().map(rules).collect()
    }
}

impl Command for Configure {
    type Answer = Result<(), ConfigureError>;

    fn wants(&self, wants: &mut Wants) {
        let Self { write, limits, overrides } = self;
        wants.change.extend(write.iter().map(|write| wants::record(&write.key)));
        wants.change.extend(limits.iter().map(|(name, _)| wants::limit(name)));
        for (limit, partition, _) in overrides {
            wants.change.push(wants::limit(limit));
            wants.change.push(wants::own(limit, partition));
        }
    }

    fn perform(&self, opened: &mut Opened) -> Self::Answer {
        let before = opened.clone();
        let done = configure(self, opened);
        if done.is_err() {
            *opened = before;
        }
        done
    }
}

fn configure(change: &Configure, opened: &mut Opened) -> Result<(), ConfigureError> {
    opened.write(&change.write)?;
    for (name, definition) in &change.limits {
        opened.till.define(name, definition.clone())?;
    }
    for (limit, partition, definition) in &change.overrides {
        opened.till.override_partition(limit, partition, definition.clone())?;
    }
    Ok(())
}
