//! Encryption: whom a client trusts.

use super::served::Served;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::fs;
use tollgate_client::{Client, ClientError, Limit};
use tollgate_server::{Settings, Tls};

/// A certificate for this machine, and its key, both in PEM.
fn certificate() -> (String, String) {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

#[tokio::test]
async fn a_server_is_trusted_for_its_certificate_and_no_other() {
    let mut served = Served::new().await;
    served.stop().await;
    let (ours, key) = certificate();
    let tls = Some(Tls::new(ours.as_bytes(), key.as_bytes()).unwrap());
    served.start_with(Settings { tls, ..Settings::new(served.address) }).await;
    let folder = tempfile::tempdir().unwrap();
    let client = |name: &str, certificate: &str| {
        let file = folder.path().join("trusted.pem");
        fs::write(&file, certificate).unwrap();
        let url = format!("https://{name}:{}", served.address.port());
        Client::builder(&url).authorities(file).retries(0).build()
    };
    let trusting = client("localhost", &ours).unwrap();
    // Twice: a connection is kept.
    for limit in ["stripe", "openai"] {
        trusting.limit(limit, Limit::per_second(1)).await.unwrap();
    }
    let (theirs, _) = certificate();
    let cases = [
        ("localhost", &theirs, "--authorities"),
        ("127.0.0.1", &ours, "use the name that it is for"),
    ];
    for (name, certificate, cure) in cases {
        let error = client(name, certificate).unwrap().limits().await.unwrap_err();
        assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(cure), "{error}");
    }
    let plain = Client::builder(&served.url()).retries(0).build().unwrap();
    let error = plain.limits().await.unwrap_err();
    assert!(error.to_string().contains("write https://"), "{error}");
    let error = client("localhost", "nothing").unwrap_err();
    assert!(error.to_string().contains("PEM"), "{error}");
}

#[tokio::test]
async fn who_asks_a_plain_server_for_encryption_is_told_so() {
    let served = Served::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trusted.pem");
    fs::write(&file, certificate().0).unwrap();
    let url = format!("https://localhost:{}", served.address.port());
    let client = Client::builder(&url).authorities(file).retries(0).build().unwrap();
    let error = client.limits().await.unwrap_err();
    assert!(error.to_string().contains("write http://"), "{error}");
}
