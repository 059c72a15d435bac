//! What the script does not decide it leaves alone, and the change is made all the same. And states
//! that few ways lead to.

use super::super::super::cells::{Put, cell, change, look};
use super::super::meter::{Kept, take};
use super::super::{connected, say, settings, shared};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::{Definition, Limit, Meter, Now, Span, Timestamp};
use tollgate_stores::redis::{RedisCells, Settings, Taken, Tried};
use tollgate_stores::shared::cells::{CellKey, Cells, Change, Decide, Found, Kind, Wanted};
use tollgate_stores::shared::quick::{Quick, QuickAsk, QuickLine};

/// One ask of one unit at one meter, by the original.
struct Asking {
    quick: Quick,
    kept: Option<Kept>,
    /// What was found when it was asked, each time.
    found: Vec<Found>,
}

impl Decide for Asking {
    fn decide(&mut self, now: Now, found: &Found) -> Vec<Change> {
        self.found.push(found.clone());
        let mut kept = [self.kept.clone()];
        let _ = take(&mut kept, &self.quick.asks, now);
        let value = kept[0].as_ref().map(|kept| kept.value(now));
        vec![Change { at: 0, value, life: None }]
    }

    fn take_back(&mut self, at: usize, _now: Now, _found: Option<&[u8]>) -> Option<Change> {
        panic!("Redis writes together, and has nothing to take back at {at}");
    }

    fn quick(&self) -> Option<&Quick> {
        Some(&self.quick)
    }
}

fn at(seconds: u64) -> Now {
    Now::both(Timestamp::default().plus(Span::from_secs(seconds)))
}

fn line(limit: Limit) -> QuickLine {
    QuickLine {
        at: 0,
        rules: "rules".into(),
        seen: at(1).at.as_nanos(),
        definition: Arc::new(Definition::new(limit).unwrap()),
        weight: 1,
    }
}

fn quick(line: QuickLine) -> Quick {
    let ask = QuickAsk { count: 1, life: Span::from_secs(1), lines: vec![line] };
    Quick { expects: Vec::new(), needs_all: false, asks: vec![ask] }
}

/// Cells at the hundredth second, and the one meter.
async fn world() -> (RedisCells, [CellKey; 1]) {
    let settings = Settings { time: Some(Arc::new(|| at(100))), ..settings() };
    (connected(&settings).await, [cell(Kind::Meter, "m")])
}

/// Leaves a meter, and has an ask tried there and then made.
async fn try_at(kept: &Kept, line: QuickLine) -> Tried {
    let (cells, key) = world().await;
    let left = Some(kept.value(at(100)));
    change(&cells, &key, &mut Put(vec![left.clone()], None)).await;
    let wanted = Wanted { read: &[], change: &key };
    let quick = quick(line);
    let tried = cells.try_quick(wanted, &quick).await.unwrap();
    if tried == Tried::Declined {
        assert_eq!(look(&cells, &key).await.first(), Some(&left), "nothing was changed");
        let mut asking = Asking { quick, kept: Some(kept.clone()), found: Vec::new() };
        cells.change(wanted, &mut asking).await.unwrap();
        assert_eq!(asking.found, [Found { read: vec![], change: vec![left] }]);
    }
    tried
}

#[tokio::test]
async fn a_promise_is_kept_by_the_original() {
    let line = line(Limit::sliding_window(5, Span::from_secs(10)));
    let mut kept = Kept::of(&line, at(90));
    let _ = kept.meter.pay(&line.definition, 5, (at(90), at(105).at), None);
    assert_eq!(try_at(&kept, line).await, Tried::Declined);
}

#[tokio::test]
async fn debt_that_spills_over_is_reckoned_by_the_original() {
    let line = line(Limit::fixed_window(5, Span::from_secs(10)));
    let mut kept = Kept::of(&line, at(85));
    let paid = kept.meter.pay(&line.definition, 5, (at(85), at(85).at), None);
    kept.meter.settle(&line.definition, &paid, 30, at(86));
    assert_eq!(try_at(&kept, line).await, Tried::Declined);
}

#[tokio::test]
async fn a_closure_is_heeded_by_the_original_until_it_is_over() {
    let line = line(Limit::per_second(5));
    let mut kept = Kept::of(&line, at(90));
    kept.meter.close(at(101).at, "asked to wait", at(90).at);
    assert_eq!(try_at(&kept, line.clone()).await, Tried::Declined);
    let mut kept = Kept::of(&line, at(90));
    kept.meter.close(at(100).at, "asked to wait", at(90).at);
    assert!(matches!(try_at(&kept, line).await, Tried::Taken(_)));
}

#[tokio::test]
async fn a_meter_under_other_rules_goes_along_with_the_original() {
    let line = line(Limit::per_second(5));
    let kept = Kept::of(&line, at(90));
    let other = QuickLine { rules: "others".into(), ..line.clone() };
    assert_eq!(try_at(&kept, other).await, Tried::Declined);
    let later = QuickLine { seen: at(2).at.as_nanos(), ..line.clone() };
    assert_eq!(try_at(&kept, later).await, Tried::Declined);
    assert!(matches!(try_at(&kept, line).await, Tried::Taken(_)));
}

#[tokio::test]
async fn a_meter_from_the_future_is_brought_in_line_by_the_original() {
    let line = line(Limit::per_second(5));
    let mut kept = Kept::of(&line, at(90));
    let _ = kept.meter.pay(&line.definition, 1, (at(101), at(101).at), None);
    assert_eq!(try_at(&kept, line.clone()).await, Tried::Declined);
    assert_eq!(try_at(&Kept::of(&line, at(101)), line).await, Tried::Declined);
}

#[tokio::test]
async fn a_calendar_is_read_by_the_original() {
    let line = line(Limit::fixed_window(5, Span::from_days(1)).on_calendar("UTC"));
    assert_eq!(try_at(&Kept::of(&line, at(90)), line).await, Tried::Declined);
}

#[tokio::test]
async fn a_window_that_has_yet_to_begin_lets_nothing_pass() {
    let line = line(Limit::fixed_window(5, Span::from_secs(10)));
    for (ends, passes) in [(110, true), (111, false)] {
        let words = [0, at(90).at.as_nanos(), 0, 0, at(ends).at.as_nanos(), 0, 0, 0];
        let meter = Meter::from_words(&line.definition, &words, None).unwrap();
        assert_eq!(meter.blocker(&line.definition, 1, at(100)).is_none(), passes);
        let tried = try_at(&Kept { meter, ..Kept::of(&line, at(90)) }, line.clone()).await;
        let Tried::Taken(Taken { granted, .. }) = tried else { panic!("{tried:?}") };
        assert_eq!(granted, [passes]);
    }
}

#[tokio::test]
async fn a_low_point_after_now_stays_where_it_is() {
    let line = line(Limit::per_second(5));
    let (seconds, none) = (|seconds| at(seconds).at.as_nanos(), 0);
    let words = [0, seconds(90), 0, 0, seconds(100), none, none, 1, seconds(105), 1_000];
    let meter = Meter::from_words(&line.definition, &words, None).unwrap();
    let (cells, key) = world().await;
    let mut kept = [Some(Kept { meter, ..Kept::of(&line, at(90)) })];
    let left = kept[0].as_ref().map(|kept| kept.value(at(100)));
    change(&cells, &key, &mut Put(vec![left], None)).await;
    let quick = quick(line);
    let tried = cells.try_quick(Wanted { read: &[], change: &key }, &quick).await.unwrap();
    assert!(matches!(tried, Tried::Taken(_)), "{tried:?}");
    let _ = take(&mut kept, &quick.asks, at(100));
    let value = kept[0].as_ref().map(|kept| kept.value(at(100)));
    assert_eq!(look(&cells, &key).await, [value]);
}

#[tokio::test]
async fn of_low_points_that_are_equally_near_the_first_is_joined() {
    let nanos = Arc::new(AtomicU64::new(at(100).at.as_nanos()));
    let clock = Arc::clone(&nanos);
    let now = move || Now::both(Timestamp::from_nanos(clock.load(Ordering::Relaxed)));
    let settings = Settings { time: Some(Arc::new(now.clone())), ..settings() };
    let (cells, key) = (connected(&settings).await, [cell(Kind::Meter, "m")]);
    let quick = quick(line(Limit::per_second(1_000_000)));
    let mut kept = [None];
    for round in 0..40 {
        let tried = cells.try_quick(Wanted { read: &[], change: &key }, &quick).await.unwrap();
        assert!(matches!(tried, Tried::Taken(_)), "{tried:?}");
        let _ = take(&mut kept, &quick.asks, now());
        let value = kept[0].as_ref().map(|kept| kept.value(now()));
        assert_eq!(look(&cells, &key).await, [value], "after {round} steps");
        nanos.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn what_was_read_must_be_as_it_was_expected() {
    let (cells, key) = world().await;
    let read = [cell(Kind::Limit, "l")];
    change(&cells, &read, &mut Put(vec![Some(b"new".to_vec())], None)).await;
    let line = line(Limit::per_second(5));
    let wanted = Wanted { read: &read, change: &key };
    for (expected, is_taken) in [(None, false), (Some("old"), false), (Some("new"), true)] {
        let expects = vec![expected.map(|value| value.as_bytes().to_vec())];
        let quick = Quick { expects, ..quick(line.clone()) };
        let tried = cells.try_quick(wanted, &quick).await.unwrap();
        assert_eq!(matches!(tried, Tried::Taken(_)), is_taken, "{expected:?}");
    }
}

#[tokio::test]
async fn what_the_script_wrote_is_not_written_again() {
    let (cells, key) = world().await;
    let quick = quick(line(Limit::per_second(5)));
    let mut asking = Asking { quick, kept: None, found: Vec::new() };
    cells.change(Wanted { read: &[], change: &key }, &mut asking).await.unwrap();
    assert_eq!(asking.found, [Found { read: vec![], change: vec![None] }]);
    let mut kept = [None];
    let _ = take(&mut kept, &asking.quick.asks, at(100));
    let value = kept[0].as_ref().map(|kept| kept.value(at(100)));
    assert_eq!(look(&cells, &key).await, [value]);
}

#[tokio::test]
async fn a_meter_lives_until_it_is_as_new_and_a_minute_and_a_half_longer() {
    let time: Arc<dyn Fn() -> Now + Send + Sync> = Arc::new(|| at(100));
    let settings = Settings { time: Some(time), ..settings() };
    let cells = connected(&settings).await;
    let limits = [
        (Limit::per(1, Span::from_secs(600)), 690_000),
        (Limit::fixed_window(1, Span::from_secs(600)), 690_000),
        (Limit::sliding_window(1, Span::from_secs(600)), 690_000),
        (Limit::concurrency(2), 91_000),
        (Limit::per_second(1).and(Limit::concurrency(2)), 91_000),
    ];
    for (number, (limit, longest)) in limits.into_iter().enumerate() {
        let key = [cell(Kind::Meter, &number.to_string())];
        let wanted = Wanted { read: &[], change: &key };
        let tried = cells.try_quick(wanted, &quick(line(limit))).await.unwrap();
        assert!(matches!(tried, Tried::Taken(_)));
        let stored = format!("{{{}}}:m:1:{number}", settings.prefix);
        let left: i64 = say(shared(), &["PTTL", &stored]).await;
        assert!((longest - 30_000..=longest).contains(&left), "{number}: {left}");
    }
}

#[tokio::test]
async fn a_meter_whose_end_is_in_the_same_half_minute_is_written_in_place_and_its_expiry_left() {
    let settings = Settings { time: Some(Arc::new(|| at(100))), ..settings() };
    let cells = connected(&settings).await;
    // A bucket that is full a second later with each ask, and a window that ends when it ends.
    let (bucket, window) =
        (Limit::per_minute(60).burst(60), Limit::fixed_window(60, Span::from_secs(1)));
    for (name, limit, last) in [("b", bucket, 110_000), ("w", window, 500_000)] {
        let (key, quick) = ([cell(Kind::Meter, name)], quick(line(limit)));
        let stored = format!("{{{}}}:m:1:{name}", settings.prefix);
        let mut kept = [None];
        for ask in 1..=20 {
            let tried = cells.try_quick(Wanted { read: &[], change: &key }, &quick).await.unwrap();
            assert!(matches!(tried, Tried::Taken(_)), "{tried:?}");
            let _ = take(&mut kept, &quick.asks, at(100));
            let value = kept[0].as_ref().map(|kept| kept.value(at(100)));
            assert_eq!(look(&cells, &key).await, [value], "after {ask}");
            let left: i64 = say(shared(), &["PTTL", &stored]).await;
            // The twentieth of the bucket ends with the second 120.
            let longest = [91_000, 500_000, last][usize::from(ask > 1) + usize::from(ask == 20)];
            assert!((longest - 60_000..=longest).contains(&left), "{name} after {ask}: {left}");
            if ask == 1 {
                let _: bool = say(shared(), &["PEXPIRE", &stored, "500000"]).await;
            }
        }
    }
}

#[tokio::test]
async fn what_was_to_be_written_in_place_is_written_whole_if_another_meter_is_not_plain() {
    let (cells, key) = (world().await.0, ["a", "b"].map(|name| cell(Kind::Meter, name)));
    let first = line(Limit::per_second(5));
    let asks = [first.clone(), QuickLine { at: 1, ..first.clone() }].map(|line| QuickAsk {
        count: 1,
        life: Span::from_secs(1),
        lines: vec![line],
    });
    let mut kept = [None, Some(Kept::of(&first, at(90)))];
    cells.try_quick(Wanted { read: &[], change: &key[..1] }, &quick(first)).await.unwrap();
    let _ = take(&mut kept, &asks[..1], at(100));
    let other = kept[1].as_mut().unwrap();
    other.meter.close(at(99).at, "asked to wait", at(90).at);
    change(&cells, &key[1..], &mut Put(vec![Some(other.value(at(95)))], None)).await;
    let both = Quick { expects: Vec::new(), needs_all: false, asks: asks.to_vec() };
    let tried = cells.try_quick(Wanted { read: &[], change: &key }, &both).await.unwrap();
    let Tried::Taken(Taken { granted, .. }) = tried else { panic!("{tried:?}") };
    assert_eq!(granted, [true, true]);
    let _ = take(&mut kept, &asks, at(100));
    let values = kept.map(|kept| kept.map(|kept| kept.value(at(100))));
    assert_eq!(look(&cells, &key).await, values);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_about_to_change_a_meter_goes_first() {
    let (cells, key) = world().await;
    let quick = quick(line(Limit::per_second(5)));
    let wanted = Wanted { read: &[], change: &key };
    let mut nested = Nested { cells: &cells, key: &key, quick: &quick, tried: None };
    cells.change(wanted, &mut nested).await.unwrap();
    assert_eq!(nested.tried, Some(Tried::Busy));
    let tried = cells.try_quick(wanted, &quick).await.unwrap();
    assert!(matches!(tried, Tried::Taken(_)), "the intent is over: {tried:?}");
}

/// Tries an ask while it decides.
struct Nested<'a> {
    cells: &'a RedisCells,
    key: &'a [CellKey],
    quick: &'a Quick,
    tried: Option<Tried>,
}

impl Decide for Nested<'_> {
    fn decide(&mut self, _now: Now, _found: &Found) -> Vec<Change> {
        let wanted = Wanted { read: &[], change: self.key };
        let trying = self.cells.try_quick(wanted, self.quick);
        self.tried = Some(tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(trying).unwrap()
        }));
        Vec::new()
    }

    fn take_back(&mut self, at: usize, _now: Now, _found: Option<&[u8]>) -> Option<Change> {
        panic!("nothing was written to the cell at {at}");
    }

    fn quick(&self) -> Option<&Quick> {
        None
    }
}
