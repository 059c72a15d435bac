//! Attempts that the server makes itself: told as those of workers are.

use super::{Ended, Start, Traces};
use std::sync::Arc;
use tollgate::push::tracer::{AttemptEnd, AttemptTracer, TracedAttempt};

/// Traces pushes, if anyone wants to know.
pub(crate) fn tracer(traces: &Arc<Traces>) -> Option<AttemptTracer> {
    let traces = traces.is_on().then(|| traces.clone())?;
    Some(AttemptTracer::new(move |queue, job, wall| {
        let (call, attempt) = (job.id, job.attempt);
        let attempt = traces.start(Start {
            call,
            envelope: &job.envelope,
            queue,
            namespace: None,
            lane: &job.lane,
            at: wall,
            attempt,
        })?;
        let (parent, traces) = (attempt.context.clone(), traces.clone());
        let end = move |end: AttemptEnd| {
            let (outcome, has_failed) = (end.outcome, end.outcome != "done");
            let ended = Ended { call, namespace: None, outcome, has_failed, at: end.at };
            traces.end(attempt, ended);
        };
        Some(TracedAttempt { parent, end: Box::new(end) })
    }))
}
