//! Consuming as it travels: tolls in, a grant out.

use super::limit::LimitWire;
use super::object::Object;
use super::priority::PriorityWire;
use super::span::SpanWire;
use super::units::Units;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tollgate::{Ask, Limit, Pass, Toll, global, toll};

/// The tolls of one call, and what to do if they cannot be paid now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ConsumeWire {
    tolls: Vec<Object<TollWire>>,
    #[serde(default)]
    pub(in crate::http) on_exceeded: OnExceeded,
    pub(in crate::http) max_wait: Option<SpanWire>,
    #[serde(default)]
    priority: PriorityWire,
    /// How long the receipt that is wanted lives.
    pub(in crate::http) receipt: Option<SpanWire>,
}

/// What the call owes at one meter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct TollWire {
    limit: String,
    partition: Option<String>,
    weight: Option<Units>,
    define: Option<LimitWire>,
}

/// What to do if a limit is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum OnExceeded {
    /// Refuse.
    #[default]
    Fail,
    /// Pay now for a later start.
    Delay,
    /// Answer when it is the call's turn.
    Wait,
}

/// A call that may start.
#[derive(Debug, Serialize)]
pub(in crate::http) struct GrantWire {
    granted: bool,
    delay_ms: u64,
    limit: u64,
    remaining: i64,
    reset_after_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) receipt: Option<String>,
}

impl ConsumeWire {
    /// Gives each limit the name that it has in the store.
    pub(in crate::http) fn rename(&mut self, inner: impl Fn(&str) -> Cow<'_, str>) {
        for Object(toll) in &mut self.tolls {
            if let Cow::Owned(name) = inner(&toll.limit) {
                toll.limit = name;
            }
        }
    }

    /// The meters that the call pays at, limit and partition, in the order in which the tolls name
    /// them first.
    pub(in crate::http) fn meters(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let meters = self.tolls.iter().map(|Object(toll)| toll.meter());
        meters.enumerate().filter_map(|(index, meter)| {
            let mut before = self.tolls[..index].iter().map(|Object(toll)| toll.meter());
            before.all(|other| other != meter).then_some(meter)
        })
    }

    /// The limits that are defined along with the call.
    pub(in crate::http) fn definitions(&self) -> impl Iterator<Item = (&str, &Limit)> {
        let tolls = self.tolls.iter().map(|Object(toll)| toll);
        tolls.filter_map(|toll| Some((&*toll.limit, &toll.define.as_ref()?.0)))
    }

    /// What to ask the gate. Tolls are estimates if a receipt is wanted: it may settle them.
    pub(in crate::http) fn ask(&self) -> Ask<'_> {
        let has_receipt = self.receipt.is_some();
        let tolls = self.tolls.iter().map(|Object(toll)| match has_receipt {
            true => toll.bare().estimate(toll.weight()),
            false => toll.bare().weight(toll.weight()),
        });
        tolls.collect::<Ask<'_>>().priority(self.priority.0)
    }
}

impl TollWire {
    fn meter(&self) -> (&str, Option<&str>) {
        (&self.limit, self.partition.as_deref())
    }

    fn bare(&self) -> Toll<'_> {
        let toll = match &self.partition {
            Some(partition) => toll(&self.limit, partition),
            None => global(&self.limit),
        };
        match &self.define {
            Some(LimitWire(limit)) => toll.limited_to(limit),
            None => toll,
        }
    }

    fn weight(&self) -> u64 {
        self.weight.map_or(1, |Units(weight)| weight)
    }
}

impl From<&Pass> for GrantWire {
    fn from(pass: &Pass) -> Self {
        Self {
            granted: true,
            delay_ms: pass.delay().as_millis_ceil(),
            limit: pass.limit(),
            remaining: pass.remaining(),
            reset_after_ms: pass.reset_after().as_millis_ceil(),
            receipt: None,
        }
    }
}
