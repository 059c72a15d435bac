//! A pass: leave to start a call now, what it paid for that, and slots that are held while it lives.

use crate::client::{Asked, Client};
use crate::clock::{self, Backoff};
use crate::consume::RECEIPT_LIFE;
use crate::error::ClientError;
use crate::letting_go::Hold;
use crate::path::path;
use crate::wire::ask::GrantWire;
use hyper::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tollgate_core::{Span, UNITS_MAX};

/// How long slots are held beyond the last heartbeat: as long as a process that died keeps them.
const HELD_FOR: Span = Span::from_secs(60);
/// A heartbeat that failed is tried again this many times as soon.
const SOONER: u64 = 4;
/// Longest pause before a server that does not answer is told again.
const PAUSE_MAX: Span = Span::from_secs(5);

/// Leave to start one call. Slots it holds are renewed while it lives and freed when it is dropped; what
/// it paid at rates stays spent unless it is settled or cancelled.
#[derive(Debug)]
#[must_use = "slots are held as long as the pass lives"]
pub struct Pass {
    delay: Span,
    limit: u64,
    remaining: i64,
    reset_after: Span,
    kept: Option<Kept>,
}

/// What a pass may settle, and must let go.
#[derive(Debug)]
struct Kept {
    estimates: Vec<String>,
    told: Costs,
    /// Closed when the pass is dropped: the keeper lets go then.
    keeper: mpsc::Sender<Order>,
}

/// What the call cost in truth, as far as it was told.
type Costs = Arc<Mutex<BTreeMap<String, u64>>>;

type Reply = oneshot::Sender<Result<(), ClientError>>;

#[derive(Debug)]
enum Order {
    /// All costs are told.
    Settle(Reply),
    /// It was never started; these were its estimates.
    Cancel(Vec<String>, Reply),
}

impl Pass {
    pub(crate) fn new(client: &Client, grant: GrantWire, estimates: Vec<String>) -> Self {
        let kept = grant.receipt.map(|receipt| {
            let told = Costs::default();
            let (keeper, orders) = mpsc::channel(1);
            let hold = client.inner.letting_go.begin();
            // Only who asked for a receipt may have one that holds nothing.
            let holds = if estimates.is_empty() { Holds::Slots } else { Holds::Unknown };
            let client = client.clone();
            let ends = clock::now() + RECEIPT_LIFE.into();
            let mut it = Keeper { client, receipt, told: told.clone(), holds, ends, _hold: hold };
            if holds == Holds::Slots {
                it.ends = clock::now() + HELD_FOR.into();
            }
            tokio::spawn(it.keep(orders));
            Kept { estimates, told, keeper }
        });
        Self {
            delay: Span::from_millis(grant.delay_ms),
            limit: grant.limit,
            remaining: grant.remaining,
            reset_after: Span::from_millis(grant.reset_after_ms),
            kept,
        }
    }

    /// How long to wait before starting; zero unless it was asked for with a delay.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// The number in the tightest rule: per period, or at a time.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Units left at the tightest meter after this call; negative under debt.
    pub fn remaining(&self) -> i64 {
        self.remaining
    }

    /// How long until that meter is as new.
    pub fn reset_after(&self) -> Span {
        self.reset_after
    }

    /// Settles what was paid at a limit at its true cost, once. A call settles once: what it cost is
    /// written when all its estimates are told, or when the pass is dropped if it may hold slots. A server
    /// that does not answer is told again for as long as it may know the call.
    pub async fn settle(&mut self, limit: &str, actual: u64) -> Result<(), ClientError> {
        if actual > UNITS_MAX {
            return Err(ClientError::invalid(format!(
                "{actual} units at limit {limit} are over the most, {UNITS_MAX}: count in a larger unit"
            )));
        }
        let kept = self.kept.as_ref();
        let Some(kept) = kept.filter(|kept| kept.estimates.iter().any(|it| it == limit)) else {
            return Err(ClientError::invalid(format!(
                "the call paid no toll that can be settled at limit {limit}: settle a limit it paid, and give its weight as an estimate"
            )));
        };
        let told_count = {
            let mut told = kept.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.insert(limit.to_owned(), actual).is_some() {
                return Err(ClientError::invalid(format!("limit {limit} was settled before")));
            }
            told.len()
        };
        if told_count < kept.estimates.len() {
            return Ok(());
        }
        kept.order(Order::Settle).await
    }

    /// Hands back a call that was never started: rates get back what they can take back, slots are freed
    /// at once. A pass without an estimate or slots has nothing to hand back. What was settled before stays
    /// so: then estimates that were not are handed back, and no other tolls.
    pub async fn cancel(self) -> Result<(), ClientError> {
        match &self.kept {
            Some(kept) => {
                let estimates = kept.estimates.clone();
                kept.order(|reply| Order::Cancel(estimates, reply)).await
            }
            None => Ok(()),
        }
    }
}

impl Kept {
    async fn order(&self, order: impl FnOnce(Reply) -> Order) -> Result<(), ClientError> {
        let (reply, answer) = oneshot::channel();
        let spent =
            || ClientError::invalid("this pass was settled before: what it paid stays spent");
        self.keeper.send(order(reply)).await.map_err(|_| spent())?;
        answer.await.map_err(|_| spent())?
    }
}

/// Whether a receipt holds slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Slots,
    Nothing,
    /// Until it is asked.
    Unknown,
}

/// Renews slots while a pass lives, and settles what it was told.
struct Keeper {
    client: Client,
    receipt: String,
    told: Costs,
    holds: Holds,
    /// Until when the server knows the receipt.
    ends: Instant,
    _hold: Hold,
}

#[derive(Deserialize)]
struct RenewedWire {
    receipt: String,
}

impl Keeper {
    async fn keep(mut self, mut orders: mpsc::Receiver<Order>) {
        // Whether there are slots is known when they are renewed.
        let first = if self.holds == Holds::Unknown { self.renew().await } else { self.every() };
        let mut beat = clock::now() + first.into();
        loop {
            tokio::select! {
                () = clock::rest_until(beat), if self.holds != Holds::Nothing => {
                    let next = self.renew().await;
                    beat = clock::now() + next.into();
                }
                order = orders.recv() => match order {
                    Some(Order::Settle(reply)) if self.holds != Holds::Nothing => {
                        // Slots are held until the pass is dropped, and then all is settled.
                        let _ = reply.send(Ok(()));
                    }
                    Some(Order::Settle(reply)) => {
                        let _ = reply.send(self.settle().await);
                        return;
                    }
                    Some(Order::Cancel(estimates, reply)) => {
                        let _ = reply.send(self.cancel(&estimates).await);
                        return;
                    }
                    None => return self.let_go().await,
                },
            }
        }
    }

    fn every(&self) -> Span {
        self.client.inner.heartbeat
    }

    /// Holds the slots on, if there are any; says when to do so again.
    async fn renew(&mut self) -> Span {
        let asked = Asked::new(Method::POST, path(&["receipts", &self.receipt, "renew"]));
        let asked = asked.json(&json!({"for": HELD_FOR.to_string()})).map(Asked::ahead);
        let renewed = match asked {
            Ok(asked) => self.client.ask::<RenewedWire>(asked).await,
            Err(error) => Err(error),
        };
        match renewed {
            Ok(RenewedWire { receipt }) => {
                (self.receipt, self.holds) = (receipt, Holds::Slots);
                self.ends = clock::now() + HELD_FOR.into();
                self.every()
            }
            Err(error) if error.code() == Some("nothing_held") => {
                self.holds = Holds::Nothing;
                self.every()
            }
            Err(error) if error.may_pass() => {
                tracing::warn!(%error, "slots could not be renewed yet");
                Span::from_nanos(self.every().as_nanos() / SOONER)
            }
            Err(error) => {
                tracing::warn!(%error, "slots of a pass were lost: others may have them");
                self.holds = Holds::Nothing;
                self.every()
            }
        }
    }

    async fn settle(&self) -> Result<(), ClientError> {
        let told = self.costs().clone();
        self.tell("settle", &json!({"actual": told})).await
    }

    async fn cancel(&self, estimates: &[String]) -> Result<(), ClientError> {
        let mut told = self.costs().clone();
        if told.is_empty() {
            return self.tell("cancel", &json!({})).await;
        }
        for limit in estimates {
            told.entry(limit.clone()).or_insert(0);
        }
        self.tell("settle", &json!({"actual": told})).await
    }

    fn costs(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the server what becomes of the receipt, for as long as it knows it.
    async fn tell(&self, what: &str, body: &Value) -> Result<(), ClientError> {
        let (mut backoff, mut is_told_before) = (Backoff::up_to(PAUSE_MAX), false);
        loop {
            let asked = Asked::new(Method::POST, path(&["receipts", &self.receipt, what]));
            let asked = asked.json(body)?.again().ahead();
            let error = match self.client.ask::<IgnoredAny>(asked).await {
                Ok(_) => return Ok(()),
                // It was heard the last time, and the answer was lost.
                Err(error) if is_told_before && error.code() == Some("receipt_spent") => {
                    return Ok(());
                }
                Err(error) => error,
            };
            let resumes = clock::now() + backoff.next();
            if !error.may_pass() || resumes >= self.ends {
                return Err(error);
            }
            is_told_before = true;
            tracing::debug!(%error, what, "a pass could not be let go of yet");
            clock::rest_until(resumes).await;
        }
    }

    /// The pass is gone: its slots are freed, and what was told is settled.
    async fn let_go(&self) {
        let is_told = !self.costs().is_empty();
        if self.holds == Holds::Nothing && !is_told {
            return;
        }
        if let Err(error) = self.settle().await {
            tracing::warn!(%error, "a pass could not be let go of: its slots are free in a minute");
        }
    }
}
