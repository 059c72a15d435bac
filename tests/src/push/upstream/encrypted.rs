//! An upstream behind TLS, that speaks HTTP/2 or HTTP/1.1 as it offers.

use super::{Asked, answer, status};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// A server that ends when it is dropped.
pub(crate) struct Encrypted {
    pub(crate) address: SocketAddr,
    pub(crate) asked: mpsc::UnboundedReceiver<Asked>,
    /// What was agreed on with each who connected, or why nothing was.
    pub(crate) shaken: mpsc::UnboundedReceiver<Result<Option<Vec<u8>>, String>>,
    /// Whom to trust to trust this.
    pub(crate) authority: CertificateDer<'static>,
    _tasks: JoinSet<()>,
}

impl Encrypted {
    /// One for this certificate that offers these protocols.
    pub(crate) async fn new(certificate: CertificateParams, offers: &[&[u8]]) -> Self {
        let (config, authority) = config(&certificate, offers);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = mpsc::unbounded_channel();
        let (told, shaken) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let (acceptor, tell, told) = (acceptor.clone(), tell.clone(), told.clone());
                connections.spawn(serve(acceptor, tcp, tell, told));
            }
        });
        Self { address, asked, shaken, authority, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }
}

fn config(
    certificate: &CertificateParams,
    offers: &[&[u8]],
) -> (ServerConfig, CertificateDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let certificate = certificate.self_signed(&key).unwrap().der().clone();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let key = key.serialize_der().try_into().unwrap();
    let mut config = builder.with_single_cert(vec![certificate.clone()], key).unwrap();
    config.alpn_protocols = offers.iter().map(|offer| offer.to_vec()).collect();
    (config, certificate)
}

async fn serve(
    acceptor: TlsAcceptor,
    tcp: TcpStream,
    tell: mpsc::UnboundedSender<Asked>,
    told: mpsc::UnboundedSender<Result<Option<Vec<u8>>, String>>,
) {
    let tls = match acceptor.accept(tcp).await {
        Ok(tls) => tls,
        Err(error) => return drop(told.send(Err(error.to_string()))),
    };
    let protocol = tls.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    drop(told.send(Ok(protocol.clone())));
    let service = service_fn(move |request| {
        let tell = tell.clone();
        async move { Ok::<_, Infallible>(answer(request, &tell, &|_| status(200, &[], "")).await) }
    });
    let io = TokioIo::new(tls);
    if protocol.as_deref() == Some(b"h2") {
        drop(http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await);
    } else {
        drop(http1::Builder::new().serve_connection(io, service).await);
    }
}
