//! Workers: what each does with a call that it was told to start.

use super::random::Random;
use tollgate_core::lanes::{Lease, Settle, Settlement, Started};
use tollgate_core::{LimitName, Span, Timestamp};

/// What workers are going to do, and what they did without an answer so far.
#[derive(Debug, Default)]
pub(super) struct Workers {
    errands: Vec<(Timestamp, Errand)>,
    waiting: Vec<Errand>,
    /// From now on every call is done, and at once.
    are_diligent: bool,
}

/// What a worker asks of the scheduler.
#[derive(Debug, Clone)]
pub(super) enum Errand {
    Settle(Settle),
    /// It is slow: it holds its lease longer before it goes on.
    Renew {
        lease: Lease,
        span: Span,
        then: Box<Errand>,
    },
}

impl Workers {
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.errands.iter().map(|(at, _)| *at).min()
    }

    /// The first errand that is due.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Errand> {
        let first = self.errands.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let place = first.filter(|(_, (at, _))| *at <= now).map(|(place, _)| place)?;
        Some(self.errands.remove(place).1)
    }

    pub(super) fn later(&mut self, at: Timestamp, errand: Errand) {
        self.errands.push((at, errand));
    }

    pub(super) fn unanswered(&mut self, errand: Errand) {
        self.waiting.push(errand);
    }

    pub(super) fn answered(&mut self) {
        self.waiting.clear();
    }

    /// Those without an answer ask again.
    pub(super) fn ask_again(&mut self, now: Timestamp) {
        for errand in std::mem::take(&mut self.waiting) {
            self.later(now, errand);
        }
    }

    pub(super) fn become_diligent(&mut self) {
        self.are_diligent = true;
    }

    /// A worker was told to start a call.
    pub(super) fn begin(
        &mut self,
        random: &mut Random,
        started: &Started,
        limits: &[(LimitName, u64)],
        now: Timestamp,
    ) {
        let lease = started.lease;
        let done = |settlement| Errand::Settle(Settle { lease, settlement, actual: vec![] });
        let soon = now.plus(Span::from_millis(random.between(0, 1_500)));
        let span = Span::from_millis(random.between(0, 2_500));
        if self.are_diligent {
            return self.later(now, done(Settlement::Done));
        }
        match random.index(20) {
            0..=6 => self.later(soon, done(Settlement::Done)),
            7 | 8 => self.later(now, done(Settlement::Done)),
            9 | 10 => {
                let then = Box::new(done(Settlement::Done));
                let at = now.plus(Span::from_nanos(started.expires.since(now).as_nanos() / 2));
                self.later(at, Errand::Renew { lease, span: Span::from_secs(3), then });
            }
            11 => {}
            // It settles when its lease is lost, or in the nick of time.
            12 => self.later(started.expires.plus(span), done(Settlement::Done)),
            13 => {
                let last = started.expires.minus(Span::from_nanos(1));
                self.later(last, done(Settlement::Done));
            }
            14 => self.later(soon, done(Settlement::Retry(None))),
            15 => self.later(soon, done(Settlement::Retry(Some(span)))),
            16 => self.later(soon, done(Settlement::Release)),
            17 => self.later(soon, done(Settlement::Limited(span))),
            18 => {
                let settlement = *random.pick(&[Settlement::Done, Settlement::Retry(None)]);
                let actual =
                    limits.iter().map(|(limit, paid)| (limit.clone(), random.between(0, paid + 2)));
                let actual = actual.collect();
                self.later(soon, Errand::Settle(Settle { lease, settlement, actual }));
            }
            _ => self.later(soon, done(Settlement::Dead)),
        }
    }
}
