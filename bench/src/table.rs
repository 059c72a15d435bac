//! A Markdown table, aligned so that it reads well as text too.

use std::fmt;

/// A section's title, its columns and its rows.
pub(crate) struct Table {
    title: &'static str,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: &'static str, columns: &[&str]) -> Self {
        Self { title, rows: vec![columns.iter().map(|column| (*column).to_owned()).collect()] }
    }

    pub(crate) fn add(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.rows[0].len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "### {}\n", self.title)?;
        let widths = self.widths();
        for (number, row) in self.rows.iter().enumerate() {
            for (cell, width) in row.iter().zip(&widths) {
                write!(formatter, "| {cell:width$} ")?;
            }
            writeln!(formatter, "|")?;
            if number == 0 {
                let rules = widths.iter().map(|width| "-".repeat(width + 2));
                writeln!(formatter, "|{}|", rules.collect::<Vec<_>>().join("|"))?;
            }
        }
        Ok(())
    }
}

/// A count with a comma at each thousand.
pub(crate) fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_thousands() {
        let counts = [1, 100, 1_000, 20_000, 1_000_000];
        assert_eq!(counts.map(grouped), ["1", "100", "1,000", "20,000", "1,000,000"]);
    }

    #[test]
    fn aligns_the_columns() {
        let mut table = Table::new("Title", &["a", "bb"]);
        table.add(vec!["µµµ".to_owned(), "1".to_owned()]);
        assert_eq!(table.to_string(), "### Title\n\n| a   | bb |\n|-----|----|\n| µµµ | 1  |\n");
    }
}
