//! Limits and queues, as lines.

use super::queue_toll::QueueTollLine;
use super::text::{self, Length, Wrong, name, read};
use serde::{Deserialize, Serialize};
use tollgate_core::lanes::{Backoff, OnDead, Order, QueueSpec};
use tollgate_core::{Align, Definition, Limit, LimitName, Partition, RuleSpec};

/// A limit that is defined, or was and is owed at.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitLine {
    pub(super) name: String,
    rules: Vec<RuleLine>,
    #[serde(default, skip_serializing_if = "Length::is_none")]
    ahead: Length,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    spread: bool,
    /// It came along with calls, and goes with them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) transient: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
enum RuleLine {
    TokenBucket {
        limit: u64,
        per: Length,
        burst: u64,
        #[serde(default, skip_serializing_if = "Length::is_none")]
        guard: Length,
    },
    FixedWindow {
        limit: u64,
        per: Length,
        /// The time zone on whose calendar windows start; left out: at the first call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        align: Option<String>,
        #[serde(default, skip_serializing_if = "Length::is_none")]
        guard: Length,
    },
    SlidingWindow {
        limit: u64,
        per: Length,
        #[serde(default, skip_serializing_if = "Length::is_none")]
        guard: Length,
    },
    Concurrency {
        limit: u64,
    },
}

/// A partition with rules of its own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartitionLine {
    pub(super) limit: String,
    pub(super) partition: String,
    rules: Vec<RuleLine>,
    #[serde(default, skip_serializing_if = "Length::is_none")]
    ahead: Length,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    spread: bool,
}

fn written(definition: &Definition) -> Vec<RuleLine> {
    definition.limit().rules().iter().map(RuleLine::of).collect()
}

fn lent(definition: &Definition) -> Length {
    Length(definition.limit().taken_ahead())
}

fn defined(
    rules: Vec<RuleLine>,
    Length(ahead): Length,
    is_spread: bool,
) -> Result<Definition, Wrong> {
    let limit = Limit::of(rules.into_iter().map(RuleLine::read).collect()).ahead(ahead);
    let limit = if is_spread { limit.spread() } else { limit };
    Definition::new(limit).map_err(|error| error.to_string())
}

impl LimitLine {
    pub(super) fn of(name: &LimitName, definition: &Definition, transient: bool) -> Self {
        let (rules, ahead) = (written(definition), lent(definition));
        let spread = definition.limit().is_spread();
        Self { name: name.to_string(), rules, ahead, spread, transient }
    }

    pub(super) fn read(self) -> Result<(LimitName, Definition), Wrong> {
        Ok((name(LimitName::new, &self.name)?, defined(self.rules, self.ahead, self.spread)?))
    }
}

impl PartitionLine {
    pub(super) fn of(limit: &LimitName, partition: &Partition, definition: &Definition) -> Self {
        let (limit, partition) = (limit.to_string(), partition.to_string());
        let (rules, ahead) = (written(definition), lent(definition));
        Self { limit, partition, rules, ahead, spread: definition.limit().is_spread() }
    }

    pub(super) fn read(self) -> Result<(LimitName, Partition, Definition), Wrong> {
        let limit = name(LimitName::new, &self.limit)?;
        let partition = name(Partition::new, &self.partition)?;
        Ok((limit, partition, defined(self.rules, self.ahead, self.spread)?))
    }
}

impl RuleLine {
    fn of(rule: &RuleSpec) -> Self {
        match rule {
            RuleSpec::TokenBucket { limit, per, burst, guard } => Self::TokenBucket {
                limit: *limit,
                per: Length(*per),
                burst: *burst,
                guard: Length(*guard),
            },
            RuleSpec::FixedWindow { limit, per, align, guard } => Self::FixedWindow {
                limit: *limit,
                per: Length(*per),
                align: match align {
                    Align::FirstCall => None,
                    Align::Calendar { zone } => Some(zone.clone()),
                },
                guard: Length(*guard),
            },
            RuleSpec::SlidingWindow { limit, per, guard } => {
                Self::SlidingWindow { limit: *limit, per: Length(*per), guard: Length(*guard) }
            }
            RuleSpec::Concurrency { limit } => Self::Concurrency { limit: *limit },
            // To leave it out would lose a limit.
            other => unreachable!("an export has no words for the rule {}", other.kind()),
        }
    }

    fn read(self) -> RuleSpec {
        match self {
            Self::TokenBucket { limit, per: Length(per), burst, guard: Length(guard) } => {
                RuleSpec::TokenBucket { limit, per, burst, guard }
            }
            Self::FixedWindow { limit, per: Length(per), align, guard: Length(guard) } => {
                let align = align.map_or(Align::FirstCall, |zone| Align::Calendar { zone });
                RuleSpec::FixedWindow { limit, per, align, guard }
            }
            Self::SlidingWindow { limit, per: Length(per), guard: Length(guard) } => {
                RuleSpec::SlidingWindow { limit, per, guard }
            }
            Self::Concurrency { limit } => RuleSpec::Concurrency { limit },
        }
    }
}

/// How a queue's lanes behave.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueLine {
    pub(super) name: String,
    order: OrderLine,
    lease: Length,
    failures_max: u32,
    crashes_max: u32,
    limited_max: u32,
    backoff_first: Length,
    backoff_most: Length,
    #[serde(default, skip_serializing_if = "is_zero")]
    backoff_jitter: u8,
    on_dead: OnDeadLine,
    depth_max: u64,
    #[serde(default = "dead_max")]
    dead_max: u64,
    dedupe: Length,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tolls: Vec<QueueTollLine>,
    /// How its calls are delivered, as it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivery: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivery_base64: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tells_accepted: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OrderLine {
    Strict,
    Parallel(u32),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnDeadLine {
    Skip,
    Hold,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks for it")]
fn is_zero(hundredths: &u8) -> bool {
    *hundredths == 0
}

fn dead_max() -> u64 {
    QueueSpec::default().dead_max
}

impl QueueLine {
    pub(super) fn of(name: String, spec: &QueueSpec) -> Self {
        let QueueSpec {
            order,
            lease,
            failures_max,
            crashes_max,
            limited_max,
            backoff: Backoff { first, most, jitter },
            on_dead,
            depth_max,
            dead_max,
            dedupe,
            tolls,
            delivery,
            tells_accepted,
        } = spec;
        let (delivery, delivery_base64) = delivery.as_deref().map_or((None, None), text::written);
        Self {
            name,
            order: match order {
                Order::Strict => OrderLine::Strict,
                Order::Parallel(count) => OrderLine::Parallel(*count),
            },
            lease: Length(*lease),
            failures_max: *failures_max,
            crashes_max: *crashes_max,
            limited_max: *limited_max,
            backoff_first: Length(*first),
            backoff_most: Length(*most),
            backoff_jitter: *jitter,
            on_dead: match on_dead {
                OnDead::Skip => OnDeadLine::Skip,
                OnDead::Hold => OnDeadLine::Hold,
            },
            depth_max: *depth_max,
            dead_max: *dead_max,
            dedupe: Length(*dedupe),
            tolls: tolls.iter().map(QueueTollLine::of).collect(),
            delivery,
            delivery_base64,
            tells_accepted: *tells_accepted,
        }
    }

    pub(super) fn read(self) -> Result<QueueSpec, Wrong> {
        let spec = QueueSpec {
            order: match self.order {
                OrderLine::Strict => Order::Strict,
                OrderLine::Parallel(count) => Order::Parallel(count),
            },
            lease: self.lease.0,
            failures_max: self.failures_max,
            crashes_max: self.crashes_max,
            limited_max: self.limited_max,
            backoff: Backoff {
                first: self.backoff_first.0,
                most: self.backoff_most.0,
                jitter: self.backoff_jitter,
            },
            on_dead: match self.on_dead {
                OnDeadLine::Skip => OnDead::Skip,
                OnDeadLine::Hold => OnDead::Hold,
            },
            depth_max: self.depth_max,
            dead_max: self.dead_max,
            dedupe: self.dedupe.0,
            tolls: self.tolls.into_iter().map(QueueTollLine::read).collect::<Result<_, _>>()?,
            delivery: match (self.delivery, self.delivery_base64) {
                (None, None) => None,
                (text, base64) => Some(read(text, base64.as_deref())?),
            },
            tells_accepted: self.tells_accepted,
        };
        spec.check().map_err(|error| error.to_string())?;
        Ok(spec)
    }
}
