//! Days: each is a partition, made when it is needed and dropped when it is old.

use crate::embedded::HistorySettings;
use crate::postgres::row::system_time;
use crate::postgres::schema::SchemaName;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_postgres::{Client, Error};
use tollgate_core::{Span, Timestamp};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A day of the wall clock, in UTC: so many after the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Day(u64);

impl Day {
    /// The day an instant is of, as the database has it.
    pub(super) fn of(at: Timestamp) -> Self {
        let since = system_time(at).duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_secs() / DAY.as_secs())
    }

    pub(super) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// When it begins.
    pub(super) fn begins(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0 * DAY.as_secs())
    }

    /// When it is over, for the limits of age.
    fn ends(self) -> Timestamp {
        Timestamp::default().plus(Span::from_secs(self.next().0.saturating_mul(DAY.as_secs())))
    }
}

/// The statements.
pub(super) struct Sql {
    begin: String,
    make: String,
    drop: String,
    list: String,
}

impl Sql {
    pub(super) fn new(schema: &SchemaName, begin: String) -> Self {
        let named = |text: &str| schema.put_into(text);
        Self {
            begin,
            make: named(include_str!("make_day.sql")),
            drop: named(include_str!("drop_day.sql")),
            list: named(include_str!("days.sql")),
        }
    }

    /// Makes a day's partition, if nobody has.
    pub(super) async fn make(&self, client: &Client, day: Day) -> Result<(), Error> {
        self.run(client, &self.make, day).await
    }

    /// Drops a day's partition, if nobody has.
    pub(super) async fn drop(&self, client: &Client, day: Day) -> Result<(), Error> {
        self.run(client, &self.drop, day).await
    }

    async fn run(&self, client: &Client, block: &str, Day(day): Day) -> Result<(), Error> {
        // A block takes no arguments.
        let block = block.replace(":day", &day.to_string());
        client.batch_execute(&format!("{}; {block}; COMMIT", self.begin)).await
    }

    /// The days that there are, the oldest first, and how many bytes each has.
    pub(super) async fn list(&self, client: &Client) -> Result<Vec<(Day, u64)>, Error> {
        let rows = client.query_typed(&self.list, &[]).await?;
        let day = |row: &tokio_postgres::Row| {
            let (day, bytes): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            Ok((Day(day.unsigned_abs()), bytes.unsigned_abs()))
        };
        rows.iter().map(day).collect()
    }
}

/// Which days go, of those that there are: what is too old, and the oldest while there is too much. Today
/// stays, and what is made ahead.
pub(super) fn old(days: &[(Day, u64)], settings: HistorySettings, now: Timestamp) -> Vec<Day> {
    let today = Day::of(now);
    let mut bytes: u64 = days.iter().map(|(_, bytes)| bytes).sum();
    let is_old = |(day, its): &&(Day, u64)| {
        let goes = *day < today && (day.ends().plus(settings.age) <= now || bytes > settings.bytes);
        bytes -= if goes { *its } else { 0 };
        goes
    };
    days.iter().take_while(is_old).map(|(day, _)| *day).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Timestamp {
        Timestamp::default().plus(Span::from_hours(hours))
    }

    fn left(age_hours: u64, bytes: u64, now: Timestamp) -> Vec<u64> {
        let days: Vec<_> = (0..5).map(|day| (Day(day), 10)).collect();
        let settings = HistorySettings { age: Span::from_hours(age_hours), bytes };
        let gone = old(&days, settings, now);
        days.iter().filter(|(day, _)| !gone.contains(day)).map(|(day, _)| day.0).collect()
    }

    #[test]
    fn a_day_goes_when_all_of_it_is_too_old() {
        assert_eq!(left(48, 1_000, at(3 * 24 - 1)), [0, 1, 2, 3, 4]);
        assert_eq!(left(48, 1_000, at(3 * 24)), [1, 2, 3, 4]);
        assert_eq!(left(48, 1_000, at(4 * 24)), [2, 3, 4]);
        assert_eq!(left(0, 1_000, at(3 * 24)), [3, 4], "what is left is of today, or ahead");
    }

    #[test]
    fn the_oldest_go_while_there_is_too_much_and_today_stays() {
        assert_eq!(left(1_000, 50, at(3 * 24)), [0, 1, 2, 3, 4]);
        assert_eq!(left(1_000, 49, at(3 * 24)), [1, 2, 3, 4]);
        assert_eq!(left(1_000, 30, at(3 * 24)), [2, 3, 4]);
        assert_eq!(left(1_000, 1, at(3 * 24)), [3, 4]);
    }

    #[test]
    fn an_instant_that_the_database_rounds_up_to_midnight_is_of_the_next_day() {
        let midnight = at(24);
        assert_eq!(Day::of(Timestamp::from_nanos(midnight.as_nanos() - 1)), Day(1));
        assert_eq!(Day::of(Timestamp::from_nanos(midnight.as_nanos() - 1_000)), Day(0));
        assert!(Day::of(Timestamp::MAX).next().begins() > system_time(Timestamp::MAX));
    }
}
