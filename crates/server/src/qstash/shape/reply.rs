//! What is answered to those who change something.

use super::log::LogWire;
use super::message::DeadWire;
use serde::Serialize;
use std::ops::Not;

/// A message that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct Published {
    /// Its id; that of the first if it was known already.
    pub(in crate::qstash) message_id: String,
    /// Where it goes, if it went to a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::qstash) url: Option<String>,
    /// Whether it was known already, so that nothing more is sent.
    #[serde(rename = "deduplicated", skip_serializing_if = "Not::not")]
    pub(in crate::qstash) is_duplicate: bool,
}

/// What came of one publish: one message, or one for each endpoint of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(in crate::qstash) enum PublishedWire {
    /// It went to an address.
    One(Published),
    /// It went to a group.
    Each(Vec<Published>),
}

/// A schedule that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct ScheduleMade {
    /// Its id.
    pub(in crate::qstash) schedule_id: String,
}

/// How many messages were cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(in crate::qstash) struct Cancelled {
    /// How many.
    pub(in crate::qstash) cancelled: u64,
}

/// How many of the dead were deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::qstash) struct Deleted {
    /// How many.
    pub(in crate::qstash) deleted: u64,
    /// Where to go on, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::qstash) cursor: Option<String>,
}

/// The dead that were sent again, as new messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::qstash) struct Retried {
    /// Where to go on, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::qstash) cursor: Option<String>,
    /// The new messages.
    pub(in crate::qstash) responses: Vec<Published>,
}

/// A page of the dead.
#[derive(Serialize)]
pub(in crate::qstash) struct DeadPage {
    /// Where to go on, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::qstash) cursor: Option<String>,
    /// Those of the page.
    pub(in crate::qstash) messages: Vec<DeadWire>,
}

/// A page of the log, for those who call it events.
#[derive(Serialize)]
pub(in crate::qstash) struct EventsPage {
    /// Where to go on, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::qstash) cursor: Option<String>,
    /// The lines of the page.
    pub(in crate::qstash) events: Vec<LogWire>,
}

/// A page of the log.
#[derive(Serialize)]
pub(in crate::qstash) struct LogsPage {
    /// Where to go on, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::qstash) cursor: Option<String>,
    /// The lines of the page.
    pub(in crate::qstash) logs: Vec<LogWire>,
}

/// The keys that deliveries are signed with.
#[derive(Serialize)]
pub(in crate::qstash) struct SigningKeysWire {
    /// The one in use.
    pub(in crate::qstash) current: String,
    /// The one that is next.
    pub(in crate::qstash) next: String,
}
