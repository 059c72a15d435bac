//! What steps ask for, as a store is told it.

use super::catalog::{key, lane_name, limit_name, partition, payload, queue_name};
use super::steps::{Fresh, Held, Outcome};
use crate::lanes::{Lease, NewCall, Scope, Settle, Settlement};
use crate::time::{Now, Span};
use crate::toll::Toll;
use crate::turn::Priority;

pub fn call(fresh: &Fresh, now: Now) -> NewCall {
    let after = |seconds: u64| now.wall.plus(Span::from_secs(seconds));
    let tolls = fresh.tolls.iter().map(|(limit, part, weight, hears_feedback)| Toll {
        limit: limit_name(*limit),
        partition: partition(*part),
        weight: *weight,
        hears_feedback: *hears_feedback,
    });
    NewCall {
        queue: queue_name(fresh.queue),
        lane: lane_name(fresh.lane),
        tolls: tolls.collect(),
        priority: Priority::new(fresh.priority).unwrap(),
        not_before: fresh.delay.map(after),
        expires: fresh.expires.map(after),
        dedupe: fresh.dedupe.map(key),
        supersedes: fresh.supersedes.map(key),
        payload: payload(fresh.body),
    }
}

pub fn settlement(lease: Lease, outcome: &Outcome) -> Settle {
    let seconds = |seconds: &u64| Span::from_secs(*seconds);
    let settlement = match outcome {
        Outcome::Done | Outcome::Cost(..) => Settlement::Done,
        Outcome::Retry(after) => Settlement::Retry(after.as_ref().map(seconds)),
        Outcome::Release => Settlement::Release,
        Outcome::Dead => Settlement::Dead,
        Outcome::Limited(pause) => Settlement::Limited(seconds(pause)),
    };
    let actual = match outcome {
        Outcome::Cost(limit, cost) => vec![(limit_name(*limit), *cost)],
        _ => vec![],
    };
    Settle {
        actual,
        report: format!("{outcome:?}").into_bytes().into(),
        ..Settle::new(lease, settlement)
    }
}

pub fn scope(held: &Held) -> Scope {
    match held {
        Held::Queue(queue) => Scope::Queue(queue_name(*queue)),
        Held::Lane(queue, lane) => Scope::Lane(queue_name(*queue), lane_name(*lane)),
        Held::Limit(limit) => Scope::Limit(limit_name(*limit)),
    }
}
