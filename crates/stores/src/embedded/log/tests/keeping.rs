//! What goes in comes out: records, positions, rotation, dropping, reading back.

use super::super::{FRAME_BYTES_MAX, verify};
use super::*;
use crate::embedded::disk::RealDisk;

#[test]
fn records_come_back_in_order_with_their_positions() {
    let (host, mut log) = fresh();
    let mut expected = Records::new();
    for round in 0..20_u8 {
        let mut batch = Batch::new();
        let records: Vec<Vec<u8>> = (0..round).map(|size| vec![round; usize::from(size)]).collect();
        let offsets: Vec<usize> = records.iter().map(|record| batch.push(record)).collect();
        let place = log.commit(&mut batch).unwrap();
        let positions = offsets.into_iter().map(|offset| place.position(offset));
        expected.extend(positions.zip(records));
    }
    let reader = log.reader();
    for (position, record) in &expected {
        assert_eq!(reader.read(*position, record.len()).unwrap(), *record);
    }
    drop((log, reader));
    let (_, report, records) = open(&host).unwrap();
    assert_eq!(records, expected);
    assert_eq!((report.frames, report.records, report.torn), (20, 190, None));
    assert!(report.segments > 1, "the test is to cross segments");
}

#[test]
fn the_same_on_a_real_disk() {
    let folder = tempfile::tempdir().unwrap();
    let disk = || Arc::new(RealDisk::open(folder.path()).unwrap());
    let (mut log, ..) = open_on(disk(), SegmentNumber::FIRST).unwrap();
    let large = vec![7; 300_000];
    let place = commit(&mut log, &[b"one", b"two"]).unwrap();
    commit(&mut log, &[&large]).unwrap();
    log.rotate().unwrap();
    let two = place.position(Batch::new().bytes() + 1 + 3 + 1);
    assert_eq!(log.reader().read(two, 3).unwrap(), b"two");
    log.close().unwrap();

    let (mut log, report, records) = open_on(disk(), SegmentNumber::FIRST).unwrap();
    let found: Vec<&[u8]> = records.iter().map(|(_, record)| record.as_slice()).collect();
    assert_eq!(found, [b"one", b"two", &large[..]]);
    assert_eq!(records[1].0, two);
    assert_eq!(report.torn, None);
    log.drop_before(records[2].0.segment()).unwrap();
    drop(log);
    let report = verify(&*disk()).unwrap();
    assert_eq!(report.records, 1);
}

#[test]
fn a_segment_is_as_long_as_the_settings_say_or_holds_one_batch() {
    let (host, mut log) = fresh();
    for bytes in [400, 400, 400, 5_000, 10, 900, 900] {
        commit(&mut log, &[&vec![1; bytes]]).unwrap();
    }
    let lengths: Vec<usize> = host.files().values().map(Vec::len).collect();
    let frame = |bytes: usize| Batch::new().bytes() + 2 + bytes;
    let expected = [
        32 + 2 * frame(400),
        32 + frame(400),
        32 + frame(5_000),
        32 + frame(10) - 1 + frame(900),
        32 + frame(900),
    ];
    assert_eq!(lengths, expected);
}

#[test]
fn a_batch_that_no_segment_can_hold_is_refused() {
    let (_, mut log) = fresh();
    log.make_room(FRAME_BYTES_MAX).unwrap();
    let error = log.make_room(FRAME_BYTES_MAX + 1).unwrap_err();
    assert!(error.to_string().contains("is over the largest"), "{error}");
    commit(&mut log, &[b"still open"]).unwrap();
}

#[test]
fn dropped_segments_are_gone_and_the_rest_is_there() {
    let (host, mut log) = fresh();
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(commit(&mut log, &[b"record"]).unwrap());
        log.rotate().unwrap();
    }
    let positions: Vec<Position> =
        places.iter().map(|place| place.position(Batch::new().bytes() + 1)).collect();
    let numbers = |log: &Log| log.sealed().iter().map(|it| it.as_u32()).collect::<Vec<_>>();
    assert_eq!(numbers(&log), [1, 2, 3, 4]);
    let reader = log.reader();
    reader.read(positions[0], 6).unwrap();

    log.drop_before(positions[2].segment()).unwrap();
    assert_eq!(numbers(&log), [3, 4]);
    let error = reader.read(positions[0], 6).unwrap_err();
    assert!(matches!(error, LogError::Absent { .. }), "{error}");
    assert_eq!(reader.read(positions[2], 6).unwrap(), b"record");

    // The one being written stays, whatever is asked.
    log.drop_before(SegmentNumber::new(99)).unwrap();
    assert_eq!(host.files().into_keys().collect::<Vec<_>>(), [name(5)]);
    commit(&mut log, &[b"more"]).unwrap();
}

#[test]
fn rotating_an_empty_segment_does_nothing() {
    let (host, mut log) = fresh();
    let before = host.files();
    assert_eq!(log.rotate().unwrap(), SegmentNumber::FIRST);
    assert_eq!(host.files(), before);
}

#[test]
fn reading_past_the_end_is_absent_and_takes_no_memory() {
    let (_, mut log) = fresh();
    let position = commit(&mut log, &[b"record"]).unwrap().position(21);
    let reader = log.reader();
    assert_eq!(reader.read(position, 6).unwrap(), b"record");
    for bytes in [7, usize::MAX] {
        let error = reader.read(position, bytes).unwrap_err();
        assert!(matches!(error, LogError::Absent { .. }), "{error}");
    }
}

#[test]
fn more_segments_can_be_read_than_files_are_kept_open() {
    let (_, mut log) = fresh();
    let mut places = Vec::new();
    for round in 0..200_u8 {
        places.push(commit(&mut log, &[&[round]]).unwrap());
        log.rotate().unwrap();
    }
    let reader = log.reader();
    for (round, place) in places.iter().enumerate().chain(places.iter().enumerate().rev()) {
        assert_eq!(reader.read(place.position(21), 1).unwrap(), [u8::try_from(round).unwrap()]);
    }
}

#[test]
fn starting_again_and_again_makes_no_files() {
    let (host, log) = fresh();
    log.close().unwrap();
    for _ in 0..3 {
        open(&host).unwrap().0.close().unwrap();
        drop(open(&host).unwrap());
    }
    assert_eq!(host.files().len(), 1);
}

#[test]
fn what_a_killed_process_had_not_synced_lasts_once_it_was_read() {
    for seed in 0..50 {
        let host = Host::new(seed);
        let (mut log, ..) = open(&host).unwrap();
        commit(&mut log, &[b"one"]).unwrap();
        // As if killed between write and sync.
        let frame = Batch::new().seal(2, log.writing.salt()).to_vec();
        drop(log);
        host.open().unwrap().open(&name(1)).unwrap().append(&frame).unwrap();
        assert_eq!(open(&host).unwrap().1.frames, 2);
        host.crash();
        assert_eq!(open(&host).unwrap().1.frames, 2, "seed {seed}");
    }
}
