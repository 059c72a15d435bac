//! What is called how: the face's words on the one side, the engine's on the other.

use crate::access::Namespace;
use tollgate::lanes::CallId;

/// The queue of all messages that go through none of the caller's own.
pub(super) const MESSAGES: &str = "qstash";
/// How the engine's names of QStash queues begin.
const QUEUES: &str = "qstash:";
/// The queue of what is to be sent to all endpoints of a group, as they are then.
pub(super) const GROUPS: &str = "qstash-groups";
/// How the engine's names of schedules begin: others have the names that they want.
const SCHEDULES: &str = "qstash:";
/// How ids of messages begin.
const MESSAGE: &str = "msg_";
/// How lanes of messages without a key begin.
pub(super) const UNBOUND: &str = "$ ";
/// Between the keys of a message that has several: no key has it.
const BETWEEN_KEYS: &str = "\t";

/// A part of the world: what lies in it has names with this in front.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Names {
    prefix: String,
}

impl Names {
    /// Those of a namespace, or of everything.
    pub(super) fn of(namespace: Option<&Namespace>) -> Self {
        Self { prefix: namespace.map(|it| it.prefix().to_owned()).unwrap_or_default() }
    }

    /// Those with this in front.
    pub(super) fn behind(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// Those among which a queue is that the face made; `None` for another's.
    pub(super) fn around(queue: &str) -> Option<Self> {
        let is_ours = |name: &str| name == MESSAGES || name == GROUPS || name.starts_with(QUEUES);
        let (prefix, _) = match queue.split_once('/') {
            _ if is_ours(queue) => ("", queue),
            Some((namespace, name)) if is_ours(name) => queue.split_at(namespace.len() + 1),
            _ => return None,
        };
        Some(Self { prefix: prefix.to_owned() })
    }

    /// What stands in front of the engine's names.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The engine's name of something.
    pub(super) fn inner(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The caller's name of something that is theirs.
    pub(super) fn outer<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(&self.prefix).filter(|name| !name.is_empty())
    }

    /// The queue of messages.
    pub(super) fn messages(&self) -> String {
        self.inner(MESSAGES)
    }

    /// Whether a queue is one of these that messages wait in.
    pub(super) fn has_messages(&self, queue: &str) -> bool {
        let name = self.outer(queue);
        name.is_some_and(|name| name == MESSAGES || name.starts_with(QUEUES))
    }

    /// The engine's name of a schedule.
    pub(super) fn schedule(&self, id: &str) -> String {
        format!("{}{SCHEDULES}{id}", self.prefix)
    }

    /// The engine's name of a QStash queue.
    pub(super) fn queue(&self, name: &str) -> String {
        format!("{}{QUEUES}{name}", self.prefix)
    }

    /// What stands in front of the engine's names of all QStash queues.
    pub(super) fn queues(&self) -> String {
        self.inner(QUEUES)
    }

    /// The caller's name of a QStash queue.
    pub(super) fn outer_queue<'a>(&self, queue: &'a str) -> Option<&'a str> {
        self.outer(queue)?.strip_prefix(QUEUES)
    }
}

/// The lane of messages with these keys.
pub(super) fn lane<'a>(keys: impl IntoIterator<Item = &'a str>) -> String {
    keys.into_iter().collect::<Vec<_>>().join(BETWEEN_KEYS)
}

/// The id of a message.
pub(super) fn message_id(call: CallId) -> String {
    format!("{MESSAGE}{}", call.0)
}

/// The call of a message; `None` if no message has such an id.
pub(super) fn call_of(id: &str) -> Option<CallId> {
    number(id.strip_prefix(MESSAGE)?).map(CallId)
}

/// The id of a message among the dead: when it was accepted, so that it is the same wherever it is told,
/// and its call.
pub(super) fn dead_id(created_ms: u64, call: CallId) -> String {
    format!("{created_ms}-{}", call.0)
}

/// The call of a message among the dead; `None` if none has such an id.
pub(super) fn dead_call_of(id: &str) -> Option<CallId> {
    let (created, call) = id.split_once('-')?;
    number(created)?;
    number(call).map(CallId)
}

/// As it is written, so that a thing has one id.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_in_and_come_out_again() {
        for names in [Names::default(), Names::of(Namespace::new("acme").ok().as_ref())] {
            assert_eq!(names.outer(&names.inner("a/b")), Some("a/b"));
            assert_eq!(names.outer_queue(&names.queue("q")), Some("q"));
            assert_eq!(Names::around(&names.messages()), Some(names.clone()));
            assert_eq!(Names::around(&names.queue("a/qstash:b")), Some(names.clone()));
            assert_eq!(Names::around(&names.inner("other")), None);
            let has = |queue: String| names.has_messages(&queue);
            assert!(has(names.messages()) && has(names.queue("q")) && !has(names.inner(GROUPS)));
            assert!(!has(format!("other/{}", names.messages())));
        }
        assert_eq!(Names::of(Namespace::new("acme").ok().as_ref()).outer("qstash"), None);
    }

    #[test]
    fn a_message_has_one_id() {
        assert_eq!(call_of(&message_id(CallId(42))), Some(CallId(42)));
        assert_eq!(dead_call_of(&dead_id(7, CallId(42))), Some(CallId(42)));
        for wrong in ["42", "msg_", "msg_042", "msg_+42", "msg_x", "MSG_42"] {
            assert_eq!(call_of(wrong), None, "{wrong}");
        }
        for wrong in ["42", "-42", "7-", "07-42", "7-42-1"] {
            assert_eq!(dead_call_of(wrong), None, "{wrong}");
        }
    }
}
