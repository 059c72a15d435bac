//! Runs: looked at, waited for, told something, and taken back.

use crate::calls::{CallId, Page};
use crate::client::{Asked, Client};
use crate::error::ClientError;
use crate::limits::{PAGE, if_known};
use crate::path::{path, with_query};
use crate::wire::call::raw;
use crate::wire::time::{SpanWire, instant, maybe_instant};
use hyper::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tollgate_core::{Span, Timestamp};
use tollgate_engine::flows::{Cancelled, Signal, Signalled};

/// How long one request waits for the end of a run before another is made.
const WAIT: Span = Span::from_minutes(1);

/// A run as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RunWire")]
#[non_exhaustive]
pub struct RunView {
    /// Its name.
    pub run: String,
    /// Of which workflow or machine.
    pub name: String,
    /// Of which version of it.
    pub version: u32,
    /// The key that it is known by.
    pub correlation: Option<String>,
    /// When it began.
    pub began: Timestamp,
    /// Where it is in its life.
    pub state: RunState,
}

/// Where a run is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunState {
    /// It has a step to make.
    Going {
        /// Which; `None` if that was made just now, and in lists.
        step: Option<String>,
        /// Which call that is: ask why it waits.
        call: Option<CallId>,
    },
    /// It waits for signals.
    Awaiting {
        /// Of which names.
        names: Vec<String>,
        /// Which step follows.
        then: String,
    },
    /// It waits for its children.
    Joining {
        /// How many there are.
        children: u32,
        /// Which step follows.
        then: String,
    },
    /// It is of a workflow.
    Working {
        /// Its tasks, in their order, and how far each is.
        tasks: Vec<(String, String)>,
        /// It waits for other runs of its workflow to end.
        is_pending: bool,
    },
    /// It ended.
    Ended {
        /// When.
        at: Timestamp,
        /// How.
        ending: Ending,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It gave this, as JSON; `None` where the server keeps it from those who look.
    Done(Option<Box<[u8]>>),
    /// It failed.
    Failed {
        /// Why.
        reason: String,
        /// At which step or task.
        step: String,
        /// What that was given, as JSON; `None` where the server keeps it from those who look.
        given: Option<Box<[u8]>>,
    },
    /// It was taken back.
    Cancelled,
}

impl Ending {
    /// What the run gave.
    pub fn value<T: DeserializeOwned>(&self) -> Option<serde_json::Result<T>> {
        match self {
            Self::Done(value) => value.as_deref().map(serde_json::from_slice),
            Self::Failed { .. } | Self::Cancelled => None,
        }
    }
}

/// An attempt at a step or a task.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct StepAttempt {
    /// Which step or task; `None` if nobody said.
    pub step: Option<String>,
    /// Which attempt at it, from 1.
    pub attempt: u32,
    /// What came of it: `next`, `retry`, `done` and so on; `None` if nobody said.
    pub outcome: Option<String>,
    /// Which step followed.
    pub then: Option<String>,
    /// When it was started.
    #[serde(rename = "started_at", deserialize_with = "instant")]
    pub started: Timestamp,
    /// When it was settled.
    #[serde(rename = "settled_at", deserialize_with = "instant")]
    pub settled: Timestamp,
    #[serde(default)]
    waits: BTreeMap<String, SpanWire>,
    /// What came of its call: `done`, `failed`, `crashed` and so on.
    pub settlement: String,
    /// Which call that was.
    pub call: CallId,
}

impl StepAttempt {
    /// How long it had waited at which limit.
    pub fn waits(&self) -> impl Iterator<Item = (&str, Span)> {
        self.waits.iter().map(|(limit, SpanWire(span))| (&**limit, *span))
    }
}

/// Which runs are looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunsQuery<'a> {
    /// Those that ended and are kept, not those that have not.
    pub have_ended: bool,
    /// Of this workflow or machine; `None`: of all.
    pub name: Option<&'a str>,
    /// Those that come after it.
    pub after: Option<&'a str>,
}

#[derive(Deserialize)]
struct RunWire {
    run: String,
    name: String,
    version: u32,
    correlation: Option<String>,
    #[serde(deserialize_with = "instant")]
    began_at: Timestamp,
    state: String,
    step: Option<String>,
    call: Option<CallId>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    then: String,
    #[serde(default)]
    children: u32,
    #[serde(default)]
    tasks: Vec<TaskStateWire>,
    #[serde(default)]
    pending: bool,
    #[serde(default, deserialize_with = "maybe_instant")]
    ended_at: Option<Timestamp>,
    ending: Option<EndingWire>,
}

#[derive(Deserialize)]
struct TaskStateWire {
    task: String,
    state: String,
}

#[derive(Deserialize)]
struct EndingWire {
    outcome: String,
    #[serde(default, deserialize_with = "raw")]
    value: Option<Box<RawValue>>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    step: String,
    #[serde(default, deserialize_with = "raw")]
    given: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct RunPageWire {
    runs: Vec<RunView>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct TimelineWire {
    attempts: Vec<StepAttempt>,
}

/// What is said of a run that has not ended.
#[derive(Deserialize)]
struct NotEndedWire {
    ended: Option<bool>,
}

#[derive(Serialize)]
struct SignalWire<'a> {
    name: &'a str,
    payload: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe: Option<&'a str>,
}

#[derive(Deserialize)]
struct SignalledWire {
    signalled: SignalledWord,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum SignalledWord {
    Woken,
    Kept,
    Known,
}

#[derive(Deserialize)]
struct CancelledWire {
    cancelled: bool,
}

impl TryFrom<RunWire> for RunView {
    type Error = String;

    fn try_from(wire: RunWire) -> Result<Self, String> {
        let then = wire.then;
        let state = match &*wire.state {
            "going" => RunState::Going { step: wire.step, call: wire.call },
            "awaiting" => RunState::Awaiting { names: wire.names, then },
            "joining" => RunState::Joining { children: wire.children, then },
            "working" => {
                let tasks = wire.tasks.into_iter().map(|it| (it.task, it.state)).collect();
                RunState::Working { tasks, is_pending: wire.pending }
            }
            "ended" => {
                let at = wire.ended_at.ok_or("a run that ended does not say when")?;
                let ending = wire.ending.ok_or("a run that ended does not say how")?;
                RunState::Ended { at, ending: ending.try_into()? }
            }
            other => return Err(format!("a run is {other}, which is not known here")),
        };
        let RunWire { run, name, version, correlation, began_at: began, .. } = wire;
        Ok(Self { run, name, version, correlation, began, state })
    }
}

impl TryFrom<EndingWire> for Ending {
    type Error = String;

    fn try_from(wire: EndingWire) -> Result<Self, String> {
        let json = |raw: Box<RawValue>| raw.get().as_bytes().into();
        match &*wire.outcome {
            "done" => Ok(Self::Done(wire.value.map(json))),
            "failed" => {
                let (reason, step, given) = (wire.reason, wire.step, wire.given.map(json));
                Ok(Self::Failed { reason, step, given })
            }
            "cancelled" => Ok(Self::Cancelled),
            other => Err(format!("a run ended as {other}, which is not known here")),
        }
    }
}

impl Client {
    /// A run as it is; `None` if there is none of that name, or it ended and is not kept any more.
    pub async fn run(&self, run: &str) -> Result<Option<RunView>, ClientError> {
        if_known(self.fetch(path(&["runs", run])).await, "unknown_run")
    }

    /// Runs in the order in which they began. A page of those of one name may be empty though there is a next.
    pub async fn runs(&self, query: RunsQuery<'_>) -> Result<Page<RunView>, ClientError> {
        let RunsQuery { have_ended, name, after } = query;
        let ended = have_ended.then_some("true");
        let query = [("ended", ended), ("name", name), ("after", after), ("limit", Some(PAGE))];
        let page: RunPageWire = self.fetch(with_query(path(&["runs"]), &query)).await?;
        Ok(Page { items: page.runs, next: page.next })
    }

    /// The attempts at steps or tasks of a run, oldest first, as long as history keeps them: the last 10,000.
    pub async fn timeline(&self, run: &str) -> Result<Vec<StepAttempt>, ClientError> {
        Ok(self.fetch::<TimelineWire>(path(&["runs", run, "timeline"])).await?.attempts)
    }

    /// A run as a flowchart for Mermaid: how far each task of a workflow is, or which steps of a machine were made;
    /// `None` if there is none of that name.
    pub async fn run_picture(&self, run: &str) -> Result<Option<String>, ClientError> {
        if_known(self.text(path(&["runs", run, "picture"])).await, "unknown_run")
    }

    /// How a run ends, as soon as it does; `None` if it has not within so long, or the server ends. It takes the role
    /// of those who begin runs.
    pub async fn result(
        &self,
        run: &str,
        within: impl Into<Span>,
    ) -> Result<Option<RunView>, ClientError> {
        let mut left = within.into();
        loop {
            let wait = left.min(WAIT);
            let query = [("wait", Some(&*wait.to_string()))];
            let at = with_query(path(&["runs", run, "result"]), &query);
            let answer = self.send(Asked::new(Method::GET, at).waits(wait)).await?;
            if answer.read::<NotEndedWire>()?.ended != Some(false) {
                return answer.read().map(Some);
            }
            left = Span::from_nanos(left.as_nanos().saturating_sub(wait.as_nanos()));
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// Tells a run of a machine something. Once answered, it lasts. If the connection is lost, it is sent again only
    /// if it has a key.
    pub async fn signal(&self, run: &str, signal: &Signal) -> Result<Signalled, ClientError> {
        let payload = serde_json::from_slice(&signal.payload);
        let payload = payload.map_err(|error| ClientError::invalid(error.to_string()))?;
        let dedupe = signal.key.as_deref();
        let wire = SignalWire { name: &signal.name, payload, dedupe };
        let asked = Asked::new(Method::POST, path(&["runs", run, "signals"])).json(&wire)?;
        let asked = if dedupe.is_some() { asked.again() } else { asked };
        Ok(match self.ask::<SignalledWire>(asked).await?.signalled {
            SignalledWord::Woken => Signalled::Woken,
            SignalledWord::Kept => Signalled::Kept,
            SignalledWord::Known => Signalled::Known,
        })
    }

    /// Takes a run back: it ends, nothing more of it starts, and so do the children that it waits for.
    pub async fn cancel_run(&self, run: &str) -> Result<Cancelled, ClientError> {
        let answer = self.act::<CancelledWire>(path(&["runs", run, "cancel"])).await;
        Ok(match if_known(answer, "unknown_run")? {
            Some(CancelledWire { cancelled: true }) => Cancelled::Now,
            Some(CancelledWire { cancelled: false }) => Cancelled::HadEnded,
            None => Cancelled::Unknown,
        })
    }

    /// Does again what made a run fail: the step of a machine, or the task of a workflow. The run as it is then.
    pub async fn rerun(&self, run: &str) -> Result<RunView, ClientError> {
        self.post(path(&["runs", run, "rerun"]), &json!({})).await
    }

    /// Does a task of a run that ended again, and all that depends on it or had not been done; what others gave
    /// stays. Of a machine, it is the step that failed. The run as it is then.
    pub async fn rerun_from(&self, run: &str, task: &str) -> Result<RunView, ClientError> {
        self.post(path(&["runs", run, "rerun"]), &json!({"from": task})).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(state: &str) -> serde_json::Result<RunView> {
        let base = r#"{"run":"r","name":"w","version":2,"began_at":"1970-01-01T00:00:01Z","#;
        serde_json::from_str(&format!("{base}{state}}}"))
    }

    #[test]
    fn what_a_run_gave_is_kept_as_it_stands() {
        for (json, value) in [("1.50", Some("1.50")), ("null", Some("null"))] {
            let ending = format!(r#"{{"outcome":"done","value":{json}}}"#);
            let ended = r#""state":"ended","ended_at":"1970-01-01T00:00:02Z","ending":"#;
            let view = read(&format!("{ended}{ending}")).unwrap();
            let value = value.map(|text| text.as_bytes().into());
            let at = Timestamp::from_nanos(2_000_000_000);
            assert_eq!(view.state, RunState::Ended { at, ending: Ending::Done(value) });
        }
    }

    #[test]
    fn a_state_that_is_not_known_is_an_error() {
        assert!(read(r#""state":"dreaming""#).unwrap_err().to_string().contains("dreaming"));
        assert!(read(r#""state":"ended""#).unwrap_err().to_string().contains("when"));
    }
}
