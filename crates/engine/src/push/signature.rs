//! Signs what is pushed, so that its receiver knows who sent it: as Standard Webhooks, or with a
//! JSON Web Token as QStash's.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use http::header::{HeaderName, HeaderValue, InvalidHeaderValue};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt;
use tollgate_core::Timestamp;

/// The header with the id of what is pushed, the same at every attempt.
pub const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");

/// The header with the unix seconds of the attempt.
pub const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");

/// The header with a signature under each key.
pub const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The header with a JSON Web Token.
pub const JWT_SIGNATURE: HeaderName = HeaderName::from_static("tollgate-signature");

/// Who signs JSON Web Tokens.
const ISSUER: &str = "Tollgate";

/// How a key of JSON Web Tokens begins, as QStash writes them.
const JWT_PREFIX: &str = "sig_";

/// How a secret of Standard Webhooks begins.
const WEBHOOK_PREFIX: &str = "whsec_";

/// Bytes of a secret: what Standard Webhooks allows.
const WEBHOOK_SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Bytes of a secret that is a text: long enough not to be guessed, short enough to be one.
const TEXT_SECRET_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// For how long a JSON Web Token is good after it was made, as with QStash.
const JWT_SECONDS: u64 = 300;

const NANOS_A_SECOND: u64 = 1_000_000_000;

/// A secret that is shared with receivers. It is never shown.
#[derive(Clone)]
pub struct SigningKey {
    keyed: Hmac<Sha256>,
}

/// The keys that are good now: one, or two while receivers change from one to the other.
#[derive(Debug, Clone)]
pub struct SigningKeys {
    /// The one that signs.
    pub current: SigningKey,
    /// The other that receivers may already, or still, hold.
    pub other: Option<SigningKey>,
}

/// How requests are signed.
#[derive(Debug, Clone)]
pub enum Signing {
    /// As Standard Webhooks says, under each key.
    Webhooks(SigningKeys),
    /// With a JSON Web Token as QStash's, under the current key: receivers hold both, and try both.
    Jwt(SigningKeys),
}

impl Signing {
    /// By how the keys are written: `whsec_…` for Standard Webhooks, `sig_…` for JSON Web Tokens.
    pub fn from_texts(current: &str, other: Option<&str>) -> Result<Self, SigningKeyError> {
        let is_jwt = current.starts_with(JWT_PREFIX);
        let key = |text: &str| match is_jwt {
            true if text.starts_with(JWT_PREFIX) => SigningKey::from_text(text),
            true => Err(SigningKeyError::TwoForms),
            false if text.starts_with(JWT_PREFIX) => Err(SigningKeyError::TwoForms),
            false => SigningKey::from_webhook_secret(text),
        };
        let keys = SigningKeys { current: key(current)?, other: other.map(key).transpose()? };
        Ok(if is_jwt { Self::Jwt(keys) } else { Self::Webhooks(keys) })
    }

    /// The headers by which the receiver at a destination verifies a delivery.
    pub fn headers(
        &self,
        destination: &str,
        delivery: Delivery<'_>,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, InvalidHeaderValue> {
        match self {
            Self::Webhooks(keys) => Ok(webhook_headers(keys, delivery)?.into()),
            Self::Jwt(keys) => {
                let parties = Parties { issuer: ISSUER, destination };
                let token = jwt(&keys.current, parties, delivery);
                Ok(vec![(JWT_SIGNATURE, HeaderValue::from_str(&token)?)])
            }
        }
    }
}

/// Why a text is no key. It does not show the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SigningKeyError {
    /// It is not written as a secret of Standard Webhooks.
    #[error(
        "a signing secret is written as {WEBHOOK_PREFIX} and base64, or {JWT_PREFIX} and any text, and this one is not"
    )]
    Form,
    /// One is of Standard Webhooks, and the other is not.
    #[error(
        "both signing secrets are written alike: {WEBHOOK_PREFIX} and base64, or {JWT_PREFIX} and any text"
    )]
    TwoForms,
    /// It is too short or too long.
    #[error("a signing secret has {least} to {most} bytes, and this one {bytes}: make a new one")]
    Length {
        /// The fewest that it may have.
        least: usize,
        /// The most.
        most: usize,
        /// How many it has.
        bytes: usize,
    },
}

/// What is pushed at one attempt.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// What tells a delivery from others, and is the same when it is tried again.
    pub id: &'a str,
    /// The present, by the wall clock.
    pub wall: Timestamp,
    /// The body, byte for byte.
    pub body: &'a [u8],
}

/// Who a JSON Web Token is from and for.
#[derive(Debug, Clone, Copy)]
pub struct Parties<'a> {
    /// Who signs; receivers of QStash want `Upstash`.
    pub issuer: &'a str,
    /// The url that is called, exactly as its owner knows it.
    pub destination: &'a str,
}

impl SigningKey {
    /// Reads a secret of Standard Webhooks, `whsec_` and base64.
    pub fn from_webhook_secret(text: &str) -> Result<Self, SigningKeyError> {
        let encoded = text.strip_prefix(WEBHOOK_PREFIX).ok_or(SigningKeyError::Form)?;
        let secret = STANDARD.decode(encoded).map_err(|_| SigningKeyError::Form)?;
        Self::new(&secret, WEBHOOK_SECRET_BYTES)
    }

    /// Takes the bytes of a text as they are, as QStash does with its `sig_…`.
    pub fn from_text(text: &str) -> Result<Self, SigningKeyError> {
        Self::new(text.as_bytes(), TEXT_SECRET_BYTES)
    }

    fn new(secret: &[u8], range: std::ops::RangeInclusive<usize>) -> Result<Self, SigningKeyError> {
        let (least, most) = range.clone().into_inner();
        let wrong = SigningKeyError::Length { least, most, bytes: secret.len() };
        if !range.contains(&secret.len()) {
            return Err(wrong);
        }
        // HMAC takes keys of any length; the error is there for others.
        Hmac::new_from_slice(secret).map(|keyed| Self { keyed }).map_err(|_| wrong)
    }

    fn sign(&self, parts: &[&[u8]]) -> impl AsRef<[u8]> {
        let mut keyed = self.keyed.clone();
        parts.iter().for_each(|part| keyed.update(part));
        keyed.finalize().into_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(***)")
    }
}

/// The headers by which a receiver that knows Standard Webhooks verifies a delivery.
///
/// There is a signature under each key, so that receivers may change theirs at any time meanwhile.
/// It fails if the id is no text for a header.
pub fn webhook_headers(
    keys: &SigningKeys,
    delivery: Delivery<'_>,
) -> Result<[(HeaderName, HeaderValue); 3], InvalidHeaderValue> {
    let seconds = delivery.wall.as_nanos() / NANOS_A_SECOND;
    let head = format!("{}.{seconds}.", delivery.id);
    let signatures = [Some(&keys.current), keys.other.as_ref()]
        .into_iter()
        .flatten()
        .map(|key| format!("v1,{}", STANDARD.encode(key.sign(&[head.as_bytes(), delivery.body]))));
    let signatures = signatures.collect::<Vec<_>>().join(" ");
    Ok([
        (WEBHOOK_ID, HeaderValue::from_str(delivery.id)?),
        (WEBHOOK_TIMESTAMP, HeaderValue::from(seconds)),
        (WEBHOOK_SIGNATURE, HeaderValue::from_str(&signatures)?),
    ])
}

/// A JSON Web Token that says who sent a delivery to whom, with a hash of its body.
///
/// It is signed with HS256 under one key, for receivers try all that they hold. The hash keeps its
/// padding, as QStash's does: its libraries take either.
pub fn jwt(key: &SigningKey, parties: Parties<'_>, delivery: Delivery<'_>) -> String {
    let seconds = delivery.wall.as_nanos() / NANOS_A_SECOND;
    let claims = json!({
        "iss": parties.issuer,
        "sub": parties.destination,
        "exp": seconds.saturating_add(JWT_SECONDS),
        // Not the present: a receiver's clock may be behind ours.
        "nbf": 0,
        "iat": seconds,
        "jti": delivery.id,
        "body": URL_SAFE.encode(Sha256::digest(delivery.body)),
    });
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(&[signed.as_bytes()]));
    format!("{signed}.{signature}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The secret, the delivery and the signature that libraries of Standard Webhooks test with.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    const SECONDS: u64 = 1_614_265_330;

    const TEXT: &str = "sig_0123456789abcdefghijklmnop";
    const PARTIES: Parties<'_> =
        Parties { issuer: "Upstash", destination: "https://example.com/a?b=\"c\"" };

    fn delivery() -> Delivery<'static> {
        Delivery {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            wall: Timestamp::from_nanos(SECONDS * NANOS_A_SECOND + 999_999_999),
            body: br#"{"test": 2432232314}"#,
        }
    }

    fn other() -> SigningKey {
        let secret = STANDARD.encode([7; 32]);
        SigningKey::from_webhook_secret(&format!("whsec_{secret}")).unwrap()
    }

    fn headers_of(current: SigningKey, other: Option<SigningKey>) -> [String; 3] {
        let headers = webhook_headers(&SigningKeys { current, other }, delivery()).unwrap();
        headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
    }

    /// HMAC as RFC 2104 writes it, from nothing but the hash.
    fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
        let mut block = [0; 64];
        block[..key.len()].copy_from_slice(key);
        let pad = |with: u8| block.map(|byte| byte ^ with);
        let inner = Sha256::digest([&pad(0x36)[..], text].concat());
        Sha256::digest([&pad(0x5c)[..], &inner[..]].concat()).to_vec()
    }

    #[test]
    fn a_webhook_is_signed_as_the_libraries_of_the_standard_do() {
        let key = SigningKey::from_webhook_secret(SECRET).unwrap();
        let lines = headers_of(key, None);
        assert_eq!(lines[0], "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(lines[1], "webhook-timestamp: 1614265330");
        assert_eq!(lines[2], format!("webhook-signature: {SIGNATURE}"));
    }

    #[test]
    fn while_keys_change_there_is_a_signature_under_each() {
        let key = SigningKey::from_webhook_secret(SECRET).unwrap();
        let [_, _, alone] = headers_of(other(), None);
        let [_, _, both] = headers_of(other(), Some(key));
        assert_eq!(both, format!("{alone} {SIGNATURE}"));
    }

    #[test]
    fn an_id_that_would_be_two_headers_is_refused() {
        let keys = SigningKeys { current: other(), other: None };
        let split = Delivery { id: "a\r\nb: c", ..delivery() };
        assert!(webhook_headers(&keys, split).is_err());
    }

    #[test]
    fn a_jwt_is_what_its_receiver_computes() {
        let jwt = jwt(&SigningKey::from_text(TEXT).unwrap(), PARTIES, delivery());
        let (signed, signature) = jwt.rsplit_once('.').unwrap();
        let expected = hmac(TEXT.as_bytes(), signed.as_bytes());
        assert_eq!(URL_SAFE_NO_PAD.decode(signature).unwrap(), expected);
        let parts: Vec<Value> = signed
            .split('.')
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        let claims = json!({
            "iss": "Upstash",
            "sub": "https://example.com/a?b=\"c\"",
            "exp": SECONDS + 300,
            "nbf": 0,
            "iat": SECONDS,
            "jti": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "body": "roWJMfZ4h-gVDW-Wyf4DBiwd82tEZMTdyOACwITV0Zg=",
        });
        assert_eq!(parts, [json!({ "alg": "HS256", "typ": "JWT" }), claims]);
    }

    #[test]
    fn a_key_is_as_long_as_it_must_be() {
        let webhook = |bytes: usize| {
            let secret = STANDARD.encode(vec![1; bytes]);
            SigningKey::from_webhook_secret(&format!("whsec_{secret}")).map(|_| ())
        };
        assert_eq!(
            [23, 24, 64, 65].map(|bytes| webhook(bytes).is_ok()),
            [false, true, true, false]
        );
        let text = |bytes: usize| SigningKey::from_text(&"x".repeat(bytes)).map(|_| ());
        assert_eq!([15, 16, 256, 257].map(|bytes| text(bytes).is_ok()), [false, true, true, false]);
        for text in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!", "whsec_AA", ""] {
            let error = SigningKey::from_webhook_secret(text).map(|_| ()).unwrap_err();
            assert_eq!(error, SigningKeyError::Form, "{text}");
        }
        let error = webhook(3).unwrap_err().to_string();
        assert_eq!(error, "a signing secret has 24 to 64 bytes, and this one 3: make a new one");
    }

    #[test]
    fn a_key_is_not_printed() {
        let key = SigningKey::from_text(TEXT).unwrap();
        let keys = SigningKeys { current: key.clone(), other: Some(key) };
        let shown = "SigningKeys { current: SigningKey(***), other: Some(SigningKey(***)) }";
        assert_eq!(format!("{keys:?}"), shown);
    }
}
