//! Who waits at the desk, and when some of them go to the store together.
//!
//! A store that makes one change after the other, as Redis does, answers all at once that came meanwhile. If
//! each went as soon as it asks, all would soon be under way together and come back together: the store
//! would wait for the process, and then the process for the store. So, while a change is under way, the next goes
//! when those who wait for it are a share of all who are present, or have waited for long enough. Where none is,
//! nobody waits for more to come.

use super::ended;
use crate::shared::batch::Asked;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tollgate_core::contract::{Answer, StoreError};

/// Most requests that go together: a script or a transaction that takes longer holds up the others.
pub(super) const TOGETHER_MAX: usize = 512;
/// So many go together in any case, though those who wait are divided.
const TOGETHER_MIN: usize = 16;
/// Most requests that wait: more are refused, since the store is far behind.
const WAITING_MAX: usize = 65_536;
/// For so long one waits for others to go with it: the change that is under way may be of a slow one.
const PATIENCE: Duration = Duration::from_millis(10);

/// A request, and since when it waits.
pub(super) type Waiting = (Instant, Box<dyn Asked>);

/// Requests that wait, and how many are under way.
pub(super) struct Queue {
    pace: Pace,
    state: Mutex<State>,
    /// Told when some of them may go.
    due: Notify,
}

/// How a store is best asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Most changes under way.
    pub(super) changes_max: usize,
    /// Among how many changes those who are present are divided; 1 if they are not.
    pub(super) shares: usize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Changes under way.
    changes: usize,
    /// Requests of these that are not answered.
    away: usize,
    /// Nobody comes any more.
    is_left: bool,
    /// Nobody sees to them any more.
    is_closed: bool,
}

impl State {
    /// How many of those who wait go now, if any.
    fn due(&self, pace: Pace, now: Instant) -> Option<usize> {
        let waiting = self.waiting.len();
        let share = (waiting + self.away).div_ceil(pace.shares).min(TOGETHER_MAX);
        let waits_for_nobody = self.away == 0 || self.is_left || pace.shares == 1;
        let is_time = waits_for_nobody || waiting >= share || self.patient_until()? <= now;
        (waiting > 0 && self.changes < pace.changes_max && is_time)
            .then(|| waiting.min(share.max(TOGETHER_MIN)))
    }

    /// When the first has waited for long enough.
    fn patient_until(&self) -> Option<Instant> {
        self.waiting.front().map(|(since, _)| *since + PATIENCE)
    }
}

impl Queue {
    pub(super) fn new(pace: Pace) -> Arc<Self> {
        let (state, due) = (Mutex::default(), Notify::new());
        Arc::new(Self { pace, state, due })
    }

    /// Takes all of them, or none.
    pub(super) fn push(&self, requests: Vec<Box<dyn Asked>>) -> Answer<()> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(ended());
        }
        if state.waiting.len() + requests.len() > WAITING_MAX {
            let reason = format!("{WAITING_MAX} requests wait for it already: ask again later");
            return Err(StoreError::Full { reason });
        }
        // The first to wait is looked after from now on.
        let is_first = state.waiting.is_empty();
        state.waiting.extend(requests.into_iter().map(|request| (now, request)));
        let is_news = is_first || state.due(self.pace, now).is_some();
        drop(state);
        self.tell(is_news);
        Ok(())
    }

    /// For a request that need not wait, if nobody else is there.
    pub(super) fn alone(self: &Arc<Self>) -> Option<Arc<UnderWay>> {
        let mut state = self.state.lock();
        let is_alone = state.away == 0 && state.waiting.is_empty() && !state.is_closed;
        let has_room = state.changes < self.pace.changes_max;
        (is_alone && has_room).then(|| self.begin(&mut state, 1))
    }

    /// The next who go, when they do; `None` once nobody waits any more, nor comes.
    pub(super) async fn next(self: &Arc<Self>) -> Option<(Vec<Waiting>, Arc<UnderWay>)> {
        loop {
            if let Some(next) = self.take(Instant::now()) {
                return Some(next);
            }
            let news = self.due.notified();
            match self.looks_again() {
                Look::Never => return None,
                Look::WhenTold => news.await,
                // Whether it was told or has waited for long enough, it looks.
                Look::Until(patient) => drop(timeout_at(patient, news).await),
            }
        }
    }

    fn take(self: &Arc<Self>, now: Instant) -> Option<(Vec<Waiting>, Arc<UnderWay>)> {
        let mut state = self.state.lock();
        let count = state.due(self.pace, now)?;
        let next = state.waiting.drain(..count).collect();
        Some((next, self.begin(&mut state, count)))
    }

    fn looks_again(&self) -> Look {
        let state = self.state.lock();
        match state.patient_until() {
            None if state.is_left => Look::Never,
            Some(patient) if state.changes < self.pace.changes_max => Look::Until(patient),
            _ => Look::WhenTold,
        }
    }

    fn begin(self: &Arc<Self>, state: &mut State, count: usize) -> Arc<UnderWay> {
        state.changes += 1;
        state.away += count;
        Arc::new(UnderWay { queue: self.clone(), left: AtomicUsize::new(count) })
    }

    fn tell(&self, is_news: bool) {
        if is_news {
            self.due.notify_one();
        }
    }

    /// So many requests are not away any more, and so many changes not under way.
    fn come_back(&self, requests: usize, changes: usize) {
        let mut state = self.state.lock();
        let was_full = state.changes == self.pace.changes_max;
        state.away -= requests;
        state.changes -= changes;
        // While there was no room, nobody looked after those who wait.
        let is_news = was_full || state.due(self.pace, Instant::now()).is_some();
        let is_news = is_news && !state.waiting.is_empty();
        drop(state);
        self.tell(is_news);
    }

    /// Nobody comes any more.
    pub(super) fn leave(&self) {
        self.state.lock().is_left = true;
        self.tell(true);
    }

    /// Nobody sees to those who wait any more, and they are told so.
    pub(super) fn close(&self) {
        let waiting = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.waiting)
        };
        drop(waiting);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }
}

/// When the queue is looked at again.
enum Look {
    Never,
    WhenTold,
    /// Or then, if it is not told.
    Until(Instant),
}

/// A change under way, until it is dropped.
pub(in crate::shared) struct UnderWay {
    queue: Arc<Queue>,
    /// Its requests that are not answered.
    left: AtomicUsize,
}

impl UnderWay {
    /// So many more are about to be answered. The change is under way until they are: those who ask again at
    /// once go together.
    pub(in crate::shared) fn answered(&self, count: usize) {
        self.left.fetch_sub(count, Ordering::Relaxed);
        self.queue.come_back(count, 0);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.queue.come_back(*self.left.get_mut(), 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::open::Opened;
    use crate::shared::wants::Wants;
    use tollgate_core::contract::Ask;

    struct Nothing;

    impl Asked for Nothing {
        fn wants(&self, _: &mut Wants) {}

        fn perform(&mut self, _: &mut Opened) {}

        fn asks(&self) -> Option<&[Ask]> {
            None
        }

        fn answer(self: Box<Self>, _: Answer<()>) {}
    }

    fn queue(changes_max: usize, shares: usize) -> Arc<Queue> {
        Queue::new(Pace { changes_max, shares })
    }

    fn come(queue: &Queue, count: usize) -> Answer<()> {
        queue.push((0..count).map(|_| Box::new(Nothing) as Box<dyn Asked>).collect())
    }

    /// How many go, and what is under way with them.
    fn go(queue: &Arc<Queue>) -> Option<(usize, Arc<UnderWay>)> {
        queue.take(Instant::now()).map(|(next, under_way)| (next.len(), under_way))
    }

    #[tokio::test(start_paused = true)]
    async fn half_of_those_present_go_while_the_others_are_away() {
        let queue = queue(4, 2);
        come(&queue, 256).unwrap();
        let (count, first) = go(&queue).unwrap();
        assert_eq!(count, 128);
        let (count, second) = go(&queue).unwrap();
        assert_eq!(count, 128);
        // They come back one by one, and do not go so.
        drop(first);
        for _ in 0..127 {
            come(&queue, 1).unwrap();
            assert!(go(&queue).is_none());
        }
        come(&queue, 1).unwrap();
        let (count, _third) = go(&queue).unwrap();
        assert_eq!(count, 128);
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_go_as_soon_as_nobody_is_away() {
        let queue = queue(4, 2);
        come(&queue, 20).unwrap();
        let (count, under_way) = go(&queue).unwrap();
        assert_eq!(count, TOGETHER_MIN);
        assert!(go(&queue).is_none(), "sixteen are away, and four wait");
        drop(under_way);
        assert_eq!(go(&queue).unwrap().0, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_told_is_not_away_any_more() {
        let queue = queue(4, 2);
        come(&queue, 16).unwrap();
        let (_, under_way) = go(&queue).unwrap();
        under_way.answered(15);
        come(&queue, 15).unwrap();
        let (count, _others) = go(&queue).unwrap();
        assert_eq!(count, 15, "one is away yet, and nobody waits for it");
        under_way.answered(1);
        drop(under_way);
        let state = queue.state.lock();
        assert_eq!((state.changes, state.away), (1, 15));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_slow_one_for_long() {
        let queue = queue(4, 2);
        come(&queue, 20).unwrap();
        let begun = Instant::now();
        let (_, _slow) = queue.next().await.unwrap();
        let (next, _) = queue.next().await.unwrap();
        assert_eq!((next.len(), begun.elapsed()), (4, PATIENCE));
    }

    #[test]
    fn who_comes_second_need_not_wait_for_the_first() {
        let queue = queue(4, 2);
        let _first = queue.alone().unwrap();
        assert!(queue.alone().is_none());
        come(&queue, 1).unwrap();
        assert_eq!(go(&queue).unwrap().0, 1);
    }

    #[test]
    fn where_changes_are_made_beside_each_other_everyone_goes_while_there_is_room() {
        let queue = queue(2, 1);
        come(&queue, 100).unwrap();
        let (count, first) = go(&queue).unwrap();
        assert_eq!(count, 100);
        come(&queue, 1).unwrap();
        let (count, _second) = go(&queue).unwrap();
        assert_eq!(count, 1);
        come(&queue, 200).unwrap();
        assert!(go(&queue).is_none(), "two changes are under way");
        drop(first);
        assert_eq!(go(&queue).unwrap().0, 200);
    }

    #[test]
    fn a_crowd_goes_in_parts_that_are_not_too_large() {
        let queue = queue(4, 2);
        come(&queue, 10 * TOGETHER_MAX).unwrap();
        let (first, second) = (go(&queue).unwrap(), go(&queue).unwrap());
        assert_eq!((first.0, second.0), (TOGETHER_MAX, TOGETHER_MAX));
    }

    #[test]
    fn more_than_may_wait_are_refused_and_none_of_them_waits() {
        let queue = queue(1, 1);
        come(&queue, WAITING_MAX - 1).unwrap();
        assert!(matches!(come(&queue, 2), Err(StoreError::Full { .. })));
        come(&queue, 1).unwrap();
    }

    #[tokio::test]
    async fn who_waits_when_the_last_leaves_still_goes() {
        let queue = queue(1, 1);
        let under_way = queue.alone().unwrap();
        come(&queue, 2).unwrap();
        queue.leave();
        let (left, next) = tokio::join!(async { drop(under_way) }, queue.next());
        let ((), (next, _)) = (left, next.unwrap());
        assert_eq!(next.len(), 2);
        assert!(queue.next().await.is_none());
    }

    #[test]
    fn nobody_waits_where_nobody_sees_to_it() {
        let queue = queue(1, 1);
        let _under_way = queue.alone().unwrap();
        come(&queue, 2).unwrap();
        queue.close();
        assert!(queue.state.lock().waiting.is_empty());
        assert_eq!(come(&queue, 1), Err(ended()));
        assert!(queue.alone().is_none());
    }
}
