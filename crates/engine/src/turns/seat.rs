//! Where one waiting call's answer is put, and who is woken by it.

use crate::error::Error;
use crate::limiter::Grant;
use parking_lot::Mutex;
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
    Answered(Box<Result<Grant, Error>>),
}

impl Seat {
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Result<Grant, Error>> {
        let mut state = self.state.lock();
        match std::mem::take(&mut *state) {
            State::Answered(answer) => Poll::Ready(*answer),
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

    pub(super) fn give(&self, answer: Result<Grant, Error>) {
        let before = std::mem::replace(&mut *self.state.lock(), State::Answered(Box::new(answer)));
        if let State::Waiting(waker) = before {
            waker.wake();
        }
    }

    /// Takes an answer that no one came for.
    pub(crate) fn take(&self) -> Option<Result<Grant, Error>> {
        match std::mem::take(&mut *self.state.lock()) {
            State::Answered(answer) => Some(*answer),
            _ => None,
        }
    }
}
