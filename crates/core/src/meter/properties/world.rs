//! Two meters, a clock and everything that can happen to them, with the naive book kept beside.

use super::acts::{Act, Pick, Wait};
use crate::limit::{Definition, RuleSpec};
use crate::meter::model::{Book, Kind, Record};
use crate::meter::{Meter, Payment};
use crate::rule::Opening;
use crate::time::{Now, Span, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;

/// Nothing here happens after the year 2116, so that the model needs no care at the end of time.
const END: Timestamp = Timestamp::from_nanos(1 << 62);

/// The first instants there are, and the present.
pub(super) fn start() -> impl Strategy<Value = Now> {
    select(vec![0, 1, 1_000, 1_790_000_000_123_456_789]).prop_map(now)
}

pub(super) fn now(nanos: u64) -> Now {
    Now::both(Timestamp::from_nanos(nanos))
}

/// A meter and its book.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) definition: Definition,
    pub(super) meter: Meter,
    pub(super) book: Book,
    /// Changes of the definition so far.
    pub(super) changes: usize,
}

/// A payment that may still be settled, and its place in the book.
#[derive(Debug, Clone)]
pub(super) struct Receipt {
    pub(super) account: usize,
    pub(super) payment: Payment,
    record: usize,
    changes: usize,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) now: Now,
    pub(super) accounts: [Account; 2],
    pub(super) receipts: Vec<Receipt>,
    acts: usize,
}

impl World {
    pub(super) fn new(definitions: [Definition; 2], now: Now) -> Self {
        let accounts = definitions.map(|definition| Account {
            meter: Meter::new(&definition, now.at),
            definition,
            book: Book::default(),
            changes: 0,
        });
        Self { now, accounts, receipts: vec![], acts: 0 }
    }

    pub(super) fn run(&mut self, acts: &[Act]) {
        for act in acts {
            self.act(act);
        }
    }

    pub(super) fn act(&mut self, act: &Act) {
        self.acts += 1;
        match act {
            Act::Pay { meter, weight } => {
                let weight = self.weight(*meter, weight);
                if self.opening(*meter, weight) <= self.now.at {
                    self.pay(*meter, weight, self.now.at);
                }
            }
            Act::Reserve { meter, weight } => {
                let weight = self.weight(*meter, weight);
                self.pay(*meter, weight, self.opening(*meter, weight));
            }
            Act::ReserveBoth { weights } => {
                let weights = [0, 1].map(|meter| self.weight(meter, &weights[meter]));
                let start = self.opening_of_both(weights);
                self.pay(0, weights[0], start);
                self.pay(1, weights[1], start);
            }
            Act::Settle { receipt, eighths } if !self.receipts.is_empty() => {
                let place = receipt.index(self.receipts.len());
                let receipt = self.receipts.remove(place);
                self.settle(&receipt, receipt.payment.weight * eighths / 8);
            }
            Act::Settle { .. } => {}
            Act::Wait(wait) => self.wait(wait),
            Act::Close { meter, eighths } => {
                let until = self.now.at.plus(Span::from_nanos(self.period(*meter) / 8 * eighths));
                self.accounts[*meter].meter.close(until, "asked to", self.now.at);
            }
            Act::Reopen { meter } => {
                self.accounts[*meter].meter.reopen();
            }
            Act::Purge => self.purge(),
            Act::Change { meter, definition } => self.change(*meter, definition),
        }
    }

    fn weight(&self, meter: usize, pick: &Pick) -> u64 {
        pick.of(self.accounts[meter].definition.capacity())
    }

    /// When a weight passes: now, or when the meter says.
    pub(super) fn opening(&self, meter: usize, weight: u64) -> Timestamp {
        self.opening_from(self.now, meter, weight)
    }

    /// The first instant at which both meters let their weight pass: where one opens, the other may
    /// have to keep a promise.
    fn opening_of_both(&self, weights: [u64; 2]) -> Timestamp {
        let mut from = self.now;
        for _ in 0..1_000 {
            let next = [0, 1].map(|meter| self.opening_from(from, meter, weights[meter]));
            let next = next[0].max(next[1]);
            if next == from.at {
                return next;
            }
            from = from.moved_to(next);
        }
        panic!("each opens at the instant that it says");
    }

    fn opening_from(&self, from: Now, meter: usize, weight: u64) -> Timestamp {
        let account = &self.accounts[meter];
        match account.meter.blocker(&account.definition, weight, from) {
            None => from.at,
            Some(blocker) => match blocker.opening {
                Opening::At(opens) => opens,
                Opening::OnRelease => panic!("no slots here"),
            },
        }
    }

    pub(super) fn pay(&mut self, meter: usize, weight: u64, start: Timestamp) {
        if start > END {
            return;
        }
        let account = &mut self.accounts[meter];
        let payment = account.meter.pay(&account.definition, weight, (self.now, start), None);
        let (record, changes) = (account.book.records.len(), account.changes);
        let start = start.as_nanos();
        let call = Record { start, weight, decided: self.acts, kind: Kind::Call };
        account.book.records.push(call);
        self.receipts.push(Receipt { account: meter, payment, record, changes });
    }

    pub(super) fn settle(&mut self, receipt: &Receipt, actual: u64) {
        let Receipt { account, payment, record, changes } = receipt;
        let account = &mut self.accounts[*account];
        account.meter.settle(&account.definition, payment, actual, self.now);
        if actual > payment.weight {
            let (start, weight) = (self.now.at.as_nanos(), actual - payment.weight);
            let debt = Record { start, weight, decided: self.acts, kind: Kind::Debt };
            account.book.records.push(debt);
        } else if *changes == account.changes {
            let record = &mut account.book.records[*record];
            record.weight = actual;
            account.book.has_refunds |= actual < payment.weight;
            if actual == 0 && payment.starts.at > self.now.at {
                record.kind = Kind::Cancelled;
            }
        }
    }

    fn wait(&mut self, wait: &Wait) {
        let nanos = match wait {
            Wait::Nanos(nanos) => *nanos,
            Wait::Sixteenths(parts) => self.period(0) * parts / 16,
            Wait::Fine(parts) => self.period(0) * parts / 256,
            Wait::Opening(meter, weight) => self.until_open(*meter, weight),
            Wait::Before(meter, weight) => self.until_open(*meter, weight).saturating_sub(1),
        };
        let then = self.now.at.plus(Span::from_nanos(nanos));
        if then <= END {
            self.now = self.now.moved_to(then);
        }
    }

    fn until_open(&self, meter: usize, weight: &Pick) -> u64 {
        self.opening(meter, self.weight(meter, weight)).since(self.now.at).as_nanos()
    }

    /// How long the first rule takes from empty to full.
    fn period(&self, meter: usize) -> u64 {
        let nanos = |limit: u64, per: Span, units: u64| {
            let nanos = u128::from(units) * u128::from(per.as_nanos()) / u128::from(limit);
            u64::try_from(nanos).unwrap()
        };
        match self.accounts[meter].definition.limit().rules()[0] {
            RuleSpec::TokenBucket { limit, per, burst, .. } => nanos(limit, per, burst),
            RuleSpec::FixedWindow { per, .. } | RuleSpec::SlidingWindow { per, .. } => {
                per.as_nanos()
            }
            RuleSpec::Concurrency { .. } => panic!("no slots here"),
        }
    }

    fn purge(&mut self) {
        for Account { meter, definition, .. } in &mut self.accounts {
            if meter.is_fresh(definition, self.now) {
                *meter = Meter::new(definition, self.now.at);
            }
        }
    }

    /// What was started under other rules is no breach of these: the book begins anew.
    fn change(&mut self, meter: usize, definition: &Definition) {
        let account = &mut self.accounts[meter];
        account.meter.carry(&account.definition, definition, self.now);
        account.definition = definition.clone();
        account.book = Book { is_continued: true, ..Book::default() };
        account.changes += 1;
    }

    /// The first breach of any rule that the books show.
    pub(super) fn breach(&self) -> Option<(RuleSpec, String)> {
        self.accounts.iter().find_map(|account| {
            let mut rules = account.definition.limit().rules().iter();
            rules.find_map(|rule| Some((rule.clone(), account.book.breach(rule)?)))
        })
    }
}
