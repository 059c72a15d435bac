//! A store that is connected to when it is first needed, and is asked for again until it is there: a
//! process may start before its store.

use super::cells::{Cells, Decide, Doing, Kind, Wanted};
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tollgate_core::contract::{Answer, StoreError};

/// Connects to a store, within its deadline.
pub type Connect = Box<dyn Fn() -> Doing<'static, Answer<Arc<dyn Cells>>> + Send + Sync>;

/// Cells of a store that may not be there yet.
pub struct LaterCells {
    connect: Connect,
    connected: OnceLock<Arc<dyn Cells>>,
    /// Held by who connects: when it was last tried in vain, and why.
    failed: Mutex<Option<(Instant, StoreError)>>,
    nature: Nature,
}

/// What is so of a store whether or not it is there.
#[derive(Debug, Clone, Copy)]
pub struct Nature {
    /// See [`Cells::writes_together`].
    pub writes_together: bool,
    /// See [`Cells::spreads`].
    pub spreads: bool,
    /// See [`Cells::changes_max`].
    pub changes_max: usize,
    /// See [`Cells::shares`].
    pub shares: usize,
    /// See [`Cells::decides_itself`].
    pub decides_itself: bool,
}

impl LaterCells {
    /// Connects so, when it is needed.
    pub fn new(nature: Nature, connect: Connect) -> Self {
        Self { connect, connected: OnceLock::new(), failed: Mutex::default(), nature }
    }

    /// Connects now, if it is not. Who waits for somebody else to connect is told what came of that.
    pub async fn connected(&self) -> Answer<&Arc<dyn Cells>> {
        if let Some(cells) = self.connected.get() {
            return Ok(cells);
        }
        let since = Instant::now();
        let mut failed = self.failed.lock().await;
        if let Some(cells) = self.connected.get() {
            return Ok(cells);
        }
        if let Some((_, error)) = failed.as_ref().filter(|(at, _)| since <= *at) {
            return Err(error.clone());
        }
        match (self.connect)().await {
            Ok(cells) => Ok(self.connected.get_or_init(|| cells)),
            Err(error) => {
                *failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

impl Cells for LaterCells {
    fn change<'a>(
        &'a self,
        wanted: Wanted<'a>,
        decide: &'a mut dyn Decide,
    ) -> Doing<'a, Answer<()>> {
        Box::pin(async move { self.connected().await?.change(wanted, decide).await })
    }

    fn names<'a>(
        &'a self,
        kind: Kind,
        after: Option<&'a str>,
        most: usize,
    ) -> Doing<'a, Answer<Vec<Box<str>>>> {
        Box::pin(async move { self.connected().await?.names(kind, after, most).await })
    }

    fn writes_together(&self) -> bool {
        self.nature.writes_together
    }

    fn spreads(&self) -> bool {
        self.nature.spreads
    }

    fn changes_max(&self) -> usize {
        self.nature.changes_max
    }

    fn shares(&self) -> usize {
        self.nature.shares
    }

    fn decides_itself(&self) -> bool {
        self.nature.decides_itself
    }
}
