//! Which messages, lines of the log or dead are meant: the parameters of a query.
//!
//! Values of one parameter are alternatives, and parameters must all hold. A parameter that is not known
//! is refused: to leave out one that was misspelt would be to delete everything.

mod words;

use super::error::Fault;
use super::percent;
use super::shape::log::State;
use serde::Deserialize;
use tollgate::push::destination::Destination;
use words::{Words, states};

/// Most lines of the log on a page.
pub(super) const LOGS_MAX: usize = 1_000;
/// Things on a page, unless the query says so; and most of the dead, or cancelled at a time.
pub(super) const PAGE: usize = 100;
/// Most values of one parameter: each is compared with each message.
pub(super) const VALUES_MAX: usize = 1_000;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sought {
    /// Lines of the log.
    Logs,
    /// Dead messages.
    Dead,
    /// Messages to cancel.
    Cancel,
}

/// Which of them are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    sought: Sought,
    message_ids: Option<Vec<String>>,
    dlq_ids: Option<Vec<String>>,
    states: Option<Vec<State>>,
    urls: Option<Vec<String>>,
    hosts: Option<Vec<String>>,
    paths: Option<Vec<String>>,
    groups: Option<Vec<String>>,
    queues: Option<Vec<String>>,
    schedules: Option<Vec<String>>,
    labels: Option<Vec<String>>,
    keys: Option<Vec<String>>,
    caller_ips: Option<Vec<String>>,
    statuses: Option<Vec<u16>>,
    from_ms: Option<u64>,
    to_ms: Option<u64>,
    count: Option<usize>,
    order: Option<Order>,
    /// Where the page before ended.
    pub(super) cursor: Option<String>,
    /// Whether bodies are left out.
    pub(super) is_trimmed: bool,
}

/// In which order things come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The latest first.
    LatestFirst,
    /// The earliest first.
    EarliestFirst,
}

/// What a filter looks at. What is not known of a message is `None` or empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts<'a> {
    /// Its id.
    pub(super) message_id: &'a str,
    /// Its id among the dead.
    pub(super) dlq_id: Option<&'a str>,
    /// What happened to it.
    pub(super) state: Option<State>,
    /// Where it goes.
    pub(super) url: &'a str,
    /// The group it was sent to.
    pub(super) group: Option<&'a str>,
    /// The queue it goes through.
    pub(super) queue: Option<&'a str>,
    /// The schedule that it comes from.
    pub(super) schedule: Option<&'a str>,
    /// What it can be found by.
    pub(super) labels: &'a [String],
    /// Its flow-control keys.
    pub(super) keys: Vec<&'a str>,
    /// Who sent it.
    pub(super) caller_ip: Option<&'a str>,
    /// What came back.
    pub(super) status: Option<u16>,
    /// When it happened, was accepted, or died, in milliseconds.
    pub(super) time_ms: u64,
}

/// Why a query means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FilterError {
    /// A parameter that is not known here.
    #[error(
        "unknown query parameter {name:?}: nothing was done, for without it all would be meant"
    )]
    Unknown {
        /// Its first characters.
        name: String,
    },
    /// A parameter without a value.
    #[error("query parameter {name} is empty: give it a value, or leave it out")]
    Empty {
        /// Which.
        name: String,
    },
    /// A parameter with a value that it cannot have.
    #[error("query parameter {name} should be {wanted}")]
    Value {
        /// Which.
        name: String,
        /// What it can be.
        wanted: &'static str,
    },
    /// Too many values.
    #[error("query parameter {name} takes up to {VALUES_MAX} values: ask several times")]
    TooMany {
        /// Which.
        name: String,
    },
    /// A body that says nothing.
    #[error("the body should be JSON with a list of ids: {0}")]
    Body(String),
}

impl From<FilterError> for Fault {
    fn from(error: FilterError) -> Self {
        Self::invalid(error)
    }
}

/// Ids in a body: so Python says which.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct IdsWire {
    message_ids: Option<Vec<String>>,
    dlq_ids: Option<Vec<String>>,
}

impl Filter {
    /// What a query means, and a body if there is one. A list of ids that is empty means none.
    pub(super) fn read(sought: Sought, query: &str, body: &[u8]) -> Result<Self, FilterError> {
        let mut words = Words::read(sought, query)?;
        let ids = read_ids(body)?;
        let filter = Self {
            sought,
            message_ids: joined(ids.message_ids, words.list(&["messageId", "messageIds"])?),
            dlq_ids: joined(ids.dlq_ids, words.list(&["dlqIds", "dlqId"])?),
            states: states(&mut words)?,
            urls: words.addresses("url")?,
            hosts: words.list(&["host"])?,
            paths: words.paths("path")?,
            groups: words.list(&["topicName", "urlGroup"])?,
            queues: words.list(&["queueName"])?,
            schedules: words.list(&["scheduleId"])?,
            labels: words.list(&["label"])?,
            keys: words.keys("flowControlKey")?,
            caller_ips: words.list(&["callerIp", "callerIP"])?,
            statuses: words.numbers("responseStatus")?,
            from_ms: words.number("fromDate")?,
            to_ms: words.number("toDate")?,
            count: words.count("count")?,
            order: words.order("order")?,
            cursor: words.last("cursor"),
            is_trimmed: words.last("trimBody").is_some_and(|it| it.eq_ignore_ascii_case("true")),
        };
        // Lines are never put together by message here, and who asks for that is told them one by one.
        words.last("groupBy");
        Ok(filter)
    }

    /// The ids that it names, if it does: no others are meant, and of these those that match.
    pub(super) fn ids(&self) -> Option<&[String]> {
        match self.sought {
            Sought::Dead => self.dlq_ids.as_deref(),
            Sought::Logs | Sought::Cancel => self.message_ids.as_deref(),
        }
    }

    /// Whether it looks at what came back.
    pub(super) fn asks_status(&self) -> bool {
        self.statuses.is_some()
    }

    /// Whether nothing narrows it: all are meant.
    #[cfg(test)]
    pub(super) fn is_all(&self) -> bool {
        self.message_ids.is_none() && self.dlq_ids.is_none() && self.is_by_id()
    }

    /// Whether nothing but ids narrows it, if anything does.
    pub(super) fn is_by_id(&self) -> bool {
        let lists = [
            &self.urls,
            &self.hosts,
            &self.paths,
            &self.groups,
            &self.queues,
            &self.schedules,
            &self.labels,
            &self.keys,
            &self.caller_ips,
        ];
        lists.iter().all(|list| list.is_none())
            && self.states.is_none()
            && self.statuses.is_none()
            && (self.from_ms, self.to_ms) == (None, None)
    }

    /// How many at most. To cancel, `None` is all of them: the JavaScript client sends 100 whenever its
    /// caller names no count, and calls once; so 100 and more is all, and less is taken at its word.
    pub(super) fn count(&self) -> Option<usize> {
        match self.sought {
            Sought::Logs => Some(self.count.unwrap_or(PAGE).min(LOGS_MAX)),
            Sought::Dead => Some(self.count.unwrap_or(PAGE).min(PAGE)),
            Sought::Cancel => self.count.filter(|count| *count < PAGE),
        }
    }

    /// In which order they come.
    pub(super) fn order(&self) -> Order {
        self.order.unwrap_or(match self.sought {
            Sought::Logs => Order::LatestFirst,
            Sought::Dead | Sought::Cancel => Order::EarliestFirst,
        })
    }

    /// The span of time that is meant, both ends included, in milliseconds.
    pub(super) fn times_ms(&self) -> (u64, u64) {
        (self.from_ms.unwrap_or(0), self.to_ms.unwrap_or(u64::MAX))
    }

    /// Whether a message may be meant that goes through this queue and has keys for which that holds: so
    /// much is known of a call without a look at what goes with it.
    pub(super) fn may_mean(&self, queue: Option<&str>, has_key: impl Fn(&str) -> bool) -> bool {
        is_one(&self.queues, queue)
            && self.keys.as_ref().is_none_or(|keys| keys.iter().any(|key| has_key(key)))
    }

    /// Whether a message is meant.
    pub(super) fn matches(&self, facts: &Facts<'_>) -> bool {
        let (from, to) = self.times_ms();
        (from..=to).contains(&facts.time_ms)
            && is_one(&self.message_ids, Some(facts.message_id))
            && is_one(&self.dlq_ids, facts.dlq_id)
            && self.states.as_ref().is_none_or(|it| facts.state.is_some_and(|at| it.contains(&at)))
            && self.statuses.as_ref().is_none_or(|it| it.contains(&facts.status.unwrap_or(0)))
            && is_one(&self.groups, facts.group)
            && is_one(&self.queues, facts.queue)
            && is_one(&self.schedules, facts.schedule)
            && is_one(&self.caller_ips, facts.caller_ip)
            && is_any(&self.labels, facts.labels.iter().map(String::as_str))
            && is_any(&self.keys, facts.keys.iter().copied())
            && is_one(&self.urls, Some(facts.url))
            && self.matches_address(facts.url)
    }

    /// An address is only taken apart for those who ask.
    fn matches_address(&self, url: &str) -> bool {
        if self.hosts.is_none() && self.paths.is_none() {
            return true;
        }
        let Ok(destination) = Destination::parse(url) else { return false };
        let host = destination.host();
        let with_port = format!("{host}:{}", destination.port());
        let is_host = |wanted: &String| {
            wanted.eq_ignore_ascii_case(host) || wanted.eq_ignore_ascii_case(&with_port)
        };
        self.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(is_host))
            && is_one(&self.paths, Some(destination.uri().path()))
    }
}

fn read_ids(body: &[u8]) -> Result<IdsWire, FilterError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(IdsWire::default());
    }
    let ids: IdsWire =
        serde_json::from_slice(body).map_err(|error| FilterError::Body(error.to_string()))?;
    let lists = [("messageIds", &ids.message_ids), ("dlqIds", &ids.dlq_ids)];
    // A client that meant some and named none is not to cancel all.
    if lists.iter().all(|(_, list)| list.is_none()) {
        return Err(FilterError::Body("it has none; to mean all, send no body".to_owned()));
    }
    for (name, list) in lists {
        if list.as_ref().is_some_and(|list| list.len() > VALUES_MAX) {
            return Err(FilterError::TooMany { name: name.to_owned() });
        }
    }
    Ok(ids)
}

/// Ids from the body and from the query together.
fn joined(body: Option<Vec<String>>, query: Option<Vec<String>>) -> Option<Vec<String>> {
    match (body, query) {
        (Some(body), Some(query)) => Some([body, query].concat()),
        (body, query) => body.or(query),
    }
}

fn is_one(wanted: &Option<Vec<String>>, fact: Option<&str>) -> bool {
    is_any(wanted, fact.into_iter())
}

fn is_any<'a>(wanted: &Option<Vec<String>>, mut facts: impl Iterator<Item = &'a str>) -> bool {
    wanted.as_ref().is_none_or(|list| facts.any(|fact| list.iter().any(|one| one == fact)))
}

#[cfg(test)]
mod tests;
