//! Waiting for what a run gives.

use super::record::Ended;
use super::{Flows, ended_key, run_key};
use crate::error::Error;
use crate::flows::FlowError;
use std::pin::pin;
use tollgate_core::Span;
use tollgate_core::contract::Lanes;

impl<S: Lanes + 'static> Flows<S> {
    /// How a run ended; `None` if it has not. An error if there is no such run.
    pub async fn ended(&self, run: &str) -> Result<Option<Ended>, Error> {
        // Looked for where it ends before where it lives: it cannot go by unseen.
        let is_live = self.engine.record(&run_key(run)).await?.is_some();
        match self.engine.record(&ended_key(run)).await? {
            Some(ended) => Ok(Some(Ended::read(&ended.bytes)?)),
            None if is_live => Ok(None),
            None => Err(FlowError::UnknownRun { run: run.to_owned() }.into()),
        }
    }

    /// How a run ends, as soon as it does; `None` if it has not within so long.
    pub async fn result(&self, run: &str, within: impl Into<Span>) -> Result<Option<Ended>, Error> {
        let mut late = pin!(self.engine.rest(within.into()));
        loop {
            let mut changed = pin!(self.engine.until_run_changed(run));
            // From here on it is told of every end.
            tokio::select! {
                biased;
                () = &mut changed => continue,
                ended = self.ended(run) => if let Some(ended) = ended? {
                    return Ok(Some(ended));
                },
            }
            tokio::select! {
                () = changed => {}
                () = &mut late => return self.ended(run).await,
            }
        }
    }
}
