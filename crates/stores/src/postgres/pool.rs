//! Connections: a few of our own, each made anew when it broke, or those of the caller's pool.

use super::fault;
use super::hosts::Hosts;
use super::script::{Script, Scripts};
use crate::shared::cells::Doing;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row, Socket, Statement};
use tollgate_core::contract::{Answer, StoreError};

/// A connection of the caller's, which goes back when this is dropped.
pub type Lent = Box<dyn Deref<Target = Client> + Send + Sync>;
/// Hands out a connection of the caller's.
pub type Lend = Box<
    dyn Fn() -> Doing<'static, Result<Lent, Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Sync,
>;

type Connect = Box<dyn Fn() -> Doing<'static, Result<Own, Error>> + Send + Sync>;

/// Where connections come from.
pub(super) struct Pool {
    source: Source,
    /// As many at a time as there are connections.
    turns: Semaphore,
}

enum Source {
    Own { connect: Connect, idle: Mutex<Vec<Own>> },
    Lent(Lend),
}

/// A connection of our own.
struct Own {
    client: Client,
    /// The statements of every change, from its first change on.
    prepared: Vec<Statement>,
    _task: Task,
}

/// What carries a connection's bytes. It ends with it, even if the server never answers.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pool {
    /// Connections of our own.
    pub(super) fn own<T>(hosts: Arc<Hosts>, tls: T, most: usize) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let connect: Connect = Box::new(move || {
            let (hosts, tls) = (hosts.clone(), tls.clone());
            Box::pin(async move { connect(&hosts, tls).await })
        });
        Self::of(Source::Own { connect, idle: Mutex::default() }, most)
    }

    /// Connections of the caller's.
    pub(super) fn lent(lend: Lend, most: usize) -> Self {
        Self::of(Source::Lent(lend), most)
    }

    fn of(source: Source, most: usize) -> Self {
        Self { source, turns: Semaphore::new(most.max(1)) }
    }

    /// A connection for one operation, when it is its turn.
    pub(super) async fn session(&self) -> Answer<Session<'_>> {
        let turn = self.turns.acquire().await.map_err(|closed| StoreError::Failed {
            reason: format!("no connections are handed out any more: {closed}"),
        })?;
        let held = match &self.source {
            Source::Own { connect, idle } => match take_sound(idle) {
                Some(own) => Held::Own(own),
                None => Held::Own(connect().await.map_err(fault::of)?),
            },
            Source::Lent(lend) => {
                let lent = lend().await.map_err(|error| StoreError::Unreachable {
                    reason: format!("no connection was lent: {error}"),
                })?;
                Held::Lent(Borrowed { lent, is_clean: false })
            }
        };
        Ok(Session { pool: self, held, _turn: turn })
    }
}

fn take_sound(idle: &Mutex<Vec<Own>>) -> Option<Own> {
    let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
    idle.retain(|own| !own.client.is_closed());
    idle.pop()
}

async fn connect<T>(hosts: &Hosts, tls: T) -> Result<Own, Error>
where
    T: MakeTlsConnect<Socket> + Clone,
    T::Stream: Send + 'static,
{
    let (client, connection) = hosts.connect(tls).await?;
    let carrying = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection to PostgreSQL ended");
        }
    });
    Ok(Own { client, prepared: Vec::new(), _task: Task(carrying.abort_handle()) })
}

/// A connection in use. Unless it is [kept](Self::keep), what it had under way is undone: one of our
/// own is closed, for it may still be busy; the caller's is rolled back.
pub(super) struct Session<'a> {
    pool: &'a Pool,
    held: Held,
    _turn: SemaphorePermit<'a>,
}

enum Held {
    Own(Own),
    Lent(Borrowed),
}

impl Session<'_> {
    /// The connection itself.
    pub(super) fn client(&self) -> &Client {
        match &self.held {
            Held::Own(own) => &own.client,
            Held::Lent(borrowed) => &borrowed.lent,
        }
    }

    /// Prepares what every change runs, if the connection is ours and new. On the caller's nothing is
    /// prepared, since what stands between may hand each transaction to another server process.
    pub(super) async fn prepare(&mut self, scripts: &Scripts) -> Result<(), Error> {
        let Held::Own(own) = &mut self.held else { return Ok(()) };
        if own.prepared.is_empty() {
            let [lock, read, write] = scripts.prepared();
            let client = &own.client;
            let (lock, read, write) = tokio::try_join!(
                biased;
                client.prepare_typed(&lock.sql, lock.types),
                client.prepare_typed(&read.sql, read.types),
                client.prepare_typed(&write.sql, write.types),
            )?;
            own.prepared = vec![lock, read, write];
        }
        Ok(())
    }

    /// Runs a statement. It is sent as soon as this is polled, so several can be under way in order.
    pub(super) async fn run(
        &self,
        script: &Script,
        arguments: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        if let (Held::Own(own), Some(place)) = (&self.held, script.place)
            && let Some(statement) = own.prepared.get(place)
        {
            return own.client.query(statement, arguments).await;
        }
        let types = script.types.iter().cloned();
        let typed: Vec<(&(dyn ToSql + Sync), Type)> =
            arguments.iter().copied().zip(types).collect();
        self.client().query_typed(&script.sql, &typed).await
    }

    /// Hands the connection back: it has nothing under way.
    pub(super) fn keep(self) {
        match (self.held, &self.pool.source) {
            (Held::Own(own), Source::Own { idle, .. }) => {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(own);
            }
            (Held::Lent(mut borrowed), _) => borrowed.is_clean = true,
            (Held::Own(_), Source::Lent(_)) => {}
        }
    }
}

/// A connection of the caller's, which gets it back without an open transaction.
struct Borrowed {
    lent: Lent,
    is_clean: bool,
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if !self.is_clean {
            // Polled once, it is sent, behind all that was sent before it: nobody waits for the answer.
            let rollback = pin!(self.lent.batch_execute("ROLLBACK"));
            let _ = rollback.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}
