//! The clock of a store that tells the time itself.

use super::{Bell, Clock};
use std::sync::Arc;
use tollgate_core::{Now, Timestamp};

/// Both clocks as a store tells them, which many nodes share: the clocks of this machine are used to wait
/// alone, and a minute that they are off is nobody's.
pub struct StoreClock {
    told: Arc<dyn Fn() -> Now + Send + Sync>,
}

impl StoreClock {
    /// As it is told here. Limit time never goes back.
    pub fn new(told: Arc<dyn Fn() -> Now + Send + Sync>) -> Self {
        Self { told }
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        (self.told)().at
    }

    fn wall(&self) -> Timestamp {
        (self.told)().wall
    }

    fn wait(&self, bell: &Arc<Bell>, deadline: Option<Timestamp>) {
        bell.wait(deadline.map(|deadline| deadline.since(self.now()).into()));
    }

    fn both(&self) -> Now {
        (self.told)()
    }
}
