//! Calls that Tollgate makes itself.

use super::Tollgate;
use crate::store::Store;
use std::future::Future;
use tollgate_engine::Error;
use tollgate_engine::push::{self, PushError, PushSettings};

/// Delivers the calls of all queues that say where to.
#[derive(Debug)]
#[must_use = "nothing is delivered until it runs"]
pub struct Pusher {
    inner: Result<push::Pusher<Store>, Error>,
}

impl Tollgate {
    /// A pusher, with connections of its own; one is enough for a folder.
    pub fn pusher(&self, settings: PushSettings) -> Result<Pusher, PushError> {
        let inner = match self.engine() {
            Ok(engine) => Ok(push::Pusher::new(engine.clone(), settings)?),
            Err(error) => Err(error),
        };
        Ok(Pusher { inner })
    }
}

impl Pusher {
    /// Delivers until this is ready, and then finishes what is on its way. Ends early if the store fails.
    /// Needs a tokio runtime.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), Error> {
        self.inner?.run(stop).await
    }
}
