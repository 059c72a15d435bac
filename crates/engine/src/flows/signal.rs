//! Signals: what a run is told from outside. They last, and wait until the run asks for them.

use super::body::Woken;
use super::error::FlowError;
use super::moves::wake;
use super::record::{RunRecord, as_json};
use super::{Flows, TRIES_MAX, ended_key, run_key, write};
use crate::error::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tollgate_core::contract::Lanes;
use tollgate_core::flow::run::{Heard, Signal as Told};
use tollgate_core::lanes::{Act, ActError, Door};

/// Something that a run is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// What it is called.
    pub name: String,
    /// What it says, as JSON.
    pub payload: Box<[u8]>,
    /// A second one of this key is this one.
    pub key: Option<String>,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    /// The run goes on.
    Woken,
    /// It waits until the run asks for it.
    Kept,
    /// The run was told it before.
    Known,
}

impl Signal {
    /// A signal that says this.
    pub fn new(name: &str, payload: impl Serialize) -> Result<Self, FlowError> {
        let not_json = |error: serde_json::Error| FlowError::NotJson {
            what: "what the signal says",
            reason: error.to_string(),
        };
        let payload = as_json(&payload).map_err(not_json)?;
        Ok(Self { name: name.to_owned(), payload, key: None })
    }

    /// A second one of this key, to the same run, is this one.
    pub fn dedupe(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// What it says.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.payload)
    }
}

impl From<Told> for Signal {
    fn from(Told { name, payload, key }: Told) -> Self {
        Self { name: name.into(), payload, key: key.map(Into::into) }
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// Tells a run something. Once answered, it lasts; one that ended takes nothing any more.
    pub async fn signal(&self, run: &str, signal: Signal) -> Result<Signalled, Error> {
        let Signal { name, payload, key } = signal;
        let told = Told { name: name.into(), payload, key: key.map(Into::into) };
        for _ in 0..TRIES_MAX {
            let Some((mut kept, revision)) = self.live(run).await? else {
                let has_ended = self.engine.record(&ended_key(run)).await?.is_some();
                let run = run.to_owned();
                return Err(match has_ended {
                    true => FlowError::HasEnded { run },
                    false => FlowError::UnknownRun { run },
                }
                .into());
            };
            let mut act = Act { door: Door::Parks, ..Act::default() };
            let signalled = match kept.signal(told.clone()).map_err(FlowError::from)? {
                Heard::Known => return Ok(Signalled::Known),
                Heard::Kept => Signalled::Kept,
                Heard::Wakes(plan, signals) => {
                    let woken = Woken::Signals(signals);
                    wake(&mut act, (run, &kept), &plan, &woken, self.engine.wall())?;
                    Signalled::Woken
                }
            };
            act.write.push(write(&run_key(run), revision, Some(RunRecord::written(&kept)?))?);
            match self.engine.act_own(act).await {
                Ok(_) => return Ok(signalled),
                Err(Error::Act(ActError::RevisionDiffers { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FlowError::Busy { run: run.to_owned() }.into())
    }
}
