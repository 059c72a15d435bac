//! Limits as they travel: one rule, or several under one name.

use super::object::Object;
use super::rule::{RuleKind, RuleWire};
use super::span::SpanWire;
use super::units::Units;
use serde::{Deserialize, Serialize};
use tollgate::{Limit, Span};

/// A limit as callers define it: the fields of one rule, or `{"rules":[…]}`; and `ahead` and `spread` beside either.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Object<LimitFields>")]
pub(in crate::http) struct LimitWire(pub(in crate::http) Limit);

/// Every field that a definition may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitFields {
    rule: Option<RuleKind>,
    limit: Option<Units>,
    per: Option<SpanWire>,
    burst: Option<Units>,
    guard: Option<SpanWire>,
    align: Option<String>,
    rules: Option<Vec<Object<RuleWire>>>,
    ahead: Option<SpanWire>,
    #[serde(default)]
    spread: bool,
}

impl TryFrom<Object<LimitFields>> for LimitWire {
    type Error = String;

    fn try_from(Object(fields): Object<LimitFields>) -> Result<Self, String> {
        let has_one = fields.has_one();
        let LimitFields { rule, limit, per, burst, guard, align, rules, ahead, spread } = fields;
        let defined = match rules {
            Some(rules) if !has_one => several(rules),
            Some(_) => Err("give `rules`, or the fields of one rule, not both".to_owned()),
            None => {
                let rule = rule.ok_or(
                    "missing field `rule`: token_bucket, fixed_window, sliding_window or concurrency; or give a list of `rules`",
                )?;
                let limit = limit.ok_or("missing field `limit`: how many units")?;
                RuleWire { rule, limit, per, burst, guard, align }.into_limit()
            }
        };
        let ahead = ahead.map_or(Span::ZERO, |SpanWire(ahead)| ahead);
        let limit = defined?.ahead(ahead);
        Ok(Self(if spread { limit.spread() } else { limit }))
    }
}

impl LimitFields {
    /// Whether a field of a single rule is there.
    fn has_one(&self) -> bool {
        let spans = [&self.per, &self.guard];
        let units = [&self.limit, &self.burst];
        self.rule.is_some()
            || self.align.is_some()
            || spans.into_iter().any(Option::is_some)
            || units.into_iter().any(Option::is_some)
    }
}

fn several(rules: Vec<Object<RuleWire>>) -> Result<Limit, String> {
    let mut limits = rules.into_iter().map(|Object(rule)| rule.into_limit());
    limits.try_fold(Limit::of(Vec::new()), |all, limit| Ok(all.and(limit?)))
}

/// A definition as it is shown; sent back, it defines the same limit.
#[derive(Debug, Serialize)]
pub(in crate::http) struct DefinitionWire {
    #[serde(flatten)]
    rules: RulesWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<SpanWire>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    spread: bool,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RulesWire {
    One(RuleWire),
    Several { rules: Vec<RuleWire> },
}

impl From<&Limit> for DefinitionWire {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Limit, String> {
        let limit: Result<LimitWire, _> = serde_json::from_str(json);
        limit.map(|LimitWire(limit)| limit).map_err(|error| error.to_string())
    }

    fn write(limit: &Limit) -> String {
        serde_json::to_string(&DefinitionWire::from(limit)).unwrap()
    }

    #[test]
    fn what_is_shown_defines_the_same_limit() {
        let hour = Span::from_hours(1);
        for limit in [
            Limit::per_minute(100),
            Limit::per_minute(100).burst(150).guard(Span::from_millis(50)),
            Limit::fixed_window(10, hour),
            Limit::fixed_window(10, hour).on_calendar("Europe/Berlin"),
            Limit::sliding_window(3, hour).guard(Span::from_millis(1)),
            Limit::concurrency(4),
            Limit::per_second(5).and(Limit::concurrency(2)),
            Limit::per_second(200_000).ahead(Span::from_millis(10)),
            Limit::per_second(5).and(Limit::per_hour(100)).ahead(Span::from_millis(10)),
            Limit::per_minute(600).spread(),
            Limit::per_second(5).and(Limit::concurrency(2)).spread(),
        ] {
            assert_eq!(read(&write(&limit)), Ok(limit.clone()), "{}", write(&limit));
        }
    }

    #[test]
    fn a_missing_field_is_named() {
        for (json, field) in [
            ("{}", "`rule`"),
            (r#"{"limit":1,"per":"1s"}"#, "`rule`"),
            (r#"{"rule":"token_bucket","per":"1s"}"#, "`limit`"),
            (r#"{"rule":"fixed_window","limit":1}"#, "`per`"),
            (r#"{"rules":[{"rule":"concurrency"}]}"#, "`limit`"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(&format!("missing field {field}")), "{json}: {error}");
        }
    }

    #[test]
    fn one_rule_and_a_list_of_rules_do_not_mix() {
        let error = read(r#"{"limit":1,"rules":[]}"#).unwrap_err();
        assert!(error.contains("not both"), "{error}");
    }

    #[test]
    fn what_is_lent_is_said_of_the_limit_and_of_no_single_rule() {
        let rule = r#"{"rule":"token_bucket","limit":1,"per":"1s","ahead":"1ms"}"#;
        assert_eq!(read(rule).map(|limit| limit.taken_ahead()), Ok(Span::from_millis(1)));
        let error = read(&format!(r#"{{"rules":[{rule}]}}"#)).unwrap_err();
        assert!(error.contains("unknown field `ahead`"), "{error}");
    }

    #[test]
    fn an_array_is_not_a_limit() {
        let error = read(r#"["concurrency",1,null,null,null,null,null,null,null]"#).unwrap_err();
        assert!(error.contains("expected an object"), "{error}");
    }
}
