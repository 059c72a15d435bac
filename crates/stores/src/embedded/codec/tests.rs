//! The codec: what is written comes back, the format stays, and any bytes are borne.

mod any_bytes;
mod events;
pub(in crate::embedded) mod generated;
mod golden;
mod round_trip;

use super::encode;
use tollgate_core::lanes::{Effect, Kept};

/// How many kinds of effects there are.
const KINDS: usize = 37;

/// Which kind of effect it is, from 0 up to [`KINDS`]. A new one is noticed here first.
fn kind(effect: &Effect) -> usize {
    match effect {
        Effect::LimitDefined { .. } => 0,
        Effect::QueueDefined { .. } => 1,
        Effect::LaneWeighed { .. } => 2,
        Effect::Paused(_) => 3,
        Effect::Resumed(_) => 4,
        Effect::Reopened { .. } => 5,
        Effect::Accepted { .. } => 6,
        Effect::Joined { .. } => 7,
        Effect::Started { .. } => 8,
        Effect::Renewed { .. } => 9,
        Effect::Settled { .. } => 10,
        Effect::Closed { .. } => 11,
        Effect::CameBack { .. } => 12,
        Effect::CancelAsked(_) => 13,
        Effect::Ended { .. } => 14,
        Effect::Paid { .. } => 15,
        Effect::ReceiptRenewed { .. } => 16,
        Effect::ReceiptSettled { .. } => 17,
        Effect::Written { .. } => 18,
        Effect::Counted { .. } => 19,
        Effect::Kept(kept) => match kept {
            Kept::Counters { .. } => 20,
            Kept::Meter { .. } => 21,
            Kept::Lane { .. } => 22,
            Kept::Call { .. } => 23,
            Kept::Dedupe { .. } => 24,
            Kept::Receipt { .. } => 25,
            Kept::Start { .. } => 33,
        },
        Effect::Died { .. } => 26,
        Effect::Revived { .. } => 27,
        Effect::PartitionDefined { .. } => 28,
        Effect::ClosedBy { .. } => 29,
        Effect::Reset { .. } => 30,
        Effect::Allowed { .. } => 31,
        Effect::Timed(_) => 32,
        Effect::QueueRemoved(_) => 34,
        Effect::LimitCame { .. } => 35,
        Effect::LimitWent(_) => 36,
    }
}

fn record(effect: &Effect) -> Vec<u8> {
    let mut record = Vec::new();
    encode(effect, &mut record);
    record
}
