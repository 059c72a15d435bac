//! What queues ask of their calls, as lines.

use super::text::{Wrong, name, optional};
use serde::{Deserialize, Serialize};
use tollgate_core::lanes::{BodyPath, QueueToll, Scalar, TollPartition, TollWeight, TollWhen};
use tollgate_core::{LimitName, Partition, Priority};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueueTollLine {
    limit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    like: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<PartitionOf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<WeightOf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<WhenLine>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum PartitionOf {
    Fixed(String),
    Body(PartitionAt),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionAt {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum WeightOf {
    Fixed(u64),
    Body(WeightAt),
    Learned(LearnedOf),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnedOf {
    learned: WeightBounds,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightBounds {
    default: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightAt {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenLine {
    path: String,
    is: ScalarOf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum ScalarOf {
    Truth(bool),
    Number(i64),
    Text(String),
}

impl QueueTollLine {
    pub(super) fn of(toll: &QueueToll) -> Self {
        let QueueToll { limit, like, priority, partition, weight, when } = toll;
        Self {
            limit: limit.to_string(),
            like: like.as_ref().map(ToString::to_string),
            priority: priority.map(|priority| priority.level().into()),
            partition: PartitionOf::of(partition),
            weight: WeightOf::of(weight),
            when: when.as_ref().map(WhenLine::of),
        }
    }

    pub(super) fn read(self) -> Result<QueueToll, Wrong> {
        let priority = self.priority.map(Priority::new).transpose();
        let partition = self.partition.map(PartitionOf::read).transpose()?;
        let weight = self.weight.map(WeightOf::read).transpose()?;
        Ok(QueueToll {
            limit: name(LimitName::new, &self.limit)?,
            like: optional(LimitName::new, self.like.as_deref())?,
            priority: priority.map_err(|error| error.to_string())?,
            partition: partition.unwrap_or_default(),
            weight: weight.unwrap_or_default(),
            when: self.when.map(WhenLine::read).transpose()?,
        })
    }
}

impl PartitionOf {
    fn of(partition: &TollPartition) -> Option<Self> {
        match partition {
            TollPartition::Global => None,
            TollPartition::Fixed(partition) => Some(Self::Fixed(partition.to_string())),
            TollPartition::Body { path, default } => {
                let default = default.as_ref().map(ToString::to_string);
                Some(Self::Body(PartitionAt { path: path.to_string(), default }))
            }
        }
    }

    fn read(self) -> Result<TollPartition, Wrong> {
        Ok(match self {
            Self::Fixed(partition) => TollPartition::Fixed(name(Partition::new, &partition)?),
            Self::Body(PartitionAt { path, default }) => TollPartition::Body {
                path: self::path(&path)?,
                default: optional(Partition::new, default.as_deref())?,
            },
        })
    }
}

impl WeightOf {
    fn of(weight: &TollWeight) -> Option<Self> {
        match weight {
            TollWeight::Fixed(1) => None,
            TollWeight::Fixed(weight) => Some(Self::Fixed(*weight)),
            TollWeight::Body { path, default, max } => {
                let (path, default, max) = (path.to_string(), *default, *max);
                Some(Self::Body(WeightAt { path, default, max }))
            }
            TollWeight::Learned { default, max } => {
                let learned = WeightBounds { default: *default, max: *max };
                Some(Self::Learned(LearnedOf { learned }))
            }
        }
    }

    fn read(self) -> Result<TollWeight, Wrong> {
        Ok(match self {
            Self::Fixed(weight) => TollWeight::Fixed(weight),
            Self::Body(WeightAt { path, default, max }) => {
                TollWeight::Body { path: self::path(&path)?, default, max }
            }
            Self::Learned(LearnedOf { learned: WeightBounds { default, max } }) => {
                TollWeight::Learned { default, max }
            }
        })
    }
}

impl WhenLine {
    fn of(when: &TollWhen) -> Self {
        let is = match &when.is {
            Scalar::Text(text) => ScalarOf::Text(text.to_string()),
            Scalar::Number(number) => ScalarOf::Number(*number),
            Scalar::Truth(is_true) => ScalarOf::Truth(*is_true),
        };
        Self { path: when.path.to_string(), is }
    }

    fn read(self) -> Result<TollWhen, Wrong> {
        let is = match self.is {
            ScalarOf::Text(text) => Scalar::Text(text.into()),
            ScalarOf::Number(number) => Scalar::Number(number),
            ScalarOf::Truth(is_true) => Scalar::Truth(is_true),
        };
        Ok(TollWhen { path: path(&self.path)?, is })
    }
}

fn path(text: &str) -> Result<BodyPath, Wrong> {
    BodyPath::new(text).map_err(|error| error.to_string())
}
