//! What an upstream's answer says about when to come again.

mod fields;
mod moment;
#[cfg(test)]
mod tests;

use http::{HeaderMap, StatusCode};
use tollgate_core::{Span, Timestamp};

/// The longest pause: whoever asks for more is asked again after a day.
pub const PAUSE_MAX: Span = Span::from_days(1);

/// The pause after a 429 that does not say when to come again: most windows are of a second or more.
pub const PAUSE_UNTOLD: Span = Span::from_secs(1);

/// What tells a pause that no header told.
pub const TOLD_BY_STATUS: &str = "status";

const RETRY_AFTER: &str = "retry-after";
const RETRY_AFTER_MS: &str = "retry-after-ms";
const RATELIMIT: &str = "ratelimit";

/// Headers that say when a limit is as new, each with the one that says how much is left of it.
const RESETS: [(&str, &str); 8] = [
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
    ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
    ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ("anthropic-ratelimit-requests-reset", "anthropic-ratelimit-requests-remaining"),
    ("anthropic-ratelimit-tokens-reset", "anthropic-ratelimit-tokens-remaining"),
    ("anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-input-tokens-remaining"),
    ("anthropic-ratelimit-output-tokens-reset", "anthropic-ratelimit-output-tokens-remaining"),
    ("ratelimit-reset", "ratelimit-remaining"),
];

/// For how long an upstream wants no further call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// From now on, up to [`PAUSE_MAX`]. It may be zero, if the upstream says so.
    pub span: Span,
    /// The header that told it, in lower case, or [`TOLD_BY_STATUS`].
    pub told_by: &'static str,
}

/// The pause that an answer asks for: a 429 always does, a 503 if a header says for how long.
///
/// `Retry-After` and `retry-after-ms` come first. Else it is the latest reset of the limits with
/// nothing left, and if none is known to be spent, the latest reset of all. `wall` is the present
/// by the wall clock, for headers that name an instant.
pub fn pause(status: StatusCode, headers: &HeaderMap, wall: Timestamp) -> Option<Pause> {
    match status {
        StatusCode::TOO_MANY_REQUESTS => {
            let untold = Pause { span: PAUSE_UNTOLD, told_by: TOLD_BY_STATUS };
            Some(told(headers, wall).unwrap_or(untold))
        }
        StatusCode::SERVICE_UNAVAILABLE => told(headers, wall),
        _ => None,
    }
}

/// When an answer says to come again, whatever its status: the latest of all that it says. Longer than
/// [`PAUSE_MAX`] is told as it is.
pub fn come_again(headers: &HeaderMap, wall: Timestamp) -> Option<Span> {
    retry_after(headers, wall).or_else(|| reset(headers, wall)).map(|pause| pause.span)
}

/// When one limit of the upstream is as new.
struct Reset {
    pause: Pause,
    is_spent: bool,
}

fn told(headers: &HeaderMap, wall: Timestamp) -> Option<Pause> {
    let pause = retry_after(headers, wall).or_else(|| reset(headers, wall))?;
    Some(Pause { span: pause.span.min(PAUSE_MAX), ..pause })
}

/// The one in milliseconds is looked at first: who sends both rounds the other.
fn retry_after(headers: &HeaderMap, wall: Timestamp) -> Option<Pause> {
    let millis = texts(headers, RETRY_AFTER_MS).filter_map(moment::millis).max();
    let millis = millis.map(|span| Pause { span, told_by: RETRY_AFTER_MS });
    millis.or_else(|| {
        let span = texts(headers, RETRY_AFTER).filter_map(|text| moment::until(text, wall)).max();
        span.map(|span| Pause { span, told_by: RETRY_AFTER })
    })
}

fn reset(headers: &HeaderMap, wall: Timestamp) -> Option<Pause> {
    let pairs = RESETS.iter().filter_map(|(reset, remaining)| {
        let span = texts(headers, reset).filter_map(|text| moment::until(text, wall)).max()?;
        let is_spent = texts(headers, remaining).any(moment::is_zero);
        Some(Reset { pause: Pause { span, told_by: reset }, is_spent })
    });
    let quotas = texts(headers, RATELIMIT).flat_map(fields::quotas).filter_map(|quota| {
        let span = moment::until(quota.reset, wall)?;
        let is_spent = quota.remaining.is_some_and(moment::is_zero);
        Some(Reset { pause: Pause { span, told_by: RATELIMIT }, is_spent })
    });
    let resets: Vec<Reset> = pairs.chain(quotas).collect();
    let latest = |is_wanted: fn(&&Reset) -> bool| {
        let pauses = resets.iter().filter(is_wanted).map(|reset| reset.pause);
        pauses.reduce(|first, other| if other.span > first.span { other } else { first })
    };
    latest(|reset| reset.is_spent).or_else(|| latest(|_| true))
}

/// What a header says, as often as it is there. What is no text says nothing.
fn texts<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok()).map(str::trim)
}
