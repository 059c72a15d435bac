//! The engine's errors in the caller's own words: they name what is in the store.

use super::Caller;
use tollgate::lanes::{ActError, LimitName, MeterError, QueueError, QueueName, TollError};
use tollgate::{AskError, Error, NameError, Refusal};

/// What is said of a thing that is not the caller's: that there is one, but not which.
const ELSEWHERE: &str = "…";

impl Caller {
    /// The same error, with the names that the caller uses.
    pub(in crate::http) fn outward(&self, error: Error) -> Error {
        if self.namespace().is_none() {
            return error;
        }
        match error {
            Error::Refused(refusal) => Error::Refused(self.refusal(refusal)),
            Error::Invalid(error) => Error::Invalid(self.ask(error)),
            Error::Act(error) => Error::Act(self.act(error)),
            Error::Meter(error) => Error::Meter(self.meter(error)),
            Error::Queue(error) => Error::Queue(self.spec(error)),
            // A store names no limit and no queue.
            other => other,
        }
    }

    fn text(&self, name: &str) -> String {
        // Nothing is called like that, here or elsewhere.
        let elsewhere = if name.is_empty() { "" } else { ELSEWHERE };
        self.outer(name).unwrap_or(elsewhere).to_owned()
    }

    fn limit(&self, name: LimitName) -> LimitName {
        LimitName::new(&self.text(&name)).unwrap_or(name)
    }

    fn queue(&self, name: QueueName) -> QueueName {
        QueueName::new(&self.text(&name)).unwrap_or(name)
    }

    fn refusal(&self, refusal: Refusal) -> Refusal {
        Refusal { limit: self.text(&refusal.limit).into(), ..refusal }
    }

    fn ask(&self, error: AskError) -> AskError {
        use AskError::{
            DelayWithSlots, DestinationMissing, Limit, Name, NotPaid, QueueNotPushed, QueuePushed,
            Toll, UnknownLimit, WeightOverCapacity, WeightZero,
        };
        match error {
            UnknownLimit { name } => UnknownLimit { name: self.text(&name) },
            WeightOverCapacity { name, weight, capacity } => {
                WeightOverCapacity { name: self.text(&name), weight, capacity }
            }
            WeightZero { name } => WeightZero { name: self.text(&name) },
            DelayWithSlots { name } => DelayWithSlots { name: self.text(&name) },
            Limit { name, error } => Limit { name: self.text(&name), error },
            NotPaid { name } => NotPaid { name: self.text(&name) },
            QueuePushed { queue } => QueuePushed { queue: self.text(&queue) },
            QueueNotPushed { at, queue } => QueueNotPushed { at, queue: self.text(&queue) },
            DestinationMissing { at, queue } => DestinationMissing { at, queue: self.text(&queue) },
            Name(error) => Name(self.length(error)),
            Toll(error) => Toll(self.toll(error)),
            other => other,
        }
    }

    fn act(&self, error: ActError) -> ActError {
        use ActError::{Name, NotPaid, QueueFull, Toll, UnknownQueue};
        match error {
            NotPaid { at, limit } => NotPaid { at, limit: self.limit(limit) },
            UnknownQueue { at, queue } => UnknownQueue { at, queue: self.queue(queue) },
            QueueFull { queue, depth } => QueueFull { queue: self.queue(queue), depth },
            Toll { at, error } => Toll { at, error: self.toll(error) },
            Name(error) => Name(self.length(error)),
            other => other,
        }
    }

    fn toll(&self, mut error: TollError) -> TollError {
        use TollError::{
            BodyNotJson, NoPartition, NoWeight, Spread, UnknownLimit, WeightOverCapacity,
            WeightZero,
        };
        if let UnknownLimit { limit }
        | WeightZero { limit }
        | WeightOverCapacity { limit, .. }
        | BodyNotJson { limit, .. }
        | NoPartition { limit, .. }
        | Spread { limit }
        | NoWeight { limit, .. } = &mut error
        {
            *limit = self.limit(limit.clone());
        }
        error
    }

    fn spec(&self, mut error: QueueError) -> QueueError {
        if let QueueError::TollWeight { limit } | QueueError::TollLike { limit } = &mut error {
            *limit = self.limit(limit.clone());
        }
        error
    }

    fn meter(&self, error: MeterError) -> MeterError {
        use MeterError::{SpreadStays, TooManyOverrides, UnknownLimit};
        match error {
            SpreadStays { limit } => SpreadStays { limit: self.limit(limit) },
            UnknownLimit { limit } => UnknownLimit { limit: self.limit(limit) },
            TooManyOverrides { limit } => TooManyOverrides { limit: self.limit(limit) },
            other => other,
        }
    }

    /// The namespace takes its room in a name, and the caller did not write it.
    fn length(&self, error: NameError) -> NameError {
        let prefix = self.bound().map_or(0, |namespace| namespace.prefix().len());
        match error {
            NameError::TooLong { kind, bytes, most } if HAVE_PREFIX.contains(&kind) => {
                NameError::TooLong { kind, bytes: bytes - prefix, most: most - prefix }
            }
            other => other,
        }
    }
}

/// The kinds of names that lie in a namespace, as errors call them.
const HAVE_PREFIX: [&str; 3] = ["limit name", "queue name", "schedule name"];

#[cfg(test)]
mod tests {
    use super::super::tests::bound_to;
    use super::*;
    use tollgate::{Limit, Tollgate, global};

    /// What the caller is told of a name that is too long.
    fn told(name: &str) -> String {
        let caller = bound_to("acme");
        let error = QueueName::new(&caller.inner(name)).unwrap_err();
        caller.outward(ActError::from(error).into()).to_string()
    }

    #[tokio::test]
    async fn a_refusal_names_what_the_caller_named() {
        let (gate, caller) = (Tollgate::memory(), bound_to("acme"));
        let name = caller.inner("stripe");
        gate.limit(&name, Limit::per_minute(1)).await.unwrap();
        let _pass = gate.consume(global(&*name)).await.unwrap();
        let error = gate.consume(global(&*name)).await.unwrap_err();
        let told = caller.outward(error).to_string();
        assert!(told.starts_with("limit stripe refuses"), "{told}");
    }

    #[test]
    fn what_a_queue_asks_for_is_named_as_the_caller_does() {
        let caller = bound_to("acme");
        let limit = || LimitName::new(&caller.inner("stripe")).unwrap();
        let weightless = Error::Queue(QueueError::TollWeight { limit: limit() });
        let unsaid = TollError::WeightZero { limit: limit() };
        for error in [weightless, ActError::Toll { at: 0, error: unsaid }.into()] {
            let told = caller.outward(error).to_string();
            assert!(told.contains("stripe") && !told.contains("acme"), "{told}");
        }
    }

    #[test]
    fn what_is_elsewhere_is_not_named() {
        let error = AskError::UnknownLimit { name: "globex/secret".to_owned() };
        let told = bound_to("acme").outward(error.into()).to_string();
        assert!(!told.contains("globex") && !told.contains("secret"), "{told}");
    }

    #[test]
    fn a_name_has_room_beside_its_namespace() {
        let told = told(&"x".repeat(508));
        assert!(told.contains("up to 507 bytes, and this one has 508"), "{told}");
    }
}
