//! TLS: a certificate and its key, and the handshake.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

/// Longest handshake: who takes longer holds a connection and has shown nothing yet.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A certificate and its key, ready for handshakes.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The chain is not one.
    #[error("the certificate cannot be read: {0}; it is a chain in PEM, the server's own first")]
    Certificate(pem::Error),
    /// The key is not one.
    #[error("the key cannot be read: {0}; it is a private key in PEM, without a password")]
    Key(pem::Error),
    /// They do not belong together, or are of a kind that is not known.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// Reads a chain of certificates and the key of its first, both in PEM.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| TlsError::File { path: path.to_owned(), source })
        };
        Self::new(&read(certificate)?, &read(key)?)
    }

    /// A chain of certificates and the key of its first, both in PEM.
    pub fn new(certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(TlsError::Certificate)?;
        if chain.is_empty() {
            return Err(TlsError::Certificate(pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands; `None` if that fails, or takes too long.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        match timeout(HANDSHAKE_MAX, self.0.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("handshake took too long");
                None
            }
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(…)")
    }
}
