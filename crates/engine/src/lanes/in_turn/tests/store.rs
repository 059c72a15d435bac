//! The naive reference as a store of limits alone, which can be out of reach or slow.

use crate::{Clock, ManualClock};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, Semaphore};
use tollgate_core::contract::kept::Kept;
use tollgate_core::contract::{
    Answer, Ask, AskError, Configure, ConfigureError, Cost, LimitView, MeterError, MeterName,
    MeterState, Meters, Paid, Receipt, ReceiptError, StoreError,
};
use tollgate_core::lanes::Record;
use tollgate_core::lanes::naive::Naive;
use tollgate_core::{Key, LimitName, Now, Span, Standing};

#[derive(Clone)]
pub(super) struct Plain {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    kept: Kept<Naive>,
    clock: ManualClock,
    /// So far the store's clock is ahead of everyone else's.
    pub(super) ahead: Mutex<Span>,
    /// How often something was asked for.
    pub(super) asks: AtomicUsize,
    /// For how long the last receipt was to live.
    pub(super) life: Mutex<Span>,
    /// What it says instead of an answer.
    fault: Mutex<Option<StoreError>>,
    /// Answers are given while there are permits.
    pub(super) answers: Semaphore,
    /// Told of each renewal.
    pub(super) renewed: Notify,
}

impl Plain {
    pub(super) fn new(clock: ManualClock) -> Self {
        let shared = Shared {
            kept: Kept::new(Naive::new(), clock.both()),
            clock,
            ahead: Mutex::default(),
            asks: AtomicUsize::new(0),
            life: Mutex::default(),
            fault: Mutex::default(),
            answers: Semaphore::new(Semaphore::MAX_PERMITS),
            renewed: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn asks(&self) -> usize {
        self.shared.asks.load(Ordering::Relaxed)
    }

    pub(super) fn goes_out_of_reach(&self, is_out_of_reach: bool) {
        let unreachable = StoreError::Unreachable { reason: "the cable is cut".to_owned() };
        self.fails(is_out_of_reach.then_some(unreachable));
    }

    pub(super) fn fails(&self, fault: Option<StoreError>) {
        *self.shared.fault.lock() = fault;
    }

    fn kept(&self) -> Answer<&Kept<Naive>> {
        if let Some(fault) = self.shared.fault.lock().clone() {
            return Err(fault);
        }
        let (now, ahead) = (self.shared.clock.both(), *self.shared.ahead.lock());
        self.shared.kept.set_now(Now { at: now.at.plus(ahead), wall: now.wall.plus(ahead) });
        Ok(&self.shared.kept)
    }
}

impl Meters for Plain {
    async fn now(&self) -> Answer<Now> {
        self.kept()?.now().await
    }

    async fn configure(&self, change: Configure) -> Answer<Result<(), ConfigureError>> {
        self.kept()?.configure(change).await
    }

    async fn consume(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Paid, AskError>>> {
        self.shared.asks.fetch_add(1, Ordering::Relaxed);
        if let Some(ask) = asks.first() {
            *self.shared.life.lock() = ask.life;
        }
        let answer = self.kept()?.consume(asks).await;
        drop(self.shared.answers.acquire().await);
        // It may have gone meanwhile.
        self.kept()?;
        answer
    }

    async fn peek(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Standing, AskError>>> {
        self.kept()?.peek(asks).await
    }

    async fn settle(
        &self,
        receipts: Vec<(Receipt, Cost)>,
    ) -> Answer<Vec<Result<(), ReceiptError>>> {
        self.kept()?.settle(receipts).await
    }

    async fn renew(
        &self,
        receipts: Vec<Receipt>,
        life: Span,
    ) -> Answer<Vec<Result<Receipt, ReceiptError>>> {
        let renewed = self.kept()?.renew(receipts, life).await;
        self.shared.renewed.notify_one();
        renewed
    }

    async fn inspect(&self, meters: Vec<MeterName>) -> Answer<Vec<Option<MeterState>>> {
        self.kept()?.inspect(meters).await
    }

    async fn reopen(&self, meter: MeterName) -> Answer<()> {
        self.kept()?.reopen(meter).await
    }

    async fn close(
        &self,
        meter: MeterName,
        span: Span,
        reason: String,
    ) -> Answer<Result<(), MeterError>> {
        self.kept()?.close(meter, span, reason).await
    }

    async fn reset(&self, meter: MeterName) -> Answer<Result<(), MeterError>> {
        self.kept()?.reset(meter).await
    }

    async fn records(&self, keys: Vec<Key>) -> Answer<Vec<Option<Record>>> {
        self.kept()?.records(keys).await
    }

    async fn limits(&self, after: Option<LimitName>, most: usize) -> Answer<Vec<LimitView>> {
        self.kept()?.limits(after, most).await
    }
}
