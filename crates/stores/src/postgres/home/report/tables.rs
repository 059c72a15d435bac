//! What is reported, as rows: how things are, and what is not as it was.

use crate::postgres::home::link::shown;
use jiff::Timestamp as Instant;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tollgate_core::contract::{LimitView, PAGE_MAX, QueueState};
use tollgate_core::lanes::{CallId, LaneSurvey, MeterSurvey, Most, Scheduler};
use tollgate_core::{LimitName, Now, Opening, Partition, Span, Timestamp};

/// Most rows of a table: so many a person can look through, and a node can write.
const ROWS_MAX: usize = 10_000;
/// Most calls that are told to be in flight, and to be dead.
const CALLS_MAX: usize = 50_000;
/// Instants are told in steps of this: clocks that differ by less are not told as changes.
const STEP: Span = Span::from_millis(100);

/// The tables.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    Queues,
    Lanes,
    Meters,
    Limits,
    Beyond,
}

impl Table {
    pub(super) const ALL: [Self; 5] =
        [Self::Queues, Self::Lanes, Self::Meters, Self::Limits, Self::Beyond];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Queues => "queues_now",
            Self::Lanes => "lanes_now",
            Self::Meters => "meters_now",
            Self::Limits => "limits_now",
            Self::Beyond => "beyond_now",
        }
    }

    /// The statement that writes rows.
    pub(super) fn upsert(self) -> &'static str {
        match self {
            Self::Queues => include_str!("queues.sql"),
            Self::Lanes => include_str!("lanes.sql"),
            Self::Meters => include_str!("meters.sql"),
            Self::Limits => include_str!("limits.sql"),
            Self::Beyond => include_str!("beyond.sql"),
        }
    }

    /// The statement that removes rows.
    pub(super) fn delete(self) -> String {
        let name = self.name();
        let is_same = match self {
            Self::Queues => "now.queue = gone.queue",
            Self::Lanes => "now.queue = gone.queue AND now.lane = gone.lane",
            Self::Meters => "now.\"limit\" = gone.\"limit\" AND now.partition = gone.partition",
            Self::Limits => "now.\"limit\" = gone.\"limit\"",
            Self::Beyond => "now.what = gone.what",
        };
        format!(
            "DELETE FROM :\"schema\".{name} AS now USING \
             jsonb_populate_recordset(NULL:::\"schema\".{name}, $1::text::jsonb) AS gone \
             WHERE {is_same}"
        )
    }
}

/// How things are, as the scheduler says.
pub(super) struct Survey {
    queues: Most<QueueState>,
    lanes: Most<LaneSurvey>,
    meters: Most<MeterSurvey>,
    limits: Most<LimitView>,
    flights: Most<CallId>,
    dead: Most<CallId>,
}

impl Survey {
    pub(super) fn of(scheduler: &Scheduler, now: Now) -> Self {
        Self {
            queues: queues(scheduler),
            lanes: scheduler.survey_lanes(ROWS_MAX),
            meters: scheduler.survey_meters(ROWS_MAX, now),
            limits: scheduler.survey_limits(ROWS_MAX, now),
            flights: scheduler.survey_flights(CALLS_MAX),
            dead: scheduler.survey_dead(CALLS_MAX),
        }
    }
}

fn queues(scheduler: &Scheduler) -> Most<QueueState> {
    let mut most = Most { found: Vec::new(), more: 0 };
    let mut page = scheduler.queues(None, PAGE_MAX);
    while let Some(last) = page.last() {
        let next = scheduler.queues(Some(&last.name), PAGE_MAX);
        if most.found.len() < ROWS_MAX {
            most.found.append(&mut page);
        } else {
            most.more += u64::try_from(page.len()).unwrap_or(u64::MAX);
        }
        page = next;
    }
    most
}

/// The rows of a table by key, each as JSON.
type Rows = BTreeMap<(String, String), String>;

/// The rows of all tables, in the order of [`Table::ALL`].
pub(super) struct Tables([Rows; 5]);

/// What is to be written of a table: arrays in JSON, if there is something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) gone: Option<String>,
    pub(super) new: Option<String>,
}

impl Tables {
    pub(super) fn of(survey: Survey, now: Now) -> Self {
        let Survey { queues, lanes, meters, limits, flights, dead } = survey;
        let no_calls = Vec::new;
        let beyond = [
            ("queues", queues.more, no_calls()),
            ("lanes", lanes.more, no_calls()),
            ("meters", meters.more, no_calls()),
            ("limits", limits.more, no_calls()),
            ("calls in flight", flights.more, sorted(flights.found)),
            ("dead calls", dead.more, sorted(dead.found)),
        ];
        Self([
            queues.found.iter().map(queue).collect(),
            lanes.found.iter().map(lane).collect(),
            meters.found.iter().map(|found| meter(found, now)).collect(),
            limits.found.iter().map(limit).collect(),
            beyond
                .into_iter()
                .map(|(what, more, calls)| {
                    row(what, "", &json!({ "what": what, "more": more, "calls": calls }))
                })
                .collect(),
        ])
    }

    /// What is to be written, table by table, where this was written before.
    pub(super) fn since(&self, written: Option<&Self>) -> Vec<(usize, Change)> {
        let nothing = Rows::new();
        let tables = self.0.iter().enumerate().map(|(at, rows)| {
            let before = written.and_then(|written| written.0.get(at)).unwrap_or(&nothing);
            let new = rows.iter().filter(|(key, row)| before.get(*key) != Some(*row));
            let gone = before.iter().filter(|(key, _)| !rows.contains_key(*key));
            let new = array(new.map(|(_, row)| row.as_str()));
            (at, Change { gone: array(gone.map(|(_, row)| row.as_str())), new })
        });
        tables.filter(|(_, change)| change.gone.is_some() || change.new.is_some()).collect()
    }
}

fn array<'a>(rows: impl Iterator<Item = &'a str>) -> Option<String> {
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| format!("[{}]", rows.join(",")))
}

fn row(first: &str, second: &str, row: &Value) -> ((String, String), String) {
    ((first.to_owned(), second.to_owned()), row.to_string())
}

/// The lanes of a call change places; its number does not.
fn sorted(calls: Vec<CallId>) -> Vec<u64> {
    let mut calls: Vec<_> = calls.into_iter().map(|call| call.0).collect();
    calls.sort_unstable();
    calls
}

fn queue(found: &QueueState) -> ((String, String), String) {
    let QueueState { spec, is_paused, waiting, in_flight, dead, lanes, .. } = found;
    let name = shown(found.name.as_str());
    let depth_max = i64::try_from(spec.depth_max).unwrap_or(i64::MAX);
    let told = json!({
        "queue": name, "waiting": waiting, "in_flight": in_flight, "dead": dead, "lanes": lanes,
        "depth_max": depth_max, "is_paused": is_paused,
    });
    row(&name, "", &told)
}

fn lane(found: &LaneSurvey) -> ((String, String), String) {
    let LaneSurvey { queue, state, stands_at } = found;
    let (queue, name) = (shown(queue.as_str()), shown(state.name.as_str()));
    let (limit, partition) = match stands_at {
        Some((limit, partition)) => (Some(shown(limit.as_str())), partition.as_ref().map(part)),
        None => (None, None),
    };
    let told = json!({
        "queue": queue, "lane": name, "waiting": state.waiting, "in_flight": state.in_flight,
        "dead": state.dead, "is_paused": state.is_paused, "is_held": state.is_held,
        "head": state.head.map(|head| head.0), "limit": limit, "partition": partition,
    });
    row(&queue, &name, &told)
}

fn meter(found: &MeterSurvey, now: Now) -> ((String, String), String) {
    let MeterSurvey { name: (limit, partition), state, blocker } = found;
    let (limit, partition) = names(limit, partition.as_ref());
    let standing = state.standing;
    // Rules are told apart by their numbers: the tightest is one with these.
    let is_tightest =
        |rule: &&tollgate_core::RuleUse| rule.limit == standing.limit && rule.per == standing.per;
    let used = state.rules.iter().find(is_tightest).map_or(0, |rule| rule.used);
    let next = blocker.and_then(|blocker| match blocker.opening {
        Opening::At(at) => wall(at, now),
        Opening::OnRelease => None,
    });
    let told = json!({
        "limit": limit, "partition": partition, "rule": state.definition.limit().to_string(),
        "capacity": number(state.definition.capacity()), "used": number(used),
        "remaining": standing.remaining, "in_flight": number(state.in_flight),
        "waiting": number(state.waiting), "is_paused": state.is_paused,
        "closed_until": state.closed.as_ref().and_then(|(until, _)| wall(*until, now)),
        "closed_why": state.closed.as_ref().map(|(_, why)| shown(why)),
        "next_admission": next,
    });
    row(&limit, &partition, &told)
}

fn limit(found: &LimitView) -> ((String, String), String) {
    let name = shown(found.name.as_str());
    let rule = found.definition.limit().to_string();
    row(&name, "", &json!({ "limit": name, "rule": rule, "is_paused": found.is_paused }))
}

fn names(limit: &LimitName, partition: Option<&Partition>) -> (String, String) {
    (shown(limit.as_str()), partition.map(part).unwrap_or_default())
}

fn part(partition: &Partition) -> String {
    shown(partition.as_str())
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// An instant of limit time, on the wall clock; `None` if it is too far.
fn wall(at: Timestamp, now: Now) -> Option<String> {
    let left = at.as_nanos().saturating_sub(now.at.as_nanos());
    let wall = now.wall.as_nanos().checked_add(left)?;
    let wall = wall.div_ceil(STEP.as_nanos()).checked_mul(STEP.as_nanos())?;
    Instant::from_nanosecond(i128::from(wall)).ok().map(|wall| wall.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(rows: &[(&str, &str)]) -> Tables {
        let mut tables = Tables([const { Rows::new() }; 5]);
        tables.0[1] = rows.iter().map(|(key, told)| row(key, "", &json!(told))).collect();
        tables
    }

    #[test]
    fn only_what_changed_is_written() {
        let before = tables(&[("a", "1"), ("b", "1"), ("c", "1")]);
        assert_eq!(before.since(Some(&before)), []);
        let after = tables(&[("a", "1"), ("b", "2"), ("d", "1")]);
        let change = Change { gone: Some("[\"1\"]".into()), new: Some("[\"2\",\"1\"]".into()) };
        assert_eq!(after.since(Some(&before)), [(1, change)]);
        let all = Change { gone: None, new: Some("[\"1\",\"2\",\"1\"]".into()) };
        assert_eq!(after.since(None), [(1, all)]);
    }
}
