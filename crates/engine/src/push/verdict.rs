//! What an answer means for its call: done, tried again and when, paused, or dead.

use super::answer::{Answer, Answered};
use super::delivery::CostSource;
use super::expression::Expression;
use super::feedback::{self, PAUSE_UNTOLD};
use crate::envelope::{CostPath, Delivery};
use crate::lanes::Outcome;
use tollgate_core::lanes::{Attempts, QueueSpec};
use tollgate_core::{Timestamp, UNITS_MAX};

/// What becomes of a call after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Becomes {
    Done,
    /// It waits for another attempt.
    Again,
    Dead,
}

/// What is known of a call whose attempt was answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) delivery: &'a Delivery,
    pub(super) spec: &'a QueueSpec,
    /// What came of the attempts before.
    pub(super) tried: Attempts,
    pub(super) wall: Timestamp,
}

/// What an answer means: how the attempt is settled, and what becomes of the call then.
pub(super) fn verdict(case: Case<'_>, answered: &Answered) -> (Outcome, Becomes) {
    let (outcome, becomes, told_by) = match &answered.answer {
        Ok(answer) if answer.status.is_success() => (Outcome::done(), Becomes::Done, None),
        Ok(answer) => unsuccessful(case, answer),
        Err(_) => with_no_header(failed(case)),
    };
    let outcome = outcome.report(answered.report(told_by));
    let costs = answered.answer.iter().flat_map(|answer| {
        let cost = |path: &CostPath| Some((path.limit.clone(), cost(path, answer)?));
        case.delivery.costs.iter().filter_map(cost)
    });
    let outcome = costs.fold(outcome, |outcome, (limit, units)| outcome.actual(limit, units));
    (outcome, becomes)
}

fn unsuccessful(case: Case<'_>, answer: &Answer) -> (Outcome, Becomes, Option<&'static str>) {
    if let Some(pause) = feedback::pause(answer.status, &answer.headers, case.wall) {
        let is_last = case.tried.limited.saturating_add(1) >= case.spec.limited_max;
        let becomes = if is_last { Becomes::Dead } else { Becomes::Again };
        // Who says "at once" and means it would be asked in a loop.
        let span = pause.span.max(PAUSE_UNTOLD);
        return (Outcome::limited(span), becomes, Some(pause.told_by));
    }
    if case.delivery.fatal.contains(&answer.status.as_u16()) {
        return (Outcome::dead(), Becomes::Dead, None);
    }
    with_no_header(failed(case))
}

fn with_no_header(
    (outcome, becomes): (Outcome, Becomes),
) -> (Outcome, Becomes, Option<&'static str>) {
    (outcome, becomes, None)
}

fn failed(case: Case<'_>) -> (Outcome, Becomes) {
    let Case { delivery, spec, tried, .. } = case;
    if delivery.retries.is_some_and(|retries| tried.failures >= retries) {
        return (Outcome::dead(), Becomes::Dead);
    }
    let is_last = tried.failures.saturating_add(1) >= spec.failures_max;
    let expression = delivery.retry_delay.as_deref().map(Expression::parse);
    let outcome = match expression {
        Some(Ok(expression)) => Outcome::retry_after(expression.delay(tried.failures)),
        _ => Outcome::retry(),
    };
    (outcome, if is_last { Becomes::Dead } else { Becomes::Again })
}

/// What an answer says that the call cost, if it does.
fn cost(path: &CostPath, answer: &Answer) -> Option<u64> {
    let units = match CostSource::new(&path.from).ok()? {
        CostSource::Header(name) => answer.headers.get(name)?.to_str().ok()?.trim().parse().ok()?,
        CostSource::Body(path) => path.whole_number_in(&answer.body)?,
    };
    Some(UNITS_MAX.min(units))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, StatusCode};
    use tollgate_core::Span;
    use tollgate_core::lanes::Settlement;

    fn answered(status: u16, headers: &[(&'static str, &str)], body: &str) -> Answered {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let answer =
            Answer { status, headers: map, body: body.into(), is_cut: false, broken: None };
        Answered { answer: Ok(answer), took: Span::from_millis(5) }
    }

    fn judged(delivery: &Delivery, tried: Attempts, answered: &Answered) -> (Settlement, Becomes) {
        let spec = &QueueSpec::default();
        let wall = Timestamp::from_nanos(1_800_000_000_000_000_000);
        let (outcome, becomes) = verdict(Case { delivery, spec, tried, wall }, answered);
        (outcome.settlement(), becomes)
    }

    fn failures(failures: u32) -> Attempts {
        Attempts { failures, ..Attempts::default() }
    }

    #[test]
    fn only_a_2xx_is_done() {
        let plain = Delivery::default();
        for status in 200..300 {
            let told = judged(&plain, failures(0), &answered(status, &[], ""));
            assert_eq!(told, (Settlement::Done, Becomes::Done));
        }
        for status in [301, 302, 304, 400, 404, 500, 503] {
            let told = judged(&plain, failures(0), &answered(status, &[], ""));
            assert_eq!(told, (Settlement::Retry(None), Becomes::Again), "{status}");
        }
        let unheard = Answered { answer: Err("refused".to_owned()), took: Span::ZERO };
        assert_eq!(judged(&plain, failures(0), &unheard).1, Becomes::Again);
    }

    #[test]
    fn an_upstream_that_asks_for_a_pause_gets_it_and_burns_no_attempt() {
        let plain = Delivery { retries: Some(0), ..Delivery::default() };
        let told = judged(&plain, failures(0), &answered(429, &[("retry-after", "30")], ""));
        assert_eq!(told, (Settlement::Limited(Span::from_secs(30)), Becomes::Again));
        let told = judged(&plain, failures(0), &answered(503, &[("retry-after", "0")], ""));
        assert_eq!(told.0, Settlement::Limited(PAUSE_UNTOLD), "never in a loop");
        let often = Attempts { limited: 99, ..Attempts::default() };
        assert_eq!(judged(&plain, often, &answered(429, &[], "")).1, Becomes::Dead);
    }

    #[test]
    fn retries_end_with_those_of_the_call_or_of_the_queue_whichever_is_first() {
        let three = Delivery { retries: Some(3), ..Delivery::default() };
        let wrong = answered(500, &[], "");
        assert_eq!(judged(&three, failures(2), &wrong).1, Becomes::Again);
        assert_eq!(judged(&three, failures(3), &wrong), (Settlement::Dead, Becomes::Dead));
        let plain = Delivery::default();
        assert_eq!(judged(&plain, failures(18), &wrong).1, Becomes::Again);
        // The queue counts the twentieth failure, and says what the call died of.
        assert_eq!(judged(&plain, failures(19), &wrong), (Settlement::Retry(None), Becomes::Dead));
    }

    #[test]
    fn an_answer_that_is_fatal_is_the_last() {
        let fatal = Delivery { fatal: vec![404, 410], ..Delivery::default() };
        assert_eq!(judged(&fatal, failures(0), &answered(404, &[], "")).0, Settlement::Dead);
        assert_eq!(judged(&fatal, failures(0), &answered(500, &[], "")).1, Becomes::Again);
    }

    #[test]
    fn an_expression_says_how_long_to_wait() {
        let text = Some("pow(2, retried) * 100".to_owned());
        let delivery = Delivery { retry_delay: text, ..Delivery::default() };
        let told = judged(&delivery, failures(3), &answered(500, &[], "")).0;
        assert_eq!(told, Settlement::Retry(Some(Span::from_millis(800))));
    }

    #[test]
    fn the_true_cost_is_read_from_the_answer_or_left_as_it_was() {
        let path = |limit: &str, from: &str| CostPath { limit: limit.into(), from: from.into() };
        let costs = vec![path("tpm", "body.usage.total"), path("units", "header.x-cost")];
        let delivery = &Delivery { costs, ..Delivery::default() };
        let spec = &QueueSpec::default();
        let case = Case { delivery, spec, tried: failures(0), wall: Timestamp::default() };
        let actual = |answered: &Answered| verdict(case, answered).0.into_parts().actual;
        let whole = answered(200, &[("x-cost", " 7 ")], r#"{"usage":{"total":940}}"#);
        assert_eq!(actual(&whole), [("tpm".to_owned(), 940), ("units".to_owned(), 7)]);
        for body in ["", "no", r#"{"usage":{"total":-1}}"#, r#"{"usage":{"total":"9"}}"#] {
            assert_eq!(actual(&answered(200, &[("x-cost", "many")], body)), [], "{body}");
        }
    }
}
