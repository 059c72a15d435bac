//! How those who waited learn what was decided: the first of a few is woken, and wakes the others.
//!
//! A wake from a thread that is not the runtime's own makes its workers wake each other and share what there
//! is: to start eight takes a tenth more of the processor's time than if one task wakes the other seven. Where
//! there are many, the last whom one wakes goes on. Nobody depends on a task that is not polled: whom it has not
//! woken by then is woken when the timer looks again.

use super::{News, Seat};
use crate::error::Error;
use crate::pass::Pass;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::task::Waker;
use tokio::runtime::{Handle, RuntimeFlavor};

/// How many one wakes: for so long, some 50 µs, it is kept from its own call.
const OTHERS: usize = 255;

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

/// One of several workers of tokio runs next whom it woke last, and lets no other do so, however long the task
/// takes that it runs now. So the last is nobody, and all who were woken keep their order.
fn leave_nobody_behind() {
    let runtime = Handle::try_current().ok();
    let runtime = runtime.filter(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread);
    drop(runtime.map(|runtime| runtime.spawn(std::future::ready(()))));
}

/// Those who are woken by others: by the time it is dropped, all of them are.
#[derive(Default)]
pub(super) struct Relays(SmallVec<[Arc<Relay>; 1]>);

impl Relays {
    /// Tells everyone: the first is woken, and wakes some, of whom the last wakes some more.
    pub(super) fn tell(mut news: News) -> Self {
        let (mut relays, mut next) = (Self::default(), None);
        // From the end, for each must know whom to wake before it is told.
        while let Some(last) = news.len().checked_sub(1) {
            let mut group = news.drain(last - last % (OTHERS + 1)..);
            let Some((first, answer)) = group.next() else { break };
            let mut others = give(group);
            others.extend(next.take());
            let relay =
                (!others.is_empty()).then(|| Arc::new(Relay { others: Mutex::new(others) }));
            next = first.give(answer, relay.clone());
            if next.is_none() {
                relay.iter().for_each(|relay| relay.wake());
            }
            relays.0.extend(relay);
        }
        next.into_iter().for_each(Waker::wake);
        relays
    }

    /// Whether all have been woken.
    pub(super) fn is_done(&self) -> bool {
        self.0.iter().all(|relay| relay.others.lock().is_empty())
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        // Those at the end were told first.
        self.0.iter().rev().for_each(|relay| relay.wake());
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
    fn among_many_one_goes_on_where_another_ends() {
        let calls = waiting(2 * (OTHERS + 1));
        let relays = told(&calls);
        assert_eq!(woken(&calls).iter().filter(|woken| **woken).count(), 1);
        assert!(calls[0].poll());
        assert_eq!(woken(&calls).iter().filter(|woken| **woken).count(), OTHERS + 2);
        assert!(calls[OTHERS + 1].poll());
        assert_eq!(woken(&calls), vec![true; calls.len()]);
        assert!(relays.is_done());
    }
}
