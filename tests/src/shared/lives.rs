//! How long cells live, in a test's time: cases over a store of cells that goes by it.

use super::cells::{Add, Put, cell, change, look};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::{Now, Span, Timestamp};
use tollgate_stores::shared::cells::{Cells, Change, Decide, Found, Kind, Wanted};
use tollgate_stores::shared::quick::Quick;

/// A test's time.
#[derive(Clone)]
pub(crate) struct Time(Arc<AtomicU64>);

impl Time {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_700_000_000_000_000_000)))
    }

    pub(crate) fn pass(&self, span: Span) {
        self.0.fetch_add(span.as_nanos(), Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> Now {
        Now::both(Timestamp::from_nanos(self.0.load(Ordering::SeqCst)))
    }

    pub(crate) fn source(&self) -> Arc<dyn Fn() -> Now + Send + Sync> {
        let time = self.clone();
        Arc::new(move || time.now())
    }
}

/// Says nothing of cells that it was shown, and takes note of the time.
#[derive(Default)]
struct Silent(Option<Now>);

impl Decide for Silent {
    fn decide(&mut self, now: Now, _found: &Found) -> Vec<Change> {
        self.0 = Some(now);
        Vec::new()
    }

    fn take_back(&mut self, at: usize, _now: Now, _found: Option<&[u8]>) -> Option<Change> {
        panic!("nothing was written to the cell at {at}");
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}

/// What has expired is not there, for nobody, and can be written anew.
pub(crate) async fn what_has_expired_is_not_there(cells: &dyn Cells, time: &Time) {
    let keys = ["a", "b"].map(|name| cell(Kind::Meter, name));
    change(cells, &keys[..1], &mut Put(vec![Some(vec![1])], Some(Span::from_millis(10)))).await;
    change(cells, &keys[1..], &mut Put(vec![Some(vec![2])], None)).await;
    time.pass(Span::from_nanos(9_999_000));
    assert_eq!(look(cells, &keys).await, [Some(vec![1]), Some(vec![2])]);
    time.pass(Span::from_nanos(1_000));
    assert_eq!(look(cells, &keys).await, [None, Some(vec![2])]);
    assert_eq!(cells.names(Kind::Meter, None, 9).await.unwrap(), ["b"].map(Box::from));
    let mut add = Add::new(&[7]);
    change(cells, &keys[..1], &mut add).await;
    assert_eq!(add.before, [0]);
    assert_eq!(look(cells, &keys).await, [Some(b"7".to_vec()), Some(vec![2])]);
}

/// A cell that was asked for and not written is not there, whatever became of the others.
pub(crate) async fn what_is_not_written_is_not_there(cells: &dyn Cells) {
    let keys = ["a", "b", "c"].map(|name| cell(Kind::Meter, name));
    change(cells, &keys[1..2], &mut Add::new(&[1])).await;
    change(cells, &keys, &mut Silent::default()).await;
    assert_eq!(cells.names(Kind::Meter, None, 9).await.unwrap(), ["b"].map(Box::from));
    change(cells, &keys, &mut Add::new(&[0, 0, 5])).await;
    assert_eq!(cells.names(Kind::Meter, None, 9).await.unwrap(), ["b", "c"].map(Box::from));
}

/// Who wants no cell at all is told the time.
pub(crate) async fn the_time_is_told_without_cells(cells: &dyn Cells, time: &Time) {
    for _ in 0..2 {
        let mut silent = Silent::default();
        let wanted = Wanted { read: &[], change: &[] };
        cells.change(wanted, &mut silent).await.unwrap();
        assert_eq!(silent.0, Some(time.now()));
        time.pass(Span::from_secs(1));
    }
}

/// Values of any length are kept as they are.
pub(crate) async fn values_of_any_length_are_kept(cells: &dyn Cells) {
    let key = [cell(Kind::Meter, "a")];
    for length in [0_u64, 1, 2_000, 9_000, 500_000] {
        // Bytes that do not shrink when they are packed.
        let spread = |at: u64| at.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0];
        let value: Vec<u8> = (0..length).map(spread).collect();
        change(cells, &key, &mut Put(vec![Some(value.clone())], None)).await;
        assert!(look(cells, &key).await == [Some(value)], "{length} bytes");
    }
}
