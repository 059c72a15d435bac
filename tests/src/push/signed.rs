//! What a receiver verifies: the signature under either key, over the body as it arrived.

use super::upstream::{Asked, Upstream, status};
use super::{Pushed, settings, to};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicBool, Ordering};
use tollgate::Call;
use tollgate::Span;
use tollgate::lanes::{Backoff, QueueSpec};
use tollgate::push::PushSettings;
use tollgate::push::signature::{Signing, SigningKeyError};

const KEYS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

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
    let [current, other] = KEYS.map(|key| format!("whsec_{}", STANDARD.encode(key)));
    let signing = Signing::from_texts(&current, Some(&other)).unwrap();
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

/// What a token says, if it is signed under a key.
fn claims(token: &str, key: &str) -> Option<serde_json::Value> {
    let (signed, signature) = token.rsplit_once('.')?;
    let mut hmac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    hmac.update(signed.as_bytes());
    hmac.verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
    let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
    serde_json::from_slice(&claims).ok()
}

#[tokio::test]
async fn a_token_says_where_to_and_what_and_its_key_can_be_changed() {
    const KEYS: [&str; 2] = ["sig_5fbc2e4a77d04c31", "sig_a0d1be1f4f0c4ab2"];
    let mut upstream = Upstream::new(|_| status(200, &[], "")).await;
    // The owner of the keys makes the other one the current one while receivers hold both.
    for (current, other) in [(KEYS[0], KEYS[1]), (KEYS[1], KEYS[0])] {
        let signing = Signing::from_texts(current, Some(other)).unwrap();
        let pushed = Pushed::with(PushSettings { signing: Some(signing), ..settings() }).await;
        pushed.queue("q", to(upstream.url("/hook?a=1")), QueueSpec::default()).await;
        let id = pushed.gate.enqueue("q", Call::new("a").body("charge")).await.unwrap();
        let asked = upstream.next().await;
        let token = asked.header("tollgate-signature").unwrap();
        let found: Vec<_> = KEYS.iter().filter_map(|key| claims(token, key)).collect();
        let [claims] = &found[..] else { panic!("{found:?}") };
        assert_eq!(claims["sub"], upstream.url("/hook?a=1"));
        assert_eq!(claims["jti"], format!("call_{}", id.0));
        assert_eq!(claims["body"], URL_SAFE.encode(Sha256::digest(&asked.body)));
        assert_eq!(asked.header("webhook-signature"), None);
        pushed.close().await;
    }
    let mixed = Signing::from_texts(KEYS[0], Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
    assert_eq!(mixed.unwrap_err(), SigningKeyError::TwoForms);
}
