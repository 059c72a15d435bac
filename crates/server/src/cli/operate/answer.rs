//! Answers of a server, and what of them is shown to people.

use crate::cli::shown::{self, table};
use serde_json::Value;
use tollgate::Timestamp;

/// A field as text; nothing if it is not there.
pub(super) fn text(value: &Value, field: &str) -> String {
    match &value[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The things of a list; none if there is no such list.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

/// A page as a table, and how to see more of it.
pub(super) fn page(
    answer: &Value,
    field: &str,
    head: &[&str],
    row: impl Fn(&Value) -> Vec<String>,
) -> Vec<String> {
    let rows: Vec<_> = list(answer, field).iter().map(row).collect();
    if rows.is_empty() {
        return vec![format!("no {field}")];
    }
    let mut lines = table(head, &rows);
    if let Some(next) = answer["next"].as_str() {
        lines.push(format!("there is more: --after {next}"));
    }
    lines
}

/// A limit's definition in short: `100 per 1m, burst 150`.
pub(super) fn rules(definition: &Value) -> String {
    let said = match definition["rules"].as_array() {
        Some(rules) => rules.iter().map(rule).collect::<Vec<_>>().join(" and "),
        None => rule(definition),
    };
    let lent = match definition["ahead"].as_str() {
        Some(ahead) => format!(", taken ahead for {ahead}"),
        None => String::new(),
    };
    let spread = if definition["spread"] == true { ", spread" } else { "" };
    format!("{said}{lent}{spread}")
}

fn rule(rule: &Value) -> String {
    let (limit, per) = (text(rule, "limit"), text(rule, "per"));
    let mut said = match rule["rule"].as_str() {
        Some("token_bucket") => format!("{limit} per {per}, burst {}", text(rule, "burst")),
        Some("fixed_window") => format!("{limit} in each {per}"),
        Some("sliding_window") => format!("{limit} in any {per}"),
        Some("concurrency") => format!("{limit} at a time"),
        _ => rule.to_string(),
    };
    for (field, word) in [("align", "by the calendar of"), ("guard", "guard")] {
        if let Some(value) = rule[field].as_str() {
            said = format!("{said}, {word} {value}");
        }
    }
    said
}

/// A duration in milliseconds, if it is there.
pub(super) fn ms(value: &Value, field: &str) -> String {
    let span = value[field].as_u64().map(tollgate::Span::from_millis);
    span.map_or_else(String::new, shown::span)
}

/// An instant as seen from now, if it is there.
pub(super) fn when(value: &Value, field: &str, now: Timestamp) -> String {
    value[field].as_str().map_or_else(String::new, |text| shown::instant(text, now))
}

/// Why a call waits, a line a reason.
pub(super) fn reason(reason: &Value, now: Timestamp) -> String {
    let count = |field| text(reason, field);
    match reason["reason"].as_str().unwrap_or_default() {
        "in_flight" => {
            format!("in flight: its lease ends {}", when(reason, "lease_expires_at", now))
        }
        "queue_paused" => "its queue is paused".to_owned(),
        "lane_paused" => "its lane is paused".to_owned(),
        "lane_held" => "a dead call holds its lane".to_owned(),
        "not_due" => format!("not due: it joins its lane {}", when(reason, "until", now)),
        "resting" => format!("it failed, and is tried again {}", when(reason, "until", now)),
        "lane_busy" => match count("in_flight").as_str() {
            "1" => "1 of its lane is in flight".to_owned(),
            many => format!("{many} of its lane are in flight"),
        },
        "behind" => match count("calls").as_str() {
            "1" => "1 of its lane goes before it".to_owned(),
            many => format!("{many} of its lane go before it"),
        },
        "no_worker" => "no worker asks for it".to_owned(),
        "other" => "something else is in its way".to_owned(),
        "meter" => {
            let partition = match reason["partition"].as_str() {
                Some(partition) => format!(" for {partition}"),
                None => String::new(),
            };
            let opens = match reason["opens_at"].as_str() {
                Some(at) => format!(", opens {}", shown::instant(at, now)),
                None => String::new(),
            };
            format!("limit {}{partition}: {}{opens}", count("limit"), count("cause"))
        }
        _ => reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_is_told_in_short() {
        let bucket = json!({"rule": "token_bucket", "limit": 100, "per": "1m", "burst": 150});
        assert_eq!(rules(&bucket), "100 per 1m, burst 150");
        let day =
            json!({"rule": "fixed_window", "limit": 9, "per": "1d", "align": "Europe/Berlin"});
        let both = json!({"rules": [day, {"rule": "concurrency", "limit": 5}]});
        assert_eq!(rules(&both), "9 in each 1d, by the calendar of Europe/Berlin and 5 at a time");
    }

    #[test]
    fn a_reason_names_the_limit_and_when_it_opens() {
        let now = Timestamp::from_nanos(1_700_000_000_000_000_000);
        let meter = json!({"reason": "meter", "limit": "stripe", "partition": "acme",
            "cause": "spent", "opens_at": "2023-11-14T22:13:23.2Z"});
        assert_eq!(reason(&meter, now), "limit stripe for acme: spent, opens in 3.2 s");
    }

    #[test]
    fn every_reason_that_a_server_may_give_is_told_in_words() {
        let api: Value = serde_json::from_str(include_str!("../../http/openapi.json")).unwrap();
        let reasons = api["components"]["schemas"]["Reason"]["oneOf"].as_array().unwrap();
        let codes = reasons.iter().map(|it| it["properties"]["reason"]["const"].as_str().unwrap());
        for code in codes {
            let told = reason(&json!({ "reason": code }), Timestamp::default());
            assert!(!told.contains('{') && !told.contains('_'), "{code}: {told}");
        }
    }
}
