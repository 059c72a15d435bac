//! `tollgate events`, `tollgate history` and `tollgate audit`: what happened.

use super::To;
use super::answer::{list, page, rules, text, when};
use crate::cli::{Environment, Exit, output, shown};
use clap::Args;
use serde_json::Value;
use std::collections::BTreeSet;
use tollgate::{Span, Timestamp};
use tollgate_client::path::{path, with_query};
use tollgate_client::{CallId, EventsQuery, Told};

#[derive(Debug, Args)]
pub(in crate::cli) struct EventsArguments {
    /// Of this queue alone.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Of this lane alone.
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// Of this call alone.
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// Ends after so many.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct HistoryArguments {
    /// Of this queue alone.
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Of this lane alone.
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// Of calls that ended so alone.
    #[arg(long, value_name = "END", value_parser = ["done", "dead", "cancelled", "expired", "superseded", "dropped"])]
    end: Option<String>,
    /// From this instant on, as in 2030-01-01T00:00:00Z.
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// Up to this instant.
    #[arg(long, value_name = "INSTANT")]
    to_instant: Option<String>,
    /// Goes on where a page ended.
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    /// At most so many, up to 1000.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AuditArguments {
    /// Of the limit or queue of this name alone.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Of these kinds alone, separated by commas: limit, pin, override, meter, queue, lane.
    #[arg(long, value_name = "KINDS")]
    kind: Option<String>,
    /// Goes on where a page ended.
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    /// At most so many, up to 1000.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: String,
    #[command(flatten)]
    to: To,
}

pub(super) async fn events(
    arguments: &EventsArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let EventsArguments { queue, lane, call, count, to } = arguments;
    let call = call.as_deref().map(CallId::new);
    let query = EventsQuery { queue: queue.clone(), lane: lane.clone(), call };
    let mut events = to.client(environment)?.events(query);
    let mut told = 0;
    while count.is_none_or(|count| told < count) {
        let next = match events.next().await {
            Ok(next) => next,
            Err(error) => return to.refused(error),
        };
        let line = match (&next, to.json) {
            (Told::Event(it), true) => serde_json::to_string(it)?,
            (Told::Event(it), false) => event(&serde_json::to_value(it)?, shown::now()),
            (_, true) => r#"{"event":"missed"}"#.to_owned(),
            (_, false) => "events were missed: it goes on with what happens now".to_owned(),
        };
        // Nobody may be reading any more.
        if output::told(&line).is_err() {
            break;
        }
        told += 1;
    }
    Ok(Exit::Done)
}

pub(super) async fn history(
    arguments: &HistoryArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let HistoryArguments { queue, lane, end, from, to_instant, after, limit, to } = arguments;
    let query = [
        ("queue", queue.as_deref()),
        ("lane", lane.as_deref()),
        ("end", end.as_deref()),
        ("from", from.as_deref()),
        ("to", to_instant.as_deref()),
        ("after", after.as_deref()),
        ("limit", Some(&**limit)),
    ];
    let at = with_query(path(&["history"]), &query);
    let answer = to.client(environment)?.request("GET", &at, None).await;
    let now = shown::now();
    to.say(answer, |answer| {
        let mut lines: Vec<_> = list(answer, "events").iter().map(|it| event(it, now)).collect();
        if lines.is_empty() {
            lines.push("nothing is known of such calls".to_owned());
        }
        if let Some(next) = answer["next"].as_str() {
            lines.push(format!("there may be more: --after {next}"));
        }
        lines
    })
}

pub(super) async fn audit(
    arguments: &AuditArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let AuditArguments { name, kind, after, limit, to } = arguments;
    let query = [
        ("name", name.as_deref()),
        ("kind", kind.as_deref()),
        ("after", after.as_deref()),
        ("limit", Some(&**limit)),
    ];
    let at = with_query(path(&["audit"]), &query);
    let answer = to.client(environment)?.request("GET", &at, None).await;
    let now = shown::now();
    to.say(answer, |answer| {
        page(answer, "changes", &["when", "who", "what", "name", "change"], |change| {
            let who = text(change, "who");
            let (kind, name) = (text(change, "kind"), text(change, "name"));
            vec![when(change, "at", now), who, kind, named(change, name), altered(change)]
        })
    })
}

/// The name of what was changed, with the partition or the lane.
fn named(change: &Value, name: String) -> String {
    let part = change["partition"].as_str().or(change["lane"].as_str());
    part.map_or_else(|| name.clone(), |part| format!("{name}/{part}"))
}

/// What a change made of what there was, or what an operator did.
fn altered(change: &Value) -> String {
    match (change["action"].as_str(), change["for_ms"].as_u64()) {
        (Some(action), Some(for_ms)) => {
            let span = Span::from_millis(for_ms);
            format!("{action} for {span}: {}", text(change, "reason"))
        }
        (Some(action), None) => action.to_owned(),
        (None, _) => differing(&change["before"], &change["after"]),
    }
}

/// What was, and what is: of a limit its rules, of all else the fields that were changed.
fn differing(before: &Value, after: &Value) -> String {
    let (Some(was), Some(is), false) = (before.as_object(), after.as_object(), is_limit(before))
    else {
        return format!("{} -> {}", or_none(before), or_none(after));
    };
    let fields: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let changed = fields.into_iter().filter(|field| was.get(*field) != is.get(*field));
    let told = changed
        .map(|field| format!("{field}: {} -> {}", or_none(&before[field]), or_none(&after[field])));
    told.collect::<Vec<_>>().join(", ")
}

fn is_limit(value: &Value) -> bool {
    value.get("rule").or(value.get("rules")).is_some()
}

fn or_none(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        limit if is_limit(limit) => rules(limit),
        other => other.to_string(),
    }
}

/// What happened to a call, in a line.
pub(super) fn event(event: &Value, now: Timestamp) -> String {
    let place = format!("{}/{}", text(event, "queue"), text(event, "lane"));
    let what = match event["event"].as_str().unwrap_or_default() {
        "started" => format!("started, attempt {}{}", text(event, "attempt"), waits(event)),
        "settled" => {
            let until = match event["until"].as_str() {
                Some(until) => format!(", until {until}"),
                None => String::new(),
            };
            let (attempt, outcome) = (text(event, "attempt"), text(event, "outcome"));
            format!("attempt {attempt}: {outcome}{until}{}{}", waits(event), report(event))
        }
        "ended" => format!("ended: {}", text(event, "end")),
        "unknown" => format!("waits for the limit {}, which nobody defined", text(event, "limit")),
        "throttled" => {
            let (granted, wanted) = (text(event, "granted"), text(event, "wanted"));
            format!(
                "waits at the limit {}, which let {granted} of {wanted} go",
                text(event, "limit")
            )
        }
        other => other.to_owned(),
    };
    format!("{}  call {} of {place}  {what}", when(event, "at", now), text(event, "call"))
}

/// What was said about an attempt, in the same line.
fn report(event: &Value) -> String {
    match (&event["report"], &event["report_base64"], &event["report_bytes"]) {
        (Value::Null, Value::String(base64), _) => format!(", report in base64: {base64}"),
        (Value::Null, _, Value::Number(bytes)) => format!(", report of {bytes} bytes"),
        (report, ..) if event.get("report").is_some() => format!(", report: {report}"),
        _ => String::new(),
    }
}

fn waits(event: &Value) -> String {
    let waits = event["waits"].as_object().into_iter().flatten();
    let said: Vec<_> = waits
        .map(|(limit, span)| format!("{} for {limit}", span.as_str().unwrap_or_default()))
        .collect();
    if said.is_empty() { String::new() } else { format!(", waited {}", said.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_told_by_what_it_changed() {
        let bucket =
            |limit| json!({"rule": "token_bucket", "limit": limit, "per": "1m", "burst": 9});
        let queue = |lease| json!({"lease": lease, "order": "strict", "tolls": []});
        for (before, after, told) in [
            (bucket(5), bucket(6), "5 per 1m, burst 9 -> 6 per 1m, burst 9"),
            (bucket(5), Value::Null, "5 per 1m, burst 9 -> -"),
            (queue("30s"), queue("1m"), "lease: 30s -> 1m"),
            (queue("30s"), json!({"order": "strict", "tolls": []}), "lease: 30s -> -"),
        ] {
            assert_eq!(altered(&json!({"before": before, "after": after})), told);
        }
    }

    #[test]
    fn a_report_stands_in_the_line_of_its_attempt() {
        for (said, told) in [
            (json!({"report": {"status": 429}}), ", report: {\"status\":429}"),
            (json!({"report": null}), ", report: null"),
            (json!({"report_base64": "/w=="}), ", report in base64: /w=="),
            (json!({"report_bytes": 15}), ", report of 15 bytes"),
            (json!({}), ""),
        ] {
            assert_eq!(report(&said), told);
        }
    }
}
