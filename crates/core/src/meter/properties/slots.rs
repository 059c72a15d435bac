//! Slots: held until they are let go or expire, and never counted otherwise.

use super::acts::{Pick, pick};
use super::world::now;
use crate::limit::{Definition, Limit};
use crate::meter::{Holding, Meter, Payment};
use crate::rule::Opening;
use crate::rule::slots::HoldId;
use crate::time::{Now, Span, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Debug, Clone)]
enum Act {
    Hold { weight: Pick, life: Option<u64> },
    Release(Index),
    Settle(Index),
    Renew(Index, u64),
    Wait(u64),
    Change(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (pick(), prop::option::weighted(0.8, 0..=30_u64))
            .prop_map(|(weight, life)| Act::Hold { weight, life }),
        1 => any::<Index>().prop_map(Act::Release),
        1 => any::<Index>().prop_map(Act::Settle),
        1 => (any::<Index>(), 0..=30_u64).prop_map(|(hold, life)| Act::Renew(hold, life)),
        2 => (0..=10_u64).prop_map(Act::Wait),
        1 => (1..=10_u64).prop_map(Act::Change),
    ]
}

/// A concurrency beside a rate that is never in the way.
fn concurrency(limit: u64) -> Definition {
    Definition::new(Limit::per(1_000_000, Span::from_nanos(1)).and(Limit::concurrency(limit)))
        .unwrap()
}

struct World {
    definition: Definition,
    meter: Meter,
    now: Now,
    /// What was paid and holds on until the instant, if it was not let go.
    holds: Vec<(Payment, Timestamp)>,
}

impl World {
    fn held(&self, at: Timestamp) -> u64 {
        let live = self.holds.iter().filter(|(_, expires)| *expires > at);
        live.map(|(payment, _)| payment.weight).sum()
    }

    /// Now, at the first expiry that leaves room, or never by itself.
    fn opening(&self, weight: u64) -> Option<Opening> {
        let fits = |at: Timestamp| self.held(at) + weight <= self.definition.capacity();
        let mut ends: Vec<_> = self.holds.iter().map(|(_, expires)| *expires).collect();
        ends.sort_unstable();
        let first = ends.into_iter().find(|end| *end < Timestamp::MAX && fits(*end));
        (!fits(self.now.at)).then(|| first.map_or(Opening::OnRelease, Opening::At))
    }

    fn hold(&mut self, weight: u64, life: Option<u64>, name: usize) {
        let life = life.map(Span::from_nanos);
        let expires = life.map_or(Timestamp::MAX, |life| self.now.at.plus(life));
        let holding = Some(Holding { id: HoldId(name as u64), expires });
        let times = (self.now, self.now.at);
        self.holds.push((self.meter.pay(&self.definition, weight, times, holding), expires));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn as_many_are_in_flight_as_hold_on(limit in 1..=10_u64, acts in vec(act(), 1..60)) {
        let (definition, now) = (concurrency(limit), now(0));
        let meter = Meter::new(&definition, now.at);
        let mut world = World { definition, meter, now, holds: vec![] };
        for (name, act) in acts.into_iter().enumerate() {
            let now = world.now;
            let place = |index: Index| index.index(world.holds.len().max(1));
            match act {
                Act::Hold { weight, life } => {
                    let weight = weight.of(world.definition.capacity());
                    let blocker = world.meter.blocker(&world.definition, weight, now);
                    let opening = world.opening(weight);
                    prop_assert_eq!(blocker.map(|blocker| blocker.opening), opening);
                    if opening.is_none() {
                        world.hold(weight, life, name);
                    }
                }
                Act::Wait(nanos) => world.now = now.moved_to(now.at.plus(Span::from_nanos(nanos))),
                Act::Change(limit) => {
                    let new = concurrency(limit);
                    world.meter.carry(&world.definition, &new, now);
                    world.definition = new;
                }
                Act::Release(_) | Act::Settle(_) | Act::Renew(..) if world.holds.is_empty() => {}
                Act::Release(index) => {
                    let (payment, expires) = world.holds.remove(place(index));
                    let was_held = world.meter.release(payment.hold.unwrap());
                    prop_assert!(was_held || expires <= now.at);
                }
                Act::Settle(index) => {
                    let (payment, _) = world.holds.remove(place(index));
                    world.meter.settle(&world.definition, &payment, payment.weight, now);
                }
                Act::Renew(index, life) => {
                    let place = place(index);
                    let (payment, expires) = &mut world.holds[place];
                    let until = now.at.plus(Span::from_nanos(life));
                    let is_held = world.meter.renew(payment.hold.unwrap(), until, now.at);
                    prop_assert_eq!(is_held, *expires > now.at);
                    if is_held {
                        *expires = until;
                    }
                }
            }
            let in_flight = world.meter.in_flight(&world.definition, world.now);
            prop_assert_eq!(in_flight, world.held(world.now.at));
        }
    }
}
