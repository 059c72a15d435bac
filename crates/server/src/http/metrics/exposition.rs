//! The text that Prometheus reads, version 0.0.4: written line by line, and nothing looked up.

use super::catalog::Metric;
use std::fmt::Write;
use tollgate::lanes::Histogram;

/// What the text is declared as.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A label and its value.
pub(super) type Label<'a> = (&'static str, &'a str);

/// The text so far.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    /// Says what the next lines are. Once for each metric, for all its lines stand together.
    pub(super) fn begin(&mut self, metric: &Metric) {
        let Metric { name, help, .. } = metric;
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {}\n", metric.kind()));
    }

    /// One value of a metric that has begun; in nanoseconds if it is a time.
    pub(super) fn value(&mut self, metric: &Metric, labels: &[Label<'_>], value: u128) {
        self.text.push_str(metric.name);
        self.labels(labels);
        if metric.is_time() {
            self.write(format_args!(" {}\n", Seconds(value)));
        } else {
            self.write(format_args!(" {value}\n"));
        }
    }

    /// A histogram of a metric that has begun.
    pub(super) fn histogram(
        &mut self,
        metric: &Metric,
        labels: &[Label<'_>],
        histogram: &Histogram,
    ) {
        let bounds = Histogram::BOUNDS.map(|bound| Seconds(bound.as_nanos().into()).to_string());
        let bounds = bounds.iter().map(String::as_str).chain(["+Inf"]);
        let mut so_far = 0_u64;
        for (bound, count) in bounds.zip(histogram.counts) {
            so_far += count;
            self.write(format_args!("{}_bucket", metric.name));
            self.labels_and(labels, Some(("le", bound)));
            self.write(format_args!(" {so_far}\n"));
        }
        self.write(format_args!("{}_sum", metric.name));
        self.labels(labels);
        self.write(format_args!(" {}\n{}_count", Seconds(histogram.sum_ns), metric.name));
        self.labels(labels);
        self.write(format_args!(" {so_far}\n"));
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn labels(&mut self, labels: &[Label<'_>]) {
        self.labels_and(labels, None);
    }

    fn labels_and(&mut self, labels: &[Label<'_>], last: Option<Label<'_>>) {
        let mut before = '{';
        for (name, value) in labels.iter().copied().chain(last) {
            self.text.push(before);
            self.text.push_str(name);
            self.text.push_str("=\"");
            value.chars().for_each(|letter| self.letter(letter));
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
    }

    /// A letter of a label's value. These three alone would end it.
    fn letter(&mut self, letter: char) {
        match letter {
            '\\' => self.text.push_str("\\\\"),
            '"' => self.text.push_str("\\\""),
            '\n' => self.text.push_str("\\n"),
            other => self.text.push(other),
        }
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(arguments);
    }
}

/// Nanoseconds, written as seconds without rounding.
struct Seconds(u128);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let rest = format!("{rest:09}");
        write!(f, "{whole}.{}", rest.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::{LIMIT_BLOCKED, QUEUE_DWELL, QUEUE_WAITING, UPTIME};
    use super::*;
    use tollgate::Span;

    #[test]
    fn a_metric_is_told_with_its_meaning_and_its_values() {
        let mut page = Exposition::default();
        page.begin(&QUEUE_WAITING);
        page.value(&QUEUE_WAITING, &[("queue", "a")], 3);
        page.value(&QUEUE_WAITING, &[("queue", "b"), ("more", "c")], 0);
        let expected =
            "# HELP tollgate_queue_waiting Calls that wait, also those that rest or are not due.
# TYPE tollgate_queue_waiting gauge
tollgate_queue_waiting{queue=\"a\"} 3
tollgate_queue_waiting{queue=\"b\",more=\"c\"} 0
";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn what_would_end_a_label_is_escaped() {
        let mut page = Exposition::default();
        page.value(&QUEUE_WAITING, &[("queue", "a\"} 1\nb\\n{ü\t}")], 1);
        let expected = "tollgate_queue_waiting{queue=\"a\\\"} 1\\nb\\\\n{ü\t}\"} 1\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn times_are_told_in_seconds_to_the_nanosecond() {
        for (nanos, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (1_500_000_000, "1.5"),
            (60_000_000_000, "60"),
            (u128::from(u64::MAX) * 1_000, "18446744073709.551615"),
        ] {
            let mut page = Exposition::default();
            page.value(&UPTIME, &[], nanos);
            page.value(&LIMIT_BLOCKED, &[], nanos);
            let expected = format!(
                "tollgate_uptime_seconds {text}\ntollgate_limit_blocked_seconds_total {text}\n"
            );
            assert_eq!(page.into_text(), expected);
        }
    }

    #[test]
    fn the_buckets_of_a_histogram_add_up() {
        let mut histogram = Histogram::default();
        for millis in [1, 1, 2_000, 100_000_000] {
            histogram.add(Span::from_millis(millis));
        }
        let mut page = Exposition::default();
        page.histogram(&QUEUE_DWELL, &[("queue", "q")], &histogram);
        let text = page.into_text();
        let count = |le: &str| {
            let line = format!("tollgate_queue_dwell_seconds_bucket{{queue=\"q\",le=\"{le}\"}} ");
            text.lines().find_map(|it| it.strip_prefix(&line)).unwrap().to_owned()
        };
        assert_eq!(
            ["0.0005", "0.001", "1", "5", "86400", "+Inf"].map(count),
            ["0", "2", "2", "3", "3", "4"]
        );
        assert!(text.contains("\ntollgate_queue_dwell_seconds_sum{queue=\"q\"} 100002.002\n"));
        assert!(text.ends_with("\ntollgate_queue_dwell_seconds_count{queue=\"q\"} 4\n"));
    }
}
