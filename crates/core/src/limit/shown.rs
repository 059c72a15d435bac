//! Limits as people are told of them: in logs.

use super::{Align, Limit, RuleSpec};
use crate::time::Span;
use std::fmt;

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, rule) in self.rules.iter().enumerate() {
            if at > 0 {
                f.write_str(" and ")?;
            }
            rule.fmt(f)?;
        }
        match self.ahead {
            Span::ZERO => Ok(()),
            ahead => write!(f, ", taken ahead for {ahead}"),
        }
    }
}

impl fmt::Display for RuleSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = match self {
            Self::TokenBucket { limit, per, burst, guard } => {
                write!(f, "{limit} per {per}, burst {burst}")?;
                *guard
            }
            Self::FixedWindow { limit, per, align, guard } => {
                write!(f, "{limit} in each {per}")?;
                if let Align::Calendar { zone } = align {
                    write!(f, ", by the calendar of {zone}")?;
                }
                *guard
            }
            Self::SlidingWindow { limit, per, guard } => {
                write!(f, "{limit} in any {per}")?;
                *guard
            }
            Self::Concurrency { limit } => return write!(f, "{limit} at a time"),
        };
        if guard.is_zero() { Ok(()) } else { write!(f, ", guard {guard}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_with_all_that_it_says() {
        let ms = Span::from_millis(10);
        let day = Limit::fixed_window(9, Span::from_days(1)).on_calendar("Europe/Berlin");
        for (limit, told) in [
            (Limit::per_minute(100).guard(ms), "100 per 1m, burst 100, guard 10ms"),
            (
                day.and(Limit::concurrency(2)),
                "9 in each 1d, by the calendar of Europe/Berlin and 2 at a time",
            ),
            (
                Limit::sliding_window(5, ms).ahead(Span::from_millis(1)),
                "5 in any 10ms, taken ahead for 1ms",
            ),
        ] {
            assert_eq!(limit.to_string(), told);
        }
    }
}
