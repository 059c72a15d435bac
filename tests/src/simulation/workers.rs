//! Workers: what each does with a call that it was told to start.

use super::random::Random;
use tollgate_core::lanes::{Act, Lease, Settle, Settlement, Started};
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
    /// It settles its call, and what follows from that with it.
    Act(Box<Act>),
    /// It is slow: it holds its lease longer before it goes on.
    Renew { lease: Lease, span: Span, then: Box<Errand> },
}

/// What a worker gets.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) started: Started,
    /// The limits at which the call paid, and how much.
    pub(super) paid: Vec<(LimitName, u64)>,
    /// What follows from the call.
    pub(super) parts: Act,
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

    /// The first errand that is due, if it is an act.
    pub(super) fn due_act(&mut self, now: Timestamp) -> Option<Act> {
        let first = self.errands.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let (place, _) = first.filter(|(_, (at, _))| *at <= now)?;
        let Errand::Act(act) = self.errands[place].1.clone() else { return None };
        self.errands.remove(place);
        Some(*act)
    }

    pub(super) fn later(&mut self, at: Timestamp, errand: Errand) {
        self.errands.push((at, errand));
    }

    pub(super) fn unanswered(&mut self, errand: Errand) {
        self.waiting.push(errand);
    }

    /// All was durable. Some answers are lost on the way: those workers ask again.
    pub(super) fn answered(&mut self, random: &mut Random, now: Timestamp) {
        for errand in std::mem::take(&mut self.waiting) {
            if !self.are_diligent && random.one_in(12) {
                self.later(now.plus(Span::from_millis(random.between(0, 900))), errand);
            }
        }
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

    pub(super) fn are_diligent(&self) -> bool {
        self.are_diligent
    }

    /// A worker was told to start a call.
    pub(super) fn begin(&mut self, random: &mut Random, work: Work, now: Timestamp) {
        let Work { started, paid, parts } = work;
        let lease = started.lease;
        let costs = |settlement, actual| {
            let settle = vec![Settle { actual, ..Settle::new(lease, settlement) }];
            Errand::Act(Box::new(Act { settle, ..parts.clone() }))
        };
        let done = |settlement| costs(settlement, vec![]);
        if self.are_diligent {
            return self.later(now, done(Settlement::Done));
        }
        let soon = now.plus(Span::from_millis(random.between(0, 1_500)));
        let span = Span::from_millis(random.between(0, 2_500));
        match random.index(21) {
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
            17 | 18 => {
                let is_long = random.one_in(10);
                let pause = if is_long { Span::from_hours(30) } else { span };
                self.later(soon, done(Settlement::Limited(pause)));
            }
            19 => {
                let settlement = *random.pick(&[Settlement::Done, Settlement::Retry(None)]);
                let mut actual: Vec<_> = paid
                    .iter()
                    .map(|(limit, paid)| (limit.clone(), random.between(0, paid + 2)))
                    .collect();
                if random.one_in(8) {
                    actual.push((LimitName::new("nothing").unwrap(), 1));
                }
                self.later(soon, costs(settlement, actual));
            }
            _ => self.later(soon, done(Settlement::Dead)),
        }
    }
}
