//! Limits that several processes share, in a store that keeps values: [`Cells`] is what such
//! a store does, and [`Shared`] makes limits of it.
//!
//! Requests of one process that come while the store is busy go to it together, as one change. What is
//! read for it is opened as a [`Till`](tollgate_core::till::Till), where everything is decided, in the
//! store's time; and what changed is written.

mod agree;
mod ahead;
mod apart;
mod batch;
pub mod cells;
mod clock;
pub(crate) mod codec;
mod command;
mod condition;
mod desk;
mod hurry;
pub mod later;
mod memory;
mod news;
mod open;
pub mod quick;
mod rules;
#[cfg(feature = "tls")]
pub mod tls;
mod wants;

use ahead::{Ahead, Lending};
use cells::{Cells, Kind};
use command::{
    Close, Consume, Inspect, Look, Peek, Records, Renew, Reopen, Reset, Settle, SettleLine, Spend,
    Tell,
};
use desk::Desk;
use memory::Memory;
use news::News;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tollgate_core::contract::{
    Answer, Ask, AskError, Configure, ConfigureError, Cost, LimitTotals, LimitView, MeterError,
    MeterName, MeterState, Meters, PAGE_MAX, Paid, Receipt, ReceiptError, StoreError,
};
use tollgate_core::lanes::Record;
use tollgate_core::{Key, LimitName, Now, Span, Standing};

/// Limits in a store that several processes share. Clones are one.
#[derive(Clone)]
pub struct Shared {
    desk: Desk,
    cells: Arc<dyn Cells>,
    ahead: Arc<Ahead>,
    news: Arc<News>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// Limits in these cells. Requests are seen to on the runtime that this is called on.
    pub fn new(cells: Arc<dyn Cells>) -> Self {
        let (lending, news) = (Lending::default(), Arc::<News>::default());
        let memory = Memory::new(lending.clone(), news.clone(), cells.spreads());
        let desk = Desk::open(cells.clone(), memory);
        Self { desk, cells, ahead: Ahead::new(lending), news }
    }

    /// The next limit whose rules were found to be others than when they were last looked at, by whatever
    /// was asked of them; of one that was never looked at, too. Who changed them is not said: it may have
    /// been this process. For one who listens at a time.
    pub async fn changed(&self) -> LimitName {
        self.news.next().await
    }

    /// Whether the store answered when it was last asked; so it is before it ever was. Asks nothing.
    pub fn takes_writes(&self) -> Answer<()> {
        self.desk.condition.last()
    }

    /// How often the store was asked by this process and did not do it.
    pub fn failures(&self) -> u64 {
        self.desk.condition.failures()
    }

    /// Where cells are written one by one: once it is spent, a receipt is settled meter by meter. Cut
    /// short between, the rest counts as spent; slots are let go when it is settled again.
    async fn settle_apart(&self, receipt: Receipt, cost: Cost) -> Answer<Result<(), ReceiptError>> {
        let actual = match self.desk.ask(Spend(receipt.clone(), cost)).await? {
            Ok(actual) => actual,
            Err(ReceiptError::Spent) => {
                // It may have been cut short there. Slots are let go, which may be done twice.
                let let_go = receipt.holds().map(|it| SettleLine(it.clone(), it.payment.weight));
                self.desk.ask_each(let_go.collect()).await?;
                return Ok(Err(ReceiptError::Spent));
            }
            Err(error) => return Ok(Err(error)),
        };
        for (line, actual) in receipt.lines.into_iter().zip(actual) {
            self.desk.ask(SettleLine(line, actual)).await?;
        }
        Ok(Ok(()))
    }

    /// Where cells are written one by one: asks at different meters have nothing to do with each other.
    async fn consume_apart(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Paid, AskError>>> {
        let mut places: BTreeMap<MeterName, Vec<usize>> = BTreeMap::new();
        for (place, ask) in asks.iter().enumerate() {
            match &ask.owed()[..] {
                [(name, _)] => places.entry(name.clone()).or_default().push(place),
                // They are decided in order.
                _ => return self.desk.ask(Consume(asks)).await,
            }
        }
        let at = |places: &Vec<usize>| places.iter().map(|place| asks[*place].clone()).collect();
        let each = places.values().map(|places| Consume(at(places))).collect();
        let answers = self.desk.ask_each(each).await?;
        let places = places.into_values().flatten();
        let mut placed: Vec<_> = places.zip(answers.into_iter().flatten()).collect();
        placed.sort_by_key(|(place, _)| *place);
        Ok(placed.into_iter().map(|(_, answer)| answer).collect())
    }
}

/// The same change, of rules as they are where units may be taken ahead.
fn with_ahead(mut change: Configure) -> Configure {
    let limits = change.limits.iter_mut().map(|(_, definition)| definition);
    let own = change.overrides.iter_mut().map(|(_, _, definition)| definition);
    for definition in limits.chain(own).flatten() {
        // A definition was checked with what it lends.
        if let Ok(guarded) = definition.with_ahead() {
            *definition = guarded;
        }
    }
    change
}

impl Meters for Shared {
    async fn now(&self) -> Answer<Now> {
        self.desk.ask(Tell).await
    }

    async fn configure(&self, change: Configure) -> Answer<Result<(), ConfigureError>> {
        if let Err(error) = change.check_size() {
            return Ok(Err(error));
        }
        let limits = change.limits.iter().map(|(limit, _)| limit);
        let limits = limits.chain(change.overrides.iter().map(|(limit, ..)| limit));
        let limits: BTreeSet<LimitName> = limits.cloned().collect();
        let done = self.desk.ask(with_ahead(change)).await;
        self.ahead.end(&self.desk, |(limit, _)| limits.contains(limit)).await;
        done
    }

    async fn consume(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Paid, AskError>>> {
        if let [ask] = &asks[..]
            && let Some(answer) = self.ahead.consume(ask, &self.desk).await
        {
            return Ok(vec![answer?]);
        }
        if self.cells.writes_together() || asks.len() < 2 {
            return self.desk.ask(Consume(asks)).await;
        }
        self.consume_apart(asks).await
    }

    async fn peek(&self, asks: Vec<Ask>) -> Answer<Vec<Result<Standing, AskError>>> {
        self.desk.ask(Peek(asks)).await
    }

    async fn settle(
        &self,
        receipts: Vec<(Receipt, Cost)>,
    ) -> Answer<Vec<Result<(), ReceiptError>>> {
        if self.cells.spreads() {
            // One by one, so that each lies in one place: what settles is not taken back.
            let each = receipts.into_iter().map(|receipt| Settle(vec![receipt]));
            return Ok(self.desk.ask_each(each.collect()).await?.into_iter().flatten().collect());
        }
        if self.cells.writes_together() {
            return self.desk.ask(Settle(receipts)).await;
        }
        let mut settled = Vec::with_capacity(receipts.len());
        for (receipt, cost) in receipts {
            settled.push(self.settle_apart(receipt, cost).await?);
        }
        Ok(settled)
    }

    async fn renew(
        &self,
        receipts: Vec<Receipt>,
        life: Span,
    ) -> Answer<Vec<Result<Receipt, ReceiptError>>> {
        if self.cells.writes_together() && !self.cells.spreads() {
            return self.desk.ask(Renew(receipts, life)).await;
        }
        // One by one, so that none that is overtaken holds up the others.
        let each = receipts.into_iter().map(|receipt| Renew(vec![receipt], life));
        Ok(self.desk.ask_each(each.collect()).await?.into_iter().flatten().collect())
    }

    async fn inspect(&self, meters: Vec<MeterName>) -> Answer<Vec<Option<MeterState>>> {
        self.desk.ask(Inspect(meters)).await
    }

    async fn reopen(&self, meter: MeterName) -> Answer<()> {
        self.desk.ask(Reopen(meter)).await
    }

    async fn close(
        &self,
        meter: MeterName,
        span: Span,
        reason: String,
    ) -> Answer<Result<(), MeterError>> {
        let done = self.desk.ask(Close(meter.clone(), span, reason)).await;
        self.ahead.end(&self.desk, |name| *name == meter).await;
        done
    }

    async fn reset(&self, meter: MeterName) -> Answer<Result<(), MeterError>> {
        let done = self.desk.ask(Reset(meter.clone())).await;
        self.ahead.end(&self.desk, |name| *name == meter).await;
        done
    }

    async fn records(&self, keys: Vec<Key>) -> Answer<Vec<Option<Record>>> {
        self.desk.ask(Records(keys)).await
    }

    async fn limits(&self, after: Option<LimitName>, most: usize) -> Answer<Vec<LimitView>> {
        let most = most.min(PAGE_MAX);
        let (mut after, mut views) = (after.map(|name| name.as_str().to_owned()), Vec::new());
        // Limits that were removed are remembered for a while, and not told.
        while views.len() < most {
            let wanted = most - views.len();
            let names = self.cells.names(Kind::Limit, after.as_deref(), wanted).await;
            let names = self.desk.condition.noted(names)?;
            let is_last = names.len() < wanted;
            let names =
                names.iter().map(|name| LimitName::new(name)).collect::<Result<Vec<_>, _>>();
            let names = names.map_err(|error| StoreError::Failed { reason: error.to_string() })?;
            after = names.last().map(|name| name.as_str().to_owned());
            let rules = self.desk.ask(Look(names.clone())).await?;
            let seen = names.into_iter().zip(rules).filter_map(|(name, definition)| {
                let (is_paused, totals) = (false, LimitTotals::default());
                Some(LimitView { name, definition: definition?, is_paused, totals })
            });
            views.extend(seen);
            if is_last {
                break;
            }
        }
        Ok(views)
    }
}
