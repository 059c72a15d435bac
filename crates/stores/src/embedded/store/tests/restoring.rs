//! Facts that cannot be made true stop the start: to leave them out would change what lasts.

use super::StoreSettings;
use crate::embedded::codec::{self, CodecError};
use crate::embedded::disk::simulated::Host;
use crate::embedded::log::{Batch, Log, LogError, SegmentNumber, Settings};
use crate::embedded::{CheckError, OpenError, check};
use crate::store::{Store, TimeSource};
use std::sync::Arc;
use tollgate_core::lanes::{Effect, Kept};
use tollgate_core::{Definition, Limit, LimitName, Now, Timestamp};

/// A disk with a meter that has numbers that are not those of its limit.
fn with_a_strange_meter() -> Host {
    let (host, now) = (Host::new(1), Now::both(Timestamp::from_nanos(9)));
    let name = LimitName::new("l").unwrap();
    let definition = Some(Box::new(Definition::new(Limit::per_second(1)).unwrap()));
    let words = [1, 2, 3].into();
    let facts = [
        Effect::LimitDefined { name: name.clone(), definition, now },
        Effect::Kept(Kept::Meter { name: (name, None), words, closed: None }),
    ];
    let (first, unread) = (SegmentNumber::FIRST, |_, _: &[u8]| Ok(()));
    let disk = host.open().unwrap();
    let (mut log, _) = Log::open::<LogError>(disk, Settings::default(), first, unread).unwrap();
    let mut batch = Batch::new();
    for fact in facts {
        batch.push_with(|buffer| codec::encode(&fact, buffer));
    }
    log.commit(&mut batch).unwrap();
    log.close().unwrap();
    host
}

#[test]
fn a_meter_that_cannot_be_read_is_not_taken_for_a_new_one() {
    let host = with_a_strange_meter();
    let now: TimeSource = Arc::new(|| Now::both(Timestamp::from_nanos(9)));
    let opened = Store::on(host.open().unwrap(), StoreSettings::default(), now);
    let error = opened.err().unwrap();
    let found = matches!(
        &error,
        OpenError::Record { source: CodecError::Damaged { found, .. }, .. }
            if found.contains("numbers are not those")
    );
    assert!(found, "{error}");
    let error = check(&host.open().unwrap()).unwrap_err();
    assert!(matches!(error, CheckError::Damaged { .. }), "{error}");
}
