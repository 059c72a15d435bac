//! How things look to people: aligned columns, times from now, durations that can be read.

use std::borrow::Cow;
use std::fmt::Write;
use tollgate::{Clock, Span, SystemClock, Timestamp};

/// Rows under a head, in aligned columns: numbers to the right, all else to the left.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let head: Vec<String> = head.iter().map(|&word| word.to_owned()).collect();
    // Before they are measured.
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell).into_owned()).collect()).collect();
    let is_number = |column: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(column)).peekable();
        cells.peek().is_some() && cells.all(|cell| cell.parse::<i64>().is_ok())
    };
    let widths: Vec<(usize, bool)> = (0..head.len())
        .map(|column| {
            let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
            (cells.map(|cell| cell.chars().count()).max().unwrap_or(0), is_number(column))
        })
        .collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (cell, (width, is_number)) in row.iter().zip(&widths) {
            // Writing into a string does not fail.
            let _ = match is_number {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            };
        }
        line.trim_end().to_owned()
    };
    [&head].into_iter().chain(&rows).map(line).collect()
}

/// A line without what would move the cursor or colour the screen: names may be anyone's.
pub(super) fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains(char::is_control) {
        return line.into();
    }
    let mut text = String::with_capacity(line.len());
    for letter in line.chars() {
        match letter.is_control() {
            true => text.extend(letter.escape_default()),
            false => text.push(letter),
        }
    }
    text.into()
}

/// A duration in the unit that says most: `340 ms`, `3.2 s`, `12 min`.
pub(super) fn span(span: Span) -> String {
    let ms = span.as_nanos() / 1_000_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..100_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        100_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// The present, by the wall clock.
pub(super) fn now() -> Timestamp {
    SystemClock::new().both().wall
}

/// An instant as seen from now: `in 3.2 s`, `12 min ago`.
pub(super) fn instant(text: &str, now: Timestamp) -> String {
    let Ok(read) = text.parse::<jiff::Timestamp>() else { return text.to_owned() };
    let nanos = u64::try_from(read.as_nanosecond()).unwrap_or(0);
    let at = Timestamp::from_nanos(nanos);
    match at > now {
        true => format!("in {}", span(at.since(now))),
        false => format!("{} ago", span(now.since(at))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_numbers_stand_to_the_right() {
        let row = |name: &str, count: &str| vec![name.to_owned(), count.to_owned()];
        let shown = table(&["name", "waiting"], &[row("a", "7"), row("größer", "1234")]);
        assert_eq!(shown, ["name    waiting", "a             7", "größer     1234"]);
    }

    #[test]
    fn names_do_not_move_the_cursor() {
        let rows = ["\u{1b}[2Ja", "b\nc", "d"].map(|name| vec![name.to_owned(), "1".to_owned()]);
        let shown = table(&["name", "n"], &rows);
        assert_eq!(shown, ["name        n", "\\u{1b}[2Ja  1", "b\\nc        1", "d           1"]);
        assert_eq!(plain("größer\t"), "größer\\t");
    }

    #[test]
    fn durations_are_told_in_the_unit_that_says_most() {
        let shown = [0, 999, 3_249, 61_000, 720_000, 90_000_000, 600_000_000];
        let shown = shown.map(|ms| span(Span::from_millis(ms)));
        assert_eq!(shown, ["0 ms", "999 ms", "3.2 s", "61.0 s", "12 min", "25 h", "6 d"]);
    }

    #[test]
    fn instants_are_told_from_now() {
        let now = Timestamp::from_nanos(1_700_000_000_000_000_000);
        assert_eq!(instant("2023-11-14T22:13:23.25Z", now), "in 3.2 s");
        assert_eq!(instant("2023-11-14T22:13:19.5Z", now), "500 ms ago");
    }
}
