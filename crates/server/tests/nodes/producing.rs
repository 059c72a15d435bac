//! Whoever hands in the calls of a lane, each once, whatever becomes of the answers.

use crate::asking::{Asking, moment};
use crate::record::Record;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many of a lane wait at most: what is left at the end is soon done.
const AHEAD_MAX: u64 = 12;

pub(crate) async fn produce(
    mut asking: Asking,
    lane: u64,
    record: Arc<Record>,
    is_over: Arc<AtomicBool>,
) {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        if number >= record.settled_of(lane) + AHEAD_MAX {
            moment(10).await;
            continue;
        }
        let call = json!({"lane": lane.to_string(), "body": number,
            "dedupe_id": format!("{lane} {number}")});
        let answer = asking.surely("POST", "/v1/queues/q/calls", &call).await;
        record.accepted((lane, number), answer["ids"][0].as_str().unwrap());
        number += 1;
    }
}
