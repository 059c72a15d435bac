//! The signals that end the server, and the one that has it read its settings again.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, and what a service manager sends.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on these signals are ours.
    pub(super) fn new() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// What asks a server to read its settings again.
pub(super) struct Hangups(Signal);

impl Hangups {
    /// From now on these are ours: until now one would have ended the process.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        self.0.recv().await;
    }
}
