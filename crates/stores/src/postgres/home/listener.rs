//! Hearing that other nodes wrote something.

use super::inbox::Inbox;
use super::link::Connector;
use super::tickets;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long a server that is out of reach is left alone before it is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// Listens until nobody is left who would hear.
pub(super) async fn listen(
    connector: Connector,
    channel: String,
    node: Arc<AtomicI64>,
    inbox: Arc<Inbox>,
) {
    let inbox = Arc::downgrade(&inbox);
    let mut pause = tokio::time::interval(RETRY);
    // Days of listening are no reason to hurry afterwards.
    pause.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while inbox.strong_count() > 0 {
        pause.tick().await;
        if let Err(error) = listen_once(&connector, &channel, &node, &inbox).await {
            tracing::debug!(%error, "what other nodes write is not heard, and looked for instead");
        }
    }
}

async fn listen_once(
    connector: &Connector,
    channel: &str,
    node: &AtomicI64,
    inbox: &Weak<Inbox>,
) -> Result<(), tokio_postgres::Error> {
    let mut connected = connector().await?;
    connected.client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
    // What was written before it listened.
    while let Some(hearing) = inbox.upgrade() {
        hearing.hear();
        drop(hearing);
        loop {
            match connected.heard.recv().await {
                None => return Ok(()),
                Some(note) if is_own(&note, node) => {}
                Some(note) if note == tickets::NOTE => {
                    inbox.upgrade().iter().for_each(|inbox| inbox.hear_of_tickets());
                }
                Some(_) => break,
            }
        }
    }
    Ok(())
}

/// Whether a note is of this node's own writing.
fn is_own(note: &str, node: &AtomicI64) -> bool {
    let by = note.split_once(' ').and_then(|(by, _)| by.parse().ok());
    by == Some(node.load(Ordering::Relaxed))
}
