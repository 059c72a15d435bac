//! Seeing that others keep a transaction open: what was removed stays on disk until it ends.

use crate::postgres::pool::Pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tollgate_core::Span;
use tollgate_core::contract::Answer;

/// How often it is looked for.
const EVERY: Duration = Duration::from_secs(5);
/// From when on a transaction is told of: none of ours lasts as long.
const LONG: Span = Span::from_secs(300);

/// For how long the oldest transaction has been open that is seen in the database.
#[derive(Default)]
pub(super) struct Oldest(AtomicU64);

/// A transaction that is open.
struct Open {
    pid: Option<i32>,
    called: String,
    since: Span,
}

impl Oldest {
    pub(super) fn open_for(&self) -> Span {
        Span::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Notes what is open. `true`: that is told of, once for each that is open for long.
    fn note(&self, found: Option<&Open>) -> bool {
        let span = found.map_or(Span::ZERO, |open| open.since);
        let before = self.0.swap(span.as_nanos(), Ordering::Relaxed);
        span >= LONG && Span::from_nanos(before) < LONG
    }
}

/// Looks, until the home's runtime ends.
pub(super) async fn watch(pool: Arc<Pool>, oldest: Arc<Oldest>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let found = match tokio::time::timeout(EVERY, look(&pool)).await {
            Ok(Ok(found)) => found,
            // Whoever asks for something is told why the server cannot be asked.
            Ok(Err(_)) | Err(_) => continue,
        };
        let is_told = oldest.note(found.as_ref());
        if let Some(Open { pid, called, since }) = found.filter(|_| is_told) {
            tracing::warn!(
                pid,
                called,
                seconds = since.as_nanos() / 1_000_000_000,
                "a transaction in the database stays open: what is removed stays on disk until it ends"
            );
        }
    }
}

async fn look(pool: &Pool) -> Answer<Option<Open>> {
    let session = pool.session().await?;
    let rows = session.client().query_typed(include_str!("oldest.sql"), &[]).await;
    let rows = rows.map_err(crate::postgres::fault::of)?;
    session.keep();
    let read = |row: &tokio_postgres::Row| {
        let micros: i64 = row.try_get(2)?;
        let since = Span::from_nanos(micros.unsigned_abs().saturating_mul(1_000));
        let called: Option<String> = row.try_get(1)?;
        Ok(Open { pid: row.try_get(0)?, called: called.unwrap_or_default(), since })
    };
    rows.first().map(read).transpose().map_err(crate::postgres::fault::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_told_of_once_when_it_has_been_open_for_long() {
        let oldest = Oldest::default();
        let note = |seconds| {
            let since = Span::from_secs(seconds);
            oldest.note(Some(&Open { pid: None, called: String::new(), since }))
        };
        assert_eq!([299, 300, 305, 3, 301].map(note), [false, true, false, false, true]);
        assert!(!oldest.note(None));
        assert_eq!(oldest.open_for(), Span::ZERO);
    }
}
