//! Encryption on the way to a server: whom to trust, and the handshake.

use super::stream::Stream;
use crate::error::ClientError;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Makes handshakes with servers whose certificates an authority signed that is trusted.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// Trusts whom the system trusts, or with a file those alone that are in it.
    pub(crate) fn new(authorities: Option<&Path>) -> Result<Self, ClientError> {
        let mut roots = RootCertStore::empty();
        match authorities {
            Some(file) => roots.add_parsable_certificates(read(file)?),
            None => roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
        };
        if roots.is_empty() {
            let whom = authorities.map_or("this system".into(), |file| file.to_string_lossy());
            return Err(ClientError::invalid(format!(
                "{whom} has no certificate of an authority to trust: name a PEM file with one"
            )));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| ClientError::invalid(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)) })
    }

    pub(super) async fn shake_hands(
        &self,
        host: &str,
        tcp: TcpStream,
    ) -> io::Result<Box<dyn Stream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(self.connector.connect(name, tcp).await?))
    }
}

fn read(file: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    certificates.map_err(|error| {
        ClientError::invalid(format!(
            "{} cannot be read as certificates in PEM form: {error}",
            file.display()
        ))
    })
}
