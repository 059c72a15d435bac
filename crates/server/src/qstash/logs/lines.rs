//! What an event of a call means for its message: lines of the log.

use crate::qstash::card::millis;
use crate::qstash::remembered::Report;
use crate::qstash::shape::log::State;
use tollgate::lanes::{End, Event, Outcome, What};
use tollgate::{Now, Timestamp};

/// Why an attempt failed that was never settled.
const UNSEEN: &str = "nobody saw how this attempt ended: the server stopped meanwhile";

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// When, in milliseconds of the wall clock.
    pub(super) time_ms: u64,
    /// What happened.
    pub(super) state: State,
    /// Why it failed.
    pub(super) error: Option<String>,
    /// When it is sent next.
    pub(super) next_ms: Option<u64>,
    /// What came back.
    pub(super) report: Option<Report>,
}

impl Line {
    /// One that says nothing more.
    pub(super) fn new(at: Timestamp, state: State) -> Self {
        Self { time_ms: millis(at), state, error: None, next_ms: None, report: None }
    }

    fn failed(at: Now, report: Report) -> Self {
        let why = || match report.status {
            0 => "the destination did not answer".to_owned(),
            status => format!("the destination answered with status {status}"),
        };
        let error = Some(report.error.clone().unwrap_or_else(why));
        Self { error, report: Some(report), ..Self::new(at.wall, State::Error) }
    }

    /// To be sent again at an instant of limit time.
    fn again(at: Now, next: Timestamp) -> Self {
        let next = at.wall.plus(next.since(at.at));
        Self { next_ms: Some(millis(next)), ..Self::new(at.wall, State::Retry) }
    }
}

/// What came before an event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    /// The call was dead: taken away, it was not cancelled.
    pub(super) was_dead: bool,
    /// Nobody saw the end of its last attempt.
    pub(super) has_crashed: bool,
}

/// The lines of an event, the earliest first.
pub(super) fn lines(event: &Event, before: Before) -> Vec<Line> {
    let at = event.at;
    match &event.what {
        What::Enqueued { .. } => vec![Line::new(at.wall, State::Created)],
        What::Settled { outcome, report, .. } => settled(at, *outcome, || Report::read(report)),
        // Else its last attempt told it.
        What::Ended { end: End::Dead, .. } if before.has_crashed => {
            let error = Some(UNSEEN.to_owned());
            vec![Line { error, ..Line::new(at.wall, State::Failed) }]
        }
        What::Ended { end: End::Cancelled, .. } if !before.was_dead => {
            [State::CancelRequested, State::Canceled].map(|it| Line::new(at.wall, it)).into()
        }
        What::Revived => vec![Line::again(at, at.at)],
        What::Started { .. } => vec![Line::new(at.wall, State::Active)],
        // QStash knows no limit that is not there: those of its messages come along with them.
        What::Unknown { .. } => Vec::new(),
        What::Ended { .. } | What::Throttled { .. } => Vec::new(),
    }
}

fn settled(at: Now, outcome: Outcome, report: impl Fn() -> Report) -> Vec<Line> {
    match outcome {
        Outcome::Done => {
            vec![Line { report: Some(report()), ..Line::new(at.wall, State::Delivered) }]
        }
        Outcome::Failed { again_at: next } | Outcome::Limited { until: next } => {
            vec![Line::failed(at, report()), Line::again(at, next)]
        }
        Outcome::Dead => {
            let error = Line::failed(at, report());
            let failed = Line { state: State::Failed, ..error.clone() };
            vec![error, failed]
        }
        Outcome::Cancelled => vec![Line::failed(at, report())],
        Outcome::Crashed => {
            let error = Some(UNSEEN.to_owned());
            vec![Line { error, ..Line::new(at.wall, State::Error) }]
        }
        // It was never sent.
        Outcome::Released => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::Span;
    use tollgate::lanes::{CallId, LaneName, QueueName};

    /// Limit time and the wall clock need not agree.
    fn at(seconds: u64) -> Now {
        let instant = |seconds| Timestamp::default().plus(Span::from_secs(seconds));
        Now { at: instant(seconds), wall: instant(1_000 + seconds) }
    }

    fn told(what: What) -> Vec<(State, u64, Option<u64>)> {
        let (queue, lane) = (QueueName::new("qstash").unwrap(), LaneName::new("a").unwrap());
        let event = Event { at: at(7), call: CallId(1), queue, lane, what };
        let lines = lines(&event, Before { was_dead: false, has_crashed: true });
        lines.into_iter().map(|line| (line.state, line.time_ms, line.next_ms)).collect()
    }

    fn settled(outcome: Outcome) -> What {
        let report = br#"{"status":500,"took_ms":1}"#[..].into();
        What::Settled { token: 1, attempt: 1, started: at(5), waits: [].into(), outcome, report }
    }

    #[test]
    fn an_attempt_is_told_as_it_begins_and_as_it_ends() {
        let started = What::Started { token: 1, attempt: 1, waits: [].into(), is_told: true };
        assert_eq!(told(started), [(State::Active, 1_007_000, None)]);
        let done = told(settled(Outcome::Done));
        assert_eq!(done, [(State::Delivered, 1_007_000, None)]);
        let again_at = at(19).at;
        let failed = told(settled(Outcome::Failed { again_at }));
        let (error, retry) =
            ((State::Error, 1_007_000, None), (State::Retry, 1_007_000, Some(1_019_000)));
        assert_eq!(failed, [error, retry]);
        assert_eq!(told(settled(Outcome::Limited { until: again_at })), [error, retry]);
        let dead = (State::Failed, 1_007_000, None);
        assert_eq!(told(settled(Outcome::Dead)), [error, dead]);
        assert_eq!(told(settled(Outcome::Crashed)), [error]);
        assert_eq!(told(settled(Outcome::Released)), []);
    }

    #[test]
    fn an_end_is_told_once() {
        let ended = |end| told(What::Ended { end, attempts: 1 });
        assert_eq!(ended(End::Done), []);
        assert_eq!(ended(End::Dropped), []);
        assert_eq!(ended(End::Dead), [(State::Failed, 1_007_000, None)]);
        let cancelled = ended(End::Cancelled);
        let states: Vec<_> = cancelled.into_iter().map(|(state, ..)| state).collect();
        assert_eq!(states, [State::CancelRequested, State::Canceled]);
    }

    #[test]
    fn an_error_says_why() {
        let error = |report: &str| Line::failed(at(1), Report::read(report.as_bytes())).error;
        let answered = error(r#"{"status":503,"took_ms":1}"#);
        assert_eq!(answered.as_deref(), Some("the destination answered with status 503"));
        let refused = error(r#"{"error":"refused","took_ms":1}"#);
        assert_eq!(refused.as_deref(), Some("refused"));
    }
}
