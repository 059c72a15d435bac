//! A pass: leave to start a call now, and what it paid for that.

use crate::error::{AskError, Error};
use crate::lanes::Held;
use crate::limiter::Inner;
use crate::limits::Entry;
use crate::locked::{Line, Locked};
use crate::stand::Stand;
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate_core::contract;
use tollgate_core::lanes::Lease;
use tollgate_core::rule::slots::HoldId;
use tollgate_core::{LimitName, Partition, Payment, Span, Standing, Timestamp, UNITS_MAX};

/// Leave to start one call. Slots it holds are freed when it is dropped; what it paid at rates
/// stays spent unless it is settled or cancelled.
#[derive(Debug)]
#[must_use = "slots are held as long as the pass lives"]
pub struct Pass {
    delay: Span,
    tightest: usize,
    stand: Stand,
    paid: Option<Box<Paid>>,
}

/// What a pass may settle, and must let go.
#[derive(Debug)]
enum Paid {
    /// In memory.
    Memory { inner: Arc<Inner>, lines: SmallVec<[PaidLine; 1]> },
    /// In a store: settled by itself when it is dropped.
    Kept(Box<dyn Held>),
}

/// What was paid at one meter.
#[derive(Debug, Clone)]
pub(crate) struct PaidLine {
    pub(crate) entry: Arc<Entry>,
    pub(crate) key: Box<str>,
    pub(crate) payment: Payment,
    pub(crate) is_settled: bool,
}

impl PaidLine {
    pub(crate) fn new(line: &Line<'_>, payment: Payment) -> Self {
        let (entry, key) = (line.entry.clone(), line.address.key.into());
        Self { entry, key, payment, is_settled: false }
    }
}

/// Proof of tolls paid, apart from any process: good for settling the true cost later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Names the receipt.
    pub id: u64,
    /// From then on it counts as spent, and the slots it held are free.
    pub expires: Timestamp,
    /// What was paid, a line for each meter; none if it holds a lease.
    pub lines: Vec<ReceiptLine>,
    /// The lease of a call that waited its turn in a store.
    pub lease: Option<Lease>,
}

impl Receipt {
    /// What holds the lease of a call.
    pub(crate) fn of_lease(lease: Lease, expires: Timestamp) -> Self {
        Self { id: lease.token, expires, lines: Vec::new(), lease: Some(lease) }
    }

    /// As a store knows it.
    pub(crate) fn to_kept(&self) -> Result<contract::Receipt, Error> {
        let line = |line: &ReceiptLine| -> Result<_, Error> {
            Ok(contract::PaidLine {
                limit: LimitName::new(&line.limit)?,
                partition: line.partition.as_deref().map(Partition::new).transpose()?,
                payment: line.payment,
            })
        };
        let lines = self.lines.iter().map(line).collect::<Result<_, _>>()?;
        Ok(contract::Receipt { id: self.id, expires: self.expires, lines })
    }

    /// The lines that hold slots, and under which name.
    pub(crate) fn holds(&self) -> impl Iterator<Item = (&ReceiptLine, HoldId)> {
        self.lines.iter().filter_map(|line| Some((line, line.payment.hold?)))
    }
}

impl From<contract::Receipt> for Receipt {
    fn from(receipt: contract::Receipt) -> Self {
        let contract::Receipt { id, expires, lines } = receipt;
        let lines = lines.into_iter().map(|line| ReceiptLine {
            limit: line.limit.as_str().to_owned(),
            partition: line.partition.map(|partition| partition.as_str().to_owned()),
            payment: line.payment,
        });
        Self { id, expires, lines: lines.collect(), lease: None }
    }
}

/// What was paid at one meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptLine {
    /// The limit's name.
    pub limit: String,
    /// The partition; `None` for the global meter.
    pub partition: Option<String>,
    /// The payment.
    pub payment: Payment,
}

impl Pass {
    /// A pass whose tightest meter stands so.
    pub(crate) fn new(delay: Span, (tightest, standing): (usize, Standing)) -> Self {
        Self { delay, tightest, stand: Stand::Known(standing), paid: None }
    }

    /// The pass with what it may settle, and must let go.
    pub(crate) fn with(self, inner: &Arc<Inner>, lines: impl Iterator<Item = PaidLine>) -> Self {
        let paid = Paid::Memory { inner: inner.clone(), lines: lines.collect() };
        Self { paid: Some(Box::new(paid)), ..self }
    }

    /// The pass with what it holds in a store.
    pub(crate) fn held(mut self, held: Box<dyn Held>) -> Self {
        self.paid = Some(Box::new(Paid::Kept(held)));
        self
    }

    /// The pass as something else holds what it may settle or must let go.
    pub(crate) fn wrapped(mut self, hold: impl FnOnce(Self) -> Box<dyn Held>) -> Self {
        let (delay, tightest, stand) = (self.delay, self.tightest, self.stand);
        let Some(paid) = self.paid.take() else { return self };
        let held = hold(Self { delay, tightest, stand, paid: Some(paid) });
        self.held(held)
    }

    /// A pass with nothing to settle or hold.
    #[inline]
    pub(crate) fn free(stand: Stand) -> Self {
        Self { delay: Span::ZERO, tightest: 0, stand, paid: None }
    }

    /// How long to wait before starting; zero unless it was asked for with a delay.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Which of the call's meters has the least left: the number of its toll, with tolls at one meter
    /// counted once. What follows is about that meter.
    pub fn tightest(&self) -> usize {
        self.tightest
    }

    /// How the tightest meter stands.
    pub fn standing(&self) -> Standing {
        self.stand.standing()
    }

    /// The number in the tightest rule: per period, or at a time.
    pub fn limit(&self) -> u64 {
        self.stand.standing().limit
    }

    /// Units left at the tightest meter after this call; negative under debt.
    pub fn remaining(&self) -> i64 {
        self.stand.standing().remaining
    }

    /// How long until that meter is as new.
    pub fn reset_after(&self) -> Span {
        self.stand.standing().reset_after
    }

    /// Settles what was paid at a limit at its true cost: once, at all partitions of that name that
    /// the call paid. Less gives back what the meter can take back; more is owed before later calls
    /// pass. Slots stay held until the pass is dropped. In a store a call settles once: what it cost is
    /// written when all its estimates are told, or when the pass is dropped if it holds slots.
    pub async fn settle(&mut self, limit: &str, actual: u64) -> Result<(), Error> {
        if actual > UNITS_MAX {
            return Err(AskError::ActualTooLarge { actual }.into());
        }
        let unpaid = || AskError::NotPaid { name: limit.chars().take(128).collect() };
        let (inner, lines) = match self.paid.as_deref_mut().ok_or_else(unpaid)? {
            Paid::Memory { inner, lines } => (inner, lines),
            Paid::Kept(held) => return held.settle(limit, actual).await,
        };
        if !lines.iter().any(|line| *line.entry.name == *limit) {
            return Err(unpaid().into());
        }
        for line in lines.iter_mut().filter(|line| *line.entry.name == *limit) {
            if line.is_settled {
                return Err(AskError::ReceiptSpent.into());
            }
            line.is_settled = true;
            let payment = Payment { hold: None, ..line.payment };
            inner.settle_line(&line.entry, &line.key, &payment, actual);
        }
        Ok(())
    }

    /// Whether it holds slots: they are freed when it is dropped.
    pub fn holds_slots(&self) -> bool {
        match self.paid.as_deref() {
            Some(Paid::Memory { lines, .. }) => {
                lines.iter().any(|line| line.payment.hold.is_some())
            }
            Some(Paid::Kept(held)) => held.holds_slots(),
            None => false,
        }
    }

    /// Goes on without the pass: a receipt that settles until `life` has passed, at most an hour,
    /// and holds the slots until then. `None` if the pass has nothing to settle or hold.
    pub async fn into_receipt(mut self, life: impl Into<Span>) -> Option<Receipt> {
        match *self.paid.take()? {
            Paid::Memory { inner, lines } => Some(inner.receipt(&lines, life.into())),
            Paid::Kept(held) => held.into_receipt(life.into()).await,
        }
    }

    /// Hands back a call that was never started: rates get back what they can take back, slots are
    /// freed at once. A pass from `consume` without an estimate has nothing to hand back.
    pub async fn cancel(mut self) {
        if let Some(Paid::Kept(held)) = self.take_kept() {
            return held.hand_back().await;
        }
        self.hand_back();
    }

    fn take_kept(&mut self) -> Option<Paid> {
        let is_kept = matches!(self.paid.as_deref(), Some(Paid::Kept(_)));
        self.paid.take_if(|_| is_kept).map(|paid| *paid)
    }

    /// Hands back what was paid in memory.
    pub(crate) fn hand_back(&mut self) {
        let Some(Paid::Memory { inner, lines }) = self.paid.take().map(|paid| *paid) else {
            return;
        };
        for line in &lines {
            let actual = if line.is_settled { line.payment.weight } else { 0 };
            inner.settle_line(&line.entry, &line.key, &line.payment, actual);
        }
    }
}

impl Drop for Pass {
    #[inline]
    fn drop(&mut self) {
        if let Some(paid) = self.paid.take() {
            let_go(paid);
        }
    }
}

/// Frees what is held in memory; what is kept elsewhere frees itself.
// Apart, and with the box: so that dropping a pass that holds nothing is a comparison in its caller's code.
#[cold]
#[inline(never)]
#[expect(clippy::boxed_local, reason = "what is moved out of it is dropped by the caller")]
fn let_go(paid: Box<Paid>) {
    if let Paid::Memory { inner, lines } = &*paid {
        for line in lines.iter().filter(|line| line.payment.hold.is_some()) {
            let weight = line.payment.weight;
            inner.settle_line(&line.entry, &line.key, &line.payment, weight);
        }
    }
}

impl Inner {
    /// Settles one payment at its meter and lets those who wait there try again.
    pub(crate) fn settle_line(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        key: &str,
        paid: &Payment,
        actual: u64,
    ) {
        let partition = Some(key).filter(|key| !key.is_empty());
        let address = entry.address(partition);
        let lines = [Line { entry, address, weight: 1 }];
        let mut locked = Locked::new(&lines, || self.settings.clock.both());
        let now = locked.now;
        // A meter that is gone was as good as new: it has nothing to give back, but more may be
        // owed.
        if locked.missing_meters() > 0 && actual <= paid.weight {
            return;
        }
        // What is owed is written down also when there are as many meters as may be.
        locked.make_meters();
        locked.whole(0, |whole, definition| whole.meter.settle(definition, paid, actual, now));
        let someone_waits = locked.company(0).first.is_some();
        drop(locked);
        if someone_waits {
            self.wake_meter(entry, address);
        }
    }
}
