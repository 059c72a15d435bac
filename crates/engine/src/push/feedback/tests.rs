//! Answers as upstreams really write them, and as nobody should.

use super::*;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

/// Sunday, the 15th of June 2025, 12:00:00 UTC.
const NOON: u64 = 1_749_988_800;

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
    };
    // `collect` would keep the last of several lines with one name.
    let mut headers = HeaderMap::new();
    lines.iter().map(line).for_each(|(name, value)| {
        headers.append(name, value);
    });
    headers
}

fn noon() -> Timestamp {
    Timestamp::from_nanos(NOON * 1_000_000_000)
}

/// The pause in milliseconds after a 429, and what told it.
fn told(lines: &[(&'static str, &str)]) -> (u64, &'static str) {
    let pause = pause(StatusCode::TOO_MANY_REQUESTS, &headers(lines), noon()).unwrap();
    (pause.span.as_millis_ceil(), pause.told_by)
}

#[test]
fn every_form_of_retry_after_is_read() {
    for (text, millis) in [
        ("0", 0),
        ("30", 30_000),
        (" 30 ", 30_000),
        ("0.25", 250),
        ("1.0000000001", 1_001),
        ("1749988830", 30_000),
        ("1749988830500", 30_500),
        ("Sun, 15 Jun 2025 12:00:30 GMT", 30_000),
        ("Mon, 15 Jun 2025 12:00:30 GMT", 30_000),
        ("Sunday, 15-Jun-25 12:00:30 GMT", 30_000),
        ("Sun Jun 15 12:00:30 2025", 30_000),
        ("Sun, 15 Jun 2025 11:59:59 GMT", 0),
        ("2025-06-15T14:00:30+02:00", 30_000),
        ("1m30s", 90_000),
    ] {
        assert_eq!(told(&[("retry-after", text)]), (millis, "retry-after"), "{text}");
    }
}

#[test]
fn a_day_is_the_longest_pause() {
    let day = 86_400_000;
    assert_eq!(told(&[("retry-after", "86399")]).0, day - 1_000);
    for text in [
        "86401",
        "999999999",
        "99999999999999999999999999",
        "9999999999999999999999999h",
        "Fri, 15 Jun 2125 12:00:00 GMT",
        "9998-12-31T23:59:59Z",
    ] {
        assert_eq!(told(&[("retry-after", text)]).0, day, "{text}");
    }
    assert_eq!(told(&[("retry-after-ms", "86400001")]).0, day);
    assert_eq!(told(&[("x-ratelimit-reset", "25h")]).0, day);
}

#[test]
fn what_cannot_be_read_says_nothing() {
    for text in [
        "",
        "-1",
        "soon",
        "1e3",
        "1.2.3",
        ".5",
        "5 s",
        "1y",
        "s",
        "0x10",
        "30;",
        "12:00",
        "Sun, 99 Jun 2025 12:00:30 GMT",
    ] {
        assert_eq!(told(&[("retry-after", text)]), (1_000, "status"), "{text}");
    }
    let opaque = HeaderValue::from_bytes(b"\xff30").unwrap();
    let headers = HeaderMap::from_iter([(HeaderName::from_static("retry-after"), opaque)]);
    let pause = pause(StatusCode::TOO_MANY_REQUESTS, &headers, noon()).unwrap();
    assert_eq!(pause, Pause { span: PAUSE_UNTOLD, told_by: TOLD_BY_STATUS });
}

#[test]
fn milliseconds_win_over_rounded_seconds_and_both_over_resets() {
    let reset = ("x-ratelimit-reset", "60");
    assert_eq!(told(&[reset, ("retry-after", "1")]), (1_000, "retry-after"));
    let both = [reset, ("retry-after", "1"), ("retry-after-ms", "612.5")];
    assert_eq!(told(&both), (613, "retry-after-ms"));
    let broken = [reset, ("retry-after", "1"), ("retry-after-ms", "soon")];
    assert_eq!(told(&broken), (1_000, "retry-after"));
}

#[test]
fn durations_as_openai_writes_them_are_read() {
    for (text, millis) in [
        ("6m0s", 360_000),
        ("250ms", 250),
        ("1h2m3.5s", 3_723_500),
        ("1d", 86_400_000),
        ("900us", 1),
        ("20ns", 1),
        ("7", 7_000),
        ("0s", 0),
    ] {
        let name = "x-ratelimit-reset-requests";
        assert_eq!(told(&[(name, text)]), (millis, name), "{text}");
    }
}

#[test]
fn the_limit_with_nothing_left_is_the_one_that_counts() {
    let openai = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "2s"),
        ("x-ratelimit-remaining-tokens", "149000"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    assert_eq!(told(&openai), (2_000, "x-ratelimit-reset-requests"));
    let unknown = [
        ("x-ratelimit-remaining-requests", "-1"),
        ("x-ratelimit-reset-requests", "2s"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    assert_eq!(told(&unknown), (360_000, "x-ratelimit-reset-tokens"));
}

#[test]
fn the_latest_of_several_spent_limits_counts() {
    let anthropic = [
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", "2025-06-15T12:00:05Z"),
        ("anthropic-ratelimit-input-tokens-remaining", "0"),
        ("anthropic-ratelimit-input-tokens-reset", "2025-06-15T12:00:40Z"),
        ("anthropic-ratelimit-output-tokens-remaining", "16000"),
        ("anthropic-ratelimit-output-tokens-reset", "2025-06-15T12:01:00Z"),
        ("anthropic-ratelimit-tokens-reset", "2025-06-15T12:02:00Z"),
    ];
    assert_eq!(told(&anthropic), (40_000, "anthropic-ratelimit-input-tokens-reset"));
}

#[test]
fn the_fields_of_the_ietf_are_read_in_old_and_new_form() {
    let new = r#""burst";r=0;t=3, "daily";r=12;t=30000"#;
    assert_eq!(told(&[("ratelimit", new)]), (3_000, "ratelimit"));
    let several = [("ratelimit", r#""a";r=1;t=3"#), ("ratelimit", r#""b";r=1;t=5"#)];
    assert_eq!(told(&several), (5_000, "ratelimit"));
    let old = "limit=10, remaining=0, reset=30";
    assert_eq!(told(&[("ratelimit", old)]), (30_000, "ratelimit"));
    let older = [("ratelimit-remaining", "0"), ("ratelimit-reset", "30")];
    assert_eq!(told(&older), (30_000, "ratelimit-reset"));
    assert_eq!(told(&[("ratelimit-policy", r#""burst";q=100;w=60"#)]), (1_000, "status"));
}

#[test]
fn a_429_always_pauses_a_503_if_it_says_so_and_nothing_else_does() {
    let said = headers(&[("retry-after", "9")]);
    let silent = HeaderMap::new();
    for (status, when_said, when_silent) in
        [(429, Some(9), Some(1)), (503, Some(9), None), (500, None, None), (200, None, None)]
    {
        let status = StatusCode::from_u16(status).unwrap();
        let seconds = |headers| pause(status, headers, noon()).map(|it| it.span.as_secs_ceil());
        assert_eq!((seconds(&said), seconds(&silent)), (when_said, when_silent), "{status}");
    }
}

/// Every header that is looked at.
fn names() -> Vec<&'static str> {
    let pairs = RESETS.iter().flat_map(|(reset, remaining)| [*reset, *remaining]);
    pairs.chain([RETRY_AFTER, RETRY_AFTER_MS, RATELIMIT]).collect()
}

/// Bytes of any kind, and such as come close to what is understood.
fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        "[0-9]{0,30}(\\.[0-9]{0,20})?(ms|us|ns|h|m|s|d)?[0-9.]{0,3}[hms]?".prop_map(String::into),
        "[A-Z][a-z]{2,8}, ?[0-9]{1,3}[ -][A-Z][a-z]{2}[ -][0-9]{1,6} [0-9:]{1,9} [A-Z+0-9]{1,5}"
            .prop_map(String::into),
        "[-+]?[0-9]{1,6}-[0-9]{1,2}-[0-9]{1,2}[Tt ][0-9:.]{1,12}[Zz+0-9:-]{1,6}"
            .prop_map(String::into),
        "\"?[a-z\\\\\",;]{0,5}\"?(;[rt]=[0-9]{0,25}){0,3}".prop_map(String::into),
    ]
}

proptest! {
    #[test]
    fn any_bytes_in_any_header_are_borne_and_pause_for_a_day_at_most(
        lines in prop::collection::vec((prop::sample::select(names()), values()), 0..6),
        status in prop::sample::select(vec![429, 503, 200]),
        wall: u64,
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(name, value);
            }
        }
        let status = StatusCode::from_u16(status).unwrap();
        let pause = pause(status, &headers, Timestamp::from_nanos(wall));
        prop_assert!(pause.is_none_or(|pause| pause.span <= PAUSE_MAX));
        prop_assert!(pause.is_some() || status != StatusCode::TOO_MANY_REQUESTS);
    }

    #[test]
    fn a_number_is_the_same_time_in_every_form(ahead in 0..86_400_u64) {
        let at = NOON + ahead;
        let forms = [ahead.to_string(), at.to_string(), format!("{at}000"), format!("{ahead}s")];
        for form in forms {
            prop_assert_eq!(told(&[("x-ratelimit-reset", &form)]).0, ahead * 1_000, "{}", form);
        }
    }
}
