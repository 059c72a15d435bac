//! What operators see of refusals: one counter for each limit, one debug line for each.

use crate::error::{Error, Refusal};
use metrics::{Key, Label, Level, Metadata};

static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// Counts and traces an ask that was not granted.
#[cold]
pub(crate) fn failed(error: &Error) {
    match error {
        Error::Refused(refusal) => throttled(refusal),
        Error::Invalid(error) => {
            tracing::debug!(%error, "ask is invalid");
            count("tollgate_invalid_total", Vec::new());
        }
        Error::Act(error) => tracing::debug!(%error, "act is refused"),
        Error::Meter(error) => tracing::debug!(%error, "a meter cannot be changed so"),
        Error::Queue(error) => tracing::debug!(%error, "queue is invalid"),
        Error::Flow(error) => tracing::debug!(%error, "a run cannot be changed so"),
        Error::Store(error) => {
            tracing::warn!(%error, "store failed");
            count("tollgate_store_failed_total", Vec::new());
        }
    }
}

/// Counts an ask that was granted without the store, which could not be asked.
pub(crate) fn admitted() {
    count("tollgate_store_failed_admitted_total", Vec::new());
}

/// Counts an ask that was decided by this process's part of the limits, without the store.
pub(crate) fn shared() {
    count("tollgate_store_failed_shared_total", Vec::new());
}

fn throttled(refusal: &Refusal) {
    tracing::debug!(
        limit = &*refusal.limit,
        partition = refusal.partition.as_deref(),
        cause = ?refusal.cause,
        retry_after_ms = refusal.retry_after.map(tollgate_core::Span::as_millis_ceil),
        "throttled"
    );
    count("tollgate_throttled_total", vec![Label::new("limit", refusal.limit.clone())]);
}

fn count(name: &'static str, labels: Vec<Label>) {
    let key = Key::from_parts(name, labels);
    metrics::with_recorder(|recorder| recorder.register_counter(&key, &METADATA).increment(1));
}
