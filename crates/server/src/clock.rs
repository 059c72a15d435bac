//! The one place where the server lets time pass: by the runtime's clock, which tests can halt and move.

use std::time::Duration;

/// Lets time pass.
pub(crate) async fn rest(span: Duration) {
    tokio::time::sleep(span).await;
}
