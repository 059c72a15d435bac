//! Connections to destinations: the name is resolved, every address is judged, and what is connected to
//! is an address that was judged. A name that resolves differently a moment later changes nothing.

use super::resolver::Resolver;
use super::stream::Stream;
use http::Uri;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// How long an address is tried if there are others.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long it may take until there is a connection, whoever waits for it: one that is begun goes on when another is
/// free before it, and would hold its socket for as long as the other side likes.
const OPEN_MAX: Duration = Duration::from_secs(30);

/// Opens connections.
#[derive(Clone)]
pub(super) struct Connector {
    resolver: Arc<Resolver>,
    tls: TlsConnector,
    /// Most bytes that a connection reads for one request.
    answer_bytes_max: usize,
}

impl Connector {
    pub(super) fn new(resolver: Resolver, tls: TlsConnector, answer_bytes_max: usize) -> Self {
        Self { resolver: Arc::new(resolver), tls, answer_bytes_max }
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<Stream>> {
        let opened = timeout(OPEN_MAX, self.open(uri)).await;
        opened.unwrap_or_else(|_| {
            let late = format!("there was no connection within {} s", OPEN_MAX.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, late))
        })
    }

    async fn open(self, uri: Uri) -> io::Result<TokioIo<Stream>> {
        let host = uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        let is_https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let addresses = self.resolver.resolve(host, port).await?;
        let tcp = first_of(&addresses).await?;
        tcp.set_nodelay(true)?;
        if !is_https {
            return Ok(TokioIo::new(Stream::plain(tcp, self.answer_bytes_max)));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let tls = self.tls.connect(name, tcp).await?;
        Ok(TokioIo::new(Stream::encrypted(tls, self.answer_bytes_max)))
    }
}

async fn first_of(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for (address, others) in addresses.iter().zip((0..addresses.len()).rev()) {
        let connect = TcpStream::connect(address);
        // The last one has all the time there is.
        let connected = match others {
            0 => Ok(connect.await),
            _ => timeout(CONNECT_MAX, connect).await,
        };
        match connected {
            Ok(Ok(tcp)) => return Ok(tcp),
            Ok(Err(error)) => failed = error,
            Err(late) => failed = io::Error::new(io::ErrorKind::TimedOut, late),
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

#[cfg(test)]
mod tests {
    use super::super::address::AddressPolicy;
    use super::*;
    use parking_lot::Mutex;
    use std::collections::VecDeque;
    use std::net::IpAddr;
    use tokio::net::TcpListener;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    const ALLOWED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 1));
    const FORBIDDEN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

    /// A connector for which names have these addresses, one answer after the other.
    fn connector<const N: usize>(answers: [Vec<IpAddr>; N]) -> Connector {
        let policy = AddressPolicy { allowed: vec!["127.0.0.1".parse().unwrap()] };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let tls = TlsConnector::from(Arc::new(config));
        let answers = Mutex::new(VecDeque::from(answers));
        let names = move |_| -> Pin<Box<dyn Future<Output = _> + Send>> {
            let answer = answers.lock().pop_front().unwrap_or_default();
            Box::pin(async { Ok(answer) })
        };
        Connector::new(Resolver::asking(policy, names), tls, 1 << 20)
    }

    /// Listeners at one port of the address that is allowed and of the one that is not.
    async fn listeners() -> (TcpListener, TcpListener, Uri) {
        let allowed = TcpListener::bind((ALLOWED, 0)).await.unwrap();
        let port = allowed.local_addr().unwrap().port();
        let forbidden = TcpListener::bind((FORBIDDEN, port)).await.unwrap();
        (allowed, forbidden, format!("http://name.example:{port}/").parse().unwrap())
    }

    fn peer(connected: &TokioIo<Stream>) -> IpAddr {
        connected.inner().peer().unwrap().ip()
    }

    async fn is_left_alone(listener: &TcpListener) -> bool {
        let accepted =
            std::future::poll_fn(|context| Poll::Ready(listener.poll_accept(context).is_ready()));
        !accepted.await
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_later_is_judged_anew() {
        let (_allowed, forbidden, uri) = listeners().await;
        let mut connector = connector([vec![ALLOWED], vec![FORBIDDEN], vec![ALLOWED]]);
        assert_eq!(peer(&connector.call(uri.clone()).await.unwrap()), ALLOWED);
        let error = connector.call(uri.clone()).await.err().unwrap().to_string();
        assert!(error.contains("127.0.0.2 is a loopback address"), "{error}");
        assert!(is_left_alone(&forbidden).await);
        assert_eq!(peer(&connector.call(uri).await.unwrap()), ALLOWED);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_come_about_is_given_up() {
        let (_allowed, _, uri) = listeners().await;
        let uri = uri.to_string().replace("http:", "https:").parse().unwrap();
        // It is let in, and nobody ever speaks to it.
        let error = connector([vec![ALLOWED]]).call(uri).await.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "there was no connection within 30 s");
    }

    #[tokio::test]
    async fn of_several_addresses_only_those_that_are_allowed_are_tried() {
        let (allowed, forbidden, uri) = listeners().await;
        let mut connector =
            connector([vec![FORBIDDEN, ALLOWED, FORBIDDEN], vec![ALLOWED, FORBIDDEN], vec![]]);
        assert_eq!(peer(&connector.call(uri.clone()).await.unwrap()), ALLOWED);
        // The one that is allowed does not answer: that is no reason to try the other.
        drop(allowed);
        let refused = connector.call(uri.clone()).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(is_left_alone(&forbidden).await);
        let error = connector.call(uri).await.err().unwrap().to_string();
        assert_eq!(error, "the name has no address");
    }
}
