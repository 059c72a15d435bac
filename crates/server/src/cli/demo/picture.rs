//! The picture: both ways side by side, drawn again and again on a terminal, and now and then elsewhere.

use super::apis::APIS;
use super::score::{Score, Scores, Way, read};
use crate::cli::{output, shown};
use tollgate::{Span, Timestamp};

/// Cells of a bar.
const BAR: u64 = 12;
/// How many pictures one line stands for where nobody watches: two seconds.
const SELDOM: u32 = 10;

pub(super) struct Picture {
    began: Timestamp,
    url: String,
    drawn: u32,
}

impl Picture {
    pub(super) fn new(url: &str) -> Self {
        Self { began: shown::now(), url: url.to_owned(), drawn: 0 }
    }

    pub(super) fn draw(&mut self, scores: &Scores) {
        if output::is_terminal() {
            output::screen(&self.lines(scores));
        } else if self.drawn == 0 {
            output::text(&self.lines(scores)[..2].join("\n"));
        } else if self.drawn.is_multiple_of(SELDOM) {
            let of = |way| -> String {
                let each = APIS.iter().enumerate().map(|(api, spec)| {
                    let score = scores.of(api, way);
                    format!(
                        "{} {} done {} refused",
                        spec.name,
                        read(&score.done),
                        read(&score.refused)
                    )
                });
                each.collect::<Vec<_>>().join(", ")
            };
            output::text(&format!(
                "naïvely: {} | through Tollgate: {}",
                of(Way::Naive),
                of(Way::Tollgate)
            ));
        }
        self.drawn += 1;
    }

    /// What came of it.
    pub(super) fn sum_up(&self, scores: &Scores) {
        if output::is_terminal() {
            output::screen(&self.lines(scores));
        } else {
            output::text(&self.lines(scores)[2..].join("\n"));
        }
        let sum = |way, of: fn(&Score) -> u64| -> u64 {
            (0..APIS.len()).map(|api| of(scores.of(api, way))).sum()
        };
        let refused = |score: &Score| read(&score.refused);
        let lost = |score: &Score| read(&score.lost);
        output::text(&format!(
            "\nnaïvely: {} requests were refused with 429, and {} calls given up\n\
             through Tollgate: {} refused, {} given up; every call started when its limits allowed it",
            sum(Way::Naive, refused),
            sum(Way::Naive, lost),
            sum(Way::Tollgate, refused),
            sum(Way::Tollgate, lost),
        ));
    }

    fn lines(&self, scores: &Scores) -> Vec<String> {
        let since = shown::now().since(self.began);
        let mut lines = vec![
            format!(
                "three APIs with real limits, and tenants with more to send than those allow · {}",
                seconds(since)
            ),
            format!("the console: {}/", self.url),
        ];
        for (api, spec) in APIS.iter().enumerate() {
            let of = |way| described(scores.of(api, way), spec.calls());
            lines.push(String::new());
            lines.push(format!("{}: {}", spec.name, spec.said));
            lines.push(format!("  naïvely, again on 429  {}", of(Way::Naive)));
            lines.push(format!("  through Tollgate       {}", of(Way::Tollgate)));
        }
        lines
    }
}

fn described(score: &Score, calls: u64) -> String {
    let (done, refused, lost) = (read(&score.done), read(&score.refused), read(&score.lost));
    let full = usize::try_from(done * BAR / calls.max(1)).unwrap_or_default();
    let empty = usize::try_from(BAR).unwrap_or_default().saturating_sub(full);
    let lost = if lost > 0 { format!(", {lost} lost") } else { String::new() };
    format!("{}{} {done:>3} of {calls}, {refused} × 429{lost}", "█".repeat(full), "░".repeat(empty))
}

fn seconds(span: Span) -> String {
    let tenths = span.as_millis_ceil() / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}
