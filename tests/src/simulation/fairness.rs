//! Lanes that always wait at one meter are served alike.

use super::random::Random;
use super::run::Checked;
use super::seeds;
use super::stage::Stage;
use std::collections::BTreeMap;
use tollgate_core::lanes::{CallId, Order};
use tollgate_core::{Limit, Span};

/// How many worlds run if nothing else is asked for.
const SEEDS: u64 = 300;
const CALLS: usize = 40;
const CLAIM_MAX: u64 = 8;
/// Far more claims than any of these worlds needs.
const ROUNDS_MAX: u64 = 5_000;

/// A lane with calls that wait, and what it was served.
#[derive(Debug, Default)]
struct Lane {
    name: String,
    /// Its largest call.
    largest: u64,
    waiting: usize,
    served: u64,
    /// It comes after so many rounds.
    begins: u64,
}

/// How far two lanes were apart while both waited: the least and the most.
type Apart = BTreeMap<(usize, usize), (i128, i128)>;

#[test]
fn lanes_that_always_wait_are_served_alike() {
    for seed in seeds(SEEDS) {
        if let Err(what) = served_alike(seed) {
            panic!(
                "world {seed}: {what}\nagain: TOLLGATE_SIMULATION_SEEDS={seed}..{} \
                 cargo test -p tollgate-tests lanes_that_always_wait",
                seed + 1
            );
        }
    }
}

fn served_alike(seed: u64) -> Checked {
    let random = &mut Random::new(seed);
    let is_strict = random.one_in(3);
    let order = if is_strict { Order::Strict } else { Order::Parallel(1_000) };
    let limit = match random.index(3) {
        0 => Limit::per_second(random.between(1, 9)).burst(random.between(4, 20)),
        1 => Limit::sliding_window(random.between(4, 12), Span::from_secs(1)),
        _ => Limit::fixed_window(random.between(4, 12), Span::from_secs(1)),
    };
    let mut stage = Stage::new(order);
    stage.define("shared", limit);
    let mut lanes: Vec<Lane> = (0..random.between(2, 6))
        .map(|at| Lane {
            name: format!("lane {at}"),
            largest: random.between(1, 4),
            begins: if random.one_in(2) { 0 } else { random.between(0, 30) },
            ..Lane::default()
        })
        .collect();
    let (mut weights, mut apart) = (BTreeMap::new(), Apart::new());
    for round in 0..ROUNDS_MAX {
        for lane in lanes.iter_mut().filter(|lane| lane.begins == round) {
            begin(&mut stage, lane, random, &mut weights);
        }
        // A strict lane has one call in flight: what else a claim takes is not its turn.
        let most = if is_strict { 1 } else { random.between(1, CLAIM_MAX) };
        for started in stage.go_on(most) {
            note(&mut lanes, started.lane.as_str(), weights[&started.lease.call]);
            judge(&lanes, &mut apart)?;
        }
        if lanes.iter().all(|lane| lane.waiting == 0 && lane.begins <= round) {
            return Ok(());
        }
    }
    Err(format!("{ROUNDS_MAX} claims did not serve all lanes"))
}

fn begin(
    stage: &mut Stage,
    lane: &mut Lane,
    random: &mut Random,
    weights: &mut BTreeMap<CallId, u64>,
) {
    for _ in 0..CALLS {
        let weight = random.between(1, lane.largest);
        let id = stage.enqueue(&lane.name, &[("shared", weight)]);
        weights.insert(id, weight);
    }
    lane.waiting = CALLS;
}

fn note(lanes: &mut [Lane], name: &str, weight: u64) {
    let lane = lanes.iter_mut().find(|lane| lane.name == name).unwrap();
    lane.served += weight;
    lane.waiting -= 1;
}

/// Two lanes are never further apart than at another time by more than a largest call of each.
fn judge(lanes: &[Lane], apart: &mut Apart) -> Checked {
    for (one, first) in lanes.iter().enumerate() {
        for (other, second) in lanes.iter().enumerate().skip(one + 1) {
            if first.waiting == 0 || second.waiting == 0 {
                apart.remove(&(one, other));
                continue;
            }
            let gap = i128::from(first.served) - i128::from(second.served);
            let (least, most) = apart.entry((one, other)).or_insert((gap, gap));
            (*least, *most) = ((*least).min(gap), (*most).max(gap));
            let bound = i128::from(first.largest + second.largest);
            if *most - *least > bound {
                let (one, other) = (&first.name, &second.name);
                return Err(format!("{one} and {other} are apart by more than {bound}"));
            }
        }
    }
    Ok(())
}
