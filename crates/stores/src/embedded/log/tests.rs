//! The log on a simulated disk, and once on a real one.

mod crash;
mod damage;
mod keeping;
mod trouble;
mod world;

use super::{Batch, BatchPlace, Log, LogError, Position, Report, SegmentNumber, Settings};
use crate::embedded::disk::Disk;
use crate::embedded::disk::simulated::Host;
use std::sync::Arc;

/// Small segments, so that a few records fill one.
const SMALL: Settings = Settings { segment_bytes: 1_000 };

type Records = Vec<(Position, Vec<u8>)>;

/// Opens what is on the disk from its first segment on, with all that is read.
fn open_on(disk: Arc<dyn Disk>, from: SegmentNumber) -> Result<(Log, Report, Records), LogError> {
    let mut records = Records::new();
    let (log, report) = Log::open(disk, SMALL, from, |position, record| {
        records.push((position, record.to_vec()));
        Ok::<(), LogError>(())
    })?;
    Ok((log, report, records))
}

fn open(host: &Host) -> Result<(Log, Report, Records), LogError> {
    open_on(host.open().unwrap(), SegmentNumber::FIRST)
}

/// A new log on a new host.
fn fresh() -> (Host, Log) {
    let host = Host::new(1);
    let (log, ..) = open(&host).unwrap();
    (host, log)
}

fn commit(log: &mut Log, records: &[&[u8]]) -> Result<BatchPlace, LogError> {
    let mut batch = Batch::new();
    for record in records {
        batch.push(record);
    }
    log.commit(&mut batch)
}

/// Only the bytes.
fn texts(records: &Records) -> Vec<&str> {
    records.iter().map(|(_, record)| std::str::from_utf8(record).unwrap()).collect()
}

fn name(number: u32) -> String {
    SegmentNumber::new(number).file_name()
}
