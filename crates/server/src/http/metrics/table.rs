//! Metrics that queues or limits share, as a table with a bounded number of rows.

use super::catalog::Metric;
use super::exposition::{Exposition, Label};
use tollgate::lanes::Histogram;

/// Most queues, and most limits, that are told one by one: each has some seventy lines at worst, and
/// whoever keeps them keeps each for weeks.
pub(super) const ROWS_MAX: usize = 1_000;
/// What the others are summed under.
pub(super) const OTHER: &str = "other";

/// One value of each row.
pub(super) struct Column {
    pub(super) metric: &'static Metric,
    /// The value of the metric's second label.
    pub(super) variant: Option<&'static str>,
}

impl Column {
    pub(super) const fn of(metric: &'static Metric) -> Self {
        Self { metric, variant: None }
    }

    pub(super) const fn with(metric: &'static Metric, variant: &'static str) -> Self {
        Self { metric, variant: Some(variant) }
    }
}

/// A queue or a limit, a queue at a limit, or several as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    /// The value of the second label, if rows have two names.
    pub(super) at: Option<String>,
    /// A value for each column.
    pub(super) values: Vec<u128>,
    pub(super) histograms: Vec<Histogram>,
}

impl Row {
    fn add(&mut self, other: &Self) {
        for (value, more) in self.values.iter_mut().zip(&other.values) {
            *value = value.saturating_add(*more);
        }
        for (histogram, more) in self.histograms.iter_mut().zip(&other.histograms) {
            for (count, more) in histogram.counts.iter_mut().zip(more.counts) {
                *count += more;
            }
            histogram.sum_ns += more.sum_ns;
        }
    }
}

/// The first rows as they are, and all others as one. Who is called like the others is one of them.
pub(super) fn bounded(rows: Vec<Row>) -> Vec<Row> {
    if rows.len() <= ROWS_MAX {
        return rows;
    }
    let (mut told, mut others) = (Vec::with_capacity(ROWS_MAX + 1), None::<Row>);
    for row in rows {
        match &mut others {
            _ if told.len() < ROWS_MAX && row.name != OTHER => told.push(row),
            Some(others) => others.add(&row),
            None => {
                let at = row.at.as_ref().map(|_| OTHER.to_owned());
                others = Some(Row { name: OTHER.to_owned(), at, ..row });
            }
        }
    }
    told.extend(others);
    told
}

/// All rows, metric by metric.
pub(super) struct Table {
    /// The label that names the row.
    pub(super) label: &'static str,
    /// Those of one metric stand together.
    pub(super) columns: Vec<Column>,
    pub(super) histograms: &'static [&'static Metric],
    pub(super) rows: Vec<Row>,
}

impl Table {
    pub(super) fn write(self, page: &mut Exposition) {
        let rows = bounded(self.rows);
        let mut at = 0;
        for columns in self.columns.chunk_by(|a, b| a.metric == b.metric) {
            page.begin(columns[0].metric);
            for row in &rows {
                for (column, value) in columns.iter().zip(row.values.iter().skip(at)) {
                    let second = column.variant.or(row.at.as_deref());
                    let second = column.metric.labels.get(1).copied().zip(second);
                    let labels: Vec<Label<'_>> =
                        [(self.label, row.name.as_str())].into_iter().chain(second).collect();
                    page.value(column.metric, &labels, *value);
                }
            }
            at += columns.len();
        }
        for (at, metric) in self.histograms.iter().enumerate() {
            page.begin(metric);
            for row in &rows {
                if let Some(histogram) = row.histograms.get(at) {
                    page.histogram(metric, &[(self.label, &row.name)], histogram);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::{LIMIT_ADMITTED, QUEUE_SETTLED};
    use super::*;

    fn row(name: String) -> Row {
        Row { name, at: None, values: vec![2, 3], histograms: vec![Histogram::default()] }
    }

    #[test]
    fn as_many_as_may_be_are_told_one_by_one() {
        let rows: Vec<Row> = (0..ROWS_MAX).map(|number| row(number.to_string())).collect();
        assert_eq!(bounded(rows.clone()), rows);
    }

    #[test]
    fn the_rest_is_summed() {
        let rows = (0..ROWS_MAX + 5).map(|number| row(format!("{number:04}"))).collect();
        let told = bounded(rows);
        assert_eq!(told.len(), ROWS_MAX + 1);
        assert_eq!((told[ROWS_MAX].name.as_str(), &*told[ROWS_MAX].values), (OTHER, &[10, 15][..]));
    }

    #[test]
    fn who_is_called_like_the_rest_is_in_it_and_nothing_is_told_twice() {
        let names = ["a", OTHER].map(str::to_owned).into_iter();
        let rows = names.chain((0..ROWS_MAX).map(|number| format!("z{number:04}"))).map(row);
        let told = bounded(rows.collect());
        let others: Vec<&Row> = told.iter().filter(|row| row.name == OTHER).collect();
        assert_eq!((told.len(), others.len(), &*others[0].values), (ROWS_MAX + 1, 1, &[4, 6][..]));
    }

    #[test]
    fn those_with_two_names_that_are_summed_are_others_by_both() {
        let rows = (0..ROWS_MAX + 5)
            .map(|number| Row { at: Some("l".into()), ..row(format!("{number:04}")) });
        let told = bounded(rows.collect());
        assert_eq!(told[0].at.as_deref(), Some("l"));
        let others = &told[ROWS_MAX];
        assert_eq!(
            (&*others.name, others.at.as_deref(), &*others.values),
            (OTHER, Some(OTHER), &[10, 15][..])
        );
    }

    #[test]
    fn the_values_of_a_metric_stand_together() {
        let columns = vec![
            Column::of(&LIMIT_ADMITTED),
            Column::with(&QUEUE_SETTLED, "done"),
            Column::with(&QUEUE_SETTLED, "failed"),
        ];
        let row = |name: &str, values: [u128; 3]| Row {
            name: name.to_owned(),
            at: None,
            values: values.into(),
            histograms: vec![],
        };
        let rows = vec![row("a", [1, 2, 3]), row("b", [4, 5, 6])];
        let mut page = Exposition::default();
        Table { label: "queue", columns, histograms: &[], rows }.write(&mut page);
        let text = page.into_text();
        let values: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "tollgate_limit_admitted_total{queue=\"a\"} 1",
            "tollgate_limit_admitted_total{queue=\"b\"} 4",
            "tollgate_queue_settled_total{queue=\"a\",outcome=\"done\"} 2",
            "tollgate_queue_settled_total{queue=\"a\",outcome=\"failed\"} 3",
            "tollgate_queue_settled_total{queue=\"b\",outcome=\"done\"} 5",
            "tollgate_queue_settled_total{queue=\"b\",outcome=\"failed\"} 6",
        ];
        assert_eq!(values, expected);
    }
}
