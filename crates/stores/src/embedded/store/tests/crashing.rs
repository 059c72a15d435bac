//! Random histories told to the store and to the naive reference: the same answers, and after a
//! crash nothing that was answered is lost.

use super::{Machine, enqueue, queue, wait};
use crate::embedded::disk::simulated::Fault;
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::histories::{Seen, Step, beginning, lasting, step, tell};
use tollgate_core::contract::kept::Kept;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::naive::Naive;
use tollgate_core::lanes::{Claim, Write};
use tollgate_core::{Definition, Key, Limit, LimitName, Partition, QueueName, Span};

/// The store and the reference, under the same clock.
struct Twins {
    machine: Machine,
    naive: Kept<Naive>,
    seen: [Seen; 2],
}

impl Twins {
    fn new(seed: u64) -> Self {
        let seen: [Seen; 2] = Default::default();
        let now = seen[0].now;
        let (machine, naive) = (Machine::at(seed, now.at), Kept::new(Naive::new(), now));
        let mut twins = Self { machine, naive, seen };
        for step in beginning() {
            let _ = twins.step(&step);
        }
        twins
    }

    fn step(&mut self, step: &Step) -> [String; 2] {
        let [one, other] = &mut self.seen;
        self.naive.set_now(one.pass(step));
        self.machine.set_now(other.pass(step));
        let naive = wait(tell(&self.naive, step, one));
        [naive, wait(tell(self.machine.store(), step, other))]
    }

    fn told(&self) -> [String; 2] {
        let [one, other] = &self.seen;
        [wait(lasting(&self.naive, one)), wait(lasting(self.machine.store(), other))]
    }
}

/// More than are made before the first are written down.
#[test]
fn many_acts_at_once_are_answered_in_their_order_and_each_lasts_by_itself() {
    let mut machine = Machine::new(1);
    machine.define();
    let is_wrong = |number: usize| number.is_multiple_of(3);
    let act = |number| {
        let mut act = enqueue(number);
        if is_wrong(number) {
            act.enqueue[0].queue = QueueName::new("none").unwrap();
        }
        act
    };
    let answers = wait(machine.store().act((0..200).map(act).collect())).unwrap();
    let refused: Vec<_> = (0..200).filter(|number| answers[*number].is_err()).collect();
    assert_eq!((answers.len(), refused), (200, (0..200).filter(|it| is_wrong(*it)).collect()));
    let ids = answers.into_iter().flatten().map(|acted| acted.enqueued[0]);
    let accepted: Vec<_> = ids.zip((0..200).filter(|number| !is_wrong(*number))).collect();
    machine.crash();
    machine.start();
    let claim = Claim { queue: queue(), most: 200, lease: None, asks: Span::ZERO };
    let claimed = wait(machine.store().claim(claim)).unwrap();
    let claimed = claimed.iter().map(|it| (it.started.lease.call, it.payload.body().len()));
    assert_eq!(claimed.collect::<Vec<_>>(), accepted);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn answers_as_the_reference_and_keeps_it_over_a_crash(
        seed in any::<u64>(),
        steps in vec(step(), 1..50),
        is_clean in any::<bool>(),
    ) {
        let mut twins = Twins::new(seed);
        for (number, step) in steps.iter().enumerate() {
            let [naive, embedded] = twins.step(step);
            prop_assert_eq!(naive, embedded, "step {}: {:?}", number, step);
        }
        if is_clean {
            twins.machine.store = None;
        } else {
            twins.machine.crash();
        }
        twins.machine.start();
        let [naive, embedded] = twins.told();
        prop_assert_eq!(naive, embedded, "after the restart");
    }

    #[test]
    fn nothing_answered_is_lost_whenever_the_power_goes(
        seed in any::<u64>(),
        bodies in vec(0..3_000_usize, 1..40),
        cut in 1..60_u64,
    ) {
        let mut machine = Machine::new(seed);
        machine.define();
        machine.host.plan(Fault::PowerCut(cut));
        let mut answered = Vec::new();
        for bytes in bodies {
            let Ok(acted) = wait(machine.store().act(vec![enqueue(bytes)])) else { break };
            answered.push((acted[0].as_ref().unwrap().enqueued[0], bytes));
        }
        machine.crash();
        machine.start();
        let most = answered.len() + 1;
        let claim = Claim { queue: queue(), most, lease: None, asks: Span::from_secs(0) };
        let claimed = wait(machine.store().claim(claim)).unwrap();
        let claimed = claimed.iter().map(|it| (it.started.lease.call, it.payload.body().len()));
        let claimed: Vec<_> = claimed.collect();
        prop_assert!(claimed.starts_with(&answered), "{:?} of {:?}", claimed, answered);
    }

    #[test]
    fn a_change_of_limits_is_whole_whenever_the_power_goes(
        seed in any::<u64>(),
        cut in 1..60_u64,
    ) {
        let mut machine = Machine::new(seed);
        machine.host.plan(Fault::PowerCut(cut));
        let (name, part) = (LimitName::new("l").unwrap(), Partition::new("p").unwrap());
        let key = Key::new("who").unwrap();
        let defined = |units| Some(Definition::new(Limit::per_hour(units)).unwrap());
        let mut answered = 0;
        for units in 1..20_u64 {
            let Ok(kept) = wait(machine.store().records(vec![key.clone()])) else { break };
            let expected = kept[0].as_ref().map(|kept| kept.revision).unwrap_or_default();
            let bytes = Some(units.to_be_bytes().into());
            let change = Configure {
                write: vec![Write { key: key.clone(), expected, bytes }],
                limits: vec![(name.clone(), defined(units))],
                overrides: vec![(name.clone(), part.clone(), defined(units + 100))],
            };
            let Ok(changed) = wait(machine.store().configure(change)) else { break };
            prop_assert_eq!(changed, Ok(()));
            answered = units;
        }
        machine.crash();
        machine.start();
        let store = machine.store();
        let record = wait(store.records(vec![key])).unwrap().remove(0);
        let written = record.map_or(0, |it| u64::from_be_bytes((*it.bytes).try_into().unwrap()));
        let meters = vec![(name.clone(), None), (name, Some(part))];
        let found = wait(store.inspect(meters)).unwrap();
        let capacity = |at: usize| found[at].as_ref().map_or(0, |it| it.definition.capacity());
        prop_assert!(written >= answered, "{} of {}", written, answered);
        let own = if written == 0 { 0 } else { written + 100 };
        prop_assert_eq!([capacity(0), capacity(1)], [written, own]);
    }
}
