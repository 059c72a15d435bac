//! Which step waits for a limit that nobody had defined, as an event tells it.

use super::body;
use tollgate_core::lanes::Event;
use tollgate_core::lanes::event::What;

/// A step that waits for a limit which nobody had defined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitingStep {
    /// Of which machine.
    pub machine: String,
    /// Of which version of it.
    pub version: u32,
    /// Which step; `None` if its name is too long for an event.
    pub step: Option<String>,
}

impl AwaitingStep {
    /// The step of an event; `None` if it tells of something else, or not of a step. Its run is the event's lane.
    pub fn of(event: &Event) -> Option<Self> {
        let What::Unknown { begins, .. } = &event.what else { return None };
        let (machine, version) = event.queue.strip_prefix("machine/")?.rsplit_once('@')?;
        let (machine, version) = (machine.to_owned(), version.parse().ok()?);
        Some(Self { machine, version, step: body::step_in(begins) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::body::Woken;
    use tollgate_core::flow::run::Plan;
    use tollgate_core::lanes::CallId;
    use tollgate_core::lanes::event::BEGINS_BYTES_MAX;
    use tollgate_core::{LaneName, LimitName, Now, Priority, QueueName, Span, Tolls};

    fn told(queue: &str, step: &str) -> Option<AwaitingStep> {
        let plan = Plan {
            step: step.into(),
            state: b"[1]"[..].into(),
            tolls: Tolls::new(),
            priority: Priority::default(),
            delay: Span::ZERO,
        };
        let payload = body::write(&plan, &Woken::Plainly).unwrap();
        let begins = payload.body().iter().copied().take(BEGINS_BYTES_MAX).collect();
        let limit = LimitName::new("l").unwrap();
        AwaitingStep::of(&Event {
            at: Now::default(),
            call: CallId(1),
            queue: QueueName::new(queue).unwrap(),
            lane: LaneName::new("run").unwrap(),
            what: What::Unknown { limit, partition: None, begins },
        })
    }

    #[test]
    fn a_step_is_named_with_its_machine_and_version() {
        for name in ["charge", "a \"b\"\n☃", "@"] {
            let step = told("machine/m@n@2", name).unwrap();
            let of = (step.machine.as_str(), step.version, step.step.as_deref());
            assert_eq!(of, ("m@n", 2, Some(name)));
        }
    }

    #[test]
    fn a_name_that_is_cut_off_is_none() {
        assert_eq!(told("machine/m@1", &"x".repeat(BEGINS_BYTES_MAX)).unwrap().step, None);
    }

    #[test]
    fn calls_of_other_queues_are_no_steps() {
        assert_eq!(told("task/mail", "charge"), None);
        assert_eq!(told("machine/m", "charge"), None);
    }
}
