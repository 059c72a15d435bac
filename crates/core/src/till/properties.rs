//! A store's clock that is set back, against elapsed time: nothing passes twice, and nobody waits until the
//! clock has caught up.

use super::{KeptMeter, Till, Timeline};
use crate::contract::{Ask, AskError, MeterName};
use crate::limit::{Definition, Limit};
use crate::name::LimitName;
use crate::time::{Now, Span, Timestamp};
use crate::toll::Toll;
use crate::turn::Priority;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Ask(u64),
    Wait(Span),
    SetBack(Span),
}

/// One meter in a store whose clock is set back now and then.
#[derive(Clone)]
struct World {
    name: MeterName,
    rules: Timeline,
    kept: Option<KeptMeter>,
    elapsed: Span,
    clock: Timestamp,
    /// What passed, and after how long.
    passed: Vec<(Span, u64)>,
}

impl World {
    fn new(limit: Limit) -> Self {
        let clock = Timestamp::default().plus(Span::from_days(20_000));
        let name = LimitName::new("l").unwrap();
        let mut till = Till::new(Now::both(clock));
        till.define(&name, Some(Definition::new(limit).unwrap())).unwrap();
        let rules = till.limit(&name).unwrap().clone();
        let (kept, passed) = (None, Vec::new());
        Self { name: (name, None), rules, kept, elapsed: Span::ZERO, clock, passed }
    }

    /// What is read is decided, and what changed is written, as a store does.
    fn ask(&mut self, weight: u64) -> bool {
        let mut till = Till::new(Now::both(self.clock)).of_one_clock();
        till.put_limit(self.name.0.clone(), self.rules.clone());
        if let Some(kept) = &self.kept {
            till.put_meter(self.name.clone(), kept.clone());
        }
        let (limit, partition) = self.name.clone();
        let toll = Toll { limit, partition, weight, hears_feedback: false };
        let (priority, life) = (Priority::default(), Span::from_secs(30));
        let answer = till.consume(&Ask { tolls: [toll].into(), priority, delay_max: None, life });
        if let Some((_, kept)) = till.changed_meters().find(|(name, _)| **name == self.name) {
            self.kept = Some(kept.clone());
        }
        match answer {
            Ok(_) => self.passed.push((self.elapsed, weight)),
            Err(AskError::Refused(_)) => return false,
            Err(other) => panic!("{other}"),
        }
        true
    }

    fn wait(&mut self, span: Span) {
        (self.elapsed, self.clock) = (self.elapsed.plus(span), self.clock.plus(span));
    }

    /// The most that passed within any interval that is shorter than this.
    fn most_within(&self, length: Span) -> u64 {
        let from = |first: usize| {
            let (since, _) = self.passed[first];
            let within = self.passed[first..].iter();
            let within = within.take_while(|(at, _)| *at < since.plus(length));
            within.map(|(_, weight)| weight).sum()
        };
        (0..self.passed.len()).map(from).max().unwrap_or(0)
    }

    /// Whether more passed in some interval than a full bucket and what flows in.
    fn overflows(&self, (limit, per, burst): (u64, Span, u64)) -> bool {
        (0..self.passed.len()).any(|first| {
            let mut sum = 0;
            self.passed[first..].iter().any(|(at, weight)| {
                sum += weight;
                let length = at.as_nanos() - self.passed[first].0.as_nanos();
                let more = u128::from(sum.saturating_sub(burst)) * u128::from(per.as_nanos());
                more > u128::from(limit) * u128::from(length)
            })
        })
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let millis = |most: u64| (0..most).prop_map(Span::from_millis);
    let step = prop_oneof![
        6 => (1..4_u64).prop_map(Step::Ask),
        3 => millis(6_000).prop_map(Step::Wait),
        1 => prop_oneof![millis(1_500), millis(100_000_000)].prop_map(Step::SetBack),
    ];
    vec(step, 1..80)
}

/// Makes the steps; after each ask that is refused, the same passes once `period` has gone by, and the second
/// for which a clock that is a little behind is waited for.
fn run(limit: Limit, period: Span, steps: &[Step]) -> Result<World, TestCaseError> {
    let mut world = World::new(limit);
    for step in steps {
        match *step {
            Step::Wait(span) => world.wait(span),
            Step::SetBack(span) => world.clock = world.clock.minus(span),
            Step::Ask(weight) => {
                if !world.ask(weight) {
                    let mut waits = world.clone();
                    waits.wait(period.plus(super::STEP_MIN));
                    prop_assert!(waits.ask(weight), "it waits for the clock to catch up");
                }
            }
        }
    }
    Ok(world)
}

proptest! {
    #[test]
    fn a_bucket_whose_clock_is_set_back_lets_no_more_pass_and_nobody_wait_for_the_clock(
        (limit, seconds, burst) in (1..9_u64, 1..9_u64, 3..9_u64),
        steps in steps(),
    ) {
        let per = Span::from_secs(seconds);
        let fill = Span::from_nanos((per.as_nanos() * burst).div_ceil(limit));
        let world = run(Limit::per(limit, per).burst(burst), fill, &steps)?;
        prop_assert!(!world.overflows((limit, per, burst)), "{:?}", world.passed);
    }

    #[test]
    fn a_sliding_window_whose_clock_is_set_back_lets_no_more_pass_and_nobody_wait_for_the_clock(
        (limit, seconds) in (3..9_u64, 1..9_u64),
        steps in steps(),
    ) {
        let per = Span::from_secs(seconds);
        let world = run(Limit::sliding_window(limit, per), per, &steps)?;
        prop_assert!(world.most_within(per) <= limit, "{:?}", world.passed);
    }

    #[test]
    fn a_fixed_window_whose_clock_is_set_back_lets_no_more_pass_and_nobody_wait_for_the_clock(
        (limit, seconds) in (3..9_u64, 1..9_u64),
        steps in steps(),
    ) {
        let per = Span::from_secs(seconds);
        let world = run(Limit::fixed_window(limit, per), per, &steps)?;
        prop_assert!(world.most_within(per) <= 2 * limit, "{:?}", world.passed);
    }
}

#[test]
fn a_change_of_the_limit_from_before_the_clock_was_set_back_gives_nothing() {
    let mut world = World::new(Limit::per_hour(10));
    assert!(world.ask(10));
    world.wait(Span::from_secs(10));
    let mut till = Till::new(Now::both(world.clock));
    till.put_limit(world.name.0.clone(), world.rules.clone());
    till.define(&world.name.0, Some(Definition::new(Limit::per_minute(10)).unwrap())).unwrap();
    world.rules = till.limit(&world.name.0).unwrap().clone();
    world.clock = world.clock.minus(Span::from_hours(1));
    assert!(!world.ask(1), "as if the hour had passed");
    world.wait(Span::from_secs(6));
    assert!(world.ask(1));
}

#[test]
fn a_meter_that_was_lost_before_the_clock_was_set_back_is_spent_for_a_period() {
    let mut world = World::new(Limit::per(1, Span::from_secs(10)));
    let lost = Now::both(world.clock.plus(Span::from_hours(1)));
    let ask = |world: &World, kept: Option<&KeptMeter>| {
        let mut till = Till::new(Now::both(world.clock)).of_one_clock();
        till.lost_at(lost);
        till.put_limit(world.name.0.clone(), world.rules.clone());
        if let Some(kept) = kept {
            till.put_meter(world.name.clone(), kept.clone());
        }
        let (limit, partition) = world.name.clone();
        let toll = Toll { limit, partition, weight: 1, hears_feedback: false };
        let (priority, life) = (Priority::default(), Span::from_secs(30));
        let answer = till.consume(&Ask { tolls: [toll].into(), priority, delay_max: None, life });
        let kept = till.changed_meters().find(|(name, _)| **name == world.name);
        (answer.is_ok(), kept.map(|(_, kept)| kept.clone()))
    };
    let (is_granted, kept) = ask(&world, None);
    assert!(!is_granted && kept.is_some(), "it is kept as it is made");
    world.wait(Span::from_secs(10));
    assert!(ask(&world, kept.as_ref()).0);
}
