//! Connections to destinations: the name is resolved, every address is judged, and what is connected to
//! is an address that was judged. A name that resolves differently a moment later changes nothing.

use super::address::AddressPolicy;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower_service::Service;

/// Most names that are resolved at once: each holds a thread of the runtime while it lasts.
const LOOKUPS_MAX: usize = 64;
/// Most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    policy: Arc<AddressPolicy>,
    tls: TlsConnector,
    lookups: Arc<Semaphore>,
}

impl Connector {
    pub(super) fn new(policy: AddressPolicy, tls: TlsConnector) -> Self {
        Self { policy: Arc::new(policy), tls, lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<Stream>> {
        let host = uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        let is_https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let addresses = self.resolve(host, port).await?;
        let tcp = first_of(&addresses).await?;
        tcp.set_nodelay(true)?;
        if !is_https {
            return Ok(TokioIo::new(Stream::Plain(tcp)));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let tls = self.tls.connect(name, tcp).await?;
        Ok(TokioIo::new(Stream::Encrypted(Box::new(tls))))
    }

    /// The addresses of a host that may be connected to.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<SocketAddr> = match host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) => {
                let _lookup = self.lookups.acquire().await.map_err(io::Error::other)?;
                lookup_host((host, port)).await?.collect()
            }
        };
        let mut forbidden = None;
        let mut allowed = Vec::new();
        for address in found {
            match self.policy.check(address.ip()) {
                Ok(()) => allowed.push(address),
                Err(error) => forbidden = Some(error),
            }
        }
        allowed.truncate(ADDRESSES_MAX);
        match (allowed.is_empty(), forbidden) {
            (false, _) => Ok(allowed),
            (true, Some(error)) => Err(io::Error::new(io::ErrorKind::PermissionDenied, error)),
            (true, None) => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        }
    }
}

async fn first_of(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(tcp) => return Ok(tcp),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

/// A connection, plain or encrypted.
pub(super) enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match self {
            Self::Encrypted(tls) if tls.get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            _ => Connected::new(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Self::Encrypted(tls) => Pin::new(tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Self::Encrypted(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Self::Encrypted(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Self::Encrypted(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}
