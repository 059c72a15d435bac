//! The scheduler decides as the naive reference does, whatever happens.

mod world;

use crate::contract::histories::{Step, step};
use proptest::collection::vec;
use proptest::prelude::*;
use world::World;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn decides_as_the_naive_reference_does(steps in vec(step(), 1..60)) {
        let mut world = World::new();
        for (number, step) in steps.iter().enumerate() {
            let [naive, scheduler] = world.step(step);
            prop_assert_eq!(naive, scheduler, "step {}: {:?}", number, step);
        }
    }

    #[test]
    fn what_was_applied_again_is_what_was_decided(steps in vec(step(), 1..60)) {
        let mut world = World::new();
        for step in steps.iter().chain([&Step::Wait(0)]) {
            let _ = world.take(step);
        }
        let mut recovered = super::Scheduler::recovered(&world.effects);
        recovered.advance(world.now);
        prop_assert_eq!(recovered.take_effects(), vec![], "nothing is decided again");
        for id in 0..world.calls {
            let id = super::CallId(id);
            prop_assert_eq!(recovered.is_waiting(id), world.scheduler.is_waiting(id), "{:?}", id);
            prop_assert_eq!(recovered.is_in_flight(id), world.scheduler.is_in_flight(id));
        }
        prop_assert_eq!(recovered.lasting(world.now), world.scheduler.lasting(world.now));
    }

    #[test]
    fn what_is_applied_again_tells_the_same_events(steps in vec(step(), 1..60)) {
        let mut world = World::new();
        for step in steps.iter().chain([&Step::Wait(0)]) {
            let _ = world.step(step);
        }
        let mut replayed = super::Scheduler::new();
        replayed.watch(super::Watch::Everything);
        world.effects.iter().for_each(|effect| replayed.replay(effect));
        prop_assert_eq!(replayed.take_events(), world.events);
    }

    #[test]
    fn a_snapshot_is_all_that_lasts(steps in vec(step(), 1..60)) {
        let mut world = World::new();
        for step in steps.iter().chain([&Step::Wait(0)]) {
            let _ = world.take(step);
        }
        let mut facts = Vec::new();
        world.scheduler.snapshot(world.now, |fact| facts.push(fact));
        let mut restored = super::Scheduler::recovered(&facts);
        restored.advance(world.now);
        prop_assert_eq!(restored.take_effects(), vec![], "nothing is decided again");
        prop_assert_eq!(restored.lasting(world.now), world.scheduler.lasting(world.now));
        let mut again = Vec::new();
        restored.snapshot(world.now, |fact| again.push(fact));
        prop_assert_eq!(sorted(&again), sorted(&facts));
        for id in (0..world.calls).map(super::CallId) {
            let [before, after] = [&world.scheduler, &restored].map(|it| it.explain(id, world.now));
            let told = |told: super::Explanation| (told.attempts, told.position, told.not_before);
            prop_assert_eq!(before.map(told), after.map(told), "{:?}", id);
        }
    }

    #[test]
    fn nothing_starts_before_it_was_told(
        steps in vec(step(), 1..60),
        waits in vec(0..5_000_u64, 1..6),
    ) {
        let mut world = World::new();
        for step in steps.iter().chain([&Step::Wait(0)]) {
            let _ = world.take(step);
        }
        let told: Vec<_> = (0..world.calls).map(|id| world.not_before(super::CallId(id))).collect();
        for wait in waits {
            let _ = world.take(&Step::Wait(wait));
            for queue in 0..2 {
                for id in world.starts(queue) {
                    let told = told.get(usize::try_from(id.0).unwrap()).copied().flatten();
                    prop_assert!(told.is_none_or(|told| told <= world.now.at), "{:?}", id);
                }
            }
        }
    }
}

proptest! {
    // Each is two histories.
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_was_closed_and_opened_again_decides_as_the_naive_reference_does(
        before in vec(step(), 1..40),
        after in vec(step(), 1..40),
    ) {
        let mut world = World::new();
        for step in before.iter().chain([&Step::Wait(0)]) {
            let _ = world.take(step);
        }
        world.reopen();
        for (number, step) in after.iter().enumerate() {
            let [naive, scheduler] = world.step(step);
            prop_assert_eq!(naive, scheduler, "step {}: {:?}", number, step);
        }
    }
}

/// As text, in one order: what lies in tables has none.
fn sorted(facts: &[super::Effect]) -> Vec<String> {
    let mut written: Vec<_> = facts.iter().map(|fact| format!("{fact:?}")).collect();
    written.sort_unstable();
    written
}
