//! A log on a host that crashes, and a plain list of what was answered kept beside it.

use super::*;
use crate::embedded::disk::simulated::Fault;
use proptest::prelude::*;

/// Something that happens.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// A batch with records of these lengths.
    Commit(Vec<usize>),
    Rotate,
    /// Drops some of the sealed segments.
    Drop(prop::sample::Index),
    /// Something will go wrong.
    Fault(Fault),
    /// The log is closed and opened.
    Close,
    /// The process dies, the host does not.
    Kill,
    /// The host dies, perhaps again while the log is being opened.
    Crash(Option<u64>),
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    let record = prop_oneof![4 => 0..40_usize, 2 => 100..400_usize, 1 => 600..2_000_usize];
    let fault = (0..12_u64, 0..3).prop_map(|(operations, kind)| match kind {
        0 => Fault::SyncFails(operations),
        1 => Fault::DiskFull(operations),
        _ => Fault::PowerCut(operations),
    });
    prop_oneof![
        12 => prop::collection::vec(record, 0..5).prop_map(Act::Commit),
        1 => Just(Act::Rotate),
        1 => any::<prop::sample::Index>().prop_map(Act::Drop),
        2 => fault.prop_map(Act::Fault),
        1 => Just(Act::Close),
        1 => Just(Act::Kill),
        2 => prop::option::of(0..12_u64).prop_map(Act::Crash),
    ]
}

pub(super) struct World {
    host: Host,
    /// Always there between acts.
    log: Option<Log>,
    /// Every record that was answered, or found after a crash.
    answered: Records,
    /// The batch that was answered with a failure: it may be found, all of it.
    in_flight: Vec<Vec<u8>>,
    /// Where a checkpoint would say to begin.
    from: SegmentNumber,
    /// Makes every record another.
    count: u32,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut world = Self {
            host: Host::new(seed),
            log: None,
            answered: vec![],
            in_flight: vec![],
            from: SegmentNumber::FIRST,
            count: 0,
        };
        world.start().unwrap();
        world
    }

    pub(super) fn act(&mut self, act: &Act) {
        match act {
            Act::Commit(lengths) => self.commit(lengths),
            Act::Rotate => {
                let outcome = self.log().rotate().map(drop);
                self.go_on(outcome);
            }
            Act::Drop(place) => self.drop_some(*place),
            Act::Fault(fault) => self.host.plan(*fault),
            Act::Close => {
                let outcome = self.log.take().map_or(Ok(()), Log::close);
                drop(outcome);
                self.restart();
            }
            Act::Kill => self.restart(),
            Act::Crash(again) => self.crash(*again),
        }
    }

    fn log(&mut self) -> &mut Log {
        self.log.as_mut().unwrap()
    }

    fn commit(&mut self, lengths: &[usize]) {
        let records: Vec<Vec<u8>> = lengths.iter().map(|length| self.record(*length)).collect();
        let mut batch = Batch::new();
        let offsets: Vec<usize> = records.iter().map(|record| batch.push(record)).collect();
        let outcome = self.log().commit(&mut batch);
        match outcome {
            Ok(place) => {
                let positions = offsets.into_iter().map(|offset| place.position(offset));
                self.answered.extend(positions.zip(records));
            }
            Err(error) => {
                if matches!(error, LogError::Failed { .. } | LogError::Unsynced { .. }) {
                    self.in_flight = records;
                }
                self.go_on(Err(error));
            }
        }
    }

    /// A record that differs from all others, in all of its sectors.
    fn record(&mut self, length: usize) -> Vec<u8> {
        self.count += 1;
        self.count.to_le_bytes().into_iter().cycle().take(length + 4).collect()
    }

    fn drop_some(&mut self, place: prop::sample::Index) {
        let sealed = self.log().sealed();
        if sealed.is_empty() {
            return;
        }
        let before = sealed[place.index(sealed.len())].next().unwrap();
        self.from = self.from.max(before);
        let outcome = self.log().drop_before(before);
        if outcome.is_err() {
            // A removal that is seen and never lasts would be a hole later, which is loud enough.
            self.crash(None);
        }
    }

    /// A full disk changes nothing; after a failure the log stays failed, and is opened again.
    fn go_on(&mut self, outcome: Result<(), LogError>) {
        match outcome {
            Ok(()) | Err(LogError::Full { .. }) => {}
            Err(LogError::Failed { .. } | LogError::Unsynced { .. }) => {
                self.log().commit(&mut Batch::new()).unwrap_err();
                if self.count.is_multiple_of(2) { self.restart() } else { self.crash(None) }
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// A new process on the same host, if that still runs.
    fn restart(&mut self) {
        self.log = None;
        if self.start().is_err() {
            self.crash(None);
        }
    }

    fn crash(&mut self, again: Option<u64>) {
        self.log = None;
        self.host.crash();
        again.into_iter().for_each(|operations| self.host.plan(Fault::PowerCut(operations)));
        if let Err(error) = self.start() {
            let is_failure = matches!(error, LogError::Failed { .. } | LogError::Unsynced { .. });
            assert!(is_failure, "{error}");
            self.host.crash();
            self.start().unwrap();
        }
    }

    /// Opens the log and compares what is read with what was answered.
    fn start(&mut self) -> Result<(), LogError> {
        let (log, _, found) =
            open_on(self.host.open().unwrap(), self.from).inspect_err(|error| {
                let is_failure = matches!(
                    error,
                    LogError::Failed { .. } | LogError::Unsynced { .. } | LogError::Full { .. }
                );
                assert!(is_failure, "{error}");
            })?;
        self.answered.retain(|(position, _)| position.segment() >= self.from);
        let (old, new) = found.split_at(self.answered.len().min(found.len()));
        assert_eq!(old, self.answered, "what was answered is there");
        let new: Vec<&Vec<u8>> = new.iter().map(|(_, record)| record).collect();
        let whole: Vec<&Vec<u8>> = self.in_flight.iter().collect();
        assert!(new.is_empty() || new == whole, "the batch in flight is whole or not there");
        let reader = log.reader();
        for (position, record) in &found {
            assert_eq!(reader.read(*position, record.len()).unwrap(), *record);
        }
        self.answered = found;
        self.in_flight.clear();
        self.log = Some(log);
        Ok(())
    }
}
