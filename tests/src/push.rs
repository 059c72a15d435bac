//! Calls that Tollgate makes itself, against upstreams on this machine.

mod bearing;
mod changing;
mod delivering;
mod encrypted;
mod mannered;
mod signed;
mod standstill;
pub(crate) mod upstream;
mod within;

use crate::gate::patiently;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tollgate::lanes::{CallId, Event, QueueSpec, What};
use tollgate::push::PushSettings;
use tollgate::push::address::AddressPolicy;
use tollgate::{Delivery, Tollgate};

/// A gate in a folder whose calls are delivered. Of this machine's addresses one alone is allowed.
struct Pushed {
    gate: Tollgate,
    folder: TempDir,
    settings: PushSettings,
    stop: oneshot::Sender<()>,
    pusher: JoinHandle<()>,
}

impl Pushed {
    async fn new() -> Self {
        Self::with(settings()).await
    }

    async fn with(settings: PushSettings) -> Self {
        Self::open(tempfile::tempdir().unwrap(), settings).await
    }

    async fn open(folder: TempDir, settings: PushSettings) -> Self {
        let gate = Tollgate::open(folder.path()).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let pusher = gate.pusher(settings.clone()).unwrap();
        let pusher = tokio::spawn(async move {
            pusher.run(async move { drop(stopped.await) }).await.unwrap();
        });
        Self { gate, folder, settings, stop, pusher }
    }

    /// Defines a queue that is delivered.
    async fn queue(&self, name: &str, delivery: Delivery, spec: QueueSpec) {
        let spec = QueueSpec { delivery: Some(delivery.to_bytes().unwrap()), ..spec };
        self.gate.queue(name, spec).await.unwrap();
    }

    /// Waits until a call has ended; all that happened to it.
    async fn ended(&self, call: CallId) -> Vec<What> {
        let mut events = self.gate.events(None);
        events.place().await.unwrap();
        loop {
            let history = self.gate.history_of(call).await.unwrap();
            if history.iter().any(|event: &Event| event.end().is_some()) {
                return history.into_iter().map(|event| event.what).collect();
            }
            patiently(events.next()).await.unwrap();
        }
    }

    /// Ends the pusher and closes the gate, and opens and starts both again.
    async fn reopen(self) -> Self {
        let (folder, settings) = self.end().await;
        Self::open(folder, settings).await
    }

    async fn close(self) {
        drop(self.end().await);
    }

    async fn end(self) -> (TempDir, PushSettings) {
        drop(self.stop);
        patiently(self.pusher).await.unwrap();
        patiently(self.gate.shut_down()).await;
        (self.folder, self.settings)
    }
}

pub(crate) fn settings() -> PushSettings {
    let addresses = AddressPolicy { allowed: vec!["127.0.0.1".parse().unwrap()] };
    PushSettings { addresses, ..PushSettings::default() }
}

fn to(destination: impl Into<String>) -> Delivery {
    Delivery { destination: Some(destination.into()), ..Delivery::default() }
}

/// What was said about each attempt, as JSON.
fn reports(history: &[What]) -> Vec<serde_json::Value> {
    let report = |what: &What| match what {
        What::Settled { report, .. } => serde_json::from_slice(report).ok(),
        _ => None,
    };
    history.iter().filter_map(report).collect()
}
