//! The first byte of each record.
//!
//! These numbers are for good: they stand in journals. A new effect takes the next free one, and the
//! number of one that is no longer written is not used again. 0 is none, so that zeros are no record;
//! from 240 on they are the store's own.

pub(super) const LIMIT_DEFINED: u8 = 1;
pub(super) const QUEUE_DEFINED: u8 = 2;
pub(super) const LANE_WEIGHED: u8 = 3;
pub(super) const PAUSED: u8 = 4;
pub(super) const RESUMED: u8 = 5;
pub(super) const REOPENED: u8 = 6;
pub(super) const ACCEPTED: u8 = 7;
pub(super) const JOINED: u8 = 8;
pub(super) const STARTED: u8 = 9;
pub(super) const RENEWED: u8 = 10;
pub(super) const SETTLED: u8 = 11;
pub(super) const CLOSED: u8 = 12;
pub(super) const CAME_BACK: u8 = 13;
pub(super) const CANCEL_ASKED: u8 = 14;
pub(super) const ENDED: u8 = 15;
pub(super) const PAID: u8 = 16;
pub(super) const RECEIPT_RENEWED: u8 = 17;
pub(super) const RECEIPT_SETTLED: u8 = 18;
pub(super) const WRITTEN: u8 = 19;
pub(super) const COUNTED: u8 = 20;
pub(super) const DIED: u8 = 21;
pub(super) const REVIVED: u8 = 22;
pub(super) const PARTITION_DEFINED: u8 = 23;
pub(super) const CLOSED_BY: u8 = 24;
pub(super) const RESET: u8 = 25;
pub(super) const ALLOWED: u8 = 26;
pub(super) const QUEUE_REMOVED: u8 = 27;
// A call whose body is in an envelope, and a start with something said about it.
pub(super) const ACCEPTED_IN_ENVELOPE: u8 = 28;
pub(super) const SETTLED_REPORTED: u8 = 29;
pub(super) const LIMIT_CAME: u8 = 30;
// From here on what events need: a start of a call that waited, and a time.
pub(super) const STARTED_WAITED: u8 = 32;
pub(super) const TIMED: u8 = 33;
pub(super) const LIMIT_WENT: u8 = 34;
// From here on what a checkpoint keeps.
pub(super) const KEPT_COUNTERS: u8 = 64;
pub(super) const KEPT_METER: u8 = 65;
pub(super) const KEPT_LANE: u8 = 66;
pub(super) const KEPT_CALL: u8 = 67;
pub(super) const KEPT_DEDUPE: u8 = 68;
pub(super) const KEPT_RECEIPT: u8 = 69;
pub(super) const KEPT_CALL_IN_ENVELOPE: u8 = 70;
pub(super) const KEPT_START: u8 = 80;
