//! The header fields `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers-10
//! has them: structured fields of RFC 9651.

use axum::http::{HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;
use tollgate::{Span, Standing};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Largest integer of a structured field. A larger count is told as this.
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// Both fields, ready for an answer.
pub(super) type Fields = [(HeaderName, HeaderValue); 2];

/// The meter that an answer tells of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told<'a> {
    pub(super) limit: &'a str,
    pub(super) partition: Option<&'a str>,
    /// Its tightest rule: what it allows, and what is left.
    pub(super) standing: Standing,
    /// When there will be more; `None` if no one can know.
    pub(super) more_after: Option<Span>,
}

/// The policy of the meter's tightest rule, and how it stands.
pub(super) fn fields(told: Told<'_>) -> Fields {
    let Told { standing, more_after, .. } = told;
    // Room for the names and a few numbers, so that the text is not moved while it grows.
    let bytes = 64 + told.limit.len() + told.partition.map_or(0, |text| text.len() * 2);
    let mut policy = String::with_capacity(bytes);
    put_name(&mut policy, told.limit);
    let mut limit = policy.clone();
    put_parameter(&mut policy, ";q=", standing.limit);
    match standing.per {
        // Whole seconds, rounded up: a policy that sounds slower than it is breaks no one's pace.
        Some(per) => put_parameter(&mut policy, ";w=", per.as_secs_ceil()),
        None => policy.push_str(";qu=\"concurrent-requests\""),
    }
    // Debt counts as nothing left.
    put_parameter(&mut limit, ";r=", u64::try_from(standing.remaining).unwrap_or(0));
    if let Some(span) = more_after {
        put_parameter(&mut limit, ";t=", span.as_secs_ceil());
    }
    for text in [&mut policy, &mut limit] {
        put_partition(text, told.partition);
    }
    [(POLICY, value(policy)), (LIMIT, value(limit))]
}

fn put_name(text: &mut String, name: &str) {
    text.push('"');
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            // Percent-encoded, for a structured field has no other letters; and so is the sign
            // itself, that it can be undone.
            b'%' | ..0x20 | 0x7f.. => put_encoded(text, byte),
            _ => text.push(char::from(byte)),
        }
    }
    text.push('"');
}

fn put_encoded(text: &mut String, byte: u8) {
    // Writing into a string does not fail.
    let _ = write!(text, "%{byte:02X}");
}

fn put_partition(text: &mut String, partition: Option<&str>) {
    if let Some(partition) = partition {
        text.push_str(";pk=:");
        STANDARD.encode_string(partition, text);
        text.push(':');
    }
}

fn put_parameter(text: &mut String, key: &str, number: u64) {
    text.push_str(key);
    text.push_str(itoa::Buffer::new().format(number.min(INTEGER_MAX)));
}

fn value(text: String) -> HeaderValue {
    // All of it is visible ASCII and spaces; anything else would be left out rather than sent.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::{Limit, Tollgate, UNITS_MAX};

    async fn told(limit: &str, partition: Option<&str>, rule: Limit) -> [String; 2] {
        let gate = Tollgate::memory();
        gate.limit(limit, rule).await.unwrap();
        let standing = gate.meter(limit, partition).await.unwrap().standing;
        let more_after = Some(Span::from_millis(1500));
        let fields = fields(Told { limit, partition, standing, more_after });
        fields.map(|(_, value)| value.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn tells_quota_window_remaining_and_time() {
        let told = told("stripe", None, Limit::per_minute(100)).await;
        assert_eq!(told, [r#""stripe";q=100;w=60"#, r#""stripe";r=100;t=2"#]);
    }

    #[tokio::test]
    async fn a_partition_is_a_byte_sequence() {
        let [policy, limit] = told("stripe", Some("acme"), Limit::per_minute(100)).await;
        assert_eq!(policy, r#""stripe";q=100;w=60;pk=:YWNtZQ==:"#);
        assert_eq!(limit, r#""stripe";r=100;t=2;pk=:YWNtZQ==:"#);
    }

    #[tokio::test]
    async fn a_name_cannot_break_out_of_its_field() {
        let [policy, _] = told("a\"b\\c\r\nd: 100% ☃", None, Limit::per_second(1)).await;
        assert_eq!(policy, r#""a\"b\\c%0D%0Ad: 100%25 %E2%98%83";q=1;w=1"#);
    }

    #[tokio::test]
    async fn the_tightest_rule_is_told() {
        let told = told("api", None, Limit::per_day(100).and(Limit::concurrency(2))).await;
        assert_eq!(told, [r#""api";q=2;qu="concurrent-requests""#, r#""api";r=2;t=2"#]);
    }

    #[tokio::test]
    async fn numbers_fit_a_structured_field() {
        let rule = Limit::fixed_window(UNITS_MAX, Span::from_millis(1));
        let [policy, limit] = told("api", None, rule).await;
        assert_eq!(policy, r#""api";q=999999999999999;w=1"#);
        assert_eq!(limit, r#""api";r=999999999999999;t=2"#);
    }
}
