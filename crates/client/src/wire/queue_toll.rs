//! What all calls of a queue owe, as it travels.

use serde::{Deserialize, Serialize};
use tollgate_core::lanes::{BodyPath, QueueToll, Scalar, TollPartition, TollWeight, TollWhen};
use tollgate_core::{LimitName, Partition, Priority};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct QueueTollWire {
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
    priority: Option<u8>,
}

/// A name, or where the body says it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum PartitionWire {
    Fixed(String),
    Body {
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        default: Option<String>,
    },
}

/// A number, where the body says it, or as much as calls cost before.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum WeightWire {
    Fixed(u64),
    Body {
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        default: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
    Learned {
        learned: WeightBoundsWire,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct WeightBoundsWire {
    default: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WhenWire {
    path: String,
    is: ScalarWire,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum ScalarWire {
    Truth(bool),
    Number(i64),
    Text(String),
}

impl From<&QueueToll> for QueueTollWire {
    fn from(toll: &QueueToll) -> Self {
        let partition = match &toll.partition {
            TollPartition::Global => None,
            TollPartition::Fixed(name) => Some(PartitionWire::Fixed(name.as_str().to_owned())),
            TollPartition::Body { path, default } => Some(PartitionWire::Body {
                path: path.as_str().to_owned(),
                default: default.as_ref().map(|name| name.as_str().to_owned()),
            }),
        };
        let weight = match &toll.weight {
            TollWeight::Fixed(weight) => WeightWire::Fixed(*weight),
            TollWeight::Body { path, default, max } => {
                WeightWire::Body { path: path.as_str().to_owned(), default: *default, max: *max }
            }
            TollWeight::Learned { default, max } => {
                WeightWire::Learned { learned: WeightBoundsWire { default: *default, max: *max } }
            }
        };
        Self {
            limit: toll.limit.as_str().to_owned(),
            partition,
            // A toll that is like another has no weight of its own.
            weight: Some(weight).filter(|weight| !matches!(weight, WeightWire::Fixed(1))),
            when: toll.when.as_ref().map(WhenWire::from),
            like: toll.like.as_ref().map(|like| like.as_str().to_owned()),
            priority: toll.priority.map(Priority::level),
        }
    }
}

impl From<&TollWhen> for WhenWire {
    fn from(when: &TollWhen) -> Self {
        let is = match &when.is {
            Scalar::Text(text) => ScalarWire::Text(text.to_string()),
            Scalar::Number(number) => ScalarWire::Number(*number),
            Scalar::Truth(truth) => ScalarWire::Truth(*truth),
        };
        Self { path: when.path.as_str().to_owned(), is }
    }
}

impl TryFrom<QueueTollWire> for QueueToll {
    type Error = String;

    fn try_from(wire: QueueTollWire) -> Result<Self, String> {
        let limit = |name: &str| LimitName::new(name).map_err(|error| error.to_string());
        let mut toll = Self::new(limit(&wire.limit)?);
        toll.like = wire.like.as_deref().map(limit).transpose()?;
        toll.priority = wire.priority.and_then(|level| Priority::new(level.into()).ok());
        let partition = |name: &str| Partition::new(name).map_err(|error| error.to_string());
        toll.partition = match wire.partition {
            None => TollPartition::Global,
            Some(PartitionWire::Fixed(name)) => TollPartition::Fixed(partition(&name)?),
            Some(PartitionWire::Body { path, default }) => TollPartition::Body {
                path: body_path(&path)?,
                default: default.as_deref().map(partition).transpose()?,
            },
        };
        toll.weight = match wire.weight {
            None => TollWeight::default(),
            Some(WeightWire::Fixed(weight)) => TollWeight::Fixed(weight),
            Some(WeightWire::Body { path, default, max }) => {
                TollWeight::Body { path: body_path(&path)?, default, max }
            }
            Some(WeightWire::Learned { learned: WeightBoundsWire { default, max } }) => {
                TollWeight::Learned { default, max }
            }
        };
        toll.when = wire.when.map(TollWhen::try_from).transpose()?;
        Ok(toll)
    }
}

impl TryFrom<WhenWire> for TollWhen {
    type Error = String;

    fn try_from(wire: WhenWire) -> Result<Self, String> {
        let is = match wire.is {
            ScalarWire::Text(text) => Scalar::Text(text.into()),
            ScalarWire::Number(number) => Scalar::Number(number),
            ScalarWire::Truth(truth) => Scalar::Truth(truth),
        };
        Ok(Self { path: body_path(&wire.path)?, is })
    }
}

fn body_path(text: &str) -> Result<BodyPath, String> {
    BodyPath::new(text).map_err(|error| error.to_string())
}
