//! The parameters of a query, by their names.

use super::{FilterError, Order, Sought, State, VALUES_MAX, percent};
use std::collections::BTreeMap;

/// As much of a name as an error shows.
const SHOWN_CHARS_MAX: usize = 64;

/// What all take.
const EVERYWHERE: [&str; 16] = [
    "qstash_token",
    "messageId",
    "messageIds",
    "url",
    "topicName",
    "urlGroup",
    "queueName",
    "scheduleId",
    "label",
    "flowControlKey",
    "callerIp",
    "callerIP",
    "fromDate",
    "toDate",
    "count",
    "cursor",
];
const OF_LOGS: [&str; 6] = ["state", "host", "path", "order", "groupBy", "trimBody"];
const OF_THE_DEAD: [&str; 5] = ["responseStatus", "dlqIds", "dlqId", "order", "trimBody"];
const OF_CANCEL: [&str; 2] = ["host", "path"];

/// The parameters of a query, by their names.
#[derive(Debug)]
pub(super) struct Words(BTreeMap<String, Vec<String>>);

impl Words {
    /// Takes a query apart, and refuses what is not known.
    pub(super) fn read(sought: Sought, query: &str) -> Result<Self, FilterError> {
        let own = match sought {
            Sought::Logs => &OF_LOGS[..],
            Sought::Dead => &OF_THE_DEAD,
            Sought::Cancel => &OF_CANCEL,
        };
        let mut words: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (_, name, value) in percent::parameters(query).filter(|(whole, ..)| !whole.is_empty()) {
            let known = percent::decode_parameter(name)
                .filter(|name| EVERYWHERE.iter().chain(own).any(|known| known == name));
            let Some(name) = known else {
                let name = name.chars().take(SHOWN_CHARS_MAX).collect();
                return Err(FilterError::Unknown { name });
            };
            let Some(value) = percent::decode_parameter(value) else {
                return Err(FilterError::Value { name, wanted: "UTF-8, percent-encoded" });
            };
            words.entry(name).or_default().push(value);
        }
        Ok(Self(words))
    }

    /// All values of parameters that mean the same, with commas between or several times.
    pub(super) fn list(&mut self, names: &[&str]) -> Result<Option<Vec<String>>, FilterError> {
        self.split(names, |text| text.split(',').map(str::to_owned).collect())
    }

    /// Addresses may have commas in them: one follows where another begins.
    pub(super) fn addresses(&mut self, name: &str) -> Result<Option<Vec<String>>, FilterError> {
        self.split(&[name], |text| split_before(text, &["http://", "https://"]))
    }

    /// Paths may have commas in them, too.
    pub(super) fn paths(&mut self, name: &str) -> Result<Option<Vec<String>>, FilterError> {
        self.split(&[name], |text| split_before(text, &["/"]))
    }

    /// Keys may be any text: one with commas is meant as a whole, too.
    pub(super) fn keys(&mut self, name: &str) -> Result<Option<Vec<String>>, FilterError> {
        self.split(&[name], |text| {
            let mut keys: Vec<String> = text.split(',').map(str::to_owned).collect();
            if keys.len() > 1 {
                keys.push(text.to_owned());
            }
            keys
        })
    }

    /// Statuses.
    pub(super) fn numbers(&mut self, name: &str) -> Result<Option<Vec<u16>>, FilterError> {
        let Some(texts) = self.list(&[name])? else { return Ok(None) };
        let wrong = |_| value(name, "a status, as in 500");
        texts.iter().map(|text| text.parse().map_err(wrong)).collect::<Result<_, _>>().map(Some)
    }

    /// A time.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<u64>, FilterError> {
        let wrong = |_| value(name, "a time in unix milliseconds");
        self.last(name).map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// How many.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<usize>, FilterError> {
        let Some(text) = self.last(name) else { return Ok(None) };
        match text.parse() {
            Ok(count @ 1..) => Ok(Some(count)),
            _ => Err(value(name, "a whole number, 1 or more")),
        }
    }

    /// In which order.
    pub(super) fn order(&mut self, name: &str) -> Result<Option<Order>, FilterError> {
        match self.last(name).as_deref() {
            None => Ok(None),
            Some("latestFirst") => Ok(Some(Order::LatestFirst)),
            Some("earliestFirst") => Ok(Some(Order::EarliestFirst)),
            Some(_) => Err(value(name, "latestFirst or earliestFirst")),
        }
    }

    /// What was said last, if it is not empty.
    pub(super) fn last(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)?.pop().filter(|text| !text.is_empty())
    }

    fn split(
        &mut self,
        names: &[&str],
        apart: impl Fn(&str) -> Vec<String>,
    ) -> Result<Option<Vec<String>>, FilterError> {
        let mut list: Option<Vec<String>> = None;
        for name in names {
            for text in self.0.remove(*name).unwrap_or_default() {
                list.get_or_insert_default().extend(apart(text.trim()));
            }
            if list.iter().flatten().any(String::is_empty) {
                return Err(FilterError::Empty { name: (*name).to_owned() });
            }
            if list.as_ref().is_some_and(|list| list.len() > VALUES_MAX) {
                return Err(FilterError::TooMany { name: (*name).to_owned() });
            }
        }
        Ok(list)
    }
}

/// States by the names that clients know. What is in progress is in one of three.
pub(super) fn states(words: &mut Words) -> Result<Option<Vec<State>>, FilterError> {
    let Some(texts) = words.list(&["state"])? else { return Ok(None) };
    let mut states = Vec::new();
    for text in texts {
        states.extend_from_slice(match text.to_ascii_uppercase().as_str() {
            "CREATED" => &[State::Created][..],
            "ACTIVE" => &[State::Active],
            "RETRY" => &[State::Retry],
            "ERROR" => &[State::Error],
            "IN_PROGRESS" => &[State::Active, State::Retry, State::Error],
            "DELIVERED" => &[State::Delivered],
            "FAILED" => &[State::Failed],
            "CANCEL_REQUESTED" => &[State::CancelRequested],
            // Some documents spell it so.
            "CANCELED" | "CANCELLED" => &[State::Canceled],
            _ => return Err(value("state", "a state, as in DELIVERED or IN_PROGRESS")),
        });
    }
    Ok(Some(states))
}

fn value(name: &str, wanted: &'static str) -> FilterError {
    FilterError::Value { name: name.to_owned(), wanted }
}

/// A list with commas between its parts, where a comma counts if one of these follows.
fn split_before(text: &str, starts: &[&str]) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    for part in text.split(',') {
        let is_new = starts.iter().any(|start| part.starts_with(start));
        match list.last_mut() {
            Some(last) if !is_new => {
                last.push(',');
                last.push_str(part);
            }
            _ => list.push(part.to_owned()),
        }
    }
    list
}
