//! Schedules as they travel.

use super::call::BodyWire;
use super::destination::DestinationWire;
use super::instant::InstantWire;
use super::new_call::{CONTENT_KEYS, CallWire};
use super::object::Object;
use super::priority::PriorityWire;
use super::span::SpanWire;
use crate::http::App;
use crate::http::caller::Caller;
use crate::http::problem::{Problem, invalid_field};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tollgate::lanes::NewCall;
use tollgate::push::caps::is_cap;
use tollgate::{Cron, CronError, Schedule, Timestamp, When};

/// When to hand in what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ScheduleWire<'a> {
    #[serde(borrow)]
    pub(in crate::http) queue: Cow<'a, str>,
    cron: Option<Cow<'a, str>>,
    zone: Option<Cow<'a, str>>,
    at: Option<InstantWire>,
    #[serde(borrow)]
    pub(in crate::http) call: Object<CallWire<'a>>,
}

/// A schedule as it stands.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ScheduleStateWire<'a> {
    name: &'a str,
    queue: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<InstantWire>,
    call: ScheduledCallWire<'a>,
    paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<InstantWire>,
    /// Why nothing came of the last tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
}

/// Some schedules.
#[derive(Debug, Serialize)]
pub(in crate::http) struct SchedulePageWire<'a> {
    pub(in crate::http) schedules: Vec<ScheduleStateWire<'a>>,
    /// Send it as `after` to get the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

/// What is handed in at each tick, as it was given.
#[derive(Debug, Serialize)]
struct ScheduledCallWire<'a> {
    lane: &'a str,
    #[serde(flatten)]
    body: BodyWire<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tolls: Vec<ScheduledTollWire<'a>>,
    priority: PriorityWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_after: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dedupe_content: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<DestinationWire>,
}

#[derive(Debug, Serialize)]
struct ScheduledTollWire<'a> {
    limit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<&'a str>,
    weight: u64,
    feedback: bool,
}

impl ScheduleWire<'_> {
    /// When it ticks.
    pub(in crate::http) fn when(&self) -> Result<When, Problem> {
        match (&self.cron, self.at) {
            (Some(_), Some(_)) => {
                Err(invalid_field("at", "a schedule ticks by `cron`, or once: leave one out"))
            }
            (None, None) => Err(invalid_field(
                "cron",
                "say when, as in \"0 9 * * 1-5\", or give `at` for a single time",
            )),
            (None, Some(_)) if self.zone.is_some() => {
                Err(invalid_field("zone", "`at` says its own: leave it out"))
            }
            (None, Some(at)) => Ok(When::Once(at.0)),
            (Some(cron), None) => {
                let zone = self.zone.as_deref().unwrap_or("UTC");
                Cron::new(cron, zone).map(When::Cron).map_err(|error| {
                    let field = match error {
                        CronError::UnknownZone { .. } => "zone",
                        _ => "cron",
                    };
                    invalid_field(field, &error.to_string())
                })
            }
        }
    }
}

impl<'a> ScheduleStateWire<'a> {
    pub(in crate::http) fn new(schedule: &'a Schedule, caller: &Caller, app: &App) -> Self {
        let (cron, zone, at) = match &schedule.when {
            When::Cron(cron) => (Some(cron.to_string()), Some(cron.zone().to_owned()), None),
            When::Once(at) => (None, None, Some(InstantWire(*at))),
        };
        Self {
            name: caller.shown(&schedule.name),
            queue: caller.shown(&schedule.call.queue),
            cron,
            zone,
            at,
            call: ScheduledCallWire::new(&schedule.call, caller, app),
            paused: schedule.is_paused,
            next: schedule.next.map(InstantWire),
            last: schedule.last.map(InstantWire),
            problem: schedule.problem.as_deref(),
        }
    }
}

fn is_content(key: &str) -> bool {
    key.starts_with(CONTENT_KEYS)
}

impl<'a> ScheduledCallWire<'a> {
    fn new(call: &'a NewCall, caller: &Caller, app: &App) -> Self {
        // Times of a schedule's call are written as from the epoch.
        let from_tick =
            |at: Option<Timestamp>| at.map(|at| SpanWire(at.since(Timestamp::default())));
        let own = call.tolls.iter().filter(|toll| !is_cap(&toll.limit));
        let tolls = own.map(|toll| ScheduledTollWire {
            limit: caller.shown(&toll.limit),
            partition: toll.partition.as_deref(),
            weight: toll.weight,
            feedback: toll.hears_feedback,
        });
        let (hides_body, hides_headers) = crate::qstash::hidden(&call.payload, app.redact_bodies);
        Self {
            lane: &call.lane,
            body: BodyWire::looked_at(call.payload.body(), hides_body),
            tolls: tolls.collect(),
            priority: PriorityWire(call.priority),
            delay: from_tick(call.not_before),
            expires_after: from_tick(call.expires),
            dedupe_id: call.dedupe.as_deref().filter(|key| !is_content(key)),
            dedupe_content: call.dedupe.as_deref().is_some_and(is_content),
            supersedes: call.supersedes.as_deref(),
            destination: DestinationWire::looked_at(&call.payload, caller, hides_headers),
        }
    }
}
