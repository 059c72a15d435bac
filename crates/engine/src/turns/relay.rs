//! How those who waited learn what was decided: the first of a few is woken, and wakes the others.
//!
//! A wake from a thread that is not the runtime's own makes its workers wake each other and share what there
//! is: a grant of eight takes a fifth more of the processor's time than if one task wakes the other seven.
//! Nobody depends on that task: whom it has not woken by then is woken when the timer looks again.

use super::{News, Seat};
use crate::error::Error;
use crate::pass::Pass;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::task::Waker;
use tokio::runtime::Handle;

/// Most whom one wakes: for so long it is kept from its own call.
const OTHERS_MAX: usize = 32;

type Wakers = SmallVec<[Waker; 16]>;

/// Those whom one of them wakes.
pub(crate) struct Relay {
    others: Mutex<Wakers>,
}

impl Relay {
    /// Wakes those whom nobody has woken yet.
    pub(crate) fn wake(&self) {
        let others = std::mem::take(&mut *self.others.lock());
        if !others.is_empty() {
            others.into_iter().for_each(Waker::wake);
            leave_nobody_behind();
        }
    }
}

/// A worker of tokio runs next whom it woke last, and lets no other worker do so, however long the task takes
/// that it runs now. So the last is nobody, and all who were woken keep their order.
fn leave_nobody_behind() {
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn(std::future::ready(())));
    }
}

/// Those who are woken by others: by the time it is dropped, all of them are.
#[derive(Default)]
pub(super) struct Relays(SmallVec<[Arc<Relay>; 1]>);

impl Relays {
    /// Tells everyone, so that the first of a few wakes the others.
    pub(super) fn tell(news: News) -> Self {
        let mut relays = Self::default();
        let mut news = news.into_iter();
        while let Some((first, answer)) = news.next() {
            let others = give(news.by_ref().take(OTHERS_MAX));
            let relay =
                (!others.is_empty()).then(|| Arc::new(Relay { others: Mutex::new(others) }));
            match first.give(answer, relay.clone()) {
                Some(waker) => waker.wake(),
                None => relay.iter().for_each(|relay| relay.wake()),
            }
            relays.0.extend(relay);
        }
        relays
    }

    /// Whether all have been woken.
    pub(super) fn is_done(&self) -> bool {
        self.0.iter().all(|relay| relay.others.lock().is_empty())
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        self.0.iter().for_each(|relay| relay.wake());
    }
}

/// Tells everyone at once. First all answers, then all who are woken: the first of them begins at once on
/// another core.
pub(super) fn tell(news: News) {
    give(news).into_iter().for_each(Waker::wake);
}

fn give(news: impl IntoIterator<Item = (Arc<Seat>, Result<Pass, Error>)>) -> Wakers {
    news.into_iter().filter_map(|(seat, answer)| seat.give(answer, None)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::AskError;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake};

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// A call that waits, and whether it was woken.
    #[derive(Default)]
    struct Waiting {
        seat: Arc<Seat>,
        flag: Arc<Flag>,
    }

    impl Waiting {
        fn polled(self) -> Self {
            self.poll();
            self
        }

        fn poll(&self) -> bool {
            let waker = Waker::from(self.flag.clone());
            self.seat.poll(&Context::from_waker(&waker)).is_ready()
        }

        fn is_woken(&self) -> bool {
            self.flag.0.load(Ordering::SeqCst)
        }
    }

    fn told(calls: &[Waiting]) -> Relays {
        let answer = || Err(AskError::NoToll.into());
        Relays::tell(calls.iter().map(|call| (call.seat.clone(), answer())).collect())
    }

    fn waiting(count: usize) -> Vec<Waiting> {
        (0..count).map(|_| Waiting::default().polled()).collect()
    }

    fn woken(calls: &[Waiting]) -> Vec<bool> {
        calls.iter().map(Waiting::is_woken).collect()
    }

    #[test]
    fn the_first_wakes_the_others_when_it_is_polled() {
        let calls = waiting(3);
        let relays = told(&calls);
        assert_eq!(woken(&calls), [true, false, false]);
        assert!(!relays.is_done());
        assert!(calls[0].poll());
        assert_eq!(woken(&calls), [true; 3]);
        assert!(relays.is_done());
    }

    #[test]
    fn the_first_wakes_the_others_when_it_goes() {
        for is_gone_before in [true, false] {
            let calls = waiting(3);
            if is_gone_before {
                calls[0].seat.abandon();
            }
            let relays = told(&calls);
            calls[0].seat.abandon();
            assert_eq!(woken(&calls[1..]), [true; 2], "{is_gone_before}");
            assert!(relays.is_done());
        }
    }

    #[test]
    fn a_first_that_is_not_polled_keeps_nobody_asleep() {
        let calls = waiting(3);
        drop(told(&calls));
        assert_eq!(woken(&calls), [true; 3]);
        assert!(calls.iter().all(Waiting::poll), "all find their answers");
    }

    #[test]
    fn one_wakes_no_more_than_a_few() {
        let calls = waiting(2 * (OTHERS_MAX + 1));
        let _relays = told(&calls);
        let first = |number: usize| number.is_multiple_of(OTHERS_MAX + 1);
        assert_eq!(woken(&calls), (0..calls.len()).map(first).collect::<Vec<_>>());
    }
}
