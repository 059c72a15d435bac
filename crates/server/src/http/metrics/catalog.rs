//! Every metric there is: its name, its type, its labels and what it means, in one table.

/// What a metric's values are to Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Counter,
    Gauge,
    Histogram,
}

impl Type {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric. Those whose names say seconds are given in nanoseconds.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, with the unit.
    pub name: &'static str,
    pub(super) kind: Type,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

impl Metric {
    /// `counter`, `gauge` or `histogram`.
    pub fn kind(&self) -> &'static str {
        self.kind.as_str()
    }

    pub(super) fn is_time(&self) -> bool {
        self.name.contains("_seconds")
    }
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:ident, [$($label:literal),*], $help:literal;)*) => {
        $(pub(super) const $constant: Metric =
            Metric { name: $name, kind: Type::$kind, labels: &[$($label),*], help: $help };)*

        const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD = "tollgate_build_info", Gauge, ["version"], "Always 1: the version is in the label.";
    UPTIME = "tollgate_uptime_seconds", Gauge, [], "How long the server has been running.";
    READY = "tollgate_ready", Gauge, [], "1 if `/readyz` says so; 0 if the disk is full, the store has failed or is out of reach, or the server is going.";
    CONNECTIONS = "tollgate_connections", Gauge, [], "Connections that are open.";
    RESPONSES = "tollgate_http_responses_total", Counter, ["status", "code"], "Answers, by status and problem code; `ok` is no problem, `unknown_limit` an ask at a limit that is not defined.";
    SPANS_DROPPED = "tollgate_spans_dropped_total", Counter, [], "Spans that were not exported: the collector was away, or slow. Only servers with the feature `otel` export any.";
    STORE_FAILURES = "tollgate_store_failures_total", Counter, [], "How often a store that servers share did not do what it was asked, for it was out of reach, full or failed. Only servers with such a store count it.";
    STORE_OLDEST = "tollgate_store_oldest_transaction_seconds", Gauge, [], "For how long the oldest transaction has been open in the database of the store: what was removed stays on its disk until that ends. 0 if none is seen, and in a folder.";
    COMMITS = "tollgate_store_commits_total", Counter, [], "Batches that the store made last.";
    WRITTEN = "tollgate_store_written_bytes_total", Counter, [], "What was written to the journal for them.";
    COMMIT = "tollgate_store_commit_seconds", Histogram, [], "From when a batch was handed over until it lasted.";
    QUEUE_WAITING = "tollgate_queue_waiting", Gauge, ["queue"], "Calls that wait, also those that rest or are not due.";
    QUEUE_IN_FLIGHT = "tollgate_queue_in_flight", Gauge, ["queue"], "Calls that are started and not settled.";
    QUEUE_DEAD = "tollgate_queue_dead", Gauge, ["queue"], "Dead calls that are kept.";
    QUEUE_ASKING = "tollgate_queue_asking", Gauge, ["queue"], "Claims that wait for calls: if none does, nothing starts.";
    QUEUE_PAUSED = "tollgate_queue_paused", Gauge, ["queue"], "1 if an operator holds the queue back.";
    QUEUE_ENQUEUED = "tollgate_queue_enqueued_total", Counter, ["queue"], "Calls that were accepted, duplicates aside.";
    QUEUE_STARTED = "tollgate_queue_started_total", Counter, ["queue"], "Starts of calls.";
    QUEUE_RETRIES = "tollgate_queue_retries_total", Counter, ["queue"], "Starts of calls that had failed, crashed or been limited before.";
    QUEUE_SETTLED = "tollgate_queue_settled_total", Counter, ["queue", "outcome"], "What came of starts.";
    QUEUE_ENDED = "tollgate_queue_ended_total", Counter, ["queue", "end"], "How calls ended.";
    QUEUE_REVIVED = "tollgate_queue_revived_total", Counter, ["queue"], "Dead calls that wait again.";
    QUEUE_DWELL = "tollgate_queue_dwell_seconds", Histogram, ["queue"], "From when a call was accepted to its first start.";
    QUEUE_LATENESS = "tollgate_queue_lateness_seconds", Histogram, ["queue"], "From when a call could have started to its start, if a worker was asking by then.";
    QUEUE_UNKNOWN = "tollgate_queue_unknown_total", Counter, ["queue", "limit"], "Calls that were accepted and wait for the limit, which nobody had defined.";
    QUEUE_WANTED = "tollgate_queue_throttled_wanted_total", Counter, ["queue", "limit"], "Calls that stood ready at a meter of the limit when it let fewer go, summed over the claims that found it so.";
    QUEUE_GRANTED = "tollgate_queue_throttled_granted_total", Counter, ["queue", "limit"], "Those of them that went in the same claim.";
    LIMIT_WAITING = "tollgate_limit_waiting", Gauge, ["limit"], "Who stands at the limit's global meter: heads of lanes, or in memory the weight of calls.";
    LIMIT_IN_FLIGHT = "tollgate_limit_in_flight", Gauge, ["limit"], "Slots that are held at the limit's global meter.";
    LIMIT_CLOSED = "tollgate_limit_closed", Gauge, ["limit"], "1 if the limit's global meter is closed.";
    LIMIT_ADMITTED = "tollgate_limit_admitted_total", Counter, ["limit"], "Calls that started and asks that were paid.";
    LIMIT_GRANTED = "tollgate_limit_granted_weight_total", Counter, ["limit"], "What they weighed.";
    LIMIT_THROTTLED = "tollgate_limit_throttled_total", Counter, ["limit"], "Asks that were refused here.";
    LIMIT_WANTED = "tollgate_limit_wanted_weight_total", Counter, ["limit"], "What the refused ones wanted.";
    LIMIT_BLOCKED = "tollgate_limit_blocked_seconds_total", Counter, ["limit"], "How long calls waited here as the first of their lanes, counted when they start.";
}

/// Every metric there is.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    ALL.iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_the_values_are() {
        for metric in metrics() {
            let (name, is_counter) = (metric.name, metric.kind == Type::Counter);
            assert!(name.starts_with("tollgate_"), "{name}");
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(metric.kind != Type::Histogram || metric.is_time(), "{name}");
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(name.chars().all(is_plain), "{name}");
            assert!(!metric.help.contains(['\\', '\n']), "{name}: its help would need escaping");
        }
    }

    #[test]
    fn no_label_is_without_a_bound() {
        let bounded = ["version", "status", "code", "queue", "limit", "outcome", "end"];
        for metric in metrics() {
            assert!(metric.labels.iter().all(|label| bounded.contains(label)), "{}", metric.name);
        }
    }
}
