//! Rules as a short text, and back: it names the definition that a meter was left under.
//!
//! `b100/60000000000/150/0` is a token bucket of 100 per minute with a burst of 150 and no guard; `f` is
//! a fixed window, on the calendar of a zone after `@`; `s` a sliding window; `c` a concurrency. Several
//! are joined by `;`, then may come `a` with what is taken ahead, and last `x` if it is spread. Spans are
//! nanoseconds. What was written once is read for good.

use tollgate_core::{Align, Definition, Limit, RuleSpec, Span};

/// Ends the text of a limit that is spread.
const SPREAD: &str = ";x";

/// The rules of a definition.
pub(super) fn written(definition: &Definition) -> String {
    let rules = definition.limit().rules().iter().map(rule);
    let mut text = rules.collect::<Vec<_>>().join(";");
    let ahead = definition.limit().taken_ahead();
    if !ahead.is_zero() {
        text.push_str(&format!(";a{}", ahead.as_nanos()));
    }
    if definition.limit().is_spread() {
        text.push_str(SPREAD);
    }
    text
}

fn rule(rule: &RuleSpec) -> String {
    match rule {
        RuleSpec::TokenBucket { limit, per, burst, guard } => {
            format!("b{limit}/{}/{burst}/{}", per.as_nanos(), guard.as_nanos())
        }
        RuleSpec::FixedWindow { limit, per, align, guard } => {
            let zone = match align {
                Align::FirstCall => String::new(),
                Align::Calendar { zone } => format!("@{zone}"),
            };
            format!("f{limit}/{}/{}{zone}", per.as_nanos(), guard.as_nanos())
        }
        RuleSpec::SlidingWindow { limit, per, guard } => {
            format!("s{limit}/{}/{}", per.as_nanos(), guard.as_nanos())
        }
        RuleSpec::Concurrency { limit } => format!("c{limit}"),
        // A kind that this does not know cannot be read again, and is refused when it is.
        other => other.kind().to_owned(),
    }
}

/// The definition that was written so, with what is taken ahead; `None` if none was.
pub(super) fn read(text: &str) -> Option<Definition> {
    let (text, is_spread) = match text.strip_suffix(SPREAD) {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (rules, ahead) = match text.split_once(";a") {
        Some((rules, ahead)) => (rules, Span::from_nanos(ahead.parse().ok()?)),
        None => (text, Span::ZERO),
    };
    let rules = rules.split(';').map(read_rule).collect::<Option<Vec<_>>>()?;
    let limit = Limit::of(rules).ahead(ahead);
    let limit = if is_spread { limit.spread() } else { limit };
    Definition::new(limit).ok()?.with_ahead().ok()
}

fn read_rule(text: &str) -> Option<RuleSpec> {
    let (numbers, zone) = match text.split_once('@') {
        Some((numbers, zone)) => (numbers, Some(zone)),
        None => (text, None),
    };
    let mut letters = numbers.chars();
    let kind = letters.next()?;
    let numbers = letters.as_str().split('/').map(|number| number.parse().ok());
    let numbers = numbers.collect::<Option<Vec<u64>>>()?;
    let align = zone.map_or(Align::FirstCall, |zone| Align::Calendar { zone: zone.to_owned() });
    let span = Span::from_nanos;
    Some(match (kind, numbers.as_slice()) {
        ('b', &[limit, per, burst, guard]) => {
            RuleSpec::TokenBucket { limit, per: span(per), burst, guard: span(guard) }
        }
        ('f', &[limit, per, guard]) => {
            RuleSpec::FixedWindow { limit, per: span(per), align, guard: span(guard) }
        }
        ('s', &[limit, per, guard]) => {
            RuleSpec::SlidingWindow { limit, per: span(per), guard: span(guard) }
        }
        ('c', &[limit]) => RuleSpec::Concurrency { limit },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_were_written() {
        let minute = Span::from_minutes(1);
        let each = [
            (Limit::per_minute(100).burst(150), "b100/60000000000/150/0"),
            (Limit::fixed_window(5, minute).guard(Span::from_millis(2)), "f5/60000000000/2000000"),
            (
                Limit::fixed_window(5, Span::from_days(1)).on_calendar("Europe/Berlin"),
                "f5/86400000000000/0@Europe/Berlin",
            ),
            (Limit::per_minute(1).spread(), "b1/60000000000/1/0;x"),
            (
                Limit::per_minute(1).burst(9).ahead(Span::from_secs(1)).spread(),
                "b1/60000000000/9/0;a1000000000;x",
            ),
            (Limit::sliding_window(7, minute).and(Limit::concurrency(3)), "s7/60000000000/0;c3"),
        ];
        for (limit, text) in each {
            let definition = Definition::new(limit).unwrap();
            assert_eq!(written(&definition), text);
            assert_eq!(read(text), Some(definition.with_ahead().unwrap()));
        }
        for text in ["", "b1", "x1/2/3", "c", "c1;", "b1/2/3/x", "c0"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
