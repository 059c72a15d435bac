//! Who waits for calls of a queue: the first is woken first, and one who gets as many as it can take
//! wakes the next.

use super::Parts;
use super::line::{Line, Standing};
use super::pulse::{Pulse, ended};
use crate::error::Error;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::claim::{BACK_WITHIN, CLAIM_MAX};
use tollgate_core::lanes::{Claim, Claimed};
use tollgate_core::{QueueName, Span, Timestamp};

/// Longest time that one claim waits: who wants to wait longer claims again.
const WAIT_MAX: Span = Span::from_hours(1);
/// The store need not hear of it if whoever got calls is back within so long; it does after twice that at the latest,
/// or whenever the driver passes by itself.
pub(super) const TOLD_AFTER: Span = Span::from_nanos(BACK_WITHIN.as_nanos() / 2);

/// How long one claim waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) wait: Span,
    /// For how much longer the store takes it to ask: whoever comes back by then has been there all the time.
    pub(super) lingers: Span,
}

impl From<Span> for Patience {
    fn from(wait: Span) -> Self {
        Self { wait, lingers: Span::ZERO }
    }
}

#[derive(Default)]
pub(super) struct Claims {
    queues: Mutex<HashMap<QueueName, Queue>>,
    /// Queues that someone stopped asking for: the store is to be told until when others still do.
    left: Mutex<BTreeMap<QueueName, Left>>,
}

/// Those who stopped asking for a queue.
#[derive(Clone, Copy)]
struct Left {
    /// Until when the store thinks that they ask.
    until: Timestamp,
    /// When it is to be told, unless someone asks for as long by then.
    told_at: Timestamp,
}

#[derive(Default)]
struct Queue {
    line: Arc<Line>,
    /// Until when those who wait will, and how many of them.
    until: BTreeMap<Timestamp, usize>,
    /// Until when the store thinks that someone asks who left: whoever leaves last sees to it that it is told.
    believed: Timestamp,
}

impl Claims {
    /// Wakes the first who waits for calls of a queue.
    pub(super) fn wake(&self, queue: &QueueName) {
        if let Some(queue) = self.queues.lock().get(queue) {
            queue.line.wake();
        }
    }

    /// How many wait for calls of a queue beyond now.
    pub(super) fn count(&self, queue: &str, now: Timestamp) -> usize {
        let queues = self.queues.lock();
        let found = queues.get(queue).into_iter();
        found
            .flat_map(|queue| queue.until.range(now.plus(Span::from_nanos(1))..))
            .map(|it| it.1)
            .sum()
    }

    /// Wakes everyone: the store will say nothing any more.
    pub(super) fn wake_all(&self) {
        self.queues.lock().values().for_each(|queue| queue.line.wake_all());
    }

    /// Tells of the queues that someone stopped asking for, and until when others still do; says when
    /// more is to be told. Whoever comes meanwhile waits: its claim goes out after what is told here.
    pub(super) fn tell_left(
        &self,
        now: Timestamp,
        mut tell: impl FnMut(QueueName, Timestamp),
    ) -> Option<Timestamp> {
        let left = std::mem::take(&mut *self.left.lock());
        let mut queues = self.queues.lock();
        let mut next = None;
        for (queue, left) in left {
            let mut found = queues.get_mut(&queue);
            let last = found.as_ref().and_then(|queue| queue.until.last_key_value());
            let until = last.map(|(until, _)| *until).unwrap_or_default();
            if let Some(found) = &mut found
                && until >= left.until
            {
                // Someone asks for as long: the store is right for now.
                found.believed = found.believed.max(left.until);
            } else if left.told_at <= now {
                if let Some(found) = found {
                    found.believed = until;
                }
                tell(queue, until);
            } else {
                next = next.into_iter().chain([left.told_at]).min();
                self.leave(queue, left);
            }
        }
        next
    }

    /// The store could not be told.
    pub(super) fn tell_again(&self, queue: QueueName) {
        self.leave(queue, Left { until: Timestamp::MAX, told_at: Timestamp::default() });
    }

    fn leave(&self, queue: QueueName, who: Left) {
        let mut left = self.left.lock();
        let all = left.entry(queue).or_insert(who);
        all.until = all.until.max(who.until);
        all.told_at = all.told_at.min(who.told_at);
    }

    /// Asks for a queue until then.
    pub(super) fn come(
        self: &Arc<Self>,
        queue: &QueueName,
        until: Timestamp,
        pulse: &Arc<Pulse>,
    ) -> Claimer {
        let mut queues = self.queues.lock();
        let found = queues.entry(queue.clone()).or_default();
        *found.until.entry(until).or_default() += 1;
        let line = found.line.clone();
        drop(queues);
        let (claims, queue, pulse) = (self.clone(), queue.clone(), pulse.clone());
        Claimer { claims, queue, until, line, pulse, is_asking: false, has_calls: false }
    }
}

/// One who asks.
pub(super) struct Claimer {
    claims: Arc<Claims>,
    queue: QueueName,
    until: Timestamp,
    line: Arc<Line>,
    pulse: Arc<Pulse>,
    /// The store may think that it asks for as long as it waits.
    is_asking: bool,
    /// It leaves with calls.
    has_calls: bool,
}

impl Drop for Claimer {
    fn drop(&mut self) {
        let mut queues = self.claims.queues.lock();
        let Some(queue) = queues.get_mut(&self.queue) else { return };
        if let Some(count) = queue.until.get_mut(&self.until) {
            *count -= 1;
            if *count == 0 {
                queue.until.remove(&self.until);
            }
        }
        if self.is_asking {
            queue.believed = queue.believed.max(self.until);
        }
        let (until, now) = (queue.believed, self.pulse.clock.now());
        let others = queue.until.last_key_value().map(|(until, _)| *until);
        if others.is_none() {
            queues.remove(&self.queue);
        }
        if now < until && others.is_none_or(|others| others < until) {
            drop(queues);
            let told_at = if self.has_calls { now.plus(TOLD_AFTER) } else { now };
            self.claims.leave(self.queue.clone(), Left { until, told_at });
            // Once more than that, if the driver does not pass by itself.
            self.pulse.pass_by(if self.has_calls { told_at.plus(TOLD_AFTER) } else { told_at });
        }
    }
}

impl<S: Lanes> Parts<S> {
    /// Starts calls of a queue as soon as some may, with leases of this length or of the queue's own.
    pub(super) async fn claim(
        &self,
        queue: &QueueName,
        most: usize,
        patience: impl Into<Patience>,
        lease: Option<Span>,
    ) -> Result<Vec<Claimed>, Error> {
        let most = most.min(CLAIM_MAX);
        if most == 0 {
            return Ok(Vec::new());
        }
        let Patience { wait, lingers } = patience.into();
        let until = self.pulse.clock.now().plus(wait.min(WAIT_MAX));
        let mut claimer = self.claims.come(queue, until, &self.pulse);
        let line = claimer.line.clone();
        let mut standing = line.stand();
        loop {
            standing.looks();
            let asks = until.since(self.pulse.clock.now());
            let was_asking = std::mem::replace(&mut claimer.is_asking, !asks.is_zero());
            let claim = Claim { queue: queue.clone(), most, lease, asks: asks.plus(lingers) };
            let (claimed, goes_on) = match lingers.is_zero() {
                true => self.store.claim_and_leave(claim).await?,
                false => (self.store.claim(claim).await?, true),
            };
            claimer.is_asking &= was_asking || goes_on;
            standing.looked();
            if claimed.is_empty() && !goes_on {
                // What was started for it has ended meanwhile, and it was not sent away.
                continue;
            }
            if claimed.len() >= most {
                // The store has more than one could take.
                drop(standing);
                line.wake();
                line.wake();
                claimer.has_calls = true;
                return Ok(claimed);
            }
            claimer.has_calls = !claimed.is_empty();
            if claimer.has_calls || asks.is_zero() {
                return Ok(claimed);
            }
            self.woken_or_late(&standing, until).await;
            if self.pulse.has_ended() {
                return Err(ended().into());
            }
        }
    }

    /// Waits until who stands there is woken, or has waited long enough.
    async fn woken_or_late(&self, standing: &Standing, until: Timestamp) {
        let mut late = pin!(self.pulse.sleep_until(until));
        poll_fn(|context| match standing.poll_woken(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => late.as_mut().poll(context),
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, ManualClock};

    /// Those who ask for one queue, and a clock that is set by hand.
    struct Stage {
        clock: ManualClock,
        pulse: Arc<Pulse>,
        claims: Arc<Claims>,
        queue: QueueName,
    }

    impl Stage {
        fn new() -> Self {
            let clock = ManualClock::new();
            let pulse = Arc::new(Pulse::new(Arc::new(clock.clone())));
            Self { clock, pulse, claims: Arc::default(), queue: QueueName::new("q").unwrap() }
        }

        /// Asks for so long.
        fn comes(&self, wait: Span) -> Claimer {
            self.claims.come(&self.queue, self.clock.now().plus(wait), &self.pulse)
        }

        /// Leaves with calls; the store may think that it goes on asking.
        fn leaves(&self, mut claimer: Claimer, is_believed: bool) {
            (claimer.is_asking, claimer.has_calls) = (is_believed, true);
        }

        /// Until when others ask, if the store is told in a millisecond.
        fn told(&self) -> Option<Timestamp> {
            self.clock.advance(BACK_WITHIN);
            let mut told = None;
            let _ = self.claims.tell_left(self.clock.now(), |_, until| told = Some(until));
            told
        }
    }

    #[test]
    fn who_was_not_sent_away_leaves_without_a_word() {
        let stage = Stage::new();
        stage.leaves(stage.comes(Span::from_secs(60)), false);
        assert_eq!(stage.told(), None);
        stage.leaves(stage.comes(Span::from_secs(60)), true);
        assert_eq!(stage.told(), Some(Timestamp::default()));
    }

    #[test]
    fn what_the_store_thinks_of_who_left_is_told_by_who_leaves_last() {
        let stage = Stage::new();
        stage.leaves(stage.comes(Span::from_secs(60)), true);
        let back = stage.comes(Span::from_secs(60));
        assert_eq!(stage.told(), None, "someone asks for as long");
        stage.leaves(back, false);
        assert_eq!(stage.told(), Some(Timestamp::default()));

        let (first, second) = (stage.comes(Span::from_secs(60)), stage.comes(Span::from_secs(60)));
        stage.leaves(first, true);
        assert_eq!(stage.told(), None, "someone asks for as long");
        stage.leaves(second, false);
        assert_eq!(stage.told(), Some(Timestamp::default()));
    }

    #[test]
    fn whoever_was_named_to_the_store_tells_it_in_the_end() {
        let stage = Stage::new();
        let (first, second) = (stage.comes(Span::from_secs(60)), stage.comes(Span::from_secs(9)));
        let until = second.until;
        stage.leaves(first, true);
        assert_eq!(stage.told(), Some(until));
        stage.leaves(second, false);
        assert_eq!(stage.told(), Some(Timestamp::default()));
        assert_eq!(stage.told(), None);
    }
}
