//! Limit time over a restart.

use super::{Machine, wait};
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::{Ask, AskError, Configure, Meters};
use tollgate_core::{Definition, Limit, LimitName, Now, Priority, Span, Toll};

impl Machine {
    pub(super) fn consume(&self) -> Result<(), AskError> {
        let limit = LimitName::new("l").unwrap();
        let tolls = vec![Toll { limit, partition: None, weight: 1, hears_feedback: false }];
        let (priority, life) = (Priority::default(), Span::from_secs(30));
        let ask = Ask { tolls: tolls.into(), priority, delay_max: None, life };
        wait(self.store().consume(vec![ask])).unwrap().remove(0).map(|_| ())
    }
}

#[test]
fn limit_time_goes_on_when_the_clock_was_set_back_while_nothing_ran() {
    let mut machine = Machine::new(1);
    let definition = Definition::new(Limit::per_minute(1)).unwrap();
    let change = Configure::limit(LimitName::new("l").unwrap(), Some(definition));
    wait(machine.store().configure(change)).unwrap().unwrap();
    assert!(machine.consume().is_ok());
    let before = wait(machine.store().now()).unwrap();
    machine.store = None;
    let hour = Span::from_hours(1);
    machine.set_now(Now { at: before.at.minus(hour), wall: before.wall.minus(hour) });
    machine.start();
    let after = wait(machine.store().now()).unwrap();
    assert!(after.at >= before.at, "limit time went back");
    assert_eq!(after.wall, before.wall.minus(hour), "the wall clock is as it was set");
    assert!(machine.consume().is_err(), "what was spent is spent");
    let minute = Span::from_minutes(1);
    let now = Now { at: before.at.minus(hour).plus(minute), wall: after.wall.plus(minute) };
    machine.set_now(now);
    assert!(machine.consume().is_ok(), "and comes back in its time");
}
