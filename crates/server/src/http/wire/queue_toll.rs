//! What all calls of a queue owe, as it travels.

use super::priority::PriorityWire;
use super::units::Units;
use crate::http::caller::Caller;
use serde::{Deserialize, Serialize};
use tollgate::lanes::{
    BodyPath, LimitName, Partition, QueueToll, Scalar, TollPartition, TollWeight, TollWhen,
};

/// A toll of all calls of a queue, or of those that it is for.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct QueueTollWire {
    limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<PartitionWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<WeightWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<WhenWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<PriorityWire>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "a partition's name, or {\"path\": \"body.tenant\"} with a `default` if you like"
)]
enum PartitionWire {
    Fixed(String),
    Body(PartitionPathWire),
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct PartitionPathWire {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "a whole number, {\"path\": \"body.items.length\"} with `default` and `max` if you like, or {\"learned\": {\"default\": 500}} with a `max` if you like"
)]
enum WeightWire {
    Fixed(Units),
    Body(WeightPathWire),
    Learned(LearnedWire),
}

/// As much as calls cost before.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct LearnedWire {
    learned: WeightBoundsWire,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WeightBoundsWire {
    default: Units,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<Units>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WeightPathWire {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Units>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<Units>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WhenWire {
    path: String,
    is: ScalarWire,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "a text, a whole number, true or false")]
enum ScalarWire {
    Truth(bool),
    Number(i64),
    Text(String),
}

impl QueueTollWire {
    /// The toll that is meant, by the names of the store; or which field is wrong, and why.
    pub(super) fn toll(&self, caller: &Caller) -> Result<QueueToll, (&'static str, String)> {
        let limit = |field: &'static str, name: &str| {
            LimitName::new(&caller.inner(name)).map_err(|error| (field, error.to_string()))
        };
        let mut toll = QueueToll::new(limit("limit", &self.limit)?);
        toll.like = self.like.as_deref().map(|name| limit("like", name)).transpose()?;
        toll.priority = self.priority.map(|priority| priority.0);
        if let Some(partition) = &self.partition {
            toll.partition = partition.read().map_err(|why| ("partition", why))?;
        }
        if let Some(weight) = &self.weight {
            toll.weight = weight.read().map_err(|why| ("weight", why))?;
        }
        toll.when =
            self.when.as_ref().map(WhenWire::read).transpose().map_err(|why| ("when", why))?;
        Ok(toll)
    }

    pub(super) fn new(toll: &QueueToll, caller: &Caller) -> Self {
        let name = |name: &LimitName| caller.shown(name).to_owned();
        Self {
            limit: name(&toll.limit),
            partition: PartitionWire::new(&toll.partition),
            weight: WeightWire::new(&toll.weight),
            when: toll.when.as_ref().map(WhenWire::new),
            like: toll.like.as_ref().map(name),
            priority: toll.priority.map(PriorityWire),
        }
    }
}

impl PartitionWire {
    fn read(&self) -> Result<TollPartition, String> {
        let name = |text: &String| Partition::new(text).map_err(|error| error.to_string());
        Ok(match self {
            Self::Fixed(text) => TollPartition::Fixed(name(text)?),
            Self::Body(PartitionPathWire { path: text, default }) => TollPartition::Body {
                path: path(text)?,
                default: default.as_ref().map(name).transpose()?,
            },
        })
    }

    fn new(partition: &TollPartition) -> Option<Self> {
        Some(match partition {
            TollPartition::Global => return None,
            TollPartition::Fixed(name) => Self::Fixed(name.as_str().to_owned()),
            TollPartition::Body { path, default } => Self::Body(PartitionPathWire {
                path: path.as_str().to_owned(),
                default: default.as_ref().map(|name| name.as_str().to_owned()),
            }),
        })
    }
}

impl WeightWire {
    fn read(&self) -> Result<TollWeight, String> {
        let number = |units: &Option<Units>| units.map(|Units(number)| number);
        Ok(match self {
            Self::Fixed(Units(weight)) => TollWeight::Fixed(*weight),
            Self::Body(WeightPathWire { path: text, default, max }) => {
                TollWeight::Body { path: path(text)?, default: number(default), max: number(max) }
            }
            Self::Learned(LearnedWire { learned: WeightBoundsWire { default, max } }) => {
                TollWeight::Learned { default: default.0, max: number(max) }
            }
        })
    }

    fn new(weight: &TollWeight) -> Option<Self> {
        Some(match weight {
            TollWeight::Fixed(1) => return None,
            TollWeight::Fixed(weight) => Self::Fixed(Units(*weight)),
            TollWeight::Body { path, default, max } => Self::Body(WeightPathWire {
                path: path.as_str().to_owned(),
                default: default.map(Units),
                max: max.map(Units),
            }),
            TollWeight::Learned { default, max } => Self::Learned(LearnedWire {
                learned: WeightBoundsWire { default: Units(*default), max: max.map(Units) },
            }),
        })
    }
}

impl WhenWire {
    fn read(&self) -> Result<TollWhen, String> {
        let is = match &self.is {
            ScalarWire::Text(text) => Scalar::Text(text.as_str().into()),
            ScalarWire::Number(number) => Scalar::Number(*number),
            ScalarWire::Truth(truth) => Scalar::Truth(*truth),
        };
        Ok(TollWhen { path: path(&self.path)?, is })
    }

    fn new(when: &TollWhen) -> Self {
        let is = match &when.is {
            Scalar::Text(text) => ScalarWire::Text(text.to_string()),
            Scalar::Number(number) => ScalarWire::Number(*number),
            Scalar::Truth(truth) => ScalarWire::Truth(*truth),
        };
        Self { path: when.path.as_str().to_owned(), is }
    }
}

fn path(text: &str) -> Result<BodyPath, String> {
    BodyPath::new(text).map_err(|error| error.to_string())
}
