//! What a process finds out by the way: limits whose rules are not as it last saw them.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use tokio::sync::Notify;
use tollgate_core::LimitName;

/// Most that wait for somebody to hear them. Where nobody does, no more are kept.
const NEWS_MAX: usize = 1_024;

/// Limits that changed, each once until somebody hears of it.
#[derive(Debug, Default)]
pub(super) struct News {
    changed: Mutex<BTreeSet<LimitName>>,
    told: Notify,
}

impl News {
    pub(super) fn tell(&self, limit: LimitName) {
        let mut changed = self.changed.lock();
        if changed.len() < NEWS_MAX {
            changed.insert(limit);
        }
        drop(changed);
        self.told.notify_one();
    }

    /// The next of them, as soon as there is one. For one who listens.
    pub(super) async fn next(&self) -> LimitName {
        loop {
            let told = self.told.notified();
            let changed = self.changed.lock().pop_first();
            match changed {
                Some(limit) => return limit,
                None => told.await,
            }
        }
    }
}
