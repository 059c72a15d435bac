//! Runs of any workflow, ending in any order, against a model that looks at everything again and again.

mod model;
mod world;

use model::{Fate, fates, given_by_run};
use proptest::prelude::*;
use world::{Ended, Plan, World, plan};

/// Lets a run go to its end, in an order by chance, and tells how it ended.
fn run_to_end(world: &mut World, choices: &[prop::sample::Index]) -> Ended {
    let mut choices = choices.iter().cycle();
    world.start();
    loop {
        if let Some(end) = world.end.take() {
            return end;
        }
        assert!(!world.running.is_empty(), "nothing runs, and the run has not ended");
        let choice = choices.next().unwrap().index(world.running.len());
        world.finish(choice);
    }
}

fn assert_is_as_the_model_says(plan: &Plan, world: &World, ended: &Ended) {
    let fates = fates(plan);
    let states = world.progress.states();
    let failing: Vec<usize> =
        (0..fates.len()).filter(|task| matches!(fates[*task], Fate::Fails)).collect();
    match ended {
        Ended::Done(output) => {
            assert!(failing.is_empty(), "{failing:?} would have failed");
            assert_eq!(*output, given_by_run(plan, &fates));
        }
        Ended::Failed(task) => assert!(failing.contains(task), "{task} does not fail"),
    }
    for (task, fate) in fates.iter().enumerate() {
        let state = states[plan.place(task)].as_str();
        match (ended, fate, state) {
            (_, Fate::Done(_), "done") | (_, Fate::Skipped, "skipped") => {}
            (Ended::Failed(failed), Fate::Fails, "failed") if *failed == task => {}
            (Ended::Failed(_), _, "cancelled") => {}
            wrong => panic!("task {task}: {wrong:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]

    #[test]
    fn any_run_ends_as_the_model_says_in_whatever_order_tasks_end(
        plan in plan(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let workflow = plan.workflow();
        let mut world = World::new(&plan, &workflow);
        let ended = run_to_end(&mut world, &choices);
        assert_is_as_the_model_says(&plan, &world, &ended);
    }

    #[test]
    fn a_run_that_failed_ends_well_once_it_is_run_again_without_the_fault(
        plan in plan(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        from in any::<prop::sample::Index>(),
    ) {
        let workflow = plan.workflow();
        let mut world = World::new(&plan, &workflow);
        let _ = run_to_end(&mut world, &choices);
        let healed = plan.healed();
        world.heal(&healed);
        world.rerun(from.index(plan.tasks.len()));
        let ended = run_to_end(&mut world, &choices);
        assert_is_as_the_model_says(&healed, &world, &ended);
    }

    #[test]
    fn a_run_that_is_cancelled_starts_nothing_more(
        plan in plan(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let workflow = plan.workflow();
        let mut world = World::new(&plan, &workflow);
        world.start();
        for choice in &choices {
            if !world.running.is_empty() {
                world.finish(choice.index(world.running.len()));
            }
        }
        world.cancel();
        prop_assert!(world.progress.is_over());
        prop_assert!(world.running.is_empty());
    }
}
