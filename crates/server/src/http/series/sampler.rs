//! What asks the store once a second how things are, as long as the server runs.

use super::Series;
use super::tracks::{Sample, TRACKS_MAX};
use crate::http::overview::now;
use crate::shutdown::Shutdown;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tollgate::lanes::{Among, BusyLanes};
use tollgate::{Error, RESERVED_QUEUE, Span, Tollgate};

const EVERY: Duration = Duration::from_secs(1);
/// A store that takes longer has not answered in this second.
const PATIENCE: Duration = Duration::from_millis(900);

/// Adds a point a second until the server goes. The seconds are those of the wall clock.
pub(super) async fn run(gate: Tollgate, series: &Series, shutdown: Shutdown) {
    let began = Instant::now() + until_next_second(&gate).await;
    let mut ticks = interval_at(began, EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut last = None::<u64>;
    loop {
        tokio::select! {
            () = shutdown.begun() => return,
            _ = ticks.tick() => {}
        }
        let second = began.elapsed().as_secs();
        let passed = last.map_or(1, |last| second.saturating_sub(last));
        // One that was late is followed by another soon.
        if passed == 0 {
            continue;
        }
        last = Some(second);
        let sample = tokio::select! {
            () = shutdown.begun() => return,
            sample = timeout(PATIENCE, sample(&gate)) => sample.ok().and_then(Result::ok),
        };
        let mut tracks = series.lock();
        (1..passed).for_each(|_| tracks.add_gap());
        match sample {
            Some(sample) => tracks.add(sample),
            None => tracks.add_gap(),
        }
    }
}

async fn until_next_second(gate: &Tollgate) -> Duration {
    let Ok(Ok(now)) = timeout(PATIENCE, now(gate)).await else { return EVERY };
    let second = Span::from_secs(1).as_nanos();
    Duration::from_nanos(second - now.wall.as_nanos() % second)
}

async fn sample(gate: &Tollgate) -> Result<Sample, Error> {
    // The second that ended is the same however long the look takes.
    let now = now(gate).await?;
    let queues = Among::All { prefix: String::new(), but: Some(RESERVED_QUEUE) };
    let BusyLanes { queues, .. } = match gate.keeps_calls() {
        true => gate.busiest_lanes(&queues, 0).await?,
        false => BusyLanes::default(),
    };
    let (limits, totals) = gate.busy_limits(TRACKS_MAX).await?;
    Ok(Sample { now, queues, limits, totals })
}
