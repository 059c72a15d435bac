//! The one place where limits that are shared let time pass: by the runtime's clock, which tests can halt
//! and move.

use tokio::time::Instant;

/// Waits until an instant.
pub(super) async fn rest_until(instant: Instant) {
    tokio::time::sleep_until(instant).await;
}
