//! What a receiver verifies: the signature under either key, over the body as it arrived.

use super::upstream::{Asked, Upstream, status};
use super::{Pushed, settings, to};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::sync::atomic::{AtomicBool, Ordering};
use tollgate::Call;
use tollgate::Span;
use tollgate::lanes::{Backoff, QueueSpec};
use tollgate::push::PushSettings;
use tollgate::push::signature::{SigningKey, SigningKeys};

const KEYS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

fn key(bytes: [u8; 32]) -> SigningKey {
    SigningKey::from_webhook_secret(&format!("whsec_{}", STANDARD.encode(bytes))).unwrap()
}

/// Whether a request is signed under a key, as a receiver that holds it computes.
fn is_signed(asked: &Asked, key: [u8; 32]) -> bool {
    let header = |name| asked.header(name).unwrap();
    let mut hmac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    hmac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    hmac.update(&asked.body);
    let expected = format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes()));
    header("webhook-signature").split(' ').any(|signature| signature == expected)
}

#[tokio::test]
async fn each_attempt_is_signed_under_both_keys_and_has_the_same_id() {
    let is_second = AtomicBool::new(false);
    let mut upstream = Upstream::new(move |_| match is_second.swap(true, Ordering::Relaxed) {
        true => status(200, &[], ""),
        false => status(500, &[], ""),
    })
    .await;
    let signing = SigningKeys { current: key(KEYS[0]), other: Some(key(KEYS[1])) };
    let pushed = Pushed::with(PushSettings { signing: Some(signing), ..settings() }).await;
    let backoff = Backoff::doubling(Span::from_millis(1), Span::from_millis(1));
    let spec = QueueSpec { backoff, ..QueueSpec::default() };
    pushed.queue("q", to(upstream.url("/")), spec).await;
    let body = b"{\"n\": 1, \"text\": \"\xc3\xa4\\u0000\"}\n";
    let id = pushed.gate.enqueue("q", Call::new("a").body(*body)).await.unwrap();
    for attempt in ["1", "2"] {
        let asked = upstream.next().await;
        assert_eq!(asked.header("tollgate-attempt"), Some(attempt));
        assert_eq!(asked.body, body);
        assert_eq!(asked.header("webhook-id"), Some(&*format!("call_{}", id.0)));
        assert_eq!(KEYS.map(|key| is_signed(&asked, key)), [true, true]);
        assert!(!is_signed(&asked, [3; 32]));
    }
    pushed.close().await;
}
