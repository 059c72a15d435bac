//! A proxy on loopback that passes on what it is sent, holds answers back, or cuts connections.

use parking_lot::Mutex;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How late everything is that comes through a slow one.
const SLOW_MS: u64 = 15;

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Passes all on.
    Smooth,
    /// Holds all answers back.
    Held,
    /// Delays everything.
    Slow,
    /// Delays some, and cuts some in the middle.
    Rough,
    /// Cuts some in the middle.
    Torn,
}

/// A proxy before a server of loopback.
pub(crate) struct Proxy {
    port: u16,
    manner: watch::Sender<Manner>,
}

#[derive(Clone)]
struct Line {
    manner: watch::Receiver<Manner>,
    random: Arc<Mutex<u64>>,
}

impl Proxy {
    /// Before the server at this port; chance begins with this seed.
    pub(crate) async fn before(port: u16, seed: u64) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (manner, told) = watch::channel(Manner::Smooth);
        let line = Line { manner: told, random: Arc::new(Mutex::new(seed)) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let line = line.clone();
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    let there = line.clone().pass(from_client, to_server, false);
                    let back = line.pass(from_server, to_client, true);
                    // When one way ends the connection does.
                    tokio::select! { () = there => {}, () = back => {} }
                });
            }
        });
        Self { port: own, manner }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The url of a PostgreSQL behind it.
    pub(crate) fn postgres(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub(crate) fn be(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }
}

impl Line {
    async fn pass(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_answer: bool) {
        let mut bytes = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let manner = *self.manner.borrow();
            let mut kept = count;
            if manner == Manner::Slow {
                moment(SLOW_MS).await;
            }
            if manner == Manner::Rough {
                match self.chance(60) {
                    // Some of it arrives, or nothing.
                    0 => kept = count / 2,
                    1 => kept = 0,
                    2 | 3 => moment(200).await,
                    4..=8 => moment(20).await,
                    _ => {}
                }
            }
            if manner == Manner::Torn && self.chance(40) == 0 {
                kept = usize::try_from(self.chance(count as u64)).unwrap_or_default();
            }
            if is_answer && self.manner.wait_for(|manner| *manner != Manner::Held).await.is_err() {
                return;
            }
            if to.write_all(&bytes[..kept]).await.is_err() || kept < count {
                return;
            }
        }
    }

    fn chance(&self, of: u64) -> u64 {
        let mut random = self.random.lock();
        // Xorshift: enough for chance, and the same each time.
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        *random % of
    }
}

/// A moment until something is looked at again.
pub(crate) async fn moment(millis: u64) {
    let _ = tokio::time::timeout(Duration::from_millis(millis), pending::<()>()).await;
}
