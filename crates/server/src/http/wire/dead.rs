//! What is done with dead calls, as it travels.

use super::id::IdWire;
use super::span::SpanWire;
use serde::{Deserialize, Serialize};

/// Which dead calls: by name, or all of a queue or of one of its lanes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct DeadWire {
    pub(in crate::http) ids: Option<Vec<IdWire>>,
    pub(in crate::http) queue: Option<String>,
    pub(in crate::http) lane: Option<String>,
    /// One every so often, when many are revived.
    pub(in crate::http) every: Option<SpanWire>,
}

/// How many wait again.
#[derive(Debug, Serialize)]
pub(in crate::http) struct RevivedWire {
    pub(in crate::http) revived: u64,
}

/// How many are gone.
#[derive(Debug, Serialize)]
pub(in crate::http) struct DeletedWire {
    pub(in crate::http) deleted: u64,
}
