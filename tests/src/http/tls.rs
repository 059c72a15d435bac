//! TLS: the same server, behind a certificate.

use super::client::request;
use super::started::Started;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tollgate_server::{Settings, Tls, TlsError};

/// A certificate for this machine, and its key, both in PEM.
fn certificate() -> (CertificateDer<'static>, String, String) {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    (cert.der().clone(), cert.pem(), signing_key.serialize_pem())
}

async fn started() -> (Started, CertificateDer<'static>) {
    let (trusted, certificate, key) = certificate();
    let tls = Some(Tls::new(certificate.as_bytes(), key.as_bytes()).unwrap());
    let settings = Settings { tls, ..Settings::new(([127, 0, 0, 1], 0).into()) };
    (Started::with(settings).await, trusted)
}

async fn connect(address: SocketAddr, trusted: CertificateDer<'static>) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

#[tokio::test]
async fn answers_over_tls() {
    let (server, trusted) = started().await;
    let mut stream = connect(server.address, trusted).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    // Twice: a connection is good for more than one.
    let once = request("GET", "/healthz", &[], "");
    let last = request("GET", "/healthz", &[("connection", "close")], "");
    stream.write_all(&[once, last].concat()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
}

#[tokio::test]
async fn says_nothing_in_the_clear() {
    let (server, _) = started().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&request("GET", "/healthz", &[], "")).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.windows(4).any(|bytes| bytes == b"HTTP"), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_shakes_hands_is_let_go() {
    let (server, _) = started().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // The beginning of a first message, and no more.
    stream.write_all(b"\x16\x03\x01").await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_is_let_go() {
    let (server, trusted) = started().await;
    let mut stream = connect(server.address, trusted).await;
    assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_under_way_does_not_hold_up_the_end() {
    let (mut server, _) = started().await;
    let _stream = TcpStream::connect(server.address).await.unwrap();
    server.begin_stop();
    server.ended().await;
}

#[test]
fn a_certificate_needs_its_own_key() {
    let (_, certificate_text, key) = certificate();
    let (_, _, other_key) = certificate();
    let read = |certificate: &str, key: &str| Tls::new(certificate.as_bytes(), key.as_bytes());
    assert!(read(&certificate_text, &key).is_ok());
    let wrong = |certificate: &str, key: &str| read(certificate, key).unwrap_err();
    assert!(matches!(wrong(&certificate_text, &other_key), TlsError::Unusable(_)));
    assert!(matches!(wrong("", &key), TlsError::Certificate(_)));
    assert!(matches!(wrong(&certificate_text, &certificate_text), TlsError::Key(_)));
}
