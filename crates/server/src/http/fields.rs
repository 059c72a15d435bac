//! The header fields `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers-10
//! has them: structured fields of RFC 9651.

use axum::http::{HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;
use tollgate::{MeterState, Pass, Refusal, RuleSpec, Span};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Largest integer of a structured field. A larger count is told as this.
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// What the answer says of the meter that is nearest to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standing {
    /// The number in the tightest rule.
    pub(super) limit: u64,
    /// What is left there; debt counts as nothing.
    pub(super) remaining: i64,
    /// When there will be more; `None` if no one can know.
    pub(super) more_after: Option<Span>,
}

impl From<&Pass> for Standing {
    fn from(pass: &Pass) -> Self {
        let more_after = Some(pass.reset_after());
        Self { limit: pass.limit(), remaining: pass.remaining(), more_after }
    }
}

impl From<&Refusal> for Standing {
    fn from(refusal: &Refusal) -> Self {
        let tollgate::Standing { limit, remaining, .. } = refusal.standing;
        Self { limit, remaining, more_after: refusal.retry_after }
    }
}

/// The fields for a meter: the policy of each of its rules, and how the tightest one stands.
pub(super) fn fields(meter: &MeterState, standing: Standing) -> [(HeaderName, HeaderValue); 2] {
    let rules = meter.definition.rules();
    // Room for the names and a few numbers, so that the text is not moved while it grows.
    let bytes = 64 + meter.limit.len() + meter.partition.as_ref().map_or(0, |text| text.len() * 2);
    let mut policies = String::with_capacity(bytes * rules.len());
    for (index, rule) in rules.iter().enumerate() {
        if index > 0 {
            policies.push_str(", ");
        }
        put_name(&mut policies, meter, index);
        put_policy(&mut policies, rule);
        put_partition(&mut policies, meter);
    }
    let tightest = rules.iter().position(|rule| units(rule) == standing.limit).unwrap_or(0);
    let mut limit = String::with_capacity(bytes);
    put_name(&mut limit, meter, tightest);
    let remaining = u64::try_from(standing.remaining).unwrap_or(0);
    put_parameter(&mut limit, ";r=", remaining);
    if let Some(span) = standing.more_after {
        put_parameter(&mut limit, ";t=", span.as_secs_ceil());
    }
    put_partition(&mut limit, meter);
    [(POLICY, value(policies)), (LIMIT, value(limit))]
}

fn put_policy(text: &mut String, rule: &RuleSpec) {
    put_parameter(text, ";q=", units(rule));
    match period(rule) {
        // Whole seconds, rounded up: a policy that sounds slower than it is breaks no one's pace.
        Some(per) => put_parameter(text, ";w=", per.as_secs_ceil()),
        None => text.push_str(";qu=\"concurrent-requests\""),
    }
}

/// A limit's first rule goes by the limit's name, the others add their number.
fn put_name(text: &mut String, meter: &MeterState, rule: usize) {
    text.push('"');
    for byte in meter.limit.bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            // Percent-encoded, for a structured field has no other letters; and so is the sign
            // itself, that it can be undone.
            b'%' | ..0x20 | 0x7f.. => put(text, format_args!("%{byte:02X}")),
            _ => text.push(char::from(byte)),
        }
    }
    if rule > 0 {
        put(text, format_args!("#{}", rule + 1));
    }
    text.push('"');
}

fn put_partition(text: &mut String, meter: &MeterState) {
    if let Some(partition) = &meter.partition {
        text.push_str(";pk=:");
        STANDARD.encode_string(partition, text);
        text.push(':');
    }
}

fn put_parameter(text: &mut String, key: &str, number: u64) {
    text.push_str(key);
    text.push_str(itoa::Buffer::new().format(number.min(INTEGER_MAX)));
}

fn put(text: &mut String, part: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = text.write_fmt(part);
}

fn value(text: String) -> HeaderValue {
    // All of it is visible ASCII and spaces; anything else would be left out rather than sent.
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

fn units(rule: &RuleSpec) -> u64 {
    match rule {
        RuleSpec::TokenBucket { limit, .. }
        | RuleSpec::FixedWindow { limit, .. }
        | RuleSpec::SlidingWindow { limit, .. }
        | RuleSpec::Concurrency { limit } => *limit,
        _ => 0,
    }
}

fn period(rule: &RuleSpec) -> Option<Span> {
    match rule {
        RuleSpec::TokenBucket { per, .. }
        | RuleSpec::FixedWindow { per, .. }
        | RuleSpec::SlidingWindow { per, .. } => Some(*per),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::{Limit, Tollgate, UNITS_MAX};

    async fn told(name: &str, partition: Option<&str>, limit: Limit) -> (String, String) {
        let gate = Tollgate::memory();
        gate.limit(name, limit).await.unwrap();
        let meter = gate.meter(name, partition).await.unwrap();
        let (limit, remaining) = (meter.standing.limit, meter.standing.remaining);
        let standing = Standing { limit, remaining, more_after: Some(Span::from_millis(1500)) };
        let [policy, limit] = fields(&meter, standing).map(|(_, value)| value);
        (policy.to_str().unwrap().to_owned(), limit.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn tells_quota_window_remaining_and_time() {
        let (policy, limit) = told("stripe", None, Limit::per_minute(100)).await;
        assert_eq!(policy, r#""stripe";q=100;w=60"#);
        assert_eq!(limit, r#""stripe";r=100;t=2"#);
    }

    #[tokio::test]
    async fn a_partition_is_a_byte_sequence() {
        let (policy, limit) = told("stripe", Some("acme"), Limit::per_minute(100)).await;
        assert_eq!(policy, r#""stripe";q=100;w=60;pk=:YWNtZQ==:"#);
        assert_eq!(limit, r#""stripe";r=100;t=2;pk=:YWNtZQ==:"#);
    }

    #[tokio::test]
    async fn a_name_cannot_break_out_of_its_field() {
        let (policy, _) = told("a\"b\\c\r\nd: 100% ☃", None, Limit::per_second(1)).await;
        assert_eq!(policy, r#""a\"b\\c%0D%0Ad: 100%25 %E2%98%83";q=1;w=1"#);
    }

    #[tokio::test]
    async fn every_rule_has_a_policy_and_the_tightest_is_told() {
        let limit = Limit::per_day(100).and(Limit::concurrency(2));
        let (policy, limit) = told("api", None, limit).await;
        assert_eq!(policy, r#""api";q=100;w=86400, "api#2";q=2;qu="concurrent-requests""#);
        assert_eq!(limit, r#""api#2";r=2;t=2"#);
    }

    #[tokio::test]
    async fn numbers_fit_a_structured_field() {
        let limit = Limit::fixed_window(UNITS_MAX, Span::from_millis(1));
        let (policy, limit) = told("api", None, limit).await;
        assert_eq!(policy, r#""api";q=999999999999999;w=1"#);
        assert_eq!(limit, r#""api";r=999999999999999;t=2"#);
    }
}
