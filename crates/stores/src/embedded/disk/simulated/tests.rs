//! That the simulated disk is as bad as it says, and no worse.

use super::*;
use std::collections::BTreeSet;

/// What is read after a crash, over many seeds, of a disk that `act` was done to.
fn after_crash(act: impl Fn(&Host, &dyn Disk)) -> BTreeSet<Option<Vec<u8>>> {
    let outcome = |seed| {
        let host = Host::new(seed);
        act(&host, &*host.open().unwrap());
        host.crash();
        host.files().get("a").cloned()
    };
    (0..500).map(outcome).collect()
}

#[test]
fn what_was_synced_stays_and_the_rest_may() {
    let found = after_crash(|_, disk| {
        let file = disk.create("a").unwrap();
        disk.sync().unwrap();
        file.append(b"kept").unwrap();
        file.sync().unwrap();
        file.append(b"12").unwrap();
    });
    let expected = ["kept", "kept1", "kept12", "kept\x002", "kept1\0", "kept\0", "kept\0\0"];
    assert_eq!(found, expected.iter().map(|text| Some(text.as_bytes().to_vec())).collect());
}

#[test]
fn sectors_survive_out_of_order() {
    let found = after_crash(|_, disk| {
        let file = disk.create("a").unwrap();
        disk.sync().unwrap();
        file.append(&[7; 1024]).unwrap();
    });
    let is_out_of_order = |file: &Vec<u8>| file[..512] == [0; 512] && file[512..] == [7; 512];
    assert!(found.iter().flatten().filter(|file| file.len() == 1024).any(is_out_of_order));
}

#[test]
fn what_was_cut_off_may_shine_through() {
    let found = after_crash(|_, disk| {
        let file = disk.create("a").unwrap();
        disk.sync().unwrap();
        file.append(b"old").unwrap();
        file.truncate(0).unwrap();
        file.sync().unwrap();
        file.append(b"new").unwrap();
    });
    assert!(found.contains(&Some(b"old".to_vec())) && found.contains(&Some(b"new".to_vec())));
}

#[test]
fn names_last_once_the_folder_is_synced() {
    let created = after_crash(|_, disk| drop(disk.create("a").unwrap()));
    assert_eq!(created, [None, Some(vec![])].into());
    let removed = after_crash(|_, disk| {
        disk.create("a").unwrap();
        disk.sync().unwrap();
        disk.remove("a").unwrap();
    });
    assert_eq!(removed, [None, Some(vec![])].into());
    let renamed = after_crash(|_, disk| {
        disk.create("b").unwrap();
        disk.rename("b", "a").unwrap();
        disk.sync().unwrap();
    });
    assert_eq!(renamed, [Some(vec![])].into());
}

#[test]
fn a_sync_that_failed_is_not_made_good_by_another() {
    let found = after_crash(|host, disk| {
        let file = disk.create("a").unwrap();
        disk.sync().unwrap();
        file.append(b"1").unwrap();
        host.plan(Fault::SyncFails(0));
        file.sync().unwrap_err();
        file.sync().unwrap();
    });
    assert_eq!(found, [Some(vec![]), Some(b"1".to_vec())].into());
}

#[test]
fn a_full_disk_takes_a_part_and_then_has_space_again() {
    let host = Host::new(1);
    let disk = host.open().unwrap();
    let file = disk.create("a").unwrap();
    host.plan(Fault::DiskFull(1));
    file.append(b"one").unwrap();
    assert_eq!(file.append(&[1; 1000]).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!((3..1003).contains(&file.length().unwrap()));
    file.append(b"two").unwrap();
}

#[test]
fn nothing_works_without_power_and_what_was_opened_before_is_dead() {
    let host = Host::new(1);
    let disk = host.open().unwrap();
    let file = disk.create("a").unwrap();
    disk.sync().unwrap();
    host.plan(Fault::PowerCut(0));
    file.append(b"1").unwrap_err();
    disk.names().unwrap_err();
    host.crash();
    file.sync().unwrap_err();
    assert_eq!(host.open().unwrap().names().unwrap(), ["a"]);
}

#[test]
fn one_process_at_a_time_has_the_folder() {
    let host = Host::new(1);
    let first = host.open().unwrap();
    let error = host.open().unwrap_err();
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(first);
    host.open().unwrap();
}
