//! What waits to be written: handed over without waiting, and bounded.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tollgate_core::lanes::Event;

/// How many events wait in memory at most: some 40 MB. More than that are dropped and counted.
const WAITING_MAX: usize = 262_144;
/// Most bytes of reports and payloads that may wait.
const BYTES_MAX: usize = 64 << 20;
/// So many events are taken before their time, so that few wait.
const EAGER: usize = 4_096;
/// So many bytes of reports and payloads are, too.
const EAGER_BYTES: usize = 4 << 20;
/// How long events are collected: a statement costs more than an event.
const GATHER: Duration = Duration::from_millis(100);

/// Where history is told what happened.
#[derive(Default)]
pub(in crate::postgres::home) struct Intake {
    waiting: Mutex<Waiting>,
    arrived: Notify,
    ended: Condvar,
}

#[derive(Default)]
struct Waiting {
    events: Vec<Event>,
    /// How many events wait or are being written, and how long their reports and payloads.
    held: usize,
    bytes: usize,
    /// Who waits until all of it can be read.
    flushes: Vec<oneshot::Sender<()>>,
    dropped: u64,
    /// The last events were dropped.
    is_over: bool,
    is_closed: bool,
    has_ended: bool,
}

/// What is to be written.
pub(super) struct Taken {
    pub(super) events: Vec<Event>,
    pub(super) flushes: Vec<oneshot::Sender<()>>,
    pub(super) is_closed: bool,
}

impl Waiting {
    fn is_something(&self) -> bool {
        !self.events.is_empty() || self.is_urgent()
    }

    /// Whether it is taken before its time.
    fn is_urgent(&self) -> bool {
        self.is_much() || !self.flushes.is_empty() || self.is_closed
    }

    fn is_much(&self) -> bool {
        self.events.len() >= EAGER || self.bytes >= EAGER_BYTES
    }
}

impl Intake {
    /// Takes events that last, or drops them if too many wait. Waits for nobody.
    pub(in crate::postgres::home) fn tell(&self, mut events: Vec<Event>) {
        events.retain(Event::is_history);
        if events.is_empty() {
            return;
        }
        let bytes: usize = events.iter().map(Event::bytes).sum();
        let mut waiting = self.lock();
        let is_over =
            waiting.held + events.len() > WAITING_MAX || waiting.bytes + bytes > BYTES_MAX;
        if waiting.has_ended || is_over {
            waiting.dropped += events.len() as u64;
            if !std::mem::replace(&mut waiting.is_over, true) {
                tracing::warn!(dropped = waiting.dropped, "history cannot keep up and has gaps");
            }
            return;
        }
        waiting.is_over = false;
        let (is_first, was_much) = (waiting.events.is_empty(), waiting.is_much());
        waiting.held += events.len();
        waiting.bytes += bytes;
        waiting.events.append(&mut events);
        if is_first || (!was_much && waiting.is_much()) {
            self.arrived.notify_one();
        }
    }

    /// Asks to be told when all that waits can be read.
    pub(super) fn flush(&self) -> oneshot::Receiver<()> {
        let (done, flushed) = oneshot::channel();
        let mut waiting = self.lock();
        if !waiting.has_ended {
            // Those who gave up while nothing could be written.
            waiting.flushes.retain(|flush| !flush.is_closed());
            waiting.flushes.push(done);
            self.arrived.notify_one();
        }
        flushed
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Nothing is taken any more.
    pub(super) fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        waiting.flushes.clear();
        waiting.events.clear();
        self.ended.notify_all();
    }

    /// Waits until nothing is taken any more, but not for longer than this.
    pub(super) fn has_ended_within(&self, at_most: Duration) -> bool {
        let is_under_way = |waiting: &mut Waiting| !waiting.has_ended;
        let woken = self.ended.wait_timeout_while(self.lock(), at_most, is_under_way);
        woken.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Takes all there is, once it was collected for a while or someone waits for it; nothing, if there
    /// is nothing for so long.
    pub(super) async fn take(&self, at_most: Duration) -> Taken {
        if self.until(at_most, Waiting::is_something).await {
            self.until(GATHER, Waiting::is_urgent).await;
        }
        let mut waiting = self.lock();
        let (events, flushes) =
            (std::mem::take(&mut waiting.events), std::mem::take(&mut waiting.flushes));
        Taken { events, flushes, is_closed: waiting.is_closed }
    }

    /// Events that were taken are written, and take no room any more.
    pub(super) fn note_kept(&self, events: &[Event]) {
        drop(self.free(events));
    }

    /// Events that were taken could not be written.
    pub(super) fn note_dropped(&self, events: &[Event]) {
        self.free(events).dropped += events.len() as u64;
    }

    /// Waits for so long, or until it is closed; says whether it is.
    pub(super) async fn pause(&self, at_most: Duration) -> bool {
        self.until(at_most, |waiting| waiting.is_closed).await
    }

    /// Waits until something is so; says whether it is.
    async fn until(&self, at_most: Duration, is_so: impl Fn(&Waiting) -> bool) -> bool {
        let arrival = async {
            while !is_so(&self.lock()) {
                self.arrived.notified().await;
            }
        };
        tokio::time::timeout(at_most, arrival).await.is_ok()
    }

    fn free(&self, events: &[Event]) -> MutexGuard<'_, Waiting> {
        let bytes: usize = events.iter().map(Event::bytes).sum();
        let mut waiting = self.lock();
        waiting.held -= events.len();
        waiting.bytes -= bytes;
        waiting
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::lanes::{CallId, End, Outcome, Payload, What};
    use tollgate_core::{LaneName, Now, QueueName};

    fn event(what: What) -> Event {
        let (queue, lane) = (QueueName::new("q").unwrap(), LaneName::new("a").unwrap());
        Event { at: Now::default(), call: CallId(1), queue, lane, what }
    }

    fn ended() -> Event {
        event(What::Ended { end: End::Done, attempts: 1 })
    }

    #[tokio::test]
    async fn what_comes_too_fast_is_dropped_and_counted() {
        let intake = Intake::default();
        intake.tell(vec![ended(); WAITING_MAX]);
        assert_eq!(intake.dropped(), 0);
        intake.tell(vec![ended(); 2]);
        assert_eq!(intake.dropped(), 2);
        let taken = intake.take(Duration::ZERO).await.events;
        assert_eq!(taken.len(), WAITING_MAX);
        intake.tell(vec![ended()]);
        assert_eq!(intake.dropped(), 3, "what is being written takes room, too");
        intake.note_kept(&taken);
        intake.tell(vec![ended()]);
        assert_eq!(intake.dropped(), 3);
    }

    #[test]
    fn long_reports_are_dropped_before_they_fill_the_memory() {
        let (intake, report) = (Intake::default(), vec![7; 1 << 20].into_boxed_slice());
        let (started, waits, outcome) = (Now::default(), [].into(), Outcome::Done);
        let told = event(What::Settled { token: 1, attempt: 1, started, waits, outcome, report });
        for _ in 0..=BYTES_MAX >> 20 {
            intake.tell(vec![told.clone()]);
        }
        assert_eq!(intake.dropped(), 1);
    }

    #[tokio::test]
    async fn only_what_history_keeps_is_taken() {
        let intake = Intake::default();
        intake.tell(vec![event(What::Enqueued { payload: Payload::default() }), ended()]);
        let flushed = intake.flush();
        let taken = intake.take(Duration::MAX).await;
        assert_eq!((taken.events, taken.flushes.len()), (vec![ended()], 1));
        drop(flushed);
    }
}
