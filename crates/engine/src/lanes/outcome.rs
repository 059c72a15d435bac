//! What came of a start, and what follows from it.

use super::Call;
use super::door::open_queue_name;
use super::worker::Following;
use crate::error::{AskError, Error, RESERVED};
use std::fmt::Display;
use std::sync::Arc;
use tollgate_core::lanes::{Act, Lease, NewCall, Settle, Settlement};
use tollgate_core::{Definition, LimitName, Now, Span, UNITS_MAX};

/// What came of a start. A handler gives one back, or what can be made one: nothing is done, an error
/// is to be tried again.
#[derive(Debug, Clone)]
#[must_use = "a start that is not settled holds its lane until its lease expires"]
pub struct Outcome {
    settlement: Settlement,
    actual: Vec<(String, u64)>,
    enqueue: Vec<(String, Call)>,
    then: Act,
    /// What follows by what records say, in place of `then`.
    follows: Option<Arc<dyn Following>>,
    report: Box<[u8]>,
    stands_alone: bool,
    is_settled: bool,
}

/// What an outcome is made of, for whoever settles it elsewhere.
#[derive(Debug, Clone)]
pub struct OutcomeParts {
    /// What came of the start.
    pub settlement: Settlement,
    /// What it cost in truth, at which limits.
    pub actual: Vec<(String, u64)>,
    /// Calls that follow, with their queues.
    pub enqueue: Vec<(String, Call)>,
    /// What else is changed.
    pub then: Act,
    /// What there is to say about it.
    pub report: Box<[u8]>,
}

impl Outcome {
    fn of(settlement: Settlement) -> Self {
        let (actual, enqueue, report) = (Vec::new(), Vec::new(), [].into());
        let (then, follows, stands_alone, is_settled) = (Act::default(), None, false, false);
        Self { settlement, actual, enqueue, then, follows, report, stands_alone, is_settled }
    }

    /// It was settled by the handler itself.
    pub(crate) fn elsewhere() -> Self {
        Self { is_settled: true, ..Self::done() }
    }

    /// Whether there is nothing left to settle.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// It is done.
    pub fn done() -> Self {
        Self::of(Settlement::Done)
    }

    /// It failed: again after the queue's backoff.
    pub fn retry() -> Self {
        Self::of(Settlement::Retry(None))
    }

    /// It failed: again after so long.
    pub fn retry_after(span: impl Into<Span>) -> Self {
        Self::of(Settlement::Retry(Some(span.into())))
    }

    /// It was never started: what it paid is handed back, and no attempt is counted.
    pub fn release() -> Self {
        Self::of(Settlement::Release)
    }

    /// It is to be given up.
    pub fn dead() -> Self {
        Self::of(Settlement::Dead)
    }

    /// The upstream asked for a pause: the meter of its first toll closes for so long, and the call
    /// keeps its place.
    pub fn limited(span: impl Into<Span>) -> Self {
        Self::of(Settlement::Limited(span.into()))
    }

    /// What it cost in truth at a limit.
    pub fn actual(mut self, limit: impl Into<String>, units: u64) -> Self {
        self.actual.push((limit.into(), units));
        self
    }

    /// A call that is enqueued in the same act.
    pub fn enqueue(mut self, queue: impl Into<String>, call: Call) -> Self {
        self.enqueue.push((queue.into(), call));
        self
    }

    /// A call that is enqueued in the same act, as the store takes it.
    pub fn enqueue_new(mut self, call: NewCall) -> Self {
        self.then.enqueue.push(call);
        self
    }

    /// Limits that come along with the calls that are enqueued.
    pub fn define(mut self, limits: impl IntoIterator<Item = (LimitName, Definition)>) -> Self {
        self.then.define.extend(limits);
        self
    }

    /// What there is to say about it, for the history: an answer, an error; up to 64 KiB, and one that is longer
    /// is left out. Best is JSON: where it is shown, that is shown as it is.
    pub fn report(self, report: impl Into<Vec<u8>>) -> Self {
        Self { report: report.into().into(), ..self }
    }

    /// It is settled so even if what follows cannot be done: what was done is not done again for that.
    pub fn standing_alone(self) -> Self {
        Self { stands_alone: true, ..self }
    }

    /// What follows in the same act, by what records say then.
    pub(crate) fn followed(self, by: impl Following + 'static) -> Self {
        Self { follows: Some(Arc::new(by)), ..self }
    }

    pub(super) fn follows(&self) -> Option<Arc<dyn Following>> {
        self.follows.clone()
    }

    /// Whether it is settled so even if what follows cannot be done.
    pub(super) fn stands_alone(&self) -> bool {
        self.stands_alone
    }

    /// What else is changed in the same act: records, joins, other calls. It comes to what was said before.
    pub fn and(mut self, then: Act) -> Self {
        self.then.extend(then);
        self
    }

    /// The same without costs that there cannot be, at limits or of so much: charged, they would close a limit for
    /// centuries, and what was done is not done again for them.
    pub fn within_reason(mut self) -> Self {
        let cannot_be = |(limit, units): &mut (String, u64)| {
            *units > UNITS_MAX || LimitName::new(limit).is_err()
        };
        for (limit, units) in self.actual.extract_if(.., cannot_be) {
            tracing::error!(
                limit,
                units,
                "a cost is left out: there is no such limit, or not so much"
            );
        }
        self
    }

    /// What came of it.
    pub fn settlement(&self) -> Settlement {
        self.settlement
    }

    /// What it is made of.
    pub fn into_parts(self) -> OutcomeParts {
        let Self { settlement, actual, enqueue, then, report, .. } = self;
        OutcomeParts { settlement, actual, enqueue, then, report }
    }

    /// The act that settles a start so. If what follows cannot be done and it stands alone, nothing follows.
    pub fn into_act(self, lease: Lease, now: Now) -> Result<Act, Error> {
        let Self { settlement, actual, enqueue, then, report, stands_alone, .. } = self;
        let named = actual.into_iter().map(|(limit, units)| Ok((LimitName::new(&limit)?, units)));
        let actual = named.collect::<Result<_, Error>>()?;
        let mut act = match followed(then, enqueue, now) {
            Err(error) if stands_alone => {
                tracing::error!(call = lease.call.0, %error, "what follows from a call cannot be done");
                Act::default()
            }
            followed => followed?,
        };
        // Mostly there is no other.
        act.settle.reserve_exact(1);
        act.settle.push(Settle { lease, settlement, actual, report });
        Ok(act)
    }
}

/// What follows, as the store takes it.
fn followed(mut then: Act, calls: Vec<(String, Call)>, now: Now) -> Result<Act, Error> {
    if then.write.iter().any(|write| write.key.starts_with(RESERVED)) {
        return Err(AskError::ReservedKey.into());
    }
    for (queue, call) in calls {
        then.enqueue.push(call.into_new(open_queue_name(&queue)?, now)?);
    }
    Ok(then)
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::done()
    }
}

impl<T: Into<Self>, E: Display> From<Result<T, E>> for Outcome {
    /// An error is said in the log, and the call is tried again.
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(outcome) => outcome.into(),
            Err(error) => {
                tracing::warn!(%error, "a call failed and will be tried again");
                Self::retry()
            }
        }
    }
}
