//! Whatever crashes and fails: what was answered is there, and what was not is whole or absent.

use super::world::{World, act};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

fn seeded() -> ProptestConfig {
    Config { cases: 3_000, rng_seed: RngSeed::Fixed(11), ..Config::default() }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn what_was_answered_survives_every_crash(
        seed in any::<u64>(),
        acts in prop::collection::vec(act(), 1..60),
    ) {
        let mut world = World::new(seed);
        acts.iter().for_each(|act| world.act(act));
    }
}
