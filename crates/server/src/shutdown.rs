//! The end of the server, announced once and seen by every connection and every waiting call.

use tokio::sync::watch;

/// Announces the end.
#[derive(Debug)]
pub(crate) struct ShutdownBell(watch::Sender<bool>);

/// Sees the end coming. Clones see the same one.
#[derive(Debug, Clone)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

/// A bell and those who hear it.
pub(crate) fn shutdown() -> (ShutdownBell, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (ShutdownBell(sender), Shutdown(receiver))
}

impl ShutdownBell {
    /// Announces the end. A bell that is dropped rings too: nobody is left waiting.
    pub(crate) fn ring(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Returns when the end is announced.
    pub(crate) async fn begun(&self) {
        let mut receiver = self.0.clone();
        // An error means that the bell is gone, which is the end as well.
        let _ = receiver.wait_for(|has_begun| *has_begun).await;
    }
}
