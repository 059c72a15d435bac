//! A folder is checked: what is sound is counted, and what is not is named.

use super::{Machine, enqueue, wait};
use crate::embedded::log::SegmentNumber;
use crate::embedded::{CheckError, OpenError, check, contents};
use tollgate_core::contract::Lanes;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::lanes::{Effect, Kept};

/// A machine that was stopped with a checkpoint, a call in flight whose body is before it, and one
/// that waits.
fn stopped() -> Machine {
    let mut machine = Machine::new(1);
    machine.define();
    wait(machine.store().act(vec![enqueue(1_234)])).unwrap()[0].as_ref().unwrap();
    assert_eq!(machine.claim(1).len(), 1);
    machine.live_until(|machine| machine.whole_checkpoint().is_some());
    wait(machine.store().act(vec![enqueue(30)])).unwrap()[0].as_ref().unwrap();
    machine.store = None;
    machine
}

impl Machine {
    fn whole_checkpoint(&self) -> Option<String> {
        self.host.files().into_keys().find(|name| name.ends_with(".whole"))
    }

    /// What a check says of the damage, after it has seen that nothing was changed.
    fn damage(&self) -> (String, u64, String) {
        let before = self.host.files();
        let error = check(&self.host.open().unwrap()).unwrap_err();
        assert_eq!(self.host.files(), before, "a check changes nothing");
        let CheckError::Damaged { file, offset, found } = error else { panic!("{error}") };
        (file, offset, found)
    }
}

#[test]
fn a_sound_folder_is_counted_and_not_changed() {
    let machine = stopped();
    let before = machine.host.files();
    let contents = contents(&machine.host.open().unwrap()).unwrap();
    assert_eq!(machine.host.files(), before);
    let checked = contents.checked;
    assert_eq!((checked.waiting, checked.in_flight, checked.queues), (1, 1, 1));
    assert!(checked.checkpoint.unwrap().before > SegmentNumber::FIRST, "{checked:?}");
    assert_eq!(checked.journal.torn, None);
    let bodies = contents.facts.iter().filter_map(|fact| match fact {
        Effect::Kept(Kept::Call { call, .. }) => Some(call.payload.body().len()),
        _ => None,
    });
    assert_eq!(bodies.collect::<Vec<_>>(), [1_234, 30]);
}

#[test]
fn damage_before_the_checkpoint_and_in_it_is_named() {
    let machine = stopped();
    let names = machine.host.files().into_iter();
    // The last segment of each log is empty and has a header alone.
    let names = names.filter(|(name, _)| !name.starts_with("history-"));
    let with_frames = names.filter(|(name, bytes)| name.ends_with(".log") && bytes.len() > 32);
    for (name, _) in with_frames.collect::<Vec<_>>() {
        machine.host.flip(&name, 8 * 60);
        let (file, offset, found) = machine.damage();
        assert_eq!((file, offset), (name.clone(), 32), "{found}");
        machine.host.flip(&name, 8 * 60);
    }
    check(&machine.host.open().unwrap()).unwrap();
}

#[test]
fn a_body_that_is_gone_with_its_segment_is_missed() {
    let mut machine = Machine::new(1);
    machine.define();
    // Nothing ends, so that no body moves.
    while machine.whole_checkpoint().is_none() {
        wait(machine.store().act(vec![enqueue(1_000)])).unwrap()[0].as_ref().unwrap();
    }
    machine.store = None;
    let oldest = machine.segments().remove(0);
    machine.host.open().unwrap().remove(&oldest).unwrap();
    let (file, _, found) = machine.damage();
    assert_eq!(file, oldest);
    assert!(found.contains("the body of call 0 should be there"), "{found}");
}

#[test]
fn a_checkpoint_without_its_files_is_not_taken_for_an_empty_one() {
    let machine = stopped();
    let whole = machine.whole_checkpoint().unwrap();
    let part = whole.replace(".whole", "-");
    let disk = machine.host.open().unwrap();
    for name in disk.names().unwrap().iter().filter(|name| name.starts_with(&part)) {
        disk.remove(name).unwrap();
    }
    let error = super::Store::on(disk, machine.settings, machine.time_source()).err().unwrap();
    assert!(matches!(error, OpenError::Journal(_)), "{error}");
    assert_eq!(machine.damage().0, whole);
}
