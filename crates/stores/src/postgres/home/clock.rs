//! The time of a store that many nodes share.
//!
//! The wall clock is the server's. Limit time goes on from the last instant that was written, by the
//! server's clock when a node begins and by the node's own monotonic clock from then on: whatever
//! clock is set, it neither jumps nor stands still, and it is never before what was written.

use super::super::row::timestamp;
use crate::store::TimeSource;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use tollgate_core::{Now, Span, Timestamp};

/// Tells the time.
pub(super) struct Clock {
    /// In tests.
    source: Option<TimeSource>,
    /// Both clocks when they were last looked at, and when that was.
    anchor: Mutex<(Now, Instant)>,
}

impl Clock {
    /// A clock that goes on from what was written last: then the server's clock said `wrote`.
    pub(super) fn new(source: Option<TimeSource>, written: Written, server: SystemTime) -> Self {
        let since = server.duration_since(written.server).unwrap_or_default();
        // Nothing was ever written: limit time begins as the wall clock.
        let at = match written.limit_time {
            at if at == Timestamp::default() => timestamp(server),
            at => at.plus(Span::from(since)),
        };
        let now = Now { at, wall: timestamp(server) };
        Self { source, anchor: Mutex::new((now, elapsing())) }
    }

    /// The present, when the server's clock was just read and this was written last.
    pub(super) fn read(&self, server: SystemTime, written: Timestamp) -> Now {
        if let Some(source) = &self.source {
            return source();
        }
        let mut anchor = self.lock();
        let at = going_on(*anchor).at.max(written);
        let now = Now { at, wall: timestamp(server) };
        *anchor = (now, elapsing());
        now
    }

    /// The present, as well as it is known here.
    pub(super) fn now(&self) -> Now {
        match &self.source {
            Some(source) => source(),
            None => going_on(*self.lock()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Now, Instant)> {
        self.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was written last, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) limit_time: Timestamp,
    pub(super) server: SystemTime,
}

fn going_on((now, then): (Now, Instant)) -> Now {
    let span = Span::from(elapsing().duration_since(then));
    Now { at: now.at.plus(span), wall: now.wall.plus(span) }
}

#[expect(
    clippy::disallowed_methods,
    reason = "limit time goes on by it between looks at the server"
)]
fn elapsing() -> Instant {
    Instant::now()
}
