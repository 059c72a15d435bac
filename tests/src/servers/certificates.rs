//! Certificates of the tests' own: an authority, and a server of loopback that it vouches for.

use super::folder;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;

/// Files of one authority and one server.
pub(crate) struct Certificates {
    /// Of the authority.
    pub(crate) authority: String,
    /// Of the server.
    pub(crate) certificate: String,
    pub(crate) key: String,
    folder: String,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let folder = folder();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let own = KeyPair::generate().unwrap();
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        let server = CertificateParams::new(names).unwrap().signed_by(&own, &issuer).unwrap();
        let write = |name: &str, text: String| {
            let file = format!("{folder}/{name}");
            fs::write(&file, text).unwrap();
            file
        };
        Self {
            authority: write("authority.pem", authority.pem()),
            certificate: write("server.pem", server.pem()),
            key: write("server.key", own.serialize_pem()),
            folder,
        }
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
