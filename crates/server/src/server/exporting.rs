//! What exports spans while the server answers, and shortly after: one task, if there is a collector.

use super::{Settings, StartError};
use crate::traces::Traces;
#[cfg(feature = "otel")]
use {
    crate::shutdown::{ShutdownBell, shutdown},
    crate::traces::Exporter,
    std::time::Duration,
    tokio::{task::JoinSet, time::timeout},
};

/// Longest time for spans that are left when the last answer was given.
#[cfg(feature = "otel")]
const LAST_TIMEOUT: Duration = Duration::from_secs(3);

/// Where spans go, and what takes them from there.
#[cfg(feature = "otel")]
pub(super) fn prepare(settings: &Settings) -> Result<(Traces, Exporting), StartError> {
    let Some(settings) = &settings.traces else {
        return Ok(Default::default());
    };
    let (traces, exporter) = Exporter::new(settings)?;
    Ok((traces, Exporting { exporter: Some(exporter), running: None }))
}

/// Nowhere: this server exports none.
#[cfg(not(feature = "otel"))]
pub(super) fn prepare(_: &Settings) -> Result<(Traces, Exporting), StartError> {
    Ok(Default::default())
}

/// The task. Dropped, it ends at once.
#[derive(Default)]
pub(super) struct Exporting {
    /// Until it begins.
    #[cfg(feature = "otel")]
    exporter: Option<Exporter>,
    #[cfg(feature = "otel")]
    running: Option<(JoinSet<()>, ShutdownBell)>,
}

#[cfg(feature = "otel")]
impl Exporting {
    /// Exports from now on.
    pub(super) fn begin(&mut self) {
        if let Some(exporter) = self.exporter.take() {
            let (bell, end) = shutdown();
            let mut tasks = JoinSet::new();
            tasks.spawn(exporter.run(end));
            self.running = Some((tasks, bell));
        }
    }

    /// Exports what is left, for a few seconds at most.
    pub(super) async fn end(self) {
        if let Some((tasks, bell)) = self.running {
            bell.ring();
            if timeout(LAST_TIMEOUT, tasks.join_all()).await.is_err() {
                tracing::warn!("the last spans were not exported: the collector takes too long");
            }
        }
    }
}

#[cfg(not(feature = "otel"))]
impl Exporting {
    pub(super) fn begin(&mut self) {}

    pub(super) async fn end(self) {}
}
