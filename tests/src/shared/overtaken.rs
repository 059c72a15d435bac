//! NATS: others change cells in the middle of a change of several.

use super::cells::{Add, cell, change, look};
use super::nats::settings;
use super::world::{asking, define, passes};
use crate::servers::nats::NatsServer;
use crate::servers::proxy::{Manner, Proxy};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use tollgate::shared::Shared;
use tollgate_core::contract::{Answer, Meters};
use tollgate_core::{Limit, Now, Span};
use tollgate_stores::nats::{NatsCells, Settings};
use tollgate_stores::shared::cells::{CellKey, Cells, Change, Decide, Doing, Found, Kind, Wanted};
use tollgate_stores::shared::quick::Quick;

/// What others do meanwhile.
type Meddling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Cells behind a proxy: the next change of several hears nothing of its first write until others have
/// done something.
struct Meddled {
    cells: NatsCells,
    proxy: Arc<Proxy>,
    meddling: Mutex<Option<Meddling>>,
    /// The cells of which it was asked what takes its part back.
    taken_back: Mutex<Vec<usize>>,
}

impl Meddled {
    fn meddle(&self, meddling: impl Future<Output = ()> + Send + 'static) {
        *self.meddling.lock() = Some(Box::pin(meddling));
    }
}

impl Cells for Meddled {
    fn change<'a>(
        &'a self,
        wanted: Wanted<'a>,
        decide: &'a mut dyn Decide,
    ) -> Doing<'a, Answer<()>> {
        Box::pin(async move { self.cells.change(wanted, &mut Meddler { decide, at: self }).await })
    }

    fn names<'a>(
        &'a self,
        kind: Kind,
        after: Option<&'a str>,
        most: usize,
    ) -> Doing<'a, Answer<Vec<Box<str>>>> {
        self.cells.names(kind, after, most)
    }

    fn writes_together(&self) -> bool {
        self.cells.writes_together()
    }

    fn spreads(&self) -> bool {
        self.cells.spreads()
    }

    fn decides_itself(&self) -> bool {
        self.cells.decides_itself()
    }

    fn changes_max(&self) -> usize {
        self.cells.changes_max()
    }

    fn shares(&self) -> usize {
        self.cells.shares()
    }
}

struct Meddler<'a> {
    decide: &'a mut dyn Decide,
    at: &'a Meddled,
}

impl Decide for Meddler<'_> {
    fn decide(&mut self, now: Now, found: &Found) -> Vec<Change> {
        let changes = self.decide.decide(now, found);
        let meddling = (changes.len() > 1).then(|| self.at.meddling.lock().take()).flatten();
        if let Some(meddling) = meddling {
            let proxy = self.at.proxy.clone();
            proxy.be(Manner::Held);
            tokio::spawn(async move {
                meddling.await;
                proxy.be(Manner::Smooth);
            });
        }
        changes
    }

    fn take_back(&mut self, at: usize, now: Now, found: Option<&[u8]>) -> Option<Change> {
        self.at.taken_back.lock().push(at);
        self.decide.take_back(at, now, found)
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}

/// A server with two processes at it, of which the first can be meddled with.
struct World {
    _server: NatsServer,
    cells: Arc<Meddled>,
    other: Arc<NatsCells>,
}

async fn world() -> World {
    let server = NatsServer::start();
    let proxy = Arc::new(Proxy::before(server.port(), 1).await);
    let settings: Settings = settings();
    let behind = format!("nats://127.0.0.1:{}", proxy.port());
    let other = Arc::new(NatsCells::connect(&server.url(), settings.clone()).await.unwrap());
    let cells = NatsCells::connect(&behind, settings).await.unwrap();
    let (meddling, taken_back) = (Mutex::default(), Mutex::default());
    let cells = Arc::new(Meddled { cells, proxy, meddling, taken_back });
    World { _server: server, cells, other }
}

/// Until a cell is not any more what it was.
async fn until_written(cells: &dyn Cells, key: &CellKey, before: &[Option<Vec<u8>>]) {
    while look(cells, std::slice::from_ref(key)).await == before {}
}

#[tokio::test]
async fn what_was_written_is_taken_back_when_somebody_was_faster_in_the_middle() {
    let World { _server, cells, other } = world().await;
    let keys = ["a", "b", "c", "d"].map(|name| cell(Kind::Meter, name));
    change(other.as_ref(), &keys[..1], &mut Add::new(&[10])).await;
    let (meddler, seen) = (other.clone(), keys.clone());
    cells.meddle(async move {
        until_written(meddler.as_ref(), &seen[0], &[Some(b"10".to_vec())]).await;
        change(meddler.as_ref(), &seen[..3], &mut Add::new(&[1000, 0, 100])).await;
    });
    let mut add = Add::new(&[1, 2, 3, 4]);
    change(cells.as_ref(), &keys, &mut add).await;
    assert_eq!(*cells.taken_back.lock(), [0], "the others were as they had been written");
    assert_eq!(add.before, [1010, 0, 100, 0], "what the second try found");
    let expected = ["1011", "2", "103", "4"].map(|digits| Some(digits.as_bytes().to_vec()));
    assert_eq!(look(other.as_ref(), &keys).await, expected);
}

async fn remaining(store: &Shared, limit: &str) -> i64 {
    let meter = asking(limit).owed().remove(0).0;
    store.inspect(vec![meter]).await.unwrap().remove(0).unwrap().standing.remaining
}

#[tokio::test]
async fn a_sign_of_life_that_is_overtaken_leaves_what_others_paid() {
    let World { _server, cells, other } = world().await;
    let (store, theirs) = (Shared::new(cells.clone()), Shared::new(other.clone()));
    for limit in ["a", "b"] {
        define(&store, limit, Limit::concurrency(5)).await;
    }
    let mut ask = asking("a");
    ask.tolls.extend(asking("b").tolls);
    let paid = store.consume(vec![ask]).await.unwrap().remove(0).unwrap();
    let first = cell(Kind::Meter, "a");
    let before = look(other.as_ref(), std::slice::from_ref(&first)).await;
    let meddler = theirs.clone();
    cells.meddle(async move {
        until_written(other.as_ref(), &first, &before).await;
        assert!(passes(&meddler, "a").await && passes(&meddler, "b").await);
    });
    let renewed = store.renew(vec![paid.receipt], Span::from_secs(60)).await.unwrap();
    assert!(renewed[0].is_ok());
    assert_eq!(*cells.taken_back.lock(), [0]);
    assert_eq!((remaining(&theirs, "a").await, remaining(&theirs, "b").await), (3, 3));
}
