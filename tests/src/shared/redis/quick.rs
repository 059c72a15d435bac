//! The script that takes asks decides as the original does, and writes the same bytes.

mod edges;

use super::super::cells::{Put, cell, change, look};
use super::meter::{Kept, take};
use super::{connected, settings};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::{Arc, Mutex};
use tollgate_core::rule::UNITS_MAX;
use tollgate_core::{Definition, Limit, Now, Opening, Payment, Rule, RuleSpec, Span, Timestamp};
use tollgate_stores::redis::{RedisCells, Settings, Taken, Tried};
use tollgate_stores::shared::cells::{CellKey, Kind, Wanted};
use tollgate_stores::shared::quick::{Quick, QuickAsk, QuickLine};

/// Meters of one world.
const METERS: usize = 4;

/// What happens in one world: limits, which meter has which, and batches of asks.
#[derive(Debug, Clone)]
struct Plan {
    definitions: Vec<Arc<Definition>>,
    starts: u64,
    batches: Vec<Batch>,
}

#[derive(Debug, Clone)]
struct Batch {
    /// How far time moves before it.
    step: Step,
    asks: Vec<PlannedAsk>,
    /// Which payments are settled after it, at how many parts in four of what was paid.
    settles: Vec<(prop::sample::Index, u64)>,
    /// At which meter a start is reserved after it, if it has buckets alone.
    reserves: Option<usize>,
}

/// Nanoseconds, or so many parts in 16 of the first rate of a meter's definition.
#[derive(Debug, Clone)]
enum Step {
    Nanos(u64),
    Parts(usize, u64),
}

#[derive(Debug, Clone)]
struct PlannedAsk {
    /// Which meters, as bits.
    at: usize,
    /// How heavy: up to 1 is as it is, 16 is all that ever passes.
    weight: u64,
    life: u64,
    /// How many such asks follow each other.
    alike: usize,
}

fn units() -> impl Strategy<Value = u64> {
    prop_oneof![
        select(vec![1, 2, 3, 7, 10, 100, 256, 257, 1_000, 1_000_003, 3_000_000_000, UNITS_MAX]),
        1..500_u64,
    ]
}

fn period() -> impl Strategy<Value = Span> {
    let seconds = [1, 60, 3_600, 86_400, 86_400 * 30, 86_400 * 366].map(|s| s * 1_000_000_000);
    let odd = [1, 7, 999, 1_234_567, 999_999_999, 1_000_000_001, 123_456_789_012_345];
    select([seconds.as_slice(), &odd].concat()).prop_map(Span::from_nanos)
}

fn rule() -> impl Strategy<Value = Option<RuleSpec>> {
    (units(), period(), units(), 0..4_u8, 0..6_u64).prop_map(|(limit, per, burst, kind, guard)| {
        let guard = Span::from_nanos(if guard == 0 { per.as_nanos() / 10 } else { 0 });
        let limit = match kind {
            0 => Limit::per(limit, per).burst(burst).guard(guard),
            1 => Limit::fixed_window(limit, per).guard(guard),
            2 => Limit::sliding_window(limit, per).guard(guard),
            _ => Limit::concurrency(limit),
        };
        Definition::new(limit.clone()).ok().and_then(|_| limit.rules().first().cloned())
    })
}

fn definition() -> impl Strategy<Value = Arc<Definition>> {
    let rules = prop::collection::vec(rule(), 1..4);
    rules.prop_filter_map("rules that make a limit", |rules| {
        let rules: Vec<RuleSpec> = rules.into_iter().flatten().collect();
        Definition::new(Limit::of(rules)).ok().map(Arc::new)
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        select(vec![0, 1, 2, 1_000, 999_999_999, 1_000_000_000]).prop_map(Step::Nanos),
        (0..METERS, 0..20_u64).prop_map(|(meter, parts)| Step::Parts(meter, parts)),
    ]
}

fn ask() -> impl Strategy<Value = PlannedAsk> {
    let weight = prop_oneof![4 => Just(0_u64), 1 => Just(1), 2 => 2..17_u64];
    let life = select(vec![1, 1_000_000, 3_000_000_000, 86_400_000_000_000, u64::MAX]);
    (1..1_usize << METERS, weight, life, 1..5_usize)
        .prop_map(|(at, weight, life, alike)| PlannedAsk { at, weight, life, alike })
}

fn batch() -> impl Strategy<Value = Batch> {
    let settles = prop::collection::vec((any::<prop::sample::Index>(), 0..7_u64), 0..2);
    let reserves = prop::option::weighted(0.2, 0..METERS);
    (step(), prop::collection::vec(ask(), 1..6), settles, reserves)
        .prop_map(|(step, asks, settles, reserves)| Batch { step, asks, settles, reserves })
}

fn plan() -> impl Strategy<Value = Plan> {
    let starts = select(vec![0, 5, 1_790_000_000_123_456_789, 4_294_967_295_999_999_999]);
    let definitions = prop::collection::vec(definition(), METERS);
    (definitions, starts, prop::collection::vec(batch(), 1..40))
        .prop_map(|(definitions, starts, batches)| Plan { definitions, starts, batches })
}

/// Meters by the script, and the same by the original.
struct World {
    cells: RedisCells,
    keys: Vec<CellKey>,
    clock: Arc<Mutex<Now>>,
    lines: Vec<QuickLine>,
    kept: Vec<Option<Kept>>,
    /// What was paid where, and is not settled.
    paid: Vec<(usize, Payment)>,
}

impl World {
    async fn new(plan: &Plan) -> Self {
        let clock = Arc::new(Mutex::new(Now::both(Timestamp::from_nanos(plan.starts))));
        let read = Arc::clone(&clock);
        let time: Arc<dyn Fn() -> Now + Send + Sync> = Arc::new(move || *read.lock().unwrap());
        let cells = connected(&Settings { time: Some(time), ..settings() }).await;
        let lines = plan.definitions.iter().enumerate().map(|(at, definition)| QuickLine {
            at,
            rules: format!("rules {:?}", plan.definitions.iter().position(|it| it == definition))
                .into(),
            seen: plan.starts,
            definition: Arc::clone(definition),
            weight: 1,
        });
        let keys = (0..METERS).map(|at| cell(Kind::Meter, &at.to_string())).collect();
        let (kept, paid) = (vec![None; METERS], Vec::new());
        Self { cells, keys, clock, lines: lines.collect(), kept, paid }
    }

    fn now(&self) -> Now {
        *self.clock.lock().unwrap()
    }

    fn advance(&self, step: &Step) {
        let nanos = match step {
            Step::Nanos(nanos) => *nanos,
            Step::Parts(meter, parts) => {
                let rules = self.lines[*meter].definition.rules();
                let per = rules.iter().find_map(Rule::per);
                per.map_or(1_000_000_000, Span::as_nanos) / 16 * parts + parts % 2
            }
        };
        let now = self.now();
        *self.clock.lock().unwrap() = now.moved_to(now.at.plus(Span::from_nanos(nanos)));
    }

    /// The asks, and the meters that they are at, in the order of their cells.
    fn quick(&self, asks: &[PlannedAsk]) -> (Quick, Vec<usize>) {
        let all = asks.iter().fold(0, |all, ask| all | ask.at);
        let meters: Vec<usize> = (0..METERS).filter(|meter| all & (1 << meter) != 0).collect();
        let line = |meter: usize, weight: u64| {
            let line = self.lines[meter].clone();
            let capacity = line.definition.capacity();
            let weight = if weight <= 1 { 1 } else { (capacity / 16 * weight).clamp(1, capacity) };
            let weight = if weight > capacity { capacity } else { weight };
            QuickLine {
                at: meters.iter().position(|other| *other == meter).unwrap(),
                weight,
                ..line
            }
        };
        let asks = asks.iter().flat_map(|ask| {
            let here = meters.iter().filter(|meter| ask.at & (1 << **meter) != 0);
            let lines = here.map(|meter| line(*meter, ask.weight)).collect();
            vec![QuickAsk { count: 1, life: Span::from_nanos(ask.life), lines }; ask.alike]
        });
        (Quick { expects: Vec::new(), needs_all: false, asks: asks.collect() }, meters)
    }

    /// Has asks decided on both sides, and compares. Says whether the script took them.
    async fn compare(&mut self, asks: &[PlannedAsk]) -> bool {
        let (quick, meters) = self.quick(asks);
        let keys: Vec<CellKey> = meters.iter().map(|meter| self.keys[*meter].clone()).collect();
        let now = self.now();
        let mut kept: Vec<Option<Kept>> =
            meters.iter().map(|meter| self.kept[*meter].clone()).collect();
        let before = look(&self.cells, &keys).await;
        let (granted, paid) = take(&mut kept, &quick.asks, now);
        let expected: Vec<Option<Vec<u8>>> = (0..keys.len())
            .map(|place| match paid.iter().any(|(at, _)| *at == place) {
                true => kept[place].as_ref().map(|kept| kept.value(now)),
                false => before[place].clone(),
            })
            .collect();
        let tried =
            self.cells.try_quick(Wanted { read: &[], change: &keys }, &quick).await.unwrap();
        let is_taken = match tried {
            Tried::Taken(Taken { now: told, granted: by_script, found, .. }) => {
                assert_eq!((told, &found.change), (now, &before));
                assert_eq!(by_script, granted, "{quick:?} at {now:?}");
                true
            }
            tried => {
                assert_eq!(tried, Tried::Declined);
                change(&self.cells, &keys, &mut Put(expected.clone(), None)).await;
                false
            }
        };
        assert_eq!(look(&self.cells, &keys).await, expected, "{quick:?} at {now:?}");
        for (place, meter) in meters.iter().enumerate() {
            self.kept[*meter] = kept[place].clone();
        }
        self.paid.extend(paid.into_iter().map(|(at, payment)| (meters[at], payment)));
        is_taken
    }
}

/// What follows is done by the original alone, and written: the script finds it there.
impl World {
    /// Reserves a start at a meter that has buckets alone and is spent: they owe it.
    async fn reserve(&mut self, meter: usize) {
        let now = self.now();
        let Some(kept) = self.kept[meter].as_mut() else { return };
        let Kept { meter: paid_at, definition, .. } = kept;
        let has_buckets = definition.rules().iter().all(|rule| matches!(rule, Rule::Bucket(_)));
        let blocker = paid_at.blocker(definition, definition.capacity(), now);
        let Some(Opening::At(starts)) = blocker.map(|blocker| blocker.opening) else { return };
        if has_buckets && definition.rules().len() == 1 {
            let _ = paid_at.pay(definition, definition.capacity(), (now, starts), None);
            self.write(meter).await;
        }
    }

    async fn write(&self, meter: usize) {
        let value = self.kept[meter].as_ref().map(|kept| kept.value(self.now()));
        change(&self.cells, &self.keys[meter..=meter], &mut Put(vec![value], None)).await;
    }

    /// Settles a payment. Says whether more was charged.
    async fn settle(&mut self, index: &prop::sample::Index, parts: u64) -> bool {
        if self.paid.is_empty() {
            return false;
        }
        let (meter, payment) = self.paid.swap_remove(index.index(self.paid.len()));
        let now = self.now();
        let kept = self.kept[meter].as_mut().unwrap();
        let actual = (payment.weight / 4).max(1).saturating_mul(parts);
        kept.meter.settle(&kept.definition, &payment, actual, now);
        self.write(meter).await;
        actual > payment.weight
    }
}

/// Numbers that are hard on doubles, or make many low points.
fn hard() -> impl Strategy<Value = Arc<Definition>> {
    let year = Span::from_days(366);
    let limits = vec![
        Limit::per(UNITS_MAX, Span::from_nanos(year.as_nanos() - 1)).burst(UNITS_MAX),
        Limit::per(9_007_199_254_740_881, Span::from_days(1)).burst(9_007_199_254_740_881),
        Limit::per(3, Span::from_secs(1)).burst(1_000),
        Limit::per(7, Span::from_nanos(1_234_567)).burst(100_000),
        Limit::per(1_000_000, Span::from_secs(1)).burst(1_000_000),
        // An odd grain: an even one has remainders that doubles hold by luck.
        Limit::sliding_window(1_000, Span::from_nanos(256 * 123_456_789_012_345)),
        Limit::sliding_window(UNITS_MAX, year).guard(Span::from_nanos(year.as_nanos() - 1)),
        Limit::sliding_window(300, Span::from_nanos(1_234_567)),
        Limit::fixed_window(UNITS_MAX, year).and(Limit::concurrency(UNITS_MAX)),
    ];
    select(limits).prop_map(|limit| Arc::new(Definition::new(limit).unwrap()))
}

/// Small steps, and one or two asks at a time.
fn hard_plan() -> impl Strategy<Value = Plan> {
    let weight = prop_oneof![4 => Just(0_u64), 1 => 1..5_u64];
    let ask = (weight, 1..3_usize)
        .prop_map(|(weight, alike)| vec![PlannedAsk { at: 1, weight, life: 3_000_000_000, alike }]);
    let settles = prop::collection::vec((any::<prop::sample::Index>(), 2..6_u64), 0..2);
    let reserves = prop::option::weighted(0.05, Just(0));
    let rest = (ask, settles, reserves);
    let starts = 1_000_000_000_000_000_000..4_000_000_000_000_000_000_u64;
    // The shorter the steps, the more low points are equally far from each other.
    (hard(), starts, select(vec![3, 40, 400_000_000_u64])).prop_flat_map(
        move |(hard, starts, longest)| {
            let step = prop_oneof![
                9 => (0..longest).prop_map(Step::Nanos),
                1 => (Just(0), 0..6_u64).prop_map(|(meter, parts)| Step::Parts(meter, parts)),
            ];
            let batch = (step, rest.clone()).prop_map(|(step, (asks, settles, reserves))| Batch {
                step,
                asks,
                settles,
                reserves,
            });
            prop::collection::vec(batch, 30..80).prop_map(move |batches| Plan {
                definitions: vec![Arc::clone(&hard); METERS],
                starts,
                batches,
            })
        },
    )
}

/// One bucket, or one window.
fn plain() -> impl Strategy<Value = Arc<Definition>> {
    rule().prop_filter_map("a bucket or a window", |rule| {
        let is_plain = |rule: &RuleSpec| {
            matches!(rule, RuleSpec::TokenBucket { .. } | RuleSpec::FixedWindow { .. })
        };
        Definition::new(Limit::of(vec![rule.filter(is_plain)?])).ok().map(Arc::new)
    })
}

/// Asks at one meter each, which the script decides in a straight line.
fn plain_plan() -> impl Strategy<Value = Plan> {
    // Often several meters are under the same rules.
    let definitions = (plain(), plain(), 0..1_usize << METERS).prop_map(|(one, other, which)| {
        let of = |meter: usize| if which & (1 << meter) == 0 { &one } else { &other };
        (0..METERS).map(|meter| Arc::clone(of(meter))).collect()
    });
    let ask = (0..METERS, ask()).prop_map(|(meter, ask)| PlannedAsk { at: 1 << meter, ..ask });
    let batch = (batch(), prop::collection::vec(ask, 1..9))
        .prop_map(|(batch, asks)| Batch { asks, ..batch });
    let starts = select(vec![0, 5, 1_790_000_000_123_456_789, 4_294_967_295_999_999_999]);
    (definitions, starts, prop::collection::vec(batch, 1..40))
        .prop_map(|(definitions, starts, batches)| Plan { definitions, starts, batches })
}

async fn compared(plan: Plan) {
    let mut world = World::new(&plan).await;
    let mut has_debt = false;
    for batch in &plan.batches {
        world.advance(&batch.step);
        let is_taken = world.compare(&batch.asks).await;
        assert!(is_taken || has_debt, "nothing was there that the script does not decide");
        for (index, parts) in &batch.settles {
            has_debt |= world.settle(index, *parts).await;
        }
        if let Some(meter) = batch.reserves {
            world.reserve(meter).await;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_script_decides_and_writes_as_the_original_does(plan in plan()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compared(plan));
    }

    #[test]
    fn the_script_decides_plain_asks_as_the_original_does(plan in plain_plan()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compared(plan));
    }

    #[test]
    fn the_script_reckons_with_hard_numbers_as_the_original_does(plan in hard_plan()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compared(plan));
    }
}
