//! Queues as they travel.

use super::destination::DestinationWire;
use super::queue_toll::QueueTollWire;
use super::time::SpanWire;
use serde::{Deserialize, Serialize};
use tollgate_core::lanes::{Backoff, OnDead, Order, QueueSpec, QueueToll};
use tollgate_engine::{Delivery, Error};

/// How a queue's lanes behave.
#[derive(Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct QueueWire {
    order: OrderWire,
    lease: SpanWire,
    failures_max: u32,
    crashes_max: u32,
    limited_max: u32,
    backoff: BackoffWire,
    on_dead: OnDeadWire,
    depth_max: u64,
    dead_max: u64,
    dedupe: SpanWire,
    tolls: Vec<QueueTollWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<DestinationWire>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OrderWire {
    Strict,
    Parallel(u32),
}

#[derive(Debug, Serialize, Deserialize)]
struct BackoffWire {
    first: SpanWire,
    most: SpanWire,
    /// Servers of old have none.
    #[serde(default)]
    jitter: u8,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnDeadWire {
    Skip,
    Hold,
}

impl Default for QueueWire {
    fn default() -> Self {
        Self::of(&QueueSpec::default(), None)
    }
}

impl TryFrom<&QueueSpec> for QueueWire {
    type Error = Error;

    fn try_from(spec: &QueueSpec) -> Result<Self, Error> {
        let delivery = spec.delivery.as_deref().map(Delivery::from_bytes).transpose()?;
        Ok(Self::of(spec, delivery))
    }
}

impl QueueWire {
    fn of(spec: &QueueSpec, delivery: Option<Delivery>) -> Self {
        Self {
            order: match spec.order {
                Order::Strict => OrderWire::Strict,
                Order::Parallel(calls) => OrderWire::Parallel(calls),
            },
            lease: SpanWire(spec.lease),
            failures_max: spec.failures_max,
            crashes_max: spec.crashes_max,
            limited_max: spec.limited_max,
            backoff: BackoffWire {
                first: SpanWire(spec.backoff.first),
                most: SpanWire(spec.backoff.most),
                jitter: spec.backoff.jitter,
            },
            on_dead: match spec.on_dead {
                OnDead::Skip => OnDeadWire::Skip,
                OnDead::Hold => OnDeadWire::Hold,
            },
            depth_max: spec.depth_max,
            dead_max: spec.dead_max,
            dedupe: SpanWire(spec.dedupe),
            tolls: spec.tolls.iter().map(QueueTollWire::from).collect(),
            destination: delivery.map(DestinationWire::from),
        }
    }
}

impl TryFrom<QueueWire> for QueueSpec {
    type Error = String;

    fn try_from(wire: QueueWire) -> Result<Self, String> {
        let delivery = wire.destination.map(|it| Delivery::from(it).to_bytes());
        Ok(Self {
            order: match wire.order {
                OrderWire::Strict => Order::Strict,
                OrderWire::Parallel(calls) => Order::Parallel(calls),
            },
            lease: wire.lease.0,
            failures_max: wire.failures_max,
            crashes_max: wire.crashes_max,
            limited_max: wire.limited_max,
            backoff: Backoff {
                first: wire.backoff.first.0,
                most: wire.backoff.most.0,
                jitter: wire.backoff.jitter,
            },
            on_dead: match wire.on_dead {
                OnDeadWire::Skip => OnDead::Skip,
                OnDeadWire::Hold => OnDead::Hold,
            },
            depth_max: wire.depth_max,
            dead_max: wire.dead_max,
            dedupe: wire.dedupe.0,
            tolls: wire.tolls.into_iter().map(QueueToll::try_from).collect::<Result<_, _>>()?,
            delivery: delivery.transpose().map_err(|error| error.to_string())?,
            // A server does not tell it.
            tells_accepted: false,
        })
    }
}

/// A queue, and how much is in it.
#[derive(Debug, Deserialize)]
pub(crate) struct QueueStateWire {
    pub(crate) name: String,
    pub(crate) definition: QueueWire,
    pub(crate) paused: bool,
    pub(crate) waiting: u64,
    pub(crate) in_flight: u64,
    pub(crate) dead: u64,
    pub(crate) lanes: u64,
}

/// A page of queues.
#[derive(Debug, Deserialize)]
pub(crate) struct QueuePageWire {
    pub(crate) queues: Vec<QueueStateWire>,
    pub(crate) next: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::super::destination::tests::whole;
    use super::*;
    use tollgate_core::lanes::{BodyPath, Scalar, TollPartition, TollWeight, TollWhen};
    use tollgate_core::{LimitName, Priority, Span};

    #[test]
    fn a_queue_comes_back_as_it_went() {
        let name = |text| LimitName::new(text).unwrap();
        let path = |text| BodyPath::new(text).unwrap();
        let shared = QueueToll {
            like: Some(name("stripe")),
            priority: Some(Priority::MAX),
            ..QueueToll::new(name("shared"))
        };
        let read = QueueToll {
            partition: TollPartition::Body { path: path("body.tenant"), default: None },
            weight: TollWeight::Body { path: path("body.n"), default: Some(1), max: Some(9) },
            when: Some(TollWhen { path: path("body.kind"), is: Scalar::Text("x".into()) }),
            ..QueueToll::new(name("tokens"))
        };
        let odd = QueueSpec {
            order: Order::Parallel(200),
            on_dead: OnDead::Hold,
            backoff: Backoff {
                jitter: 30,
                ..Backoff::doubling(Span::from_secs(1), Span::from_secs(9))
            },
            lease: Span::from_millis(1_500),
            tolls: vec![shared, read],
            delivery: Some(whole().to_bytes().unwrap()),
            ..QueueSpec::default()
        };
        for spec in [QueueSpec::default(), odd] {
            let text = serde_json::to_string(&QueueWire::try_from(&spec).unwrap()).unwrap();
            let wire: QueueWire = serde_json::from_str(&text).unwrap();
            assert_eq!(QueueSpec::try_from(wire).unwrap(), spec);
        }
    }
}
