//! Limits as they travel: one rule, or several under one name.

use super::time::{InstantWire, SpanWire};
use super::totals::LimitTotalsWire;
use serde::{Deserialize, Serialize};
use tollgate_core::{Align, Limit, RuleSpec, Span};
use tollgate_engine::{Change, LimitState};

/// A limit: the fields of one rule, or `{"rules":[…]}`; and `ahead` and `spread` beside either.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LimitWire {
    #[serde(flatten)]
    rules: RulesWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<SpanWire>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    spread: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum RulesWire {
    Several { rules: Vec<RuleWire> },
    One(RuleWire),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RuleWire {
    rule: RuleKind,
    limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    per: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guard: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    align: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RuleKind {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
    Concurrency,
}

impl From<&Limit> for LimitWire {
    fn from(limit: &Limit) -> Self {
        let mut rules: Vec<_> = limit.rules().iter().filter_map(RuleWire::new).collect();
        let rules = match rules.pop() {
            Some(rule) if rules.is_empty() => RulesWire::One(rule),
            last => {
                rules.extend(last);
                RulesWire::Several { rules }
            }
        };
        let ahead = Some(limit.taken_ahead()).filter(|ahead| !ahead.is_zero());
        Self { rules, ahead: ahead.map(SpanWire), spread: limit.is_spread() }
    }
}

impl From<LimitWire> for Limit {
    fn from(wire: LimitWire) -> Self {
        let rules = match wire.rules {
            RulesWire::One(rule) => vec![rule],
            RulesWire::Several { rules } => rules,
        };
        let ahead = wire.ahead.map_or(Span::ZERO, |SpanWire(ahead)| ahead);
        let limit = Self::of(rules.into_iter().map(RuleSpec::from).collect()).ahead(ahead);
        if wire.spread { limit.spread() } else { limit }
    }
}

impl RuleWire {
    /// `None` for a kind that this version does not know.
    fn new(rule: &RuleSpec) -> Option<Self> {
        let rate = |rule, limit, per, guard: Span| Self {
            rule,
            limit,
            per: Some(SpanWire(per)),
            burst: None,
            guard: Some(SpanWire(guard)).filter(|guard| !guard.0.is_zero()),
            align: None,
        };
        Some(match rule {
            RuleSpec::TokenBucket { limit, per, burst, guard } => {
                let wire = rate(RuleKind::TokenBucket, *limit, *per, *guard);
                Self { burst: Some(*burst), ..wire }
            }
            RuleSpec::FixedWindow { limit, per, align, guard } => {
                let zone = match align {
                    Align::FirstCall => None,
                    Align::Calendar { zone } => Some(zone.clone()),
                };
                Self { align: zone, ..rate(RuleKind::FixedWindow, *limit, *per, *guard) }
            }
            RuleSpec::SlidingWindow { limit, per, guard } => {
                rate(RuleKind::SlidingWindow, *limit, *per, *guard)
            }
            RuleSpec::Concurrency { limit } => {
                let wire = rate(RuleKind::Concurrency, *limit, Span::ZERO, Span::ZERO);
                Self { per: None, ..wire }
            }
            _ => return None,
        })
    }
}

impl From<RuleWire> for RuleSpec {
    fn from(wire: RuleWire) -> Self {
        let RuleWire { rule, limit, per, burst, guard, align } = wire;
        let span = |wire: Option<SpanWire>| wire.map_or(Span::ZERO, |SpanWire(span)| span);
        let (per, guard) = (span(per), span(guard));
        match rule {
            RuleKind::TokenBucket => {
                Self::TokenBucket { limit, per, burst: burst.unwrap_or(limit), guard }
            }
            RuleKind::FixedWindow => {
                let align = align.map_or(Align::FirstCall, |zone| Align::Calendar { zone });
                Self::FixedWindow { limit, per, align, guard }
            }
            RuleKind::SlidingWindow => Self::SlidingWindow { limit, per, guard },
            RuleKind::Concurrency => Self::Concurrency { limit },
        }
    }
}

/// A limit with all that is told of it.
#[derive(Debug, Deserialize)]
pub(crate) struct LimitStateWire {
    pub(crate) name: String,
    definition: LimitWire,
    pinned: Option<LimitWire>,
    #[serde(default)]
    overrides: Vec<OverrideWire>,
    #[serde(default)]
    history: Vec<ChangeWire>,
    #[serde(default)]
    paused: bool,
    totals: Option<LimitTotalsWire>,
}

#[derive(Debug, Deserialize)]
struct OverrideWire {
    partition: String,
    definition: LimitWire,
}

#[derive(Debug, Deserialize)]
struct ChangeWire {
    at: InstantWire,
    who: String,
    before: Option<LimitWire>,
    after: Option<LimitWire>,
}

/// A page of limits.
#[derive(Debug, Deserialize)]
pub(crate) struct LimitPageWire {
    pub(crate) limits: Vec<LimitStateWire>,
    pub(crate) next: Option<String>,
}

impl From<LimitStateWire> for LimitState {
    fn from(wire: LimitStateWire) -> Self {
        let overrides = wire.overrides.into_iter();
        let history = wire.history.into_iter().map(|change| Change {
            at: change.at.0,
            who: change.who,
            before: change.before.map(Limit::from),
            after: change.after.map(Limit::from),
        });
        Self {
            name: wire.name.into(),
            defined: wire.definition.into(),
            pinned: wire.pinned.map(Limit::from),
            overrides: overrides.map(|it| (it.partition, it.definition.into())).collect(),
            history: history.collect(),
            is_paused: wire.paused,
            totals: wire.totals.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_comes_back_as_it_went() {
        let hour = Span::from_hours(1);
        for limit in [
            Limit::per_minute(100).burst(150).guard(Span::from_millis(50)),
            Limit::fixed_window(10, hour).on_calendar("Europe/Berlin"),
            Limit::fixed_window(10, hour).guard(Span::from_secs(1)),
            Limit::sliding_window(3, hour),
            Limit::concurrency(4),
            Limit::per_second(5).and(Limit::concurrency(2)),
            Limit::per_second(5).ahead(Span::from_millis(10)),
            Limit::per_second(5).and(Limit::per_hour(9)).ahead(Span::from_millis(10)),
        ] {
            let text = serde_json::to_string(&LimitWire::from(&limit)).unwrap();
            let back: LimitWire = serde_json::from_str(&text).unwrap();
            assert_eq!(Limit::from(back), limit, "{text}");
        }
    }
}
