//! The end of the server, announced once and seen by every connection and every waiting call.

use tokio::sync::watch;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    /// It answers all the same, and says that it is not ready.
    Leaving,
    /// Nothing more is begun.
    Ending,
}

/// Announces the end.
#[derive(Debug)]
pub(crate) struct ShutdownBell(watch::Sender<Stage>);

/// Sees the end coming. Clones see the same one.
#[derive(Debug, Clone)]
pub(crate) struct Shutdown(watch::Receiver<Stage>);

/// A bell and those who hear it.
pub(crate) fn shutdown() -> (ShutdownBell, Shutdown) {
    let (sender, receiver) = watch::channel(Stage::Serving);
    (ShutdownBell(sender), Shutdown(receiver))
}

impl ShutdownBell {
    /// Says that the end will come, for those who look whether it does.
    pub(crate) fn leave(&self) {
        self.0.send_replace(Stage::Leaving);
    }

    /// Announces the end. A bell that is dropped rings too: nobody is left waiting.
    pub(crate) fn ring(&self) {
        self.0.send_replace(Stage::Ending);
    }
}

impl Shutdown {
    /// Whether the end will come.
    pub(crate) fn is_coming(&self) -> bool {
        *self.0.borrow() > Stage::Serving
    }

    /// Returns when the end is announced.
    pub(crate) async fn begun(&self) {
        let mut receiver = self.0.clone();
        // An error means that the bell is gone, which is the end as well.
        let _ = receiver.wait_for(|stage| *stage == Stage::Ending).await;
    }
}
