//! A schedule as it is written down.

use super::{Schedule, When};
use crate::error::Error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::{NewCall, Payload};
use tollgate_core::{
    Cron, Key, LaneName, Limit, LimitName, Partition, Priority, QueueName, Timestamp, Toll,
};

#[derive(Serialize, Deserialize)]
pub(super) struct ScheduleRecord {
    when: WhenRecord,
    call: CallRecord,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    limits: Vec<(String, Limit)>,
    is_paused: bool,
    next: Option<Timestamp>,
    last: Option<Timestamp>,
    problem: Option<String>,
}

#[derive(Serialize, Deserialize)]
enum WhenRecord {
    Cron { text: String, zone: String },
    Once(Timestamp),
}

#[derive(Serialize, Deserialize)]
struct CallRecord {
    queue: String,
    lane: String,
    tolls: Vec<TollRecord>,
    priority: u8,
    not_before: Option<Timestamp>,
    expires: Option<Timestamp>,
    dedupe: Option<String>,
    supersedes: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    envelope: String,
    body: String,
}

#[derive(Serialize, Deserialize)]
struct TollRecord {
    limit: String,
    partition: Option<String>,
    weight: u64,
    hears_feedback: bool,
}

impl ScheduleRecord {
    pub(super) fn written(schedule: &Schedule) -> Result<Box<[u8]>, Error> {
        let call = &schedule.call;
        let toll = |toll: &Toll| TollRecord {
            limit: toll.limit.as_str().to_owned(),
            partition: toll.partition.as_ref().map(|it| it.as_str().to_owned()),
            weight: toll.weight,
            hears_feedback: toll.hears_feedback,
        };
        let text = |key: &Option<Key>| key.as_ref().map(|key| key.as_str().to_owned());
        let record = Self {
            when: match &schedule.when {
                When::Once(at) => WhenRecord::Once(*at),
                When::Cron(cron) => {
                    WhenRecord::Cron { text: cron.to_string(), zone: cron.zone().to_owned() }
                }
            },
            call: CallRecord {
                queue: call.queue.as_str().to_owned(),
                lane: call.lane.as_str().to_owned(),
                tolls: call.tolls.iter().map(toll).collect(),
                priority: call.priority.level(),
                not_before: call.not_before,
                expires: call.expires,
                dedupe: text(&call.dedupe),
                supersedes: text(&call.supersedes),
                envelope: STANDARD_NO_PAD.encode(call.payload.envelope()),
                body: STANDARD_NO_PAD.encode(call.payload.body()),
            },
            limits: schedule.limits.clone(),
            is_paused: schedule.is_paused,
            next: schedule.next,
            last: schedule.last,
            problem: schedule.problem.clone(),
        };
        Ok(serde_json::to_vec(&record).map_err(|error| damaged(&error))?.into())
    }

    pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Schedule, Error> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| damaged(&error))?;
        let Self { when, call, limits, is_paused, next, last, problem } = record;
        let key = |text: Option<String>| text.map(|text| Key::new(&text)).transpose();
        let tolls = call.tolls.into_iter().map(|toll| -> Result<_, Error> {
            Ok(Toll {
                limit: LimitName::new(&toll.limit)?,
                partition: toll.partition.map(|name| Partition::new(&name)).transpose()?,
                weight: toll.weight,
                hears_feedback: toll.hears_feedback,
            })
        });
        let bytes = |text| STANDARD_NO_PAD.decode(text).map_err(|error| damaged(&error));
        let (envelope, body) = (bytes(call.envelope)?, bytes(call.body)?);
        Ok(Schedule {
            name: name.to_owned(),
            when: match when {
                WhenRecord::Once(at) => When::Once(at),
                WhenRecord::Cron { text, zone } => {
                    When::Cron(Cron::new(&text, &zone).map_err(|error| damaged(&error))?)
                }
            },
            call: NewCall {
                queue: QueueName::new(&call.queue)?,
                lane: LaneName::new(&call.lane)?,
                tolls: tolls.collect::<Result<_, _>>()?,
                priority: Priority::new(call.priority.into()).unwrap_or_default(),
                not_before: call.not_before,
                expires: call.expires,
                dedupe: key(call.dedupe)?,
                supersedes: key(call.supersedes)?,
                payload: Payload::new(&envelope, &body)?,
            },
            limits,
            is_paused,
            next,
            last,
            problem,
        })
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    let reason = format!("the record of a schedule cannot be read or written: {error}");
    StoreError::Failed { reason }.into()
}
