//! Torn tails are cut off, damage is refused, and neither is taken for the other.

use super::super::frame::FrameHeader;
use super::super::segment::{HEADER_BYTES, Header};
use super::super::{TornTail, verify};
use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

/// A log of `batches`, over two segments and more, closed or as a crash leaves it.
fn written(is_closed: bool) -> Host {
    let (host, mut log) = fresh();
    for batch in ["one", "two", "three", "four", "five"] {
        commit(&mut log, &[batch.as_bytes(), &[b'x'; 300]]).unwrap();
    }
    if is_closed {
        log.close().unwrap();
    }
    host
}

/// Adds to a file what no log would.
fn append(host: &Host, number: u32, bytes: &[u8]) {
    host.open().unwrap().open(&name(number)).unwrap().append(bytes).unwrap();
}

/// Opens what cannot be opened, and sees that nothing was touched.
fn refused(host: &Host) -> String {
    let before = host.files();
    let error = open(host).unwrap_err();
    assert_eq!(host.files(), before, "refused with {error}, and touched");
    assert_eq!(verify(&*host.open().unwrap()).unwrap_err().to_string(), error.to_string());
    error.to_string()
}

#[test]
fn a_torn_tail_is_cut_off_and_reported() {
    let host = written(false);
    let whole = host.files();
    append(&host, 3, &[0; 100]);
    let torn = TornTail { file: name(3), offset: whole[&name(3)].len() as u64, bytes: 100 };
    let before = host.files();
    assert_eq!(verify(&*host.open().unwrap()).unwrap().torn, Some(torn.clone()));
    assert_eq!(host.files(), before, "a check changes nothing");

    let (log, report, records) = open(&host).unwrap();
    assert_eq!((report.torn, records.len()), (Some(torn), 10));
    drop(log);
    assert_eq!(host.synced(&name(3)), whole.get(&name(3)).cloned());
    assert_eq!(open(&host).unwrap().1.torn, None);
}

#[test]
fn a_broken_frame_with_frames_behind_it_is_refused() {
    for (offset, part) in [(32 + 3, "header"), (32 + 50, "content")] {
        let (host, mut log) = fresh();
        commit(&mut log, &[&[1; 100]]).unwrap();
        commit(&mut log, &[&[2; 100]]).unwrap();
        drop(log);
        host.flip(&name(1), offset * 8);
        let error = refused(&host);
        let expected = format!(
            "{} is damaged at offset 32: the {part} of a frame does not match its checksum, and later frames follow",
            name(1)
        );
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn a_broken_frame_at_the_end_of_a_sealed_segment_is_refused() {
    let host = written(false);
    let last = host.files()[&name(1)].len() - 1;
    host.flip(&name(1), last * 8);
    assert!(refused(&host).contains("the content of a frame does not match its checksum;"));
}

#[test]
fn a_sealed_segment_that_is_read_by_itself_is_not_taken_for_torn() {
    let first = ..=SegmentNumber::FIRST;
    let read =
        |host: &Host| super::super::read(&*host.look(), first, |_, _| Ok::<(), LogError>(()));
    let host = written(false);
    let whole = host.files()[&name(1)].clone();
    assert_eq!(read(&host).unwrap().torn, None);
    for offset in [HEADER_BYTES, whole.len() - 1] {
        let host = written(false);
        host.flip(&name(1), offset * 8);
        let error = read(&host).unwrap_err();
        assert!(matches!(error, LogError::Corrupt { .. }), "{offset}: {error}");
    }
    // Cut where a frame ends, all that is there is whole.
    let host = written(false);
    let file = host.open().unwrap().open(&name(1)).unwrap();
    file.truncate(HEADER_BYTES as u64).unwrap();
    let error = read(&host).unwrap_err().to_string();
    assert!(error.contains("begins with frame 3 where frame 1 is due"), "{error}");
}

#[test]
fn a_segment_that_is_missing_is_refused() {
    // The one to begin with, and one in the middle.
    for number in [1, 2] {
        let host = written(true);
        let disk = host.open().unwrap();
        disk.remove(&name(number)).unwrap();
        let error = open_on(disk, SegmentNumber::FIRST).unwrap_err().to_string();
        let expected = format!("{} is damaged at offset 0: the file is missing", name(number));
        assert!(error.starts_with(&expected), "{error}");
    }
    let host = Host::new(1);
    let error = open_on(host.open().unwrap(), SegmentNumber::new(4)).unwrap_err();
    assert!(error.to_string().contains("the file is missing"), "{error}");
}

#[test]
fn a_frame_that_comes_twice_is_refused() {
    let (host, mut log) = fresh();
    commit(&mut log, &[b"one"]).unwrap();
    drop(log);
    let frame = host.files()[&name(1)][32..].to_vec();
    append(&host, 1, &frame);
    assert!(refused(&host).contains("frame 1 where frame 2 is due"));
}

#[test]
fn a_frame_left_out_is_refused() {
    let (host, mut log) = fresh();
    commit(&mut log, &[b"one"]).unwrap();
    let frame = Batch::new().seal(3, log.writing.salt()).to_vec();
    drop(log);
    append(&host, 1, &frame);
    assert!(refused(&host).contains("frame 3 where frame 2 is due"));
}

#[test]
fn a_segment_that_lost_its_last_frames_whole_is_refused() {
    let host = written(false);
    let disk = host.open().unwrap();
    let file = disk.open(&name(1)).unwrap();
    let half = (file.length().unwrap() - 32) / 2 + 32;
    file.truncate(half).unwrap();
    drop((file, disk));
    let error = refused(&host);
    assert!(error.contains(&name(2)) && error.contains("begins with frame"), "{error}");
}

#[test]
fn a_later_format_is_refused() {
    let host = Host::new(1);
    let disk = host.open().unwrap();
    let header = Header::new(SegmentNumber::FIRST, 1).encode_as(9);
    disk.create(&name(1)).unwrap().append(&header).unwrap();
    drop(disk);
    assert!(refused(&host).contains("has format 9, and this release knows up to 1"));
}

#[test]
fn a_record_cannot_pass_for_a_later_frame() {
    for (is_forged, is_torn) in [(true, true), (false, false)] {
        let (host, mut log) = fresh();
        commit(&mut log, &[b"one"]).unwrap();
        let salt = if is_forged { log.writing.salt() ^ 1 } else { log.writing.salt() };
        drop(log);
        // A torn frame: no header, but of its record the bytes of one.
        let mut tail = vec![0; 30];
        tail.extend(FrameHeader::of(b"", 3).encode(salt));
        append(&host, 1, &tail);
        assert_eq!(open(&host).is_ok_and(|(_, report, _)| report.torn.is_some()), is_torn);
    }
}

#[test]
fn a_draft_of_a_segment_is_removed() {
    let host = written(false);
    let before = host.files();
    host.open().unwrap().create(&format!("{}.new", name(4))).unwrap();
    drop(open(&host).unwrap());
    let names: Vec<String> = host.files().into_keys().collect();
    assert_eq!(names, before.into_keys().chain([name(4)]).collect::<Vec<_>>());
}

fn seeded() -> ProptestConfig {
    Config { cases: 2_000, rng_seed: RngSeed::Fixed(7), ..Config::default() }
}

proptest! {
    #![proptest_config(seeded())]

    #[test]
    fn one_flipped_bit_is_found_after_a_close(place in any::<prop::sample::Index>()) {
        let host = written(true);
        let (file, bit) = pick_bit(&host, place);
        host.flip(&file, bit);
        let error = open(&host).unwrap_err();
        prop_assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
    }

    /// Without a close the last frame alone cannot be told from a torn tail.
    #[test]
    fn one_flipped_bit_is_found_after_a_crash_but_in_the_last_frame(
        place in any::<prop::sample::Index>()
    ) {
        let host = written(false);
        let last = host.files()[&name(3)].len() as u64;
        let (file, bit) = pick_bit(&host, place);
        host.flip(&file, bit);
        match open(&host) {
            Err(error) => prop_assert!(matches!(error, LogError::Corrupt { .. }), "{error}"),
            Ok((_, report, records)) => {
                prop_assert_eq!(&file, &name(3));
                let torn = report.torn.unwrap();
                prop_assert_eq!((torn.offset, torn.bytes), (32, last - 32));
                prop_assert_eq!(records.len(), 8);
            }
        }
    }
}

fn pick_bit(host: &Host, place: prop::sample::Index) -> (String, usize) {
    let files = host.files();
    let mut bit = place.index(files.values().map(|bytes| bytes.len() * 8).sum());
    for (name, bytes) in files {
        if bit < bytes.len() * 8 {
            return (name, bit);
        }
        bit -= bytes.len() * 8;
    }
    unreachable!("the place is within one of the files")
}
