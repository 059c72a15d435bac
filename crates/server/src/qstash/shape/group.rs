//! URL groups, as they are told and as they are asked for.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A URL group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct GroupWire {
    /// Its name.
    pub(in crate::qstash) name: String,
    /// When it was made, in milliseconds.
    pub(in crate::qstash) created_at: u64,
    /// When it was changed last, in milliseconds.
    pub(in crate::qstash) updated_at: u64,
    /// Where its messages go.
    pub(in crate::qstash) endpoints: Vec<EndpointWire>,
}

/// An endpoint of a group. To remove one, either will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::qstash) struct EndpointWire {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::qstash) name: Option<String>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::qstash) url: Option<String>,
}

/// Endpoints that are to be added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(in crate::qstash) struct EndpointsAsked {
    /// Which.
    pub(in crate::qstash) endpoints: Vec<EndpointWire>,
}

/// Headers that stand behind those of every message to a group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(in crate::qstash) struct DefaultsAsked {
    /// By their names.
    #[serde(default)]
    pub(in crate::qstash) headers: BTreeMap<String, String>,
}
