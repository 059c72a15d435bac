//! A store in memory, and the short ways to ask it.

use super::memory::{MemoryCells, Time};
use std::sync::Arc;
use tollgate::lanes::{Ask, Configure, Definition, LimitName, Meters, Toll};
use tollgate::shared::Shared;
use tollgate::{Limit, Now, Priority, Span, Timestamp};

/// Some time of our days.
pub(super) fn time() -> Time {
    let since = Timestamp::default().plus(Span::from_days(20_000));
    Time::new(parking_lot::Mutex::new(Now::both(since)))
}

pub(super) fn stage() -> (Arc<MemoryCells>, Shared) {
    let cells = Arc::new(MemoryCells::new(time()));
    (cells.clone(), Shared::new(cells))
}

pub(super) async fn define(store: &impl Meters, name: &str, limit: Limit) {
    let definition = Definition::new(limit).unwrap();
    let change = Configure::limit(LimitName::new(name).unwrap(), Some(definition));
    store.configure(change).await.unwrap().unwrap();
}

/// An ask for one unit at the global meter of a limit.
pub(super) fn asking(limit: &str) -> Ask {
    let limit = LimitName::new(limit).unwrap();
    let toll = Toll { limit, partition: None, weight: 1, hears_feedback: false };
    let (priority, life) = (Priority::default(), Span::from_secs(30));
    Ask { tolls: [toll].into(), priority, delay_max: None, life }
}

pub(super) async fn passes(store: &impl Meters, limit: &str) -> bool {
    store.consume(vec![asking(limit)]).await.unwrap().remove(0).is_ok()
}
