//! Queues as they travel.

use super::object::Object;
use super::priority::PriorityWire;
use super::span::SpanWire;
use super::units::{Count, Units};
use crate::http::caller::Caller;
use serde::{Deserialize, Serialize};
use tollgate::Error;
use tollgate::lanes::{Backoff, LimitName, OnDead, Order, QueueSpec, QueueToll};

/// How a queue's lanes behave. What is left out is as by default.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct QueueWire {
    order: Option<OrderWire>,
    lease: Option<SpanWire>,
    failures_max: Option<Count>,
    crashes_max: Option<Count>,
    limited_max: Option<Count>,
    backoff: Option<Object<BackoffWire>>,
    on_dead: Option<OnDeadWire>,
    depth_max: Option<Units>,
    dead_max: Option<Units>,
    dedupe: Option<SpanWire>,
    #[serde(default)]
    tolls: Vec<Object<QueueTollWire>>,
}

/// `"strict"`, or `{"parallel": 200}`.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum OrderWire {
    Strict,
    Parallel(Count),
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct BackoffWire {
    first: Option<SpanWire>,
    most: Option<SpanWire>,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum OnDeadWire {
    Skip,
    Hold,
}

/// What all calls of a queue owe.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct QueueTollWire {
    limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<PriorityWire>,
}

impl QueueWire {
    /// The queue that is meant, by the names of the store.
    pub(in crate::http) fn spec(&self, caller: &Caller) -> Result<QueueSpec, Error> {
        let default = QueueSpec::default();
        let count = |count: Option<Count>, default| count.map_or(default, |count| count.0);
        let span = |span: Option<SpanWire>, default| span.map_or(default, |span| span.0);
        let backoff = self.backoff.as_ref().map(|Object(backoff)| Backoff {
            first: span(backoff.first, default.backoff.first),
            most: span(backoff.most, default.backoff.most),
        });
        let tolls = self.tolls.iter().map(|Object(toll)| toll.spec(caller));
        Ok(QueueSpec {
            order: self.order.map_or(default.order, OrderWire::order),
            lease: span(self.lease, default.lease),
            failures_max: count(self.failures_max, default.failures_max),
            crashes_max: count(self.crashes_max, default.crashes_max),
            limited_max: count(self.limited_max, default.limited_max),
            backoff: backoff.unwrap_or(default.backoff),
            on_dead: match self.on_dead {
                None => default.on_dead,
                Some(OnDeadWire::Skip) => OnDead::Skip,
                Some(OnDeadWire::Hold) => OnDead::Hold,
            },
            depth_max: self.depth_max.map_or(default.depth_max, |Units(depth)| depth),
            dead_max: self.dead_max.map_or(default.dead_max, |Units(dead)| dead),
            dedupe: span(self.dedupe, default.dedupe),
            tolls: tolls.collect::<Result<_, _>>()?,
        })
    }

    /// A queue as a caller sees it, with every setting.
    pub(in crate::http) fn new(spec: &QueueSpec, caller: &Caller) -> Self {
        let units = |count: u32| Some(Count(count));
        let Backoff { first, most } = spec.backoff;
        Self {
            order: Some(match spec.order {
                Order::Strict => OrderWire::Strict,
                Order::Parallel(count) => OrderWire::Parallel(Count(count)),
            }),
            lease: Some(SpanWire(spec.lease)),
            failures_max: units(spec.failures_max),
            crashes_max: units(spec.crashes_max),
            limited_max: units(spec.limited_max),
            backoff: Some(Object(BackoffWire {
                first: Some(SpanWire(first)),
                most: Some(SpanWire(most)),
            })),
            on_dead: Some(match spec.on_dead {
                OnDead::Skip => OnDeadWire::Skip,
                OnDead::Hold => OnDeadWire::Hold,
            }),
            depth_max: Some(Units(spec.depth_max)),
            dead_max: Some(Units(spec.dead_max)),
            dedupe: Some(SpanWire(spec.dedupe)),
            tolls: spec.tolls.iter().map(|toll| Object(QueueTollWire::new(toll, caller))).collect(),
        }
    }
}

impl OrderWire {
    fn order(self) -> Order {
        match self {
            Self::Strict => Order::Strict,
            Self::Parallel(Count(count)) => Order::Parallel(count),
        }
    }
}

impl QueueTollWire {
    fn spec(&self, caller: &Caller) -> Result<QueueToll, Error> {
        let name = |name: &str| LimitName::new(&caller.inner(name));
        Ok(QueueToll {
            limit: name(&self.limit)?,
            like: self.like.as_deref().map(name).transpose()?,
            priority: self.priority.map(|priority| priority.0),
        })
    }

    fn new(toll: &QueueToll, caller: &Caller) -> Self {
        let name = |name: &LimitName| caller.shown(name).to_owned();
        Self {
            limit: name(&toll.limit),
            like: toll.like.as_ref().map(name),
            priority: toll.priority.map(PriorityWire),
        }
    }
}
