//! Queues as they travel.

use super::destination::{DestinationWire, Telling};
use super::object::Object;
use super::queue_toll::QueueTollWire;
use super::span::SpanWire;
use super::units::{Count, Units};
use crate::http::caller::Caller;
use crate::http::problem::{Problem, invalid_field, kinds};
use serde::{Deserialize, Serialize};
use tollgate::lanes::{Backoff, OnDead, Order, QueueSpec, QueueState};
use tollgate::push::caps::is_cap;
use tollgate::{Delivery, UNITS_MAX};

/// All of a wait, in hundredths.
const JITTER_MAX: u8 = 100;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<DestinationWire>,
}

/// `"strict"`, or `{"parallel": 200}`.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum OrderWire {
    Strict,
    Parallel(Count),
}

#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct BackoffWire {
    first: Option<SpanWire>,
    most: Option<SpanWire>,
    /// By how many hundredths a wait may be shorter.
    jitter: Option<Count>,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum OnDeadWire {
    Skip,
    Hold,
}

/// A queue, and how much is in it.
#[derive(Debug, Serialize)]
pub(in crate::http) struct QueueStateWire {
    name: String,
    definition: QueueWire,
    paused: bool,
    waiting: u64,
    in_flight: u64,
    dead: u64,
    lanes: u64,
    /// Claims that wait for its calls: if there is none, nothing starts.
    asking: usize,
}

/// Some queues.
#[derive(Debug, Serialize)]
pub(in crate::http) struct QueuePageWire {
    pub(in crate::http) queues: Vec<QueueStateWire>,
    /// Send it as `after` to get the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

/// Whether something is held back.
#[derive(Debug, Serialize)]
pub(in crate::http) struct PausedWire {
    pub(in crate::http) paused: bool,
}

impl QueueWire {
    /// The queue that is meant, by the names of the store.
    pub(in crate::http) fn spec(&self, caller: &Caller) -> Result<QueueSpec, Problem> {
        let default = QueueSpec::default();
        let count = |count: Option<Count>, default| count.map_or(default, |count| count.0);
        let span = |span: Option<SpanWire>, default| span.map_or(default, |span| span.0);
        let Object(backoff) = self.backoff.unwrap_or_default();
        let tolls = self.tolls.iter().enumerate().map(|(nth, Object(toll))| {
            let wrong = |(field, why): (&str, String)| {
                invalid_field(&format!("tolls[{nth}].{field}"), &why)
            };
            toll.toll(caller).map_err(wrong)
        });
        Ok(QueueSpec {
            order: self.order.map_or(default.order, OrderWire::order),
            lease: span(self.lease, default.lease),
            failures_max: count(self.failures_max, default.failures_max),
            crashes_max: count(self.crashes_max, default.crashes_max),
            limited_max: count(self.limited_max, default.limited_max),
            backoff: Backoff {
                first: span(backoff.first, default.backoff.first),
                most: span(backoff.most, default.backoff.most),
                jitter: jitter(backoff.jitter, default.backoff.jitter)?,
            },
            on_dead: match self.on_dead {
                None => default.on_dead,
                Some(OnDeadWire::Skip) => OnDead::Skip,
                Some(OnDeadWire::Hold) => OnDead::Hold,
            },
            depth_max: bound("depth_max", self.depth_max, default.depth_max)?,
            dead_max: bound("dead_max", self.dead_max, default.dead_max)?,
            dedupe: span(self.dedupe, default.dedupe),
            tolls: tolls.collect::<Result<_, _>>()?,
            delivery: self.delivery(caller)?,
            tells_accepted: default.tells_accepted,
        })
    }

    /// How calls are delivered, as a queue keeps it.
    fn delivery(&self, caller: &Caller) -> Result<Option<Box<[u8]>>, Problem> {
        let Some(destination) = &self.destination else { return Ok(None) };
        let delivery = destination.delivery(caller).map_err(|(field, why)| {
            let field = format!("destination{field}");
            Problem::new(kinds::DESTINATION_INVALID, format!("`{field}`: {why}")).field(&field)
        })?;
        Ok(Some(delivery.to_bytes()?))
    }

    /// A queue as a caller sees it, with every setting, and without secrets.
    pub(in crate::http) fn new(spec: &QueueSpec, caller: &Caller) -> Self {
        Self::told(spec, caller, Telling::NoSecrets)
    }

    /// A queue as it is sent to a server, with every setting.
    pub(in crate::http) fn whole(spec: &QueueSpec) -> Self {
        Self::told(spec, &Caller::ANYONE, Telling::All)
    }

    fn told(spec: &QueueSpec, caller: &Caller, telling: Telling) -> Self {
        let units = |count: u32| Some(Count(count));
        let Backoff { first, most, jitter } = spec.backoff;
        let toll = |toll| Object(QueueTollWire::new(toll, caller));
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
                jitter: Some(Count(jitter.into())),
            })),
            on_dead: Some(match spec.on_dead {
                OnDead::Skip => OnDeadWire::Skip,
                OnDead::Hold => OnDeadWire::Hold,
            }),
            depth_max: Some(Units(spec.depth_max)),
            dead_max: Some(Units(spec.dead_max)),
            dedupe: Some(SpanWire(spec.dedupe)),
            // What is owed for being pushed is not the definer's: it comes with the destination.
            tolls: spec.tolls.iter().filter(|toll| !is_cap(&toll.limit)).map(toll).collect(),
            destination: spec.delivery.as_ref().map(|bytes| {
                // What cannot be read was not written here: that there is one is told.
                let delivery = Delivery::from_bytes(bytes).unwrap_or_default();
                DestinationWire::new(&delivery, caller, telling)
            }),
        }
    }
}

/// How many there may be at most: a number that every reader of JSON reads exactly.
fn bound(field: &str, most: Option<Units>, default: u64) -> Result<u64, Problem> {
    match most {
        Some(Units(most)) if most > UNITS_MAX => {
            let why = format!("{most} is over the largest number here, {UNITS_MAX}");
            Err(invalid_field(field, &why))
        }
        most => Ok(most.map_or(default, |Units(most)| most)),
    }
}

/// By how much a wait may be shorter: no more than all of it.
fn jitter(given: Option<Count>, default: u8) -> Result<u8, Problem> {
    let Some(Count(given)) = given else { return Ok(default) };
    u8::try_from(given).ok().filter(|given| *given <= JITTER_MAX).ok_or_else(|| {
        let why = format!(
            "{given} is over {JITTER_MAX}, which is all of a wait: give 0 to {JITTER_MAX} percent"
        );
        Problem::new(kinds::QUEUE_JITTER, format!("`backoff.jitter`: {why}"))
            .field("backoff.jitter")
    })
}

impl OrderWire {
    fn order(self) -> Order {
        match self {
            Self::Strict => Order::Strict,
            Self::Parallel(Count(count)) => Order::Parallel(count),
        }
    }
}

impl QueueStateWire {
    pub(in crate::http) fn new(state: &QueueState, caller: &Caller, asking: usize) -> Self {
        Self {
            asking,
            name: caller.shown(&state.name).to_owned(),
            definition: QueueWire::new(&state.spec, caller),
            paused: state.is_paused,
            waiting: state.waiting,
            in_flight: state.in_flight,
            dead: state.dead,
            lanes: state.lanes,
        }
    }
}
