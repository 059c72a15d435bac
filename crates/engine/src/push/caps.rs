//! How many pushes may be in flight: in all, and to one destination. Both are limits like others, so that
//! who waits for them waits in turn, is told so, and an operator sees and changes them.

use super::callback::QUEUE_SUFFIX;
use super::delivery;
use super::destination::Destination;
use crate::envelope::Delivery;
use crate::error::{AskError, Error};
use crate::lanes::Engine;
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{QueueSpec, QueueToll, TollPartition, TollWeight};
use tollgate_core::{Limit, LimitName, Partition, QueueName, Toll};

/// The limit of all pushes in flight.
pub const PUSHES: &str = "tollgate:pushes";
/// The limit of pushes in flight to one destination: its partitions are origins.
pub const DESTINATIONS: &str = "tollgate:destinations";
/// How many pushes are in flight at most unless an operator says otherwise: each holds a connection.
pub const PUSHES_MAX: u64 = 2_000;
/// How many of them to one destination: five that hang leave room for others.
pub const DESTINATION_MAX: u64 = 400;

/// Who made what Tollgate makes by itself, in the audit log.
pub const WHO: &str = "tollgate";

/// The limits as they are unless an operator says otherwise.
pub fn limits() -> [(&'static str, Limit); 2] {
    [(PUSHES, Limit::concurrency(PUSHES_MAX)), (DESTINATIONS, Limit::concurrency(DESTINATION_MAX))]
}

/// Whether a limit is one of these.
pub fn is_cap(limit: &str) -> bool {
    limit == PUSHES || limit == DESTINATIONS
}

/// Makes a queue ask for what its calls owe here, if it delivers them, and for nothing else here.
pub fn apply(spec: &mut QueueSpec) -> Result<(), Error> {
    spec.tolls.retain(|toll| !is_cap(&toll.limit));
    let Some(delivery) = &spec.delivery else { return Ok(()) };
    spec.tolls.push(QueueToll::new(LimitName::new(PUSHES)?));
    if let Some(destination) = &Delivery::from_bytes(delivery)?.destination {
        let partition = TollPartition::Fixed(origin(destination)?);
        // An estimate, so that a call that goes elsewhere, and owes there, does not owe here.
        let weight = TollWeight::Learned { default: 1, max: Some(1) };
        let toll = QueueToll::new(LimitName::new(DESTINATIONS)?);
        spec.tolls.push(QueueToll { partition, weight, ..toll });
    }
    Ok(())
}

impl<S: Lanes + 'static> Engine<S> {
    /// A queue that asks for the caps if it delivers its calls; they are defined then if they never were.
    pub(crate) async fn capped(
        &self,
        queue: &str,
        mut spec: QueueSpec,
    ) -> Result<QueueSpec, Error> {
        if let Some(delivery) = &spec.delivery {
            delivery::check(&Delivery::from_bytes(delivery)?).map_err(AskError::from)?;
            // Its callbacks are to have a queue, too.
            QueueName::new(&format!("{queue}{QUEUE_SUFFIX}"))?;
        }
        apply(&mut spec)?;
        if spec.delivery.is_some() {
            for (name, limit) in limits() {
                if self.limit(name).await?.is_none() {
                    self.define_as(WHO, name, limit).await?;
                }
            }
        }
        Ok(spec)
    }
}

/// What a call owes here for a destination of its own.
pub fn toll(destination: &str) -> Result<Toll, Error> {
    Ok(Toll {
        limit: LimitName::new(DESTINATIONS)?,
        partition: Some(origin(destination)?),
        weight: 1,
        hears_feedback: false,
    })
}

fn origin(destination: &str) -> Result<Partition, Error> {
    let destination = Destination::parse(destination).map_err(AskError::from)?;
    Ok(Partition::new(&destination.origin())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_delivers_asks_for_both_caps_once_and_another_for_none() {
        let named = |spec: &QueueSpec| {
            let name = |toll: &QueueToll| match &toll.partition {
                TollPartition::Fixed(partition) => format!("{} {partition}", toll.limit),
                _ => toll.limit.to_string(),
            };
            spec.tolls.iter().map(name).collect::<Vec<_>>()
        };
        let to = |destination: Option<&str>| {
            let destination = destination.map(str::to_owned);
            let delivery = Delivery { destination, ..Delivery::default() };
            Some(delivery.to_bytes().unwrap())
        };
        let own = QueueToll::new(LimitName::new("stripe").unwrap());
        let mut spec = QueueSpec {
            tolls: vec![own],
            delivery: to(Some("https://A.example/x")),
            ..QueueSpec::default()
        };
        let both = ["stripe", PUSHES, "tollgate:destinations https://a.example:443"];
        for _ in 0..2 {
            apply(&mut spec).unwrap();
            assert_eq!(named(&spec), both);
        }
        spec.delivery = to(None);
        apply(&mut spec).unwrap();
        assert_eq!(named(&spec), ["stripe", PUSHES]);
        spec.delivery = None;
        apply(&mut spec).unwrap();
        assert_eq!(named(&spec), ["stripe"]);
    }
}
