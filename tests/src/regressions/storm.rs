//! Storms from a seed: whatever happens at once, nobody is overtaken, and afterwards nobody waits and
//! nothing is held.

use crate::world::{Waiter, World};
use std::collections::HashSet;
use tollgate::{Ask, Limit, Pass, Priority, Receipt, Span, Toll, Tollgate, global, toll};

const NAMES: [&str; 5] = ["bucket", "window", "sliding", "slots", "both"];
const SEEDS: u64 = 40;
const STEPS: u64 = 300;

/// The limits, in four kinds of weather.
fn limits(kind: u64) -> [Limit; 5] {
    let second = Span::from_secs(1);
    let more = [0, 5, 2, 90][usize::try_from(kind % 4).unwrap()];
    [
        Limit::per_second(10 + more),
        Limit::fixed_window(6 + more, second),
        Limit::sliding_window(5 + more, second),
        Limit::concurrency(4 + more),
        Limit::per_second(5 + more).and(Limit::concurrency(4 + more)),
    ]
}

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<T>(&mut self, from: &mut Vec<T>) -> Option<T> {
        let sides = u64::try_from(from.len()).unwrap();
        (sides > 0).then(|| from.swap_remove(usize::try_from(self.roll(sides)).unwrap()))
    }

    fn name(&mut self) -> &'static str {
        NAMES[usize::try_from(self.roll(5)).unwrap()]
    }

    fn partition(&mut self) -> Option<&'static str> {
        [None, Some("acme")][usize::try_from(self.roll(2)).unwrap()]
    }

    fn toll(&mut self) -> Toll<'static> {
        let name = self.name();
        let toll = self.partition().map_or_else(|| global(name), |partition| toll(name, partition));
        toll.estimate(self.roll(4) + 1)
    }

    fn ask(&mut self) -> Ask<'static> {
        let mut ask = Ask::from(self.toll());
        for _ in 0..self.roll(3) {
            ask = ask.and(self.toll());
        }
        ask.priority(Priority::new(self.roll(3)).unwrap())
    }
}

/// What goes on in the storm.
#[derive(Default)]
struct Storm {
    waiters: Vec<Waiter<'static>>,
    passes: Vec<Pass>,
    receipts: Vec<Receipt>,
}

impl Storm {
    async fn step(&mut self, world: &World, dice: &mut Dice) {
        let gate = &world.gate;
        match dice.roll(12) {
            0..=3 => self.arrive(gate, dice),
            4 => self.passes.extend(gate.consume(dice.ask()).await),
            5 => {
                let max_wait = Span::from_millis(dice.roll(2_000));
                self.passes.extend(gate.consume_delayed(dice.ask(), max_wait).await);
            }
            6 => drop(dice.pick(&mut self.waiters)),
            7 => self.finish(gate, dice).await,
            8 => change(gate, dice).await,
            _ => world.advance(Span::from_millis(dice.roll(400))).await,
        }
        self.listen();
    }

    fn arrive(&mut self, gate: &Tollgate, dice: &mut Dice) {
        let acquire = gate.acquire(dice.ask());
        let acquire = match dice.roll(4) {
            0 => acquire.max_wait(Span::from_millis(dice.roll(3_000))),
            _ => acquire,
        };
        self.waiters.push(Waiter::new(acquire));
    }

    /// Ends a call in one of the ways there are.
    async fn finish(&mut self, gate: &Tollgate, dice: &mut Dice) {
        let Some(mut pass) = dice.pick(&mut self.passes) else { return };
        match dice.roll(4) {
            0 => drop(pass.settle(dice.name(), dice.roll(8)).await),
            1 => pass.cancel().await,
            2 => self.receipts.extend(pass.into_receipt(Span::from_millis(dice.roll(900))).await),
            _ => drop(pass),
        }
        if let Some(receipt) = dice.pick(&mut self.receipts) {
            drop(gate.settle_receipt(&receipt, &[(dice.name(), dice.roll(8))]).await);
        }
    }

    /// Hears who was answered; refusals are fine.
    fn listen(&mut self) {
        let Self { waiters, passes, .. } = self;
        waiters.retain_mut(|waiter| match waiter.answer() {
            None => true,
            Some(answer) => {
                passes.extend(answer);
                false
            }
        });
    }
}

/// An operator at work.
async fn change(gate: &Tollgate, dice: &mut Dice) {
    let (name, partition) = (dice.name(), dice.partition());
    let [.., limit] = limits(dice.roll(4));
    let span = Span::from_millis(dice.roll(1_500));
    let done = match dice.roll(8) {
        0 => gate.remove("storm", name).await,
        1 => gate.close(name, partition, span, "storm").await,
        2 => gate.reopen(name, partition).await,
        3 => gate.reset(name, partition).await,
        4 => gate.override_partition(name, "acme", Some(limit)).await,
        5 => gate.override_partition(name, "acme", None).await,
        _ => weather(gate, dice.roll(4)).await,
    };
    // What was removed is unknown to all but the one who defines it again.
    drop(done);
}

async fn weather(gate: &Tollgate, kind: u64) -> Result<(), tollgate::Error> {
    for (name, limit) in NAMES.into_iter().zip(limits(kind)) {
        gate.limit(name, limit).await?;
    }
    Ok(())
}

#[tokio::test]
async fn after_a_storm_nobody_waits_and_nothing_is_held() {
    for seed in 0..SEEDS {
        let world = World::with(Tollgate::builder()).await;
        weather(&world.gate, 0).await.unwrap();
        let (mut storm, mut dice) = (Storm::default(), Dice(seed));
        for _ in 0..STEPS {
            storm.step(&world, &mut dice).await;
        }
        calm_down(&world, storm, seed).await;
    }
}

/// Those who wait at one meter with one priority, and for nothing else.
type Equals = (&'static str, Option<&'static str>, u64);

/// Who was overtaken: a call is answered while an equal that came before still waits.
fn overtaken(waiters: &mut Vec<(Option<Equals>, Waiter<'static>)>) -> Option<Equals> {
    let (mut waiting, mut overtaken) = (HashSet::new(), None);
    waiters.retain_mut(|(equals, waiter)| {
        let waits = waiter.answer().is_none();
        if waits {
            waiting.extend(*equals);
        } else if let Some(before) = equals.as_ref().and_then(|equals| waiting.get(equals)) {
            overtaken = Some(*before);
        }
        waits
    });
    overtaken
}

#[tokio::test]
async fn among_equals_at_one_meter_nobody_is_overtaken() {
    for seed in 0..SEEDS {
        let world = World::with(Tollgate::builder()).await;
        weather(&world.gate, 0).await.unwrap();
        let (mut waiters, mut dice) = (Vec::new(), Dice(seed));
        for _ in 0..STEPS {
            let ask = dice.ask();
            let equals = match ask.tolls() {
                [toll] => Some((toll.name(), toll.partition(), dice.roll(2))),
                _ => None,
            };
            let priority = equals.map_or(0, |(.., level)| level);
            let ask = ask.priority(Priority::new(priority).unwrap());
            waiters.push((equals, Waiter::new(world.gate.acquire(ask))));
            if dice.roll(4) == 0 {
                world.advance(Span::from_millis(dice.roll(500))).await;
            }
            assert_eq!(overtaken(&mut waiters), None, "seed {seed}");
        }
    }
}

/// Lets everyone start who waits, and looks at what is left.
async fn calm_down(world: &World, mut storm: Storm, seed: u64) {
    // The most that there ever was, so that no one is impossible.
    weather(&world.gate, 3).await.unwrap();
    for name in NAMES {
        world.gate.override_partition(name, "acme", None).await.unwrap();
    }
    let mut steps = 0;
    while !storm.waiters.is_empty() {
        storm.passes.clear();
        world.advance(Span::from_millis(500)).await;
        storm.listen();
        steps += 1;
        let left = storm.waiters.len();
        assert!(steps < 500, "{left} calls still wait after the storm of seed {seed}");
    }
    drop(storm);
    world.advance(Span::from_secs(100)).await;
    for name in NAMES {
        for partition in [None, Some("acme")] {
            let meter = world.gate.meter(name, partition).await.unwrap();
            assert_eq!((meter.waiting, meter.in_flight), (0, 0), "seed {seed}: {meter:?}");
            assert_eq!(meter.next_admission_after, Some(Span::ZERO), "seed {seed}: {meter:?}");
        }
    }
}
