//! Disks that are full or fail.

use super::*;
use crate::embedded::disk::simulated::Fault;

#[test]
fn a_full_disk_leaves_the_log_as_it_was_until_there_is_space() {
    for seed in 0..50 {
        let host = Host::new(seed);
        let (mut log, ..) = open(&host).unwrap();
        commit(&mut log, &[b"one"]).unwrap();
        let before = host.files();
        let mut batch = Batch::new();
        batch.push(&[2; 100]);
        host.plan(Fault::DiskFull(0));
        let error = log.commit(&mut batch).unwrap_err();
        assert!(matches!(error, LogError::Full { .. }), "{error}");
        assert_eq!(host.files(), before);
        // What was cut off stays so, also if the log goes on elsewhere.
        assert_eq!(host.synced(&name(1)), before.get(&name(1)).cloned());

        log.commit(&mut batch).unwrap();
        drop(log);
        let (_, report, records) = open(&host).unwrap();
        assert_eq!((records.len(), &records[1].1[..], report.torn), (2, &[2; 100][..], None));
    }
}

#[test]
fn what_a_full_disk_cut_off_never_shows_in_what_comes_after() {
    for seed in 0..2_000 {
        let host = Host::new(seed);
        let (mut log, ..) = open(&host).unwrap();
        commit(&mut log, &[b"one"]).unwrap();
        host.plan(Fault::DiskFull(0));
        commit(&mut log, &[&[2; 50]]).unwrap_err();
        host.plan(Fault::PowerCut(seed % 8));
        let _ = commit(&mut log, &[&[3; 700]]);
        drop(log);
        host.crash();
        let (_, _, records) = open(&host).unwrap();
        assert_eq!(records[0].1, b"one");
    }
}

#[test]
fn many_tries_on_a_full_disk_make_one_file() {
    let (host, mut log) = fresh();
    commit(&mut log, &[b"one"]).unwrap();
    // First the frame fails; then, each time, the frame in a new segment.
    for operation in [0, 2, 2, 2, 2] {
        host.plan(Fault::DiskFull(operation));
        let error = commit(&mut log, &[b"two"]).unwrap_err();
        assert!(matches!(error, LogError::Full { .. }), "{error}");
    }
    commit(&mut log, &[b"two"]).unwrap();
    drop(log);
    assert_eq!(host.files().into_keys().collect::<Vec<_>>(), [name(1), name(2)]);
    assert_eq!(texts(&open(&host).unwrap().2), ["one", "two"]);
}

#[test]
fn a_full_disk_leaves_no_half_segment() {
    // The draft cannot be created, then its header cannot be written.
    for operation in [0, 1] {
        let (host, mut log) = fresh();
        commit(&mut log, &[b"one"]).unwrap();
        let before = host.files();
        host.plan(Fault::DiskFull(operation));
        let error = log.rotate().unwrap_err();
        assert!(matches!(error, LogError::Full { .. }), "{error}");
        assert_eq!(host.files(), before);
        assert_eq!(log.rotate().unwrap(), SegmentNumber::new(2));
    }
}

#[test]
fn a_sync_that_fails_ends_the_log_for_good() {
    // The frame's, then the new segment's and the folder's.
    for (operation, is_rotating) in [(0, false), (0, true), (1, true)] {
        let (host, mut log) = fresh();
        commit(&mut log, &[b"one"]).unwrap();
        host.plan(Fault::SyncFails(operation));
        let large = vec![0; 2_000];
        let record: &[u8] = if is_rotating { &large } else { b"two" };
        let error = commit(&mut log, &[record]).unwrap_err();
        assert!(matches!(error, LogError::Unsynced { .. }), "{error}");
        let later = [
            commit(&mut log, &[b"three"]).unwrap_err(),
            log.rotate().unwrap_err(),
            log.drop_before(SegmentNumber::new(1)).unwrap_err(),
            log.close().unwrap_err(),
        ];
        assert!(later.iter().all(|again| again.to_string() == error.to_string()), "{later:?}");
        assert_eq!(texts(&open(&host).unwrap().2), ["one"]);
    }
}

#[test]
fn records_can_still_be_read_from_a_log_that_failed() {
    let (host, mut log) = fresh();
    let position = commit(&mut log, &[b"one"]).unwrap().position(21);
    host.plan(Fault::SyncFails(0));
    commit(&mut log, &[b"two"]).unwrap_err();
    assert_eq!(log.reader().read(position, 3).unwrap(), b"one");
}

#[test]
fn a_segment_in_place_of_an_empty_one_is_the_one_that_is_read() {
    let (host, mut log) = fresh();
    let reader = log.reader();
    reader.read(Position::from_bits(1 << 32 | 32), 1).unwrap_err();
    host.plan(Fault::DiskFull(0));
    commit(&mut log, &[b"one"]).unwrap_err();
    let position = commit(&mut log, &[b"one"]).unwrap().position(21);
    assert_eq!(position.segment(), SegmentNumber::FIRST);
    assert_eq!(reader.read(position, 3).unwrap(), b"one");
}
