//! A call that needs two meters starts soon, however many strangers want one of them.

use super::random::Random;
use super::run::Checked;
use super::seeds;
use super::stage::Stage;
use tollgate_core::lanes::Order;
use tollgate_core::{Limit, Span};

/// How many worlds run if nothing else is asked for.
const SEEDS: u64 = 100;
/// Far more claims than any of these worlds needs.
const ROUNDS_MAX: usize = 5_000;
/// Enough strangers that they never run out before the call must have started.
const CALLS: usize = 260;

#[test]
fn a_call_with_two_tolls_does_not_starve_among_strangers() {
    for seed in seeds(SEEDS) {
        if let Err(what) = starts_soon(seed) {
            panic!(
                "world {seed}: {what}\nagain: TOLLGATE_SIMULATION_SEEDS={seed}..{} \
                 cargo test -p tollgate-tests does_not_starve",
                seed + 1
            );
        }
    }
}

fn starts_soon(seed: u64) -> Checked {
    let random = &mut Random::new(seed);
    let mut stage = Stage::new(Order::Parallel(1_000));
    let mut lanes = 0;
    for limit in ["one", "two"] {
        let most = random.between(2, 6);
        let per = Span::from_nanos(random.between(300_000_001, 1_700_000_003));
        let made = match random.index(3) {
            0 => Limit::sliding_window(most, per),
            _ => Limit::per(random.between(1, 6), per).burst(most),
        };
        stage.define(limit, made);
        for stranger in 0..random.between(1, 4) {
            let weight = random.between(1, 2);
            for _ in 0..CALLS {
                stage.enqueue(&format!("{limit} {stranger}"), &[(limit, weight)]);
            }
            lanes += 1;
        }
    }
    let most = random.between(1, 4);
    // The meters are used up before the call comes.
    for _ in 0..random.between(4, 20) {
        stage.go_on(most);
    }
    let id = stage.enqueue("both", &[("one", random.between(1, 2)), ("two", 1)]);
    // It waits behind each lane at each meter, twice at most, and while its seniority begins.
    let (mut count, bound) = (0, 25 * lanes + 25);
    for _ in 0..ROUNDS_MAX {
        let started = stage.go_on(most);
        if started.iter().any(|started| started.lease.call == id) {
            return Ok(());
        }
        count += started.len();
        if count >= bound {
            break;
        }
    }
    Err(format!("{count} strangers of {lanes} lanes started, and the call with two tolls did not"))
}
