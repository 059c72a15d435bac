//! Where one waiting call's answer is put, and who is woken by it.

use super::relay::Relay;
use crate::error::Error;
use crate::pass::Pass;
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
pub(crate) struct Seat {
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Empty,
    Waiting(Waker),
    /// With those whom it wakes who comes for the answer.
    Answered(Result<Pass, Error>, Option<Arc<Relay>>),
    /// Nobody will come for the answer.
    Abandoned,
}

impl Seat {
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Result<Pass, Error>> {
        let mut state = self.state.lock();
        match std::mem::take(&mut *state) {
            State::Answered(answer, relay) => {
                drop(state);
                relay.iter().for_each(|relay| relay.wake());
                Poll::Ready(answer)
            }
            State::Waiting(waker) if waker.will_wake(context.waker()) => {
                *state = State::Waiting(waker);
                Poll::Pending
            }
            _ => {
                *state = State::Waiting(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Says who is to be woken for it. The caller holds no lock: a call that is not there any more hands its
    /// pass back.
    pub(super) fn give(
        &self,
        answer: Result<Pass, Error>,
        relay: Option<Arc<Relay>>,
    ) -> Option<Waker> {
        let mut state = self.state.lock();
        if let State::Abandoned = *state {
            drop(state);
            hand_back(answer);
            return None;
        }
        match std::mem::replace(&mut *state, State::Answered(answer, relay)) {
            State::Waiting(waker) => Some(waker),
            _ => None,
        }
    }

    /// The call is gone. What was paid for it, now or later, is handed back.
    pub(crate) fn abandon(&self) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Abandoned);
        if let State::Answered(answer, relay) = before {
            relay.iter().for_each(|relay| relay.wake());
            hand_back(answer);
        }
    }
}

fn hand_back(answer: Result<Pass, Error>) {
    if let Ok(mut pass) = answer {
        pass.hand_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limiter, global};
    use tollgate_core::{Limit, Span};

    /// Decided for, gone, told: in that order a pass has no taker.
    #[test]
    fn an_answer_that_comes_too_late_is_handed_back() {
        let limiter = Limiter::default();
        limiter.define("api", Limit::per_hour(1)).unwrap();
        let answer = limiter.consume_delayed(global("api"), Span::ZERO);
        let seat = Seat::default();
        seat.abandon();
        assert!(limiter.consume(global("api")).is_err());
        assert!(seat.give(answer, None).is_none());
        let _ = limiter.consume(global("api")).unwrap();
    }
}
