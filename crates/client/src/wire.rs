//! What travels: the library's types as JSON, and back.

pub(crate) mod ask;
pub(crate) mod call;
pub(crate) mod destination;
pub(crate) mod limit;
pub(crate) mod meter;
pub(crate) mod outcome;
pub(crate) mod queue;
pub(crate) mod queue_toll;
pub(crate) mod time;
pub(crate) mod totals;
