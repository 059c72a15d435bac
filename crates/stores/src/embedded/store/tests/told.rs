//! Events and history over restarts and crashes.

use super::{Machine, enqueue, queue, wait};
use std::pin::pin;
use std::task::{Context, Waker};
use tollgate_core::contract::Lanes;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::lanes::{
    Act, CallId, Door, End, Payload, QueueSpec, Revive, Settle, Settlement, What,
};
use tollgate_core::{LimitName, Span, Toll};

impl Machine {
    /// A machine that makes no checkpoint.
    fn without_checkpoints() -> Self {
        let mut machine = Self::new(1);
        machine.store = None;
        machine.settings.checkpoint_bytes = 1 << 30;
        machine.start();
        machine.define();
        machine
    }

    /// Starts and settles the one call that waits.
    fn end_one(&self, settlement: Settlement) {
        let lease = self.claim(1).remove(0).started.lease;
        self.settle(vec![Settle::new(lease, settlement)]);
    }

    /// What history has of a call: attempts, and ends.
    pub(super) fn kept(&self, id: u64) -> (usize, usize) {
        let events = wait(self.store().histories(vec![CallId(id)])).unwrap().remove(0);
        let ends = events.iter().filter(|event| event.end().is_some()).count();
        let is_attempt = |what: &What| matches!(what, What::Settled { .. });
        (events.iter().filter(|event| is_attempt(&event.what)).count(), ends)
    }
}

fn accepted(envelope: &[u8], body: &[u8]) -> What {
    What::Enqueued { payload: Payload::new(envelope, body).unwrap() }
}

#[test]
fn what_a_crash_kept_from_history_is_told_again_and_once() {
    let mut machine = Machine::without_checkpoints();
    for round in 0..5 {
        for _ in 0..4 {
            machine.live_through_one();
        }
        machine.crash();
        machine.start();
        if round % 2 == 0 {
            assert_eq!(machine.kept(0), (1, 1));
        }
    }
    for id in 0..20 {
        assert_eq!(machine.kept(id), (1, 1), "call {id}");
    }
}

#[test]
fn that_a_call_was_accepted_is_told_again_with_its_envelope_and_once() {
    let mut machine = Machine::without_checkpoints();
    let now = *machine.clock.lock().unwrap();
    let spec = QueueSpec { tells_accepted: true, ..QueueSpec::default() };
    wait(machine.store().define_queue(queue(), spec)).unwrap().unwrap();
    for id in [0, 1].map(CallId) {
        let mut act = enqueue(1);
        act.enqueue[0].payload = Payload::new(&[7; 30 << 10], b"body").unwrap();
        wait(machine.store().act(vec![act])).unwrap()[0].as_ref().unwrap();
        let told = |machine: &Machine| {
            let events = wait(machine.store().histories(vec![id])).unwrap().remove(0);
            events.into_iter().map(|event| (event.at, event.what)).collect::<Vec<_>>()
        };
        let expected = [(now, accepted(&[7; 30 << 10], b"body"))];
        // Before the crash history was synced with the first call, and not with the second.
        if id == CallId(0) {
            assert_eq!(told(&machine), expected);
        }
        machine.crash();
        machine.start();
        assert_eq!(told(&machine), expected, "{id:?}");
    }
}

#[test]
fn that_a_call_waits_for_an_unknown_limit_is_told_again_with_its_time_and_once() {
    let mut machine = Machine::without_checkpoints();
    let now = *machine.clock.lock().unwrap();
    let limit = LimitName::new("none").unwrap();
    for id in [0, 1].map(CallId) {
        let mut act = Act { door: Door::Parks, ..enqueue(1) };
        let (weight, hears_feedback) = (1, false);
        let toll = Toll { limit: limit.clone(), partition: None, weight, hears_feedback };
        act.enqueue[0].tolls = [toll].into();
        wait(machine.store().act(vec![act])).unwrap()[0].as_ref().unwrap();
        let told = |machine: &Machine| {
            let events = wait(machine.store().histories(vec![id])).unwrap().remove(0);
            events.into_iter().map(|event| (event.at, event.what)).collect::<Vec<_>>()
        };
        let limit = limit.clone();
        let expected = [(now, What::Unknown { limit, partition: None, begins: [7].into() })];
        // Before the crash history was synced with the first call, and not with the second.
        if id == CallId(0) {
            assert_eq!(told(&machine), expected);
        }
        machine.crash();
        machine.start();
        assert_eq!(told(&machine), expected, "{id:?}");
    }
}

#[test]
fn what_is_told_again_has_its_time() {
    let mut machine = Machine::without_checkpoints();
    let now = *machine.clock.lock().unwrap();
    for id in [0, 1].map(CallId) {
        wait(machine.store().act(vec![enqueue(1)])).unwrap()[0].as_ref().unwrap();
        let act = Act { cancel: vec![id], ..Act::default() };
        wait(machine.store().act(vec![act])).unwrap()[0].as_ref().unwrap();
        // History reaches to here, with nothing left to be told again.
        assert!(id == CallId(1) || machine.kept(0) == (0, 1));
    }
    machine.crash();
    machine.start();
    let events = wait(machine.store().histories(vec![CallId(1)])).unwrap().remove(0);
    assert_eq!(events.iter().map(|event| event.at).collect::<Vec<_>>(), [now]);
}

#[test]
fn a_clean_restart_tells_history_nothing_again() {
    let mut machine = Machine::without_checkpoints();
    for _ in 0..3 {
        machine.live_through_one();
        machine.store = None;
        machine.start();
    }
    assert_eq!([0, 1, 2].map(|id| machine.kept(id)), [(1, 1); 3]);
}

#[test]
fn an_end_is_found_in_history_when_memory_has_forgotten_it() {
    let mut machine = Machine::without_checkpoints();
    machine.live_through_one();
    wait(machine.store().act(vec![enqueue(1)])).unwrap()[0].as_ref().unwrap();
    machine.crash();
    machine.start();
    let calls = [0, 1, 2].map(CallId).to_vec();
    let ends = wait(machine.store().ends(calls)).unwrap();
    assert_eq!(ends, [Some(End::Done), None, None], "done, waiting, and never there");
}

#[test]
fn the_last_end_of_a_call_that_was_dead_is_found_in_history() {
    let mut machine = Machine::without_checkpoints();
    let [cancelled, revived] = [0, 1].map(CallId);
    for _ in 0..2 {
        wait(machine.store().act(vec![enqueue(1)])).unwrap()[0].as_ref().unwrap();
        machine.end_one(Settlement::Dead);
    }
    let revive = vec![Revive { call: revived, not_before: None }];
    let act = Act { cancel: vec![cancelled], revive, ..Act::default() };
    wait(machine.store().act(vec![act])).unwrap()[0].as_ref().unwrap();
    machine.crash();
    machine.start();
    let ends = |machine: &Machine| wait(machine.store().ends(vec![cancelled, revived])).unwrap();
    assert_eq!(ends(&machine), [Some(End::Cancelled), None]);
    machine.end_one(Settlement::Done);
    machine.crash();
    machine.start();
    assert_eq!(ends(&machine), [Some(End::Cancelled), Some(End::Done)]);
    assert_eq!([0, 1].map(|id| machine.kept(id)), [(1, 2), (2, 2)]);
}

#[test]
fn a_place_before_a_restart_is_told_that_events_were_missed() {
    let mut machine = Machine::without_checkpoints();
    let before = wait(machine.store().events(None, 0)).unwrap();
    machine.live_through_one();
    let last = wait(machine.store().events(Some(before.next), 10)).unwrap();
    assert_eq!((last.missed, last.events.len()), (false, 4));
    machine.store = None;
    let now = *machine.clock.lock().unwrap();
    machine.set_now(now.moved_to(now.at.plus(Span::from_secs(1))));
    machine.start();
    let later = wait(machine.store().events(Some(before.next), 10)).unwrap();
    assert!(later.missed);
}

#[test]
fn who_waits_for_events_is_woken_by_them() {
    let machine = Machine::without_checkpoints();
    let from = wait(machine.store().events(None, 0)).unwrap().next;
    let mut events = pin!(machine.store().events(Some(from), 10));
    assert!(events.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    wait(machine.store().act(vec![enqueue(1)])).unwrap()[0].as_ref().unwrap();
    let page = wait(events).unwrap();
    assert_eq!(
        page.events.iter().map(|(_, it)| &it.what).collect::<Vec<_>>(),
        [&accepted(b"", b"")]
    );
}

#[test]
fn a_broken_history_does_not_stop_the_store() {
    let mut machine = Machine::without_checkpoints();
    machine.live_through_one();
    assert_eq!(machine.kept(0), (1, 1));
    machine.live_through_one();
    machine.store = None;
    let disk = machine.host.open().unwrap();
    disk.remove("history-1-index").unwrap();
    disk.sync().unwrap();
    drop(disk);
    let log = "history-1-journal-00000000000000000001.log";
    machine.host.flip(log, 8 * 60);
    machine.start();
    assert!(machine.host.files().contains_key(&format!("{log}.broken")));
    machine.live_through_one();
    assert_eq!(machine.kept(2), (1, 1));
    machine.store = None;
    let checked = crate::embedded::check(&machine.host.open().unwrap()).unwrap();
    assert_eq!(checked.history.damaged[0].file, format!("{log}.broken"));
}

#[test]
fn who_sees_that_a_call_ended_by_anothers_hand_finds_its_end_in_history() {
    let machine = Machine::without_checkpoints();
    for _ in 0..2_000 {
        let acted = wait(machine.store().act(vec![enqueue(1)])).unwrap().remove(0).unwrap();
        let id = acted.enqueued[0];
        std::thread::scope(|scope| {
            let cancel = Act { cancel: vec![id], ..Act::default() };
            scope.spawn(|| wait(machine.store().act(vec![cancel])).unwrap());
            while wait(machine.store().look(vec![id])).unwrap()[0].is_some() {}
            assert_eq!(machine.kept(id.0), (0, 1), "call {}", id.0);
        });
    }
}
