//! Stores at urls that ask for encryption: who is trusted is let in, and nobody else.

use crate::servers::certificates::Certificates;
use crate::servers::nats::NatsServer;
use crate::servers::postgres::PostgresServer;
use crate::servers::redis::RedisServer;
use tollgate::{Limit, Span, Tollgate, global};

/// A gate at a url, which trusts the authority of these certificates.
async fn trusting(url: &str, certificates: &Certificates) -> Tollgate {
    let builder = Tollgate::builder().deadline(Span::from_secs(20));
    builder.authorities(&certificates.authority).connect_limits(url).await.unwrap()
}

/// Limits work at a url for who trusts the authority, and not for who trusts another.
async fn is_safe(url: &str, certificates: &Certificates) {
    let gate = trusting(url, certificates).await;
    gate.limit("l", Limit::per_hour(2)).await.unwrap();
    for is_granted in [true, true, false] {
        assert_eq!(gate.consume(global("l")).await.is_ok(), is_granted);
    }
    let other = Certificates::new();
    let builder = Tollgate::builder().authorities(&other.authority);
    let refused = builder.deadline(Span::from_secs(20)).connect_limits(url).await.unwrap_err();
    let told = refused.to_string();
    assert!(told.contains("certificate"), "{told}");
}

#[tokio::test]
async fn redis_over_tls_is_let_in_by_its_certificate() {
    let certificates = Certificates::new();
    let server = RedisServer::start_encrypted(&certificates);
    is_safe(&format!("rediss://127.0.0.1:{}", server.port()), &certificates).await;
}

#[tokio::test]
async fn nats_over_tls_is_let_in_by_its_certificate() {
    let certificates = Certificates::new();
    let server = NatsServer::start_encrypted(&certificates);
    is_safe(&format!("tls://127.0.0.1:{}", server.port()), &certificates).await;
}

#[tokio::test]
async fn postgres_over_tls_is_let_in_by_its_certificate() {
    let certificates = Certificates::new();
    let server = PostgresServer::start_encrypted(&certificates);
    is_safe(&format!("{}?sslmode=require", server.url()), &certificates).await;
    let full = trusting(&format!("{}?sslmode=verify-full", server.url()), &certificates).await;
    assert!(full.consume(global("l")).await.is_err(), "it is there, and spent");
    let plain = PostgresServer::start();
    let url = format!("{}?sslmode=require", plain.url());
    let builder = Tollgate::builder().authorities(&certificates.authority);
    let refused = builder.connect_limits(&url).await.unwrap_err().to_string();
    assert!(refused.contains("TLS"), "one that cannot encrypt is not used: {refused}");
}
