//! Forecasts as they travel.

use super::limit::LimitWire;
use super::span::SpanWire;
use super::units::Units;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tollgate::lanes::{Forecast, LaneForecast, Work};
use tollgate::{Outlook, Span};

/// Most lanes that are told one by one: those that wait longest.
const LANES_MAX: usize = 100;
/// Into how many steps the time is cut.
const STEPS: usize = 60;
/// How far is looked ahead unless it is said, and at most.
const WITHIN: Span = Span::from_days(1);
const WITHIN_MAX: Span = Span::from_days(366);
/// How long a call takes at most: a lease, which ends after it, lasts up to a day.
const TAKES_MAX: Span = Span::from_hours(12);
/// After how many starts it is enough.
const STARTS_MAX: u64 = 1_000_000;

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct WhatIfWire {
    /// Limits as they would be.
    #[serde(default)]
    pub(in crate::http) limits: BTreeMap<String, LimitWire>,
    takes: Option<SpanWire>,
    hands: Option<Units>,
    within: Option<SpanWire>,
}

/// Both forecasts.
#[derive(Debug, Serialize)]
pub(in crate::http) struct OutlookWire {
    now: ForecastWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<ForecastWire>,
}

#[derive(Debug, Serialize)]
struct ForecastWire {
    waiting: u64,
    started: u64,
    /// There were more starts than are looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    /// Until the last of those that start has started.
    last_ms: u64,
    step_ms: u64,
    /// How many start in each step.
    starts: Vec<u64>,
    /// Those first that wait longest.
    lanes: Vec<LaneForecastWire>,
    lanes_count: usize,
}

#[derive(Debug, Serialize)]
struct LaneForecastWire {
    queue: String,
    lane: String,
    waiting: u64,
    started: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_ms: Option<u64>,
}

impl WhatIfWire {
    /// How calls are worked on; or the field that does not do, and why.
    pub(in crate::http) fn work(&self) -> Result<Work, (&'static str, String)> {
        let span = |given: Option<SpanWire>, default: Span| given.map_or(default, |it| it.0);
        let (takes, within) = (span(self.takes, Span::ZERO), span(self.within, WITHIN));
        if takes > TAKES_MAX {
            return Err(("takes", format!("a call takes up to {TAKES_MAX}")));
        }
        if within > WITHIN_MAX {
            return Err(("within", format!("up to {WITHIN_MAX} are looked ahead")));
        }
        let hands = self.hands.map_or(u64::MAX, |it| it.0);
        if hands == 0 {
            return Err(("hands", "without hands nothing starts: give at least 1".to_owned()));
        }
        Ok(Work { takes, hands, within, starts_max: STARTS_MAX, steps: STEPS })
    }
}

impl From<Outlook> for OutlookWire {
    fn from(outlook: Outlook) -> Self {
        Self { now: outlook.now.into(), then: outlook.then.map(ForecastWire::from) }
    }
}

impl From<Forecast> for ForecastWire {
    fn from(forecast: Forecast) -> Self {
        let (step, starts) = forecast.steps();
        let mut lanes = forecast.lanes;
        let lanes_count = lanes.len();
        // Who is never served waits longest of all.
        lanes.sort_by_key(|lane| Reverse((lane.waiting - lane.started, lane.last)));
        lanes.truncate(LANES_MAX);
        Self {
            waiting: forecast.waiting,
            started: forecast.started,
            cut: forecast.is_cut,
            last_ms: forecast.takes.as_millis_ceil(),
            step_ms: step.as_millis_ceil(),
            starts,
            lanes: lanes.into_iter().map(LaneForecastWire::from).collect(),
            lanes_count,
        }
    }
}

impl From<LaneForecast> for LaneForecastWire {
    fn from(lane: LaneForecast) -> Self {
        Self {
            queue: lane.queue.as_str().to_owned(),
            lane: lane.lane.as_str().to_owned(),
            waiting: lane.waiting,
            started: lane.started,
            first_ms: lane.first.map(|span| span.as_millis_ceil()),
            last_ms: lane.last.map(|span| span.as_millis_ceil()),
        }
    }
}
