//! Connections to one server: kept for a while, and no more than so many.

use super::address::Address;
use super::stream::Stream;
use super::{Failure, Fresh, Urgency};
use crate::clock;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// Most connections that are kept for later.
const IDLE_MAX: usize = 32;
/// How long one is kept: half of the time after which a server closes it.
const IDLE_TIME_MAX: Duration = Duration::from_secs(5);
/// How long a server may take to be connected to, encryption included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How connections are encrypted, if they are.
#[cfg(feature = "tls")]
pub(crate) type Secure = Option<super::tls::Tls>;
/// Never, without the feature `tls`.
#[cfg(not(feature = "tls"))]
pub(crate) type Secure = Option<std::convert::Infallible>;

pub(super) struct Pool {
    address: Address,
    secure: Secure,
    idle: Mutex<Vec<Idle>>,
    room: Arc<Semaphore>,
}

struct Idle {
    sender: SendRequest<Full<Bytes>>,
    since: Instant,
}

/// A connection for one exchange. Dropped before that is over, it is closed: a server that waits with an
/// answer learns that nobody does.
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    /// It had been used before: the server may have closed it meanwhile.
    pub(super) is_reused: bool,
    _room: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(super) fn new(address: Address, secure: Secure, connections_max: usize) -> Self {
        let room = Arc::new(Semaphore::new(connections_max.max(1)));
        Self { address, secure, idle: Mutex::default(), room }
    }

    pub(super) async fn take(&self, fresh: Fresh, urgency: Urgency) -> Result<Connection, Failure> {
        let room = match urgency {
            Urgency::Ahead => None,
            Urgency::InTurn => self.room.clone().acquire_owned().await.ok(),
        };
        while fresh == Fresh::IfNeeded
            && let Some(mut sender) = self.kept()
        {
            if sender.ready().await.is_ok() {
                return Ok(Connection { sender, is_reused: true, _room: room });
            }
        }
        let sender = match timeout(CONNECT_TIME_MAX, self.connect()).await {
            Ok(connected) => connected.map_err(|error| Failure::unsent(&error))?,
            Err(_) => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "it does not take connections");
                return Err(Failure::unsent(&error));
            }
        };
        Ok(Connection { sender, is_reused: false, _room: room })
    }

    pub(super) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= IDLE_MAX {
            idle.retain(|idle| !idle.sender.is_closed());
        }
        if idle.len() < IDLE_MAX && !connection.sender.is_closed() {
            idle.push(Idle { sender: connection.sender, since: clock::now() });
        }
    }

    /// The one that was used last.
    fn kept(&self) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let last = idle.pop()?;
        if last.since.elapsed() > IDLE_TIME_MAX {
            // All others were used before it.
            idle.clear();
            return None;
        }
        Some(last.sender)
    }

    async fn connect(&self) -> io::Result<SendRequest<Full<Bytes>>> {
        let tcp = TcpStream::connect((&*self.address.host, self.address.port)).await?;
        tcp.set_nodelay(true)?;
        let stream = self.secured(tcp).await?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // It ends when its sender is dropped.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the server broke");
            }
        });
        Ok(sender)
    }

    #[cfg(feature = "tls")]
    async fn secured(&self, tcp: TcpStream) -> io::Result<Box<dyn Stream>> {
        match &self.secure {
            Some(tls) => tls.shake_hands(&self.address.host, tcp).await,
            None => Ok(Box::new(tcp)),
        }
    }

    #[cfg(not(feature = "tls"))]
    async fn secured(&self, tcp: TcpStream) -> io::Result<Box<dyn Stream>> {
        match self.secure {
            Some(never) => match never {},
            None => Ok(Box::new(tcp)),
        }
    }
}
