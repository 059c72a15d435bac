//! What happened in a run, step by step, as history has it.

use super::Flows;
use crate::error::Error;
use serde::Deserialize;
use std::fmt::Write as _;
use tollgate_core::contract::{HistoryQuery, Lanes};
use tollgate_core::lanes::event::{Outcome, Waits, What};
use tollgate_core::lanes::{CallId, Event};
use tollgate_core::{LaneName, Now};

/// Most attempts that are told of one run: the last ones.
const ATTEMPTS_MAX: usize = 10_000;
/// How many events are read at once.
const PAGE: usize = 1_000;

/// An attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Which step or task; empty if nobody said.
    pub step: String,
    /// Which attempt at it, from 1.
    pub attempt: u32,
    /// What came of it: `next`, `await`, `done` and so on; empty if nobody said.
    pub outcome: String,
    /// Which step followed.
    pub then: Option<String>,
    /// When it was started.
    pub started: Now,
    /// When it was settled.
    pub settled: Now,
    /// How long it had waited at which limit.
    pub waits: Waits,
    /// What came of its call.
    pub settlement: Outcome,
    /// Which call that was.
    pub call: CallId,
}

#[derive(Default, Deserialize)]
struct Report {
    step: String,
    outcome: String,
    then: Option<String>,
}

impl<S: Lanes + 'static> Flows<S> {
    /// The attempts at steps of a run, or at tasks of a workflow's, oldest first, as long as history keeps them: the
    /// last 10,000.
    pub async fn timeline(&self, run: &str) -> Result<Vec<Attempt>, Error> {
        let lane = Some(LaneName::new(run)?);
        let mut query = HistoryQuery { lane, most: PAGE, ..HistoryQuery::default() };
        let mut attempts = Vec::new();
        loop {
            let page = self.engine.history(query.clone()).await?;
            let queues = ["machine/", "task/"];
            let of_steps = |event: &Event| queues.iter().any(|it| event.queue.starts_with(it));
            attempts.extend(page.events.into_iter().filter(of_steps).filter_map(attempt));
            if page.next.is_none() || attempts.len() >= ATTEMPTS_MAX {
                attempts.truncate(ATTEMPTS_MAX);
                attempts.reverse();
                return Ok(attempts);
            }
            query.after = page.next;
        }
    }

    /// A run's steps as a flowchart for Mermaid: in which order they were made, how often, and what each waited for.
    pub async fn picture(&self, run: &str) -> Result<String, Error> {
        Ok(drawn(&self.timeline(run).await?))
    }
}

fn attempt(event: Event) -> Option<Attempt> {
    let What::Settled { attempt, started, waits, outcome, report, .. } = event.what else {
        return None;
    };
    let said: Report = serde_json::from_slice(&report).unwrap_or_default();
    Some(Attempt {
        step: said.step,
        attempt,
        outcome: said.outcome,
        then: said.then,
        started,
        settled: event.at,
        waits,
        settlement: outcome,
        call: event.call,
    })
}

fn drawn(attempts: &[Attempt]) -> String {
    let mut picture = "flowchart TD\n".to_owned();
    let mut last: Option<usize> = None;
    for (at, made) in attempts.iter().enumerate() {
        // Of a step that was tried several times the last attempt stands for all.
        let is_again = attempts.get(at + 1).is_some_and(|next| next.call == made.call);
        if is_again {
            continue;
        }
        let mut text = escaped(&made.step);
        if made.attempt > 1 {
            let _ = write!(text, "<br/>{} attempts", made.attempt);
        }
        for (limit, span) in &made.waits {
            let _ = write!(text, "<br/>waited {}ms at {}", span.as_millis_ceil(), escaped(limit));
        }
        let _ = writeln!(picture, "    s{at}[\"{text}\"]");
        if let Some(last) = last {
            let _ =
                writeln!(picture, "    s{last} -->|{}| s{at}", escaped(&attempts[last].outcome));
        }
        last = Some(at);
    }
    if let Some(last) = last
        && matches!(attempts[last].outcome.as_str(), "done" | "stop")
    {
        let _ = writeln!(picture, "    s{last} --> ended(({}))", attempts[last].outcome);
    }
    picture
}

/// A text that ends no label.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '-' | '_' | '.' | ':' | '/' => {
                escaped.push(character);
            }
            other => {
                let _ = write!(escaped, "#{};", u32::from(other));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{LimitName, Span};

    fn made(call: u64, step: &str, attempt: u32, outcome: &str) -> Attempt {
        Attempt {
            step: step.to_owned(),
            attempt,
            outcome: outcome.to_owned(),
            then: None,
            started: Now::default(),
            settled: Now::default(),
            waits: [].into(),
            settlement: Outcome::Done,
            call: CallId(call),
        }
    }

    #[test]
    fn a_picture_shows_steps_in_order_their_attempts_and_what_they_waited_for() {
        let limit = LimitName::new("stripe").unwrap();
        let waits: Waits = [(limit, Span::from_millis(1_500))].into();
        let attempts = [
            made(1, "prepare", 1, "next"),
            made(2, "charge", 1, "retry"),
            Attempt { waits, ..made(2, "charge", 2, "done") },
        ];
        let expected = "flowchart TD\n    s0[\"prepare\"]\n    s2[\"charge<br/>2 attempts<br/>waited 1500ms at stripe\"]\n    s0 -->|next| s2\n    s2 --> ended((done))\n";
        assert_eq!(drawn(&attempts), expected);
    }

    #[test]
    fn no_name_breaks_a_picture() {
        let drawn = drawn(&[made(1, "a\"] --> b[\"<b>", 1, "next")]);
        assert_eq!(drawn, "flowchart TD\n    s0[\"a#34;#93; --#62; b#91;#34;#60;b#62;\"]\n");
    }
}
