//! One line of an export: a fact of a snapshot, and back.

use super::calls::CallLine;
use super::rules::{LimitLine, PartitionLine, QueueLine};
use super::text::{Instant, Wrong, is_false, name, optional, read, written};
use serde::{Deserialize, Serialize};
use tollgate_core::lanes::queue::LANE_WEIGHT_MAX;
use tollgate_core::lanes::{CallId, Effect, Kept, Revision, Scope};
use tollgate_core::{Key, LaneName, LimitName, Now, Partition, QueueName, Timestamp};

/// A fact. Each stands after those it builds on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub(super) enum Line {
    Counters(CountersLine),
    Limit(LimitLine),
    Partition(PartitionLine),
    Meter(MeterLine),
    LimitRemoved(NamedLine),
    LimitPaused(NamedLine),
    Queue(QueueLine),
    QueuePaused(NamedLine),
    Lane(LaneLine),
    Call(Box<CallLine>),
    Dedupe(DedupeLine),
    Receipt(ReceiptLine),
    Allowed(AllowedLine),
    Record(RecordLine),
    Join(JoinLine),
    End(EndLine),
}

/// Where the counters stand.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountersLine {
    next_call: u64,
    last_token: u64,
    next_place: u64,
    last_revision: u64,
    limit_time: Instant,
}

/// A meter that is not as new. Its numbers are one text: they are over what JSON carries exactly.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeterLine {
    limit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    words: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closed_until: Option<Instant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closed_reason: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedLine {
    name: String,
}

/// A lane that is not as others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaneLine {
    queue: String,
    lane: String,
    #[serde(default, skip_serializing_if = "is_false")]
    is_paused: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    is_held: bool,
    weight: u32,
}

/// A dedupe key that is remembered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DedupeLine {
    queue: String,
    key: String,
    call: u64,
    until: Instant,
}

/// A receipt that was settled.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceiptLine {
    id: u64,
    until: Instant,
}

/// Units that may have been consumed and were not written down.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowedLine {
    limit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    units: u64,
}

/// A record that a caller wrote.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordLine {
    key: String,
    revision: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
}

/// A join that is not over.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JoinLine {
    key: String,
    left: u64,
}

/// The last line: without it, some are missing.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLine {
    /// How many lines there are, from the header to this one.
    pub(super) lines: u64,
}

/// In which order lines stand: first by kind, then by what they are of.
pub(super) type Order = (u8, String, u8, Option<String>);

impl Line {
    /// The line of a fact; `None` for what happened, as opposed to what is: no snapshot has
    /// that, but for how calls in flight came to be.
    pub(super) fn of(fact: &Effect) -> Option<Self> {
        let named = |name: &str| NamedLine { name: name.to_owned() };
        Some(match fact {
            Effect::LimitDefined { name, definition: Some(definition), now: _ } => {
                Self::Limit(LimitLine::of(name, definition, false))
            }
            Effect::LimitCame { name, definition, now: _ } => {
                Self::Limit(LimitLine::of(name, definition, true))
            }
            Effect::LimitDefined { name, definition: None, now: _ } => {
                Self::LimitRemoved(named(name))
            }
            Effect::PartitionDefined { limit, partition, definition: Some(definition), now: _ } => {
                Self::Partition(PartitionLine::of(limit, partition, definition))
            }
            Effect::QueueDefined { name, spec } => {
                Self::Queue(QueueLine::of(name.to_string(), spec))
            }
            Effect::Paused(Scope::Limit(limit)) => Self::LimitPaused(named(limit)),
            Effect::Paused(Scope::Queue(queue)) => Self::QueuePaused(named(queue)),
            Effect::Kept(kept) => return Self::kept(kept),
            Effect::Written { key, revision: Revision(revision), bytes: Some(bytes) } => {
                let (key, (value, value_base64)) = (key.to_string(), written(bytes));
                Self::Record(RecordLine { key, revision: *revision, value, value_base64 })
            }
            Effect::Allowed { meter: (limit, partition), units } => Self::Allowed(AllowedLine {
                limit: limit.to_string(),
                partition: partition.as_ref().map(ToString::to_string),
                units: *units,
            }),
            Effect::Counted { key, left } => {
                Self::Join(JoinLine { key: key.to_string(), left: *left })
            }
            Effect::PartitionDefined { definition: None, .. }
            | Effect::ClosedBy { .. }
            | Effect::Reset { .. }
            | Effect::Died { .. }
            | Effect::Revived { .. }
            | Effect::QueueRemoved(_)
            | Effect::LimitWent(_)
            | Effect::LaneWeighed { .. }
            | Effect::Paused(Scope::Lane(..))
            | Effect::Resumed(_)
            | Effect::Reopened { .. }
            | Effect::Accepted { .. }
            | Effect::Joined { .. }
            | Effect::Timed(_)
            | Effect::Started { .. }
            | Effect::Renewed { .. }
            | Effect::Settled { .. }
            | Effect::Closed { .. }
            | Effect::CameBack { .. }
            | Effect::CancelAsked(_)
            | Effect::Ended { .. }
            | Effect::Paid { .. }
            | Effect::ReceiptRenewed { .. }
            | Effect::ReceiptSettled { .. }
            | Effect::Written { bytes: None, .. } => return None,
        })
    }

    fn kept(kept: &Kept) -> Option<Self> {
        Some(match kept {
            Kept::Counters { ids, tokens, arrivals, revisions, now } => {
                Self::Counters(CountersLine {
                    next_call: *ids,
                    last_token: *tokens,
                    next_place: *arrivals,
                    last_revision: *revisions,
                    limit_time: Instant(*now),
                })
            }
            Kept::Meter { name: (limit, partition), words, closed } => {
                let (until, reason) = closed.clone().unzip();
                Self::Meter(MeterLine {
                    limit: limit.to_string(),
                    partition: partition.as_ref().map(ToString::to_string),
                    words: words.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
                    closed_until: until.map(Instant),
                    closed_reason: reason.map(Into::into),
                })
            }
            Kept::Lane { queue, lane, is_paused, is_held, weight } => Self::Lane(LaneLine {
                queue: queue.to_string(),
                lane: lane.to_string(),
                is_paused: *is_paused,
                is_held: *is_held,
                weight: *weight,
            }),
            Kept::Call { .. } => Self::Call(Box::new(CallLine::of(kept)?)),
            Kept::Dedupe { queue, key, id, until } => Self::Dedupe(DedupeLine {
                queue: queue.to_string(),
                key: key.to_string(),
                call: id.0,
                until: Instant(*until),
            }),
            Kept::Receipt { id, until } => {
                Self::Receipt(ReceiptLine { id: *id, until: Instant(*until) })
            }
            Kept::Start { .. } => return None,
        })
    }

    /// The fact of a line, as of limit time; `None` for the last line, which is none.
    pub(super) fn read(self, at: Timestamp) -> Result<Option<Effect>, Wrong> {
        let now = Now::both(at);
        Ok(Some(match self {
            Self::Limit(line) => {
                let is_transient = line.transient;
                let (name, definition) = line.read()?;
                let definition = Box::new(definition);
                match is_transient {
                    true => Effect::LimitCame { name, definition, now },
                    false => Effect::LimitDefined { name, definition: Some(definition), now },
                }
            }
            Self::Partition(line) => {
                let (limit, partition, definition) = line.read()?;
                let definition = Some(Box::new(definition));
                Effect::PartitionDefined { limit, partition, definition, now }
            }
            Self::LimitRemoved(line) => {
                let name = name(LimitName::new, &line.name)?;
                Effect::LimitDefined { name, definition: None, now }
            }
            Self::LimitPaused(line) => {
                Effect::Paused(Scope::Limit(name(LimitName::new, &line.name)?))
            }
            Self::Queue(line) => {
                let name = name(QueueName::new, &line.name)?;
                Effect::QueueDefined { name, spec: Box::new(line.read()?) }
            }
            Self::QueuePaused(line) => {
                Effect::Paused(Scope::Queue(name(QueueName::new, &line.name)?))
            }
            Self::Record(RecordLine { key, revision, value, value_base64 }) => {
                let bytes = Some(read(value, value_base64.as_deref())?);
                Effect::Written { key: name(Key::new, &key)?, revision: Revision(revision), bytes }
            }
            Self::Join(JoinLine { key, left }) => {
                Effect::Counted { key: name(Key::new, &key)?, left }
            }
            Self::Allowed(AllowedLine { limit, partition, units }) => {
                let limit = name(LimitName::new, &limit)?;
                let meter = (limit, optional(Partition::new, partition.as_deref())?);
                Effect::Allowed { meter, units }
            }
            Self::Counters(line) => Effect::Kept(line.read()),
            Self::Meter(line) => Effect::Kept(line.read()?),
            Self::Lane(line) => Effect::Kept(line.read()?),
            Self::Call(line) => Effect::Kept(line.read()?),
            Self::Dedupe(DedupeLine { queue, key, call, until: Instant(until) }) => {
                let (queue, key) = (name(QueueName::new, &queue)?, name(Key::new, &key)?);
                Effect::Kept(Kept::Dedupe { queue, key, id: CallId(call), until })
            }
            Self::Receipt(ReceiptLine { id, until: Instant(until) }) => {
                Effect::Kept(Kept::Receipt { id, until })
            }
            Self::End(_) => return Ok(None),
        }))
    }

    /// Where it stands. Calls come in order by themselves.
    pub(super) fn order(&self) -> Order {
        let of = |kind, name: &String, place, part: Option<&String>| {
            (kind, name.clone(), place, part.cloned())
        };
        match self {
            Self::Counters(_) => (0, String::new(), 0, None),
            Self::Limit(line) => of(1, &line.name, 0, None),
            Self::Partition(line) => of(1, &line.limit, 1, Some(&line.partition)),
            Self::Meter(line) => of(1, &line.limit, 2, line.partition.as_ref()),
            Self::LimitRemoved(line) => of(1, &line.name, 3, None),
            Self::LimitPaused(line) => of(1, &line.name, 4, None),
            Self::Queue(line) => of(2, &line.name, 0, None),
            Self::QueuePaused(line) => of(2, &line.name, 1, None),
            Self::Lane(line) => of(2, &line.queue, 2, Some(&line.lane)),
            Self::Call(_) => (3, String::new(), 0, None),
            Self::Dedupe(line) => of(4, &line.queue, 0, Some(&line.key)),
            Self::Receipt(line) => (5, format!("{:020}", line.id), 0, None),
            Self::Allowed(line) => of(5, &line.limit, 1, line.partition.as_ref()),
            Self::Record(line) => of(6, &line.key, 0, None),
            Self::Join(line) => of(7, &line.key, 0, None),
            Self::End(_) => (8, String::new(), 0, None),
        }
    }
}

impl CountersLine {
    fn read(self) -> Kept {
        Kept::Counters {
            ids: self.next_call,
            tokens: self.last_token,
            arrivals: self.next_place,
            revisions: self.last_revision,
            now: self.limit_time.0,
        }
    }
}

impl MeterLine {
    fn read(self) -> Result<Kept, Wrong> {
        let Self { limit, partition, words, closed_until, closed_reason } = self;
        let limit = name(LimitName::new, &limit)?;
        let partition = optional(Partition::new, partition.as_deref())?;
        let words = words.split_whitespace().map(str::parse).collect::<Result<_, _>>();
        let closed = match (closed_until, closed_reason) {
            (Some(Instant(until)), Some(reason)) => Some((until, reason.into())),
            (None, None) => None,
            _ => return Err("a closed meter has closed_until and closed_reason".to_owned()),
        };
        let words = words.map_err(|error| format!("words are whole numbers: {error}"))?;
        Ok(Kept::Meter { name: (limit, partition), words, closed })
    }
}

impl LaneLine {
    fn read(self) -> Result<Kept, Wrong> {
        let Self { queue, lane, is_paused, is_held, weight } = self;
        if !(1..=LANE_WEIGHT_MAX).contains(&weight) {
            return Err(format!(
                "a lane weighs from 1 to {LANE_WEIGHT_MAX}, and this one {weight}"
            ));
        }
        let (queue, lane) = (name(QueueName::new, &queue)?, name(LaneName::new, &lane)?);
        Ok(Kept::Lane { queue, lane, is_paused, is_held, weight })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::codec::tests::generated::effect;
    use proptest::prelude::*;
    use tollgate_core::UNITS_MAX;

    const NOW: Timestamp = Timestamp::from_nanos(7);

    /// The fact as a line could have it: weights that can be, and what is a line of its own left out.
    fn possible(mut fact: Effect) -> Effect {
        match &mut fact {
            Effect::LimitDefined { now, .. }
            | Effect::LimitCame { now, .. }
            | Effect::PartitionDefined { now, .. } => {
                *now = Now::both(NOW);
            }
            Effect::Kept(Kept::Lane { weight, .. }) => {
                *weight = (*weight).clamp(1, LANE_WEIGHT_MAX);
            }
            Effect::Kept(Kept::Call { call, .. }) => {
                call.dedupe = None;
                for toll in call.tolls.iter_mut() {
                    toll.weight = toll.weight.clamp(1, UNITS_MAX);
                }
            }
            _ => {}
        }
        fact
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_fact_is_its_line(fact in effect().prop_map(possible)) {
            let Some(line) = Line::of(&fact) else { return Ok(()) };
            let json = serde_json::to_string(&line).unwrap();
            prop_assert!(!json.contains('\n'), "{}", json);
            let again: Line = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(again.read(NOW), Ok(Some(fact)), "{}", json);
        }
    }
}
