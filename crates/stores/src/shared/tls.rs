//! Encryption on the way to a store: whom to trust. A certificate is always checked, and its name.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tollgate_core::contract::{Answer, StoreError};

/// Whose signature makes a certificate good.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    authorities: Option<PathBuf>,
}

impl Trust {
    /// Whom the system trusts, or the file that `SSL_CERT_FILE` names.
    pub fn system() -> Self {
        Self::default()
    }

    /// Those alone that are in a PEM file.
    pub fn authorities(file: impl Into<PathBuf>) -> Self {
        Self { authorities: Some(file.into()) }
    }

    /// Whether a file names them.
    pub fn is_given(&self) -> bool {
        self.authorities.is_some()
    }

    /// As rustls takes it.
    ///
    /// # Errors
    /// There is nobody to trust.
    pub fn config(&self) -> Answer<ClientConfig> {
        settle_provider();
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(file) => roots.add_parsable_certificates(certificates(file)?),
            None => roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
        };
        if roots.is_empty() {
            let whom =
                self.authorities.as_deref().map_or("this system".into(), Path::to_string_lossy);
            return Err(failed(format!(
                "{whom} has no certificate of an authority to trust: name a PEM file with one"
            )));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(config)
    }

    /// The file itself, for a client that reads it by itself.
    ///
    /// # Errors
    /// It cannot be read.
    #[cfg(feature = "redis")]
    pub(crate) fn pem(&self) -> Answer<Option<Vec<u8>>> {
        settle_provider();
        let read = |file: &PathBuf| {
            // What is no certificate is told apart from what cannot be reached.
            certificates(file)?;
            std::fs::read(file).map_err(|error| unreadable(file, &error))
        };
        self.authorities.as_ref().map(read).transpose()
    }
}

/// Clients of stores ask the process which provider to use, and panic where there are two and none was
/// chosen.
fn settle_provider() {
    if CryptoProvider::get_default().is_none() {
        let _ = ring::default_provider().install_default();
    }
}

fn certificates(file: &Path) -> Answer<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    certificates.map_err(|error| unreadable(file, &error))
}

fn unreadable(file: &Path, error: &dyn std::error::Error) -> StoreError {
    let file = file.display();
    failed(format!("{file} cannot be read as certificates in PEM form: {error}"))
}

fn failed(reason: String) -> StoreError {
    StoreError::Failed { reason }
}
