//! A series as it travels: an array for each value, all of them equally long.

use super::instant::InstantWire;
use serde::Serialize;
use tollgate::Timestamp;

/// What each step had, the oldest first; null where nothing is known.
type Values = Option<Vec<Option<u32>>>;

/// What happened, step by step. What a thing does not have is left out.
#[derive(Debug, Default, Serialize)]
pub(in crate::http) struct SeriesWire {
    step_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admitted: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    throttled: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    enqueued: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    died: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Values,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead: Values,
}

impl SeriesWire {
    /// Steps of that length, of which the last ended then.
    pub(in crate::http) fn new(step_ms: u64, until: Timestamp) -> Self {
        Self { step_ms, until: Some(InstantWire(until)), ..Self::default() }
    }

    /// What a queue has: enqueued, started, done, failed, died, waiting, in flight, dead.
    pub(in crate::http) fn of_queue(self, points: &[Option<[u32; 8]>]) -> Self {
        Self {
            enqueued: column(points, 0),
            started: column(points, 1),
            done: column(points, 2),
            failed: column(points, 3),
            died: column(points, 4),
            waiting: column(points, 5),
            in_flight: column(points, 6),
            dead: column(points, 7),
            ..self
        }
    }

    /// What a limit has now, of: admitted, weight, throttled, waiting, in flight.
    pub(in crate::http) fn of_limit(self, points: &[Option<[u32; 5]>]) -> Self {
        Self { waiting: column(points, 3), in_flight: column(points, 4), ..self }
    }

    /// What was counted at a limit.
    pub(in crate::http) fn counting_limit(self, points: &[Option<[u32; 5]>]) -> Self {
        Self {
            admitted: column(points, 0),
            weight: column(points, 1),
            throttled: column(points, 2),
            ..self
        }
    }

    /// What was counted at all limits: admitted, throttled.
    pub(in crate::http) fn counting(self, points: &[Option<[u32; 2]>]) -> Self {
        Self { admitted: column(points, 0), throttled: column(points, 1), ..self }
    }
}

fn column<const N: usize>(points: &[Option<[u32; N]>], at: usize) -> Values {
    Some(points.iter().map(|point| point.map(|values| values[at])).collect())
}
