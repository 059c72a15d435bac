//! Settling what workers made of their calls: all that ended meanwhile in one go, and nothing is
//! forgotten while the store has no room for it.

use super::following::{self, Following};
use super::{Engine, Outcome};
use crate::error::Error;
use crate::lanes::pulse::ended;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tollgate_core::contract::{Answer, Lanes, StoreError};
use tollgate_core::lanes::act::REPORT_BYTES_MAX;
use tollgate_core::lanes::{Act, ActError, Acted, Lease, QueueSpec, Settle, Settlement};
use tollgate_core::{QueueName, Span};

/// Most answers that are waited for at once.
const SENT_MAX: usize = 64;
/// How often room in a queue is waited for before the call that would follow counts as failed.
const ROOM_TRIES: u32 = 40;
/// How often records are looked at again that others change before the call has failed.
const OVERTAKEN_MAX: u32 = 100;
/// How long a store without room is left alone.
const FULL_RETRY: Span = Span::from_millis(250);

pub(super) struct Settling<S> {
    engine: Engine<S>,
    /// What follows from its calls is of runs, and needs no door.
    is_own: bool,
    /// What was not sent yet.
    waiting: Vec<(Lease, Outcome)>,
    /// What was sent, and the answers: one that waits for room holds up no other.
    sent: Vec<(Vec<Lease>, Lost)>,
}

/// How many leases were lost, once it is known.
type Lost = Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>>;

impl<S: Lanes + 'static> Settling<S> {
    pub(super) fn new(engine: Engine<S>, is_own: bool) -> Self {
        Self { engine, is_own, waiting: Vec::new(), sent: Vec::new() }
    }

    pub(super) fn settle(&mut self, lease: Lease, outcome: Outcome) {
        self.waiting.push((lease, outcome));
    }

    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    /// The leases that are still to be held.
    pub(super) fn leases(&self) -> impl Iterator<Item = Lease> {
        let sent = self.sent.iter().flat_map(|(leases, _)| leases).copied();
        sent.chain(self.waiting.iter().map(|(lease, _)| *lease))
    }

    /// Waits until something is settled; says how many leases were lost. Never, if there is nothing.
    pub(super) async fn next(&mut self) -> Result<u64, Error> {
        if !self.waiting.is_empty() && self.sent.len() < SENT_MAX {
            // As many will come again.
            let empty = Vec::with_capacity(self.waiting.len());
            let mut outcomes = std::mem::replace(&mut self.waiting, empty);
            // Nobody else waits until records were looked at.
            let follows = |(_, outcome): &mut (Lease, Outcome)| outcome.follows().is_some();
            let looking: Vec<_> = outcomes.extract_if(.., follows).collect();
            for outcomes in [outcomes, looking].into_iter().filter(|some| !some.is_empty()) {
                let leases = outcomes.iter().map(|(lease, _)| *lease).collect();
                let settling = settle(self.engine.clone(), self.is_own, outcomes);
                self.sent.push((leases, Box::pin(settling)));
            }
        }
        poll_fn(|context| {
            for place in 0..self.sent.len() {
                if let Poll::Ready(answer) = self.sent[place].1.as_mut().poll(context) {
                    drop(self.sent.swap_remove(place));
                    return Poll::Ready(answer);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// A start that is to be settled.
struct Start {
    lease: Lease,
    /// If what follows from it cannot be done, it is settled without; otherwise it failed then.
    stands_alone: bool,
    /// How often it was refused for want of room.
    had_no_room: u32,
    /// What follows hangs on records.
    follows: Option<Arc<dyn Following>>,
    /// How often those changed before it was made.
    was_overtaken: u32,
    /// What follows is not known yet, or not any more.
    is_open: bool,
}

/// Settles starts; says how many leases were lost.
pub(crate) async fn settle<S: Lanes + 'static>(
    engine: Engine<S>,
    is_own: bool,
    outcomes: Vec<(Lease, Outcome)>,
) -> Result<u64, Error> {
    let now = engine.now().await?;
    let mut starts = Vec::with_capacity(outcomes.len());
    let mut acts = Vec::with_capacity(outcomes.len());
    for (lease, outcome) in outcomes {
        let mut start = Start::new(lease, &outcome);
        let act = outcome.within_reason().into_act(lease, now).unwrap_or_else(|error| {
            tracing::error!(call = lease.call.0, %error, "what follows from a call cannot be done: it failed");
            start.nothing_follows();
            failed(lease)
        });
        // Most are a settlement and nothing else.
        let refused = match is_own || act.changes() == 1 {
            true => None,
            false => refused(&engine, &act).await?,
        };
        let (start, act) = match refused {
            None => (start, act),
            Some(error) => {
                tracing::error!(call = lease.call.0, %error, "what follows from a call is refused");
                without_what_follows(start, act)
            }
        };
        acts.push(act);
        starts.push(start);
    }
    let mut lost = 0;
    while !acts.is_empty() {
        if engine.parts.pulse.has_ended() {
            return Err(ended().into());
        }
        match made(&engine, &mut starts, &mut acts).await {
            Ok(answers) => {
                let (mut waits_for_room, mut missing) = (false, Vec::new());
                let tried = starts.into_iter().zip(acts).zip(answers);
                let refused = tried.filter_map(|((start, act), answer)| match answer {
                    Ok(_) => start.done(),
                    Err(error) => {
                        waits_for_room |= matches!(error, ActError::QueueFull { .. });
                        missing.extend(start.missing(&error));
                        again((start, act), &error, &mut lost)
                    }
                });
                (starts, acts) = refused.unzip();
                for (queue, spec) in missing {
                    if let Err(error) = engine.define_own_queue(&queue, spec).await {
                        tracing::warn!(%queue, %error, "a queue cannot be made yet: tried again");
                    }
                }
                if waits_for_room {
                    engine.parts.pulse.sleep(FULL_RETRY).await;
                }
            }
            Err(StoreError::Failed { reason }) => return Err(StoreError::Failed { reason }.into()),
            Err(error) => {
                tracing::warn!(%error, "calls cannot be settled yet: tried again");
                let pulse = &engine.parts.pulse;
                pulse.sleep_until(engine.parts.pulse.clock.now().plus(FULL_RETRY)).await;
            }
        }
    }
    Ok(lost)
}

/// Why what follows from a call may not be done, if that is so.
async fn refused<S: Lanes + 'static>(
    engine: &Engine<S>,
    act: &Act,
) -> Result<Option<Error>, Error> {
    loop {
        match engine.parts.check_reach(act).await {
            Ok(()) => return Ok(None),
            Err(_) if engine.parts.pulse.has_ended() => return Err(ended().into()),
            Err(error) if error.may_pass() => engine.parts.rest(&error).await,
            Err(error) => return Ok(Some(error)),
        }
    }
}

impl Start {
    fn new(lease: Lease, outcome: &Outcome) -> Self {
        let follows = outcome.follows();
        Self {
            lease,
            stands_alone: outcome.stands_alone(),
            had_no_room: 0,
            is_open: follows.is_some(),
            follows,
            was_overtaken: 0,
        }
    }

    /// The queue that is not there and that what follows needs.
    fn missing(&self, error: &ActError) -> Option<(QueueName, QueueSpec)> {
        let ActError::UnknownQueue { queue, .. } = error else { return None };
        self.follows.as_ref().map(|follows| (queue.clone(), follows.queues()))
    }

    fn nothing_follows(&mut self) {
        (self.follows, self.is_open) = (None, false);
    }

    /// It is settled: there is nothing more to try.
    fn done<T>(self) -> Option<T> {
        if let Some(follows) = self.follows {
            follows.made();
        }
        None
    }
}

/// Makes acts, once it is known what follows.
async fn made<S: Lanes + 'static>(
    engine: &Engine<S>,
    starts: &mut [Start],
    acts: &mut [Act],
) -> Answer<Vec<Result<Acted, ActError>>> {
    let is_open = |start: &Start| start.follows.clone().filter(|_| start.is_open);
    let following: Vec<_> = starts.iter().filter_map(is_open).collect();
    if !following.is_empty() {
        let mut found = following::acts(engine, following).await?.into_iter();
        for (start, act) in starts.iter_mut().zip(&mut *acts).filter(|(start, _)| start.is_open) {
            start.is_open = false;
            *act = match found.next() {
                Some(Ok(follows)) => Act { settle: std::mem::take(&mut act.settle), ..follows },
                Some(Err(error)) => {
                    let call = start.lease.call.0;
                    tracing::error!(call, %error, "what follows from a call cannot be found: it is tried again");
                    start.nothing_follows();
                    failed(start.lease)
                }
                None => failed(start.lease),
            };
        }
    }
    engine.store().make(acts).await
}

/// What is tried in place of an act that was refused. A queue that is full is waited for, for a while: the
/// call stays leased meanwhile. If what follows from a call cannot be done, it is not done either, unless
/// it stands alone.
fn again(
    (mut start, mut act): (Start, Act),
    error: &ActError,
    lost: &mut u64,
) -> Option<(Start, Act)> {
    let call = start.lease.call.0;
    match error {
        // Its own is the last.
        ActError::LeaseLost { at } if at + 1 == act.settle.len() => {
            *lost += 1;
            tracing::warn!(call, "a call came too late to be settled: its lease was lost");
            None
        }
        ActError::QueueFull { .. } if start.had_no_room < ROOM_TRIES => {
            start.had_no_room += 1;
            tracing::warn!(call, %error, "what follows from a call waits for room");
            Some((start, act))
        }
        // Somebody else was faster; or a queue had to be made.
        ActError::RevisionDiffers { .. }
        | ActError::RecordMissing { .. }
        | ActError::UnknownQueue { .. }
            if start.follows.is_some() && start.was_overtaken < OVERTAKEN_MAX =>
        {
            (start.is_open, start.was_overtaken) = (true, start.was_overtaken + 1);
            Some((start, Act { settle: act.settle, ..Act::default() }))
        }
        // What it follows from was taken back meanwhile.
        ActError::RecordMissing { .. } if start.stands_alone => {
            tracing::debug!(call, %error, "a call is settled without what would follow");
            Some(without_what_follows(start, act))
        }
        ActError::NotPaid { limit, .. } => {
            tracing::error!(call, %error, "a cost is left out: the call paid nothing there");
            let settles = act.settle.iter_mut();
            settles.for_each(|it| it.actual.retain(|(it, _)| it != limit));
            Some((start, act))
        }
        // What was done is not done again for that.
        ActError::ReportTooLong { .. } => {
            tracing::error!(call, %error, "a report is left out");
            let too_long = act.settle.iter_mut().filter(|it| it.report.len() > REPORT_BYTES_MAX);
            too_long.for_each(|it| it.report = [].into());
            Some((start, act))
        }
        _ => {
            tracing::error!(call, %error, "what follows from a call was refused: it is settled without, or tried again");
            Some(without_what_follows(start, act))
        }
    }
}

/// A start of which nothing follows: it failed, unless it stands alone.
fn without_what_follows(start: Start, act: Act) -> (Start, Act) {
    let act = match (start.stands_alone, act.settle.into_iter().next_back()) {
        (true, Some(settle)) => Act { settle: vec![settle], ..Act::default() },
        _ => failed(start.lease),
    };
    // Refused once more, it failed.
    (Start { stands_alone: false, follows: None, ..start }, act)
}

/// The call failed, and is tried again.
fn failed(lease: Lease) -> Act {
    let settle = vec![Settle::new(lease, Settlement::Retry(None))];
    Act { settle, ..Act::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, ManualClock};
    use crate::lanes::Next;
    use std::pin::pin;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Waker};
    use tollgate_core::contract::kept::Kept;
    use tollgate_core::lanes::{
        CallId, Claim, End, NewCall, QueueSpec, Record, Revision, Scheduler, Write,
    };
    use tollgate_core::{Key, LaneName, Now, QueueName, UNITS_MAX};

    type Store = Kept<Scheduler>;

    /// What a store that answers at once says.
    fn at_once<T>(answer: impl Future<Output = T>) -> T {
        match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("it waits"),
        }
    }

    fn key() -> Key {
        Key::new("record").unwrap()
    }

    fn writing(expected: Revision, bytes: &[u8]) -> Act {
        let write = vec![Write { key: key(), expected, bytes: Some(bytes.into()) }];
        Act { write, ..Act::default() }
    }

    /// Writes a record that somebody else writes so many times just before.
    struct Writes {
        engine: Engine<Store>,
        overtaken: AtomicU32,
        was_made: AtomicU32,
    }

    impl std::fmt::Debug for Writes {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Writes")
        }
    }

    impl Following for Arc<Writes> {
        fn next(&self, found: &[Option<Record>]) -> Result<Next, Error> {
            let [record] = found else { return Ok(Next::Look(vec![key()])) };
            let expected = record.as_ref().map_or(Revision(0), |record| record.revision);
            let again = |left: u32| left.checked_sub(1);
            if self.overtaken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, again).is_ok() {
                let theirs = writing(expected, b"theirs");
                let _ = at_once(self.engine.store().act(vec![theirs])).unwrap();
            }
            Ok(Next::Act(Box::new(writing(expected, b"ours"))))
        }

        fn queues(&self) -> QueueSpec {
            QueueSpec::default()
        }

        fn made(&self) {
            self.was_made.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A call that was started, and what is to follow from it after it was overtaken so often.
    async fn started(overtaken: u32) -> (Arc<Writes>, Lease) {
        let clock = ManualClock::default();
        let store = Kept::new(Scheduler::default(), Now::both(clock.now()));
        let engine = Engine::of_limits(store, Arc::new(clock)).unwrap();
        let queue = QueueName::new("queue").unwrap();
        let store = engine.store();
        store.define_queue(queue.clone(), QueueSpec::default()).await.unwrap().unwrap();
        let enqueue = vec![NewCall::new(queue.clone(), LaneName::new("lane").unwrap())];
        let _ = store.act(vec![Act { enqueue, ..Act::default() }]).await.unwrap();
        let claim = Claim { queue, most: 1, lease: None, asks: Span::ZERO };
        let claimed = store.claim(claim).await.unwrap();
        let lease = claimed[0].started.lease;
        let (overtaken, was_made) = (AtomicU32::new(overtaken), AtomicU32::new(0));
        (Arc::new(Writes { engine, overtaken, was_made }), lease)
    }

    #[tokio::test]
    async fn a_call_that_is_done_stays_done_when_its_report_is_too_long() {
        for bytes in [REPORT_BYTES_MAX, REPORT_BYTES_MAX + 1] {
            let (writes, lease) = started(0).await;
            let outcome = Outcome::done().report(vec![b'x'; bytes]);
            assert_eq!(settle(writes.engine.clone(), false, vec![(lease, outcome)]).await, Ok(0));
            let ends = writes.engine.store().ends(vec![lease.call]).await.unwrap();
            assert_eq!(ends, [Some(End::Done)], "{bytes} bytes");
        }
    }

    #[test]
    fn a_cost_that_there_cannot_be_is_left_out() {
        let outcome = Outcome::done().actual("a", UNITS_MAX).actual("b", UNITS_MAX + 1);
        let lease = Lease { call: CallId(1), token: 1 };
        let act = outcome.actual("", 1).within_reason().into_act(lease, Now::default()).unwrap();
        let left: Vec<_> = act.settle[0].actual.iter().map(|(limit, _)| limit.as_str()).collect();
        assert_eq!(left, ["a"]);
    }

    #[tokio::test]
    async fn what_is_not_the_workers_follows_from_none_of_its_calls() {
        let (writes, lease) = started(0).await;
        let (queue, lane) = (QueueName::new("task/x").unwrap(), LaneName::new("a").unwrap());
        let store = writes.engine.store();
        store.define_queue(queue.clone(), QueueSpec::default()).await.unwrap().unwrap();
        let then = Act { enqueue: vec![NewCall::new(queue, lane)], ..Act::default() };
        let outcome = Outcome::done().and(then).standing_alone();
        assert_eq!(settle(writes.engine.clone(), false, vec![(lease, outcome)]).await, Ok(0));
        assert_eq!(store.ends(vec![lease.call]).await.unwrap(), [Some(End::Done)]);
        let tasks = writes.engine.queue_state("task/x").await.unwrap().unwrap();
        assert_eq!(tasks.waiting, 0, "a queue of runs");
    }

    #[tokio::test]
    async fn what_hangs_on_a_record_is_found_anew_when_somebody_else_was_faster() {
        for times in [0, 1, OVERTAKEN_MAX] {
            let (writes, lease) = started(times).await;
            let outcome = Outcome::done().followed(writes.clone());
            assert_eq!(settle(writes.engine.clone(), false, vec![(lease, outcome)]).await, Ok(0));
            let store = writes.engine.store();
            let record = writes.engine.record(&key()).await.unwrap().unwrap();
            assert_eq!(&*record.bytes, b"ours", "overtaken {times} times");
            assert_eq!(store.ends(vec![lease.call]).await.unwrap(), [Some(End::Done)]);
            assert_eq!(writes.was_made.load(Ordering::Relaxed), 1);
        }
    }

    #[tokio::test]
    async fn who_is_overtaken_for_ever_is_tried_again_later() {
        let (writes, lease) = started(OVERTAKEN_MAX + 1).await;
        let outcome = Outcome::done().followed(writes.clone());
        assert_eq!(settle(writes.engine.clone(), false, vec![(lease, outcome)]).await, Ok(0));
        assert_eq!(writes.engine.store().ends(vec![lease.call]).await.unwrap(), [None]);
        assert_eq!(writes.was_made.load(Ordering::Relaxed), 0);
        let call = writes.engine.call(lease.call).await.unwrap().unwrap();
        assert_eq!(call.attempts.failures, 1);
    }
}
