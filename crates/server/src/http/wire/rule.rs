//! One rule as it travels.

use super::span::SpanWire;
use super::units::Units;
use serde::{Deserialize, Serialize};
use tollgate::{Align, Limit, LimitError, RuleSpec, Span};

/// One rule: `{"rule":"token_bucket","limit":100,"per":"1m","burst":150}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RuleWire {
    pub(super) rule: RuleKind,
    pub(super) limit: Units,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) burst: Option<Units>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) guard: Option<SpanWire>,
    /// The time zone on whose calendar windows start; left out: at the first call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) align: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum RuleKind {
    TokenBucket,
    FixedWindow,
    SlidingWindow,
    Concurrency,
}

impl RuleWire {
    /// The limit of this one rule. A setting that the rule does not have is refused here or when
    /// the limit is defined.
    pub(super) fn into_limit(self) -> Result<Limit, String> {
        let mut limit = self.bare_limit()?;
        if let Some(Units(burst)) = self.burst {
            limit = limit.burst(burst);
        }
        if let Some(SpanWire(guard)) = self.guard {
            limit = limit.guard(guard);
        }
        if let Some(zone) = &self.align {
            limit = limit.on_calendar(zone);
        }
        Ok(limit)
    }

    /// The limit without its optional settings.
    fn bare_limit(&self) -> Result<Limit, String> {
        let Units(limit) = self.limit;
        match (self.rule, self.per) {
            (RuleKind::TokenBucket, Some(per)) => Ok(Limit::per(limit, per.0)),
            (RuleKind::FixedWindow, Some(per)) => Ok(Limit::fixed_window(limit, per.0)),
            (RuleKind::SlidingWindow, Some(per)) => Ok(Limit::sliding_window(limit, per.0)),
            (_, None) if self.rule != RuleKind::Concurrency => {
                Err("missing field `per`: the period, as in \"1m\"".to_owned())
            }
            (_, Some(_)) => {
                let error = LimitError::Misplaced { setting: "per", rule: "concurrency" };
                Err(error.to_string())
            }
            (_, None) => Ok(Limit::concurrency(limit)),
        }
    }

    /// The rule as it is shown; `None` for a kind that this version does not know.
    pub(super) fn new(rule: &RuleSpec) -> Option<Self> {
        Some(match rule {
            RuleSpec::TokenBucket { limit, per, burst, guard } => {
                let wire = Self::rate(RuleKind::TokenBucket, *limit, *per, *guard);
                Self { burst: Some(Units(*burst)), ..wire }
            }
            RuleSpec::FixedWindow { limit, per, align, guard } => {
                let wire = Self::rate(RuleKind::FixedWindow, *limit, *per, *guard);
                Self { align: zone(align), ..wire }
            }
            RuleSpec::SlidingWindow { limit, per, guard } => {
                Self::rate(RuleKind::SlidingWindow, *limit, *per, *guard)
            }
            RuleSpec::Concurrency { limit } => Self::bare(RuleKind::Concurrency, *limit),
            _ => return None,
        })
    }

    fn rate(rule: RuleKind, limit: u64, per: Span, guard: Span) -> Self {
        let guard = Some(SpanWire(guard)).filter(|guard| !guard.0.is_zero());
        Self { per: Some(SpanWire(per)), guard, ..Self::bare(rule, limit) }
    }

    fn bare(rule: RuleKind, limit: u64) -> Self {
        Self { rule, limit: Units(limit), per: None, burst: None, guard: None, align: None }
    }
}

fn zone(align: &Align) -> Option<String> {
    match align {
        Align::FirstCall => None,
        Align::Calendar { zone } => Some(zone.clone()),
    }
}
