//! The server's time, of which it tells only when it wrote something: so this process writes a key of
//! its own, and counts from there.

use super::bucket::Bucket;
use super::value;
use async_nats::Client;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::{Now, Span, Timestamp};

/// What the keys of clocks begin with: no kind of cell has this letter.
pub(super) const CLOCKS: &str = "c.";
/// After so long without a sign of its process, the key of a clock may go.
pub(super) const CLOCK_LIFE: Span = Span::from_hours(1);
/// How long a reading is used.
const READING_LIFE: Duration = Duration::from_secs(1);
/// This part of the time that has passed since a reading is left out. No two clocks that are kept right
/// drift apart that fast, so ours is never ahead of the server's.
const DRIFT_PART: u128 = 512;

/// The server's clock, as seen from here: behind it by no more than a round trip takes, never ahead,
/// and never earlier than it was.
pub(super) struct ServerClock {
    given: Option<Arc<dyn Fn() -> Now + Send + Sync>>,
    client: Client,
    key: String,
    reading: Mutex<Option<Reading>>,
    /// Held by whoever reads it anew.
    turn: tokio::sync::Mutex<()>,
    last: AtomicU64,
}

/// What the server's clock said, at the latest, when ours was there.
#[derive(Clone, Copy)]
struct Reading {
    server: Timestamp,
    here: Instant,
    connects: u64,
}

impl ServerClock {
    /// The server's clock, or what is given for it.
    pub(super) fn new(client: &Client, given: Option<Arc<dyn Fn() -> Now + Send + Sync>>) -> Self {
        // An inbox has a name that nobody else has.
        let inbox = client.new_inbox();
        let unique = inbox.rsplit('.').next().unwrap_or_default();
        Self {
            given,
            client: client.clone(),
            key: format!("{CLOCKS}{unique}"),
            reading: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            last: AtomicU64::new(0),
        }
    }

    /// Sees to it that there is a reading of late: of this second, and of this connection.
    pub(super) async fn refresh(&self, bucket: &Bucket) -> Answer<()> {
        if self.given.is_some() || self.is_fresh() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        // Somebody else may have read it while we waited.
        if self.is_fresh() {
            return Ok(());
        }
        let connects = self.connects();
        bucket.overwrite(&self.key, value::encode(Timestamp::MAX, b"")).await?;
        // By now the server has written it: its clock says that, or more.
        let here = Instant::now();
        let written = bucket.read(&self.key).await?.ok_or_else(|| StoreError::Failed {
            reason: format!(
                "the key {} is gone as soon as it is written: who removes it?",
                self.key
            ),
        })?;
        let reading = Reading { server: written.written, here, connects };
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = Some(reading);
        Ok(())
    }

    /// The time; [refreshed](Self::refresh) before.
    pub(super) fn now(&self) -> Now {
        if let Some(given) = &self.given {
            return given();
        }
        let reading = *self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let at = reading.map_or(0, |reading| reading.at(Instant::now()).as_nanos());
        let last = self.last.fetch_max(at, Ordering::SeqCst);
        Now::both(Timestamp::from_nanos(last.max(at)))
    }

    fn is_fresh(&self) -> bool {
        let reading = *self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        reading.is_some_and(|reading| {
            reading.here.elapsed() < READING_LIFE && reading.connects == self.connects()
        })
    }

    fn connects(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }
}

impl Reading {
    fn at(&self, here: Instant) -> Timestamp {
        let passed = here.duration_since(self.here).as_nanos();
        let passed = passed - passed.div_ceil(DRIFT_PART);
        self.server.plus(Span::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_goes_on_a_little_slower_than_time() {
        let here = Instant::now();
        let reading = Reading { server: Timestamp::from_nanos(1_000_000), here, connects: 1 };
        assert_eq!(reading.at(here).as_nanos(), 1_000_000);
        assert_eq!(reading.at(here + Duration::from_nanos(512)).as_nanos(), 1_000_511);
        assert_eq!(reading.at(here + Duration::from_nanos(1)).as_nanos(), 1_000_000);
    }
}
