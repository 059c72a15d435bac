//! Destinations behind TLS: HTTP/2 where it is offered, and nothing for who is not trusted.

use super::upstream::encrypted::Encrypted;
use super::{Pushed, reports, settings, to};
use crate::gate::patiently;
use rcgen::{CertificateParams, date_time_ymd};
use tollgate::lanes::QueueSpec;
use tollgate::push::PushSettings;
use tollgate::{Call, Delivery};

fn certificate(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

/// Pushes one call to an upstream, whose authority is trusted or not; what is said of the attempt.
async fn pushed_to(upstream: &Encrypted, settings: PushSettings) -> serde_json::Value {
    let pushed = Pushed::with(settings).await;
    let delivery = Delivery { retries: Some(0), ..to(upstream.url("/hook")) };
    pushed.queue("q", delivery, QueueSpec::default()).await;
    let id = pushed.gate.enqueue("q", Call::new("a").body("secret")).await.unwrap();
    let report = reports(&pushed.ended(id).await).remove(0);
    pushed.close().await;
    report
}

fn trusting(upstream: &Encrypted) -> PushSettings {
    PushSettings { authorities: vec![upstream.authority.clone()], ..settings() }
}

#[tokio::test]
async fn a_call_goes_over_http_2_where_it_is_offered_and_else_over_http_1() {
    let both: &[&[u8]] = &[b"h2", b"http/1.1"];
    let cases = [(both, Some(both[0])), (&both[1..], Some(both[1])), (&[], None)];
    for (offers, agreed) in cases {
        let mut upstream = Encrypted::new(certificate("localhost"), offers).await;
        let report = pushed_to(&upstream, trusting(&upstream)).await;
        assert_eq!(report["status"], 200, "{report}");
        let shaken = patiently(upstream.shaken.recv()).await.unwrap().unwrap();
        assert_eq!(shaken.as_deref(), agreed);
        let asked = patiently(upstream.asked.recv()).await.unwrap();
        assert_eq!((&*asked.method, &*asked.body), ("POST", &b"secret"[..]));
        assert!(asked.path.ends_with("/hook"), "{}", asked.path);
    }
}

/// Has a call refused for a certificate, in these words, and shows that nothing of it was sent.
async fn refused(mut upstream: Encrypted, settings: PushSettings, words: &str) {
    let report = pushed_to(&upstream, settings).await;
    let error = report["error"].as_str().unwrap();
    assert!(error.contains(words), "{error}");
    // Someone came, and asked nothing: who serves would have been told before the connection ended.
    assert!(patiently(upstream.shaken.recv()).await.unwrap().is_err());
    assert!(upstream.asked.try_recv().is_err());
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused_and_nothing_is_sent() {
    let upstream = Encrypted::new(certificate("localhost"), &[]).await;
    refused(upstream, settings(), "UnknownIssuer").await;
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_refused_and_nothing_is_sent() {
    let mut expired = certificate("localhost");
    (expired.not_before, expired.not_after) =
        (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    let upstream = Encrypted::new(expired, &[]).await;
    let settings = trusting(&upstream);
    refused(upstream, settings, "expired").await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_and_nothing_is_sent() {
    let upstream = Encrypted::new(certificate("other.example"), &[]).await;
    let settings = trusting(&upstream);
    refused(upstream, settings, "not valid for name").await;
}
