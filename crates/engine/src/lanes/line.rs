//! A line: who has stood in it longest is woken first, and keeps its place though it looks in vain.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
pub(super) struct Line {
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    taken: BTreeMap<u64, Place>,
    next: u64,
}

#[derive(Default)]
struct Place {
    /// There may be something that it has not looked for.
    is_woken: bool,
    waker: Option<Waker>,
}

impl Line {
    /// Takes the last place.
    pub(super) fn stand(self: &Arc<Self>) -> Standing {
        let mut places = self.places.lock();
        let number = places.next;
        places.next += 1;
        places.taken.insert(number, Place::default());
        Standing { line: self.clone(), number, is_looking: false }
    }

    /// Wakes the first who is not woken yet. If all are, or nobody is there, whoever looks next finds what there
    /// is.
    pub(super) fn wake(&self) {
        let waker = {
            let mut places = self.places.lock();
            let first = places.taken.values_mut().find(|place| !place.is_woken);
            first.and_then(|place| {
                place.is_woken = true;
                place.waker.take()
            })
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Wakes everyone.
    pub(super) fn wake_all(&self) {
        let wakers: Vec<Waker> = {
            let mut places = self.places.lock();
            let all = places.taken.values_mut();
            all.filter_map(|place| {
                place.is_woken = true;
                place.waker.take()
            })
            .collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// A place in a line. Who leaves woken, without having looked since, wakes the next.
pub(super) struct Standing {
    line: Arc<Line>,
    number: u64,
    /// It was woken, and looks for that.
    is_looking: bool,
}

impl Standing {
    /// It is about to look for what there is: what it was woken for is among that.
    pub(super) fn looks(&mut self) {
        let mut places = self.line.places.lock();
        if let Some(place) = places.taken.get_mut(&self.number) {
            self.is_looking |= std::mem::take(&mut place.is_woken);
        }
    }

    /// It has looked.
    pub(super) fn looked(&mut self) {
        self.is_looking = false;
    }

    /// Waits until it is woken.
    pub(super) fn poll_woken(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut places = self.line.places.lock();
        match places.taken.get_mut(&self.number) {
            Some(place) if !place.is_woken => {
                place.waker = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let place = self.line.places.lock().taken.remove(&self.number);
        if self.is_looking || place.is_some_and(|place| place.is_woken) {
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

    /// A line in which so many stand.
    fn line(count: usize) -> (Arc<Line>, Vec<Standing>) {
        let line = Arc::new(Line::default());
        let standing = (0..count).map(|_| line.stand()).collect();
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
        }
    }

    #[test]
    fn who_is_woken_while_it_looks_is_to_look_again() {
        let (line, mut all) = line(2);
        all[0].looks();
        line.wake();
        all[0].looked();
        assert!(is_woken(&all[0]));
        line.wake();
        assert!(is_woken(&all[1]), "the first is woken already");
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
