//! Order, durability at the moment of the answer, back-pressure, and what follows a refusal.

use super::*;
use crate::embedded::disk::simulated::{Fault, Host};
use crate::embedded::log::Settings;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};

/// What was told of a batch.
#[derive(Debug)]
struct Answer {
    number: u32,
    outcome: Result<BatchPlace, Refused>,
    /// Whether it would have survived any crash when it was answered.
    is_synced: bool,
}

fn open(host: &Host) -> (Committer, Vec<Vec<u8>>) {
    let mut records = Vec::new();
    let settings = Settings { segment_bytes: 2_000 };
    let disk = host.open().unwrap();
    let (log, _) = Log::open(disk, settings, SegmentNumber::FIRST, |_, record| {
        records.push(record.to_vec());
        Ok::<(), LogError>(())
    })
    .unwrap();
    (Committer::start(log).unwrap(), records)
}

/// The one record of a batch: its number, over and over.
fn record(number: u32, length: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(length + 4).collect()
}

fn number(record: &[u8]) -> u32 {
    u32::from_le_bytes(*record.first_chunk().unwrap())
}

fn batch_of(committer: &Committer, record: &[u8]) -> Batch {
    let mut batch = committer.batch();
    assert!(batch.is_empty(), "a spare batch has no records");
    batch.push(record);
    batch
}

/// Passes the answer on, with what the disk had synced at that moment.
fn telling(host: &Host, record: Vec<u8>, answers: &Sender<Answer>) -> Done {
    let (host, answers) = (host.clone(), answers.clone());
    Box::new(move |outcome| {
        let file =
            outcome.as_ref().ok().and_then(|place| host.synced(&place.segment().file_name()));
        let is_synced =
            file.is_some_and(|file| file.windows(record.len()).any(|bytes| bytes == record));
        answers.send(Answer { number: number(&record), outcome, is_synced }).unwrap();
    })
}

fn seeded() -> ProptestConfig {
    Config { cases: 500, rng_seed: RngSeed::Fixed(13), ..Config::default() }
}

proptest! {
    #![proptest_config(seeded())]

    /// With full disks on the way, every batch is answered in order, after its sync, and none is
    /// in the log without those before it.
    #[test]
    fn answers_come_in_order_and_after_the_sync(
        lengths in prop::collection::vec(0..900_usize, 1..40),
        full_after in prop::collection::vec(0..20_u64, 0..4),
        seed in any::<u64>(),
    ) {
        let host = Host::new(seed);
        let (committer, _) = open(&host);
        let (told, answers) = channel();
        let mut faults = full_after.into_iter();
        let mut waiting: VecDeque<(u32, usize)> = (0..).zip(lengths).collect();
        let sent = waiting.len();
        let mut committed = Vec::new();
        while !waiting.is_empty() {
            faults.next().into_iter().for_each(|operations| host.plan(Fault::DiskFull(operations)));
            let round: Vec<(u32, usize)> = waiting.drain(..).collect();
            for (number, length) in &round {
                let record = record(*number, *length);
                let batch = batch_of(&committer, &record);
                committer.submit(batch, telling(&host, record, &told));
            }
            for (expected, length) in round {
                let Answer { number, outcome, is_synced } = answers.recv().unwrap();
                prop_assert_eq!(number, expected);
                prop_assert_eq!(is_synced, outcome.is_ok(), "batch {} is answered", number);
                match outcome {
                    Ok(_) => committed.push(number),
                    Err(_) => waiting.push_back((number, length)),
                }
            }
            committer.resume();
        }
        drop(committer);
        host.crash();
        let found: Vec<u32> = open(&host).1.iter().map(|record| number(record)).collect();
        prop_assert_eq!(&found, &committed);
        prop_assert_eq!(found, (0..u32::try_from(sent).unwrap()).collect::<Vec<_>>());
    }
}

/// A committer whose thread is held within the answer to batch 0 until it is let go.
fn held(host: &Host, told: &Sender<Answer>) -> (Committer, Sender<()>) {
    let (committer, _) = open(host);
    let (entered, is_held) = channel();
    let (let_go, released) = channel::<()>();
    let tell = telling(host, record(0, 0), told);
    let batch = batch_of(&committer, &record(0, 0));
    committer.submit(
        batch,
        Box::new(move |outcome| {
            entered.send(()).unwrap();
            let _ = released.recv();
            tell(outcome);
        }),
    );
    is_held.recv().unwrap();
    (committer, let_go)
}

#[test]
fn one_batch_waits_and_the_next_finds_no_room() {
    let host = Host::new(1);
    let (told, answers) = channel();
    let (committer, let_go) = held(&host, &told);
    let try_submit = |number| {
        let record = record(number, 0);
        committer.try_submit(batch_of(&committer, &record), telling(&host, record, &told))
    };
    assert!(try_submit(1).is_ok());
    let busy = try_submit(2).expect_err("one batch waits already");
    assert!(!committer.is_idle());
    let_go.send(()).unwrap();
    committer.submit(busy.batch, busy.done);
    let order: Vec<u32> = answers.iter().take(3).map(|answer| answer.number).collect();
    assert_eq!(order, [0, 1, 2]);
}

#[test]
fn dropping_it_commits_what_was_submitted_and_closes_the_log() {
    let host = Host::new(1);
    let (told, answers) = channel();
    let (committer, let_go) = held(&host, &told);
    let last = record(1, 0);
    committer.submit(batch_of(&committer, &last), telling(&host, last, &told));
    let_go.send(()).unwrap();
    drop(committer);
    assert_eq!(answers.try_iter().filter(|answer| answer.outcome.is_ok()).count(), 2);
    let report = crate::embedded::log::verify(&*host.open().unwrap()).unwrap();
    assert_eq!((report.records, report.segments), (2, 2), "the second segment seals the first");
}

#[test]
fn a_sync_that_fails_is_the_answer_to_everything_after() {
    let host = Host::new(1);
    let (told, answers) = channel();
    let (committer, let_go) = held(&host, &told);
    host.plan(Fault::SyncFails(0));
    let_go.send(()).unwrap();
    for number in 1..4 {
        let record = record(number, 0);
        committer.submit(batch_of(&committer, &record), telling(&host, record, &told));
        committer.resume();
    }
    let refused = answers.iter().take(4).filter_map(|answer| answer.outcome.err());
    let refused: Vec<String> = refused.map(|refused| refused.error.to_string()).collect();
    assert_eq!(refused.len(), 3);
    assert!(refused.iter().all(|error| error.contains("failed syncing")), "{refused:?}");
}

#[test]
fn what_was_submitted_before_a_refusal_was_seen_is_refused_with_its_records() {
    let host = Host::new(1);
    let (told, answers) = channel();
    let (committer, let_go) = held(&host, &told);
    host.plan(Fault::DiskFull(0));
    let_go.send(()).unwrap();
    for number in [1, 2] {
        let record = record(number, 0);
        committer.submit(batch_of(&committer, &record), telling(&host, record, &told));
    }
    let (rotated, is_rotated) = channel();
    committer.rotate(Box::new(move |outcome| rotated.send(outcome).unwrap()));
    assert!(matches!(is_rotated.recv().unwrap(), Err(LogError::Full { .. })));
    let refused: Vec<Answer> = answers.iter().take(3).skip(1).collect();
    committer.resume();
    for Answer { number, outcome, .. } in refused {
        let batch = outcome.unwrap_err().batch;
        committer.submit(batch, telling(&host, record(number, 0), &told));
    }
    drop(committer);
    assert_eq!(open(&host).1, [0, 1, 2].map(|number| record(number, 0)));
}

#[test]
fn rotating_and_dropping_come_in_their_turn() {
    let host = Host::new(1);
    let (told, answers) = channel();
    let (committer, _) = open(&host);
    let (done, jobs) = channel();
    for number in 0..3 {
        let record = record(number, 0);
        committer.submit(batch_of(&committer, &record), telling(&host, record, &told));
        let done = done.clone();
        committer.rotate(Box::new(move |outcome| done.send(outcome.unwrap()).unwrap()));
    }
    committer.drop_before(SegmentNumber::new(3), Box::new(|outcome| outcome.unwrap()));
    drop((committer, done));
    let rotated: Vec<u32> = jobs.iter().map(SegmentNumber::as_u32).collect();
    assert_eq!(rotated, [2, 3, 4]);
    let segments = answers.try_iter().map(|answer| answer.outcome.unwrap().segment().as_u32());
    assert_eq!(segments.collect::<Vec<_>>(), [1, 2, 3]);
    let names: Vec<String> = host.files().into_keys().collect();
    assert_eq!(names, [3, 4].map(|number| SegmentNumber::new(number).file_name()));
}

#[test]
fn buffers_go_round() {
    let host = Host::new(1);
    let (told, answers) = channel();
    let (committer, _) = open(&host);
    let large = record(0, 100_000);
    committer.submit(batch_of(&committer, &large), telling(&host, large, &told));
    answers.recv().unwrap().outcome.unwrap();
    assert!(committer.batch().room() > 100_000, "the emptied batch came back");
    assert!(committer.batch().room() < 100_000, "and only once");
}

#[test]
fn a_thread_that_ended_refuses_what_comes_after() {
    let host = Host::new(1);
    let (committer, _) = open(&host);
    let (ended, has_ended) = channel::<()>();
    let batch = batch_of(&committer, b"one");
    committer.submit(
        batch,
        Box::new(move |_| {
            let _ended = ended;
            std::panic::resume_unwind(Box::new("on purpose"));
        }),
    );
    has_ended.recv().unwrap_err();
    // The channel to the thread may outlive the callback for a moment.
    let (told, answers) = channel();
    for _ in 0..3 {
        let told = told.clone();
        let done = Box::new(move |outcome: Result<_, _>| told.send(outcome.is_err()).unwrap());
        committer.submit(committer.batch(), done);
    }
    drop((committer, told));
    let refused: Vec<bool> = answers.iter().collect();
    assert!(refused.contains(&true) && !refused.contains(&false), "{refused:?}");
}
