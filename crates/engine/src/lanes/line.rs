//! A line: who has stood in it longest is woken first, and keeps its place though it looks in vain.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
pub(super) struct Line {
    places: Mutex<Places>,
}

/// Places, by their number. One that is in neither book is woken.
#[derive(Default)]
struct Places {
    next: u64,
    asleep: BTreeMap<u64, Waker>,
    /// Who looks for what there is, or has just looked.
    looking: BTreeSet<u64>,
}

impl Line {
    /// Takes the last place. Whoever comes looks first.
    pub(super) fn stand(self: &Arc<Self>) -> Standing {
        let mut places = self.places.lock();
        let number = places.next;
        places.next += 1;
        places.looking.insert(number);
        Standing { line: self.clone(), number, is_owing: false }
    }

    /// Wakes the first who sleeps. If nobody does, the first of those who look is to look again: it may have come
    /// too early. If there is none who is not woken, whoever looks next finds what there is.
    pub(super) fn wake(&self) {
        let mut places = self.places.lock();
        let first = places.asleep.pop_first();
        if first.is_none() {
            places.looking.pop_first();
        }
        drop(places);
        first.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Wakes everyone.
    pub(super) fn wake_all(&self) {
        let mut places = self.places.lock();
        places.looking.clear();
        let asleep = std::mem::take(&mut places.asleep);
        drop(places);
        asleep.into_values().for_each(Waker::wake);
    }
}

/// A place in a line. Who leaves woken, without having looked since, wakes the next.
pub(super) struct Standing {
    line: Arc<Line>,
    number: u64,
    /// It was woken, and has not looked for all there is.
    is_owing: bool,
}

impl Standing {
    /// It is about to look for what there is: what it was woken for is among that.
    pub(super) fn looks(&mut self) {
        let mut places = self.line.places.lock();
        let slept = places.asleep.remove(&self.number);
        self.is_owing |= places.looking.insert(self.number) && slept.is_none();
        drop((places, slept));
    }

    /// It has looked.
    pub(super) fn looked(&mut self) {
        self.is_owing = false;
    }

    /// Waits until it is woken.
    pub(super) fn poll_woken(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut places = self.line.places.lock();
        if !places.looking.remove(&self.number) && !places.asleep.contains_key(&self.number) {
            return Poll::Ready(());
        }
        let before = places.asleep.insert(self.number, context.waker().clone());
        drop((places, before));
        Poll::Pending
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let mut places = self.line.places.lock();
        let slept = places.asleep.remove(&self.number);
        let is_woken = !places.looking.remove(&self.number) && slept.is_none();
        drop((places, slept));
        if is_woken || self.is_owing {
            self.line.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_woken(standing: &Standing) -> bool {
        standing.poll_woken(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// A line in which so many sleep.
    fn line(count: usize) -> (Arc<Line>, Vec<Standing>) {
        let line = Arc::new(Line::default());
        let standing: Vec<_> = (0..count).map(|_| line.stand()).collect();
        assert!(!standing.iter().any(is_woken));
        (line, standing)
    }

    #[test]
    fn who_looked_in_vain_is_woken_again_before_those_behind_it() {
        let (line, mut all) = line(2);
        for _ in 0..3 {
            line.wake();
            assert_eq!((is_woken(&all[0]), is_woken(&all[1])), (true, false));
            all[0].looks();
            all[0].looked();
            assert!(!is_woken(&all[0]));
        }
    }

    #[test]
    fn who_sleeps_does_not_wait_for_who_looks() {
        let (line, mut all) = line(2);
        all[0].looks();
        line.wake();
        assert!(is_woken(&all[1]), "the first may look for long");
        line.wake();
        all[0].looked();
        assert!(is_woken(&all[0]), "what it may have missed it looks for again");
    }

    #[test]
    fn who_leaves_without_having_looked_wakes_the_next() {
        let (line, mut all) = line(3);
        line.wake();
        drop(all.remove(0));
        assert_eq!((is_woken(&all[0]), is_woken(&all[1])), (true, false));
        // In the midst of looking.
        all[0].looks();
        drop(all.remove(0));
        assert!(is_woken(&all[0]));
    }

    #[test]
    fn who_has_looked_wakes_nobody_when_it_leaves() {
        let (line, mut all) = line(2);
        line.wake();
        all[0].looks();
        all[0].looked();
        drop(all.remove(0));
        assert!(!is_woken(&all[0]));
    }

    #[test]
    fn all_are_woken_at_once() {
        let (line, all) = line(2);
        line.wake_all();
        assert!(all.iter().all(is_woken));
    }
}
