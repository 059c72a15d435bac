//! What would have to change for a server to be as a file says.

use super::desired::{Desired, DesiredLimit};
use crate::http::definitions::{sent_queue, shown_limit, shown_queue};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tollgate::Limit;
use tollgate::lanes::QueueSpec;
use tollgate_client::path::path;

/// What a server has of what a file names, as its API shows it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Actual {
    /// Definitions of limits.
    pub(crate) limits: BTreeMap<String, Value>,
    /// Definitions of partitions, by limit and partition.
    pub(crate) partitions: BTreeMap<(String, String), Value>,
    /// Definitions of queues.
    pub(crate) queues: BTreeMap<String, Value>,
}

/// One thing to change, and the request that changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// What it is, as in `limit stripe`.
    pub(crate) thing: String,
    /// Where it is sent with PUT.
    pub(crate) path: String,
    /// What it is; `None`: it is not there.
    pub(crate) before: Option<Value>,
    /// What it is to be, as the API shows it.
    pub(crate) after: Value,
    /// What is sent for that.
    pub(crate) sent: Value,
}

/// What has to be changed, in the order in which it can be: a queue may name a limit.
pub(crate) fn differences(desired: &Desired, actual: &Actual) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, DesiredLimit { limit, partitions }) in &desired.limits {
        let before = actual.limits.get(name);
        let at = path(&["limits", name]);
        add(&mut found, format!("limit {name}"), at, (before, Wanted::limit(limit)));
        for (partition, own) in partitions {
            let at = path(&["limits", name, "partitions", partition]);
            let before = actual.partitions.get(&(name.clone(), partition.clone()));
            let thing = format!("limit {name}, partition {partition}");
            add(&mut found, thing, at, (before, Wanted::limit(own)));
        }
    }
    for (name, spec) in &desired.queues {
        let at = path(&["queues", name]);
        let before = actual.queues.get(name);
        add(&mut found, format!("queue {name}"), at, (before, Wanted::queue(spec)));
    }
    found
}

fn add(
    found: &mut Vec<Difference>,
    thing: String,
    path: String,
    (before, Wanted { after, sent }): (Option<&Value>, Wanted),
) {
    // What is not shown is not compared here: the server does, and changes nothing if it is the same.
    if before != Some(&after) || after != sent {
        found.push(Difference { thing, path, before: before.cloned(), after, sent });
    }
}

/// What something is to be: as it is shown, and as it is sent.
struct Wanted {
    after: Value,
    sent: Value,
}

impl Wanted {
    fn limit(limit: &Limit) -> Self {
        let after = shown_limit(limit);
        Self { sent: after.clone(), after }
    }

    fn queue(spec: &QueueSpec) -> Self {
        Self { after: shown_queue(spec), sent: sent_queue(spec) }
    }
}

impl Difference {
    /// Whether nobody can tell from here: what is shown is the same, and not all is shown.
    pub(crate) fn is_unsure(&self) -> bool {
        self.before.as_ref() == Some(&self.after)
    }

    /// For people: `+` is new, `~` is changed, with each setting that is, `?` may be.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Some(before) = &self.before else {
            return vec![format!("+ {}: {}", self.thing, self.after)];
        };
        if self.is_unsure() {
            return vec![format!("? {}: it has secrets, which are not compared", self.thing)];
        }
        let mut lines = vec![format!("~ {}", self.thing)];
        let nothing = Map::new();
        let [old, new] = [before, &self.after].map(|it| it.as_object().unwrap_or(&nothing));
        let gone = old.keys().filter(|key| !new.contains_key(*key));
        for key in new.keys().chain(gone).filter(|key| old.get(*key) != new.get(*key)) {
            let shown = |value: Option<&Value>| value.map_or("none".to_owned(), Value::to_string);
            lines.push(format!("    {key}: {} -> {}", shown(old.get(key)), shown(new.get(key))));
        }
        lines
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let mut json = json!({ "thing": self.thing, "path": self.path, "after": self.after });
        if let (Some(before), Some(fields)) = (&self.before, json.as_object_mut()) {
            fields.insert("before".to_owned(), before.clone());
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::definitions::queue;

    fn desired() -> Desired {
        let partitions = BTreeMap::from([("big".to_owned(), Limit::per_minute(1000))]);
        let stripe = DesiredLimit { limit: Limit::per_minute(100), partitions };
        let limits = BTreeMap::from([("acme/stripe".to_owned(), stripe)]);
        Desired { limits, queues: BTreeMap::from([("mail".to_owned(), QueueSpec::default())]) }
    }

    /// A server that is as the file says.
    fn same() -> Actual {
        let (limit, partition) = ("acme/stripe".to_owned(), "big".to_owned());
        Actual {
            limits: BTreeMap::from([(limit.clone(), shown_limit(&Limit::per_minute(100)))]),
            partitions: BTreeMap::from([(
                (limit, partition),
                shown_limit(&Limit::per_minute(1000)),
            )]),
            queues: BTreeMap::from([("mail".to_owned(), shown_queue(&QueueSpec::default()))]),
        }
    }

    #[test]
    fn a_server_that_is_as_the_file_says_stays_as_it_is() {
        assert_eq!(differences(&desired(), &same()), []);
    }

    #[test]
    fn what_the_file_does_not_name_is_left_alone() {
        assert_eq!(differences(&Desired::default(), &same()), []);
    }

    #[test]
    fn what_is_missing_is_made_limits_first() {
        let found = differences(&desired(), &Actual::default());
        let paths: Vec<_> = found.iter().map(|it| it.path.as_str()).collect();
        let limit = "/v1/limits/acme%2Fstripe";
        assert_eq!(paths, [limit, &format!("{limit}/partitions/big"), "/v1/queues/mail"]);
        assert!(found[0].lines()[0].starts_with("+ limit acme/stripe: {"), "{:?}", found[0]);
    }

    #[test]
    fn what_differs_is_told_setting_by_setting() {
        let mut desired = desired();
        let queue = desired.queues.get_mut("mail").unwrap();
        (queue.failures_max, queue.depth_max) = (5, 7);
        let found = differences(&desired, &same());
        assert_eq!(found.len(), 1);
        let lines = found[0].lines();
        assert_eq!(
            lines,
            ["~ queue mail", "    depth_max: 1000000 -> 7", "    failures_max: 20 -> 5"]
        );
        assert_eq!(found[0].json()["after"]["depth_max"], 7);
    }

    #[test]
    fn secrets_are_sent_and_not_told() {
        let destination = json!({"url": "https://a.example/", "headers": {"x-key": "7919"}});
        let spec = queue(json!({ "destination": destination })).unwrap();
        let mut desired = Desired::default();
        desired.queues.insert("mail".to_owned(), spec.clone());
        let found = differences(&desired, &Actual::default());
        assert!(!found[0].is_unsure());
        assert_eq!(found[0].sent["destination"], destination);
        let told = format!("{:?} {}", found[0].lines(), found[0].json());
        assert!(!told.contains("7919"), "{told}");
        let queues = BTreeMap::from([("mail".to_owned(), shown_queue(&spec))]);
        let found = differences(&desired, &Actual { queues, ..Actual::default() });
        assert!(found[0].is_unsure());
        assert_eq!(found[0].lines(), ["? queue mail: it has secrets, which are not compared"]);
    }
}
