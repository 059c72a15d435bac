//! A clock that goes on from where another left off.

use super::{Bell, Clock};
use std::sync::Arc;
use tollgate_core::{Span, Timestamp};

/// Another clock whose limit time is ahead by a fixed span: limit time never goes back, also if the
/// machine's clock was set back while nothing ran.
pub struct Ahead {
    clock: Arc<dyn Clock>,
    by: Span,
}

impl Ahead {
    /// The clock, ahead by so much.
    pub fn new(clock: Arc<dyn Clock>, by: Span) -> Self {
        Self { clock, by }
    }
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        self.clock.now().plus(self.by)
    }

    fn wall(&self) -> Timestamp {
        self.clock.wall()
    }

    fn wait(&self, bell: &Arc<Bell>, deadline: Option<Timestamp>) {
        self.clock.wait(bell, deadline.map(|deadline| deadline.minus(self.by)));
    }
}
