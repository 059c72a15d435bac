//! What is still under way for passes that were dropped.

use tokio::sync::watch;

/// Counts passes that are not let go of yet.
#[derive(Debug)]
pub(crate) struct LettingGo {
    held: watch::Sender<usize>,
}

impl Default for LettingGo {
    fn default() -> Self {
        Self { held: watch::Sender::new(0) }
    }
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    held: watch::Sender<usize>,
}

impl LettingGo {
    pub(crate) fn begin(&self) -> Hold {
        self.held.send_modify(|held| *held += 1);
        Hold { held: self.held.clone() }
    }

    /// Ready when none is left.
    pub(crate) async fn is_done(&self) {
        // It fails only if the sender is gone, and that is here.
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.held.send_modify(|held| *held -= 1);
    }
}
