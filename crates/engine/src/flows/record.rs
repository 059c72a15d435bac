//! Runs as they are written down: JSON, for people read it, too.

use super::body::{Woken, WokenRecord};
use super::workflows::{StateRecord, WorkflowRun};
use crate::error::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use smallvec::SmallVec;
use tollgate_core::contract::StoreError;
use tollgate_core::flow::run::{Parent, Plan, Run, Signal, Stands};
use tollgate_core::{LimitName, Partition, Priority, Span, Timestamp, Toll, Tolls};

/// Where something is written before it is known how long it is: what is short takes memory only then.
pub(super) type Draft = SmallVec<[u8; 256]>;

/// Something as JSON, in as much memory as it needs.
pub(super) fn as_json(value: &impl Serialize) -> serde_json::Result<Box<[u8]>> {
    let mut draft = Draft::new();
    serde_json::to_writer(&mut draft, value)?;
    Ok(draft.into_boxed_slice())
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It gave this, as JSON.
    Done(Box<[u8]>),
    /// It failed.
    Failed {
        /// Why.
        reason: String,
        /// At which step.
        step: String,
        /// What that was given, as JSON.
        state: Box<[u8]>,
    },
    /// It was taken back.
    Cancelled,
}

impl Ending {
    /// What it gave.
    pub fn value<T: DeserializeOwned>(&self) -> Option<serde_json::Result<T>> {
        match self {
            Self::Done(value) => Some(serde_json::from_slice(value)),
            Self::Failed { .. } | Self::Cancelled => None,
        }
    }
}

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Of which machine or workflow.
    pub name: String,
    /// Of which version of it.
    pub version: u32,
    /// The key that it had: of its correlation, or of its idempotency.
    pub correlation: Option<String>,
    /// When it began, on the wall clock.
    pub began: Timestamp,
    /// When it ended, on the wall clock.
    pub ended: Timestamp,
    /// How.
    pub ending: Ending,
    /// The children that it waited for, if it did: of which wait, and how many.
    pub(super) waited: Option<(u64, u32)>,
    /// How far its tasks were, if it is of a workflow, and how often it was begun again.
    pub(super) progress: Option<(u64, Vec<StateRecord>)>,
    /// What it needs to live again, if it is of a machine.
    pub(super) kept: Option<Kept>,
}

/// What a machine's run needs to live again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    /// As it was; if it did not fail, without its signals.
    pub(super) run: Run,
    /// The step that failed.
    pub(super) failed: Option<FailedStep>,
}

/// What is kept of a step that failed, beside its name and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedStep {
    /// Of which version of the machine it is.
    pub(super) version: u32,
    /// What it owed.
    pub(super) tolls: Tolls,
    /// Who went first at the meters.
    pub(super) priority: Priority,
    /// What let the run go on to it.
    pub(super) woken: Woken,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RunRecord {
    machine: String,
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation: Option<String>,
    began: Timestamp,
    #[serde(default)]
    turn: u64,
    #[serde(default)]
    stands: StandsRecord,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inbox: Vec<SignalRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<ParentRecord>,
}

#[derive(Serialize, Deserialize)]
struct ParentRecord {
    run: String,
    turn: u64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StandsRecord {
    #[default]
    Going,
    TimedOut,
    Awaiting {
        names: Vec<Box<str>>,
        then: PlanRecord,
    },
    Joining {
        children: u32,
        then: PlanRecord,
    },
}

#[derive(Serialize, Deserialize)]
struct PlanRecord {
    step: String,
    state: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tolls: Vec<TollRecord>,
    #[serde(default)]
    priority: u8,
    #[serde(default)]
    delay_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct TollRecord {
    limit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    weight: u64,
    #[serde(default)]
    hears_feedback: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SignalRecord {
    name: String,
    payload: Box<RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct EndedRecord {
    name: String,
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation: Option<String>,
    began: Timestamp,
    ended: Timestamp,
    ending: EndingRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waited: Option<(u64, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<(u64, Vec<StateRecord>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<KeptRecord>,
}

#[derive(Serialize, Deserialize)]
struct KeptRecord {
    run: RunRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<FailedRecord>,
}

#[derive(Serialize, Deserialize)]
struct FailedRecord {
    version: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tolls: Vec<TollRecord>,
    #[serde(default)]
    priority: u8,
    #[serde(default)]
    woken: WokenRecord,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndingRecord {
    Done(Box<RawValue>),
    Failed { reason: String, step: String, state: Box<RawValue> },
    Cancelled,
}

/// What is kept is not what was written.
pub(super) fn not_ours(error: &serde_json::Error) -> Error {
    StoreError::Failed { reason: format!("a run cannot be read: {error}") }.into()
}

fn raw(json: &[u8]) -> Result<Box<RawValue>, Error> {
    serde_json::from_slice(json).map_err(|error| not_ours(&error))
}

fn json(raw: &RawValue) -> Box<[u8]> {
    raw.get().as_bytes().into()
}

fn text(text: &Option<Box<str>>) -> Option<String> {
    text.as_deref().map(str::to_owned)
}

impl RunRecord {
    pub(super) fn written(run: &Run) -> Result<Box<[u8]>, Error> {
        as_json(&Self::new(run)?).map_err(|error| not_ours(&error))
    }

    fn new(run: &Run) -> Result<Self, Error> {
        let parent = |parent: &Parent| ParentRecord {
            run: parent.run.as_ref().to_owned(),
            turn: parent.turn,
        };
        let stands = match &run.stands {
            Stands::Going => StandsRecord::Going,
            Stands::TimedOut => StandsRecord::TimedOut,
            Stands::Awaiting { names, then } => {
                StandsRecord::Awaiting { names: names.clone(), then: PlanRecord::new(then)? }
            }
            Stands::Joining { children, then } => {
                StandsRecord::Joining { children: *children, then: PlanRecord::new(then)? }
            }
        };
        Ok(Self {
            machine: run.machine.as_ref().to_owned(),
            version: run.version,
            correlation: text(&run.correlation),
            began: run.began,
            turn: run.turn,
            stands,
            inbox: run.inbox.iter().map(SignalRecord::new).collect::<Result<_, _>>()?,
            keys: run.keys.clone(),
            parent: run.parent.as_ref().map(parent),
        })
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Run, Error> {
        let record: Self = serde_json::from_slice(bytes).map_err(|error| not_ours(&error))?;
        record.run()
    }

    fn run(self) -> Result<Run, Error> {
        let record = self;
        let parent = |parent: ParentRecord| Parent { run: parent.run.into(), turn: parent.turn };
        let stands = match record.stands {
            StandsRecord::Going => Stands::Going,
            StandsRecord::TimedOut => Stands::TimedOut,
            StandsRecord::Awaiting { names, then } => {
                Stands::Awaiting { names, then: then.plan()? }
            }
            StandsRecord::Joining { children, then } => {
                Stands::Joining { children, then: then.plan()? }
            }
        };
        Ok(Run {
            machine: record.machine.into(),
            version: record.version,
            correlation: record.correlation.map(Into::into),
            began: record.began,
            turn: record.turn,
            stands,
            inbox: record.inbox.into_iter().map(Into::into).collect(),
            keys: record.keys,
            parent: record.parent.map(parent),
        })
    }
}

impl PlanRecord {
    fn new(plan: &Plan) -> Result<Self, Error> {
        Ok(Self {
            step: plan.step.as_ref().to_owned(),
            state: raw(&plan.state)?,
            tolls: plan.tolls.iter().map(TollRecord::new).collect(),
            priority: plan.priority.level(),
            delay_ns: plan.delay.as_nanos(),
        })
    }

    fn plan(self) -> Result<Plan, Error> {
        Ok(Plan {
            step: self.step.into(),
            state: json(&self.state),
            tolls: self.tolls.into_iter().map(TollRecord::toll).collect::<Result<_, _>>()?,
            priority: Priority::new(self.priority.into()).unwrap_or_default(),
            delay: Span::from_nanos(self.delay_ns),
        })
    }
}

impl TollRecord {
    fn new(toll: &Toll) -> Self {
        Self {
            limit: toll.limit.as_str().to_owned(),
            partition: toll.partition.as_ref().map(|it| it.as_str().to_owned()),
            weight: toll.weight,
            hears_feedback: toll.hears_feedback,
        }
    }

    fn toll(self) -> Result<Toll, Error> {
        Ok(Toll {
            limit: LimitName::new(&self.limit)?,
            partition: self.partition.map(|name| Partition::new(&name)).transpose()?,
            weight: self.weight,
            hears_feedback: self.hears_feedback,
        })
    }
}

impl KeptRecord {
    fn new(kept: &Kept) -> Result<Self, Error> {
        let failed = |failed: &FailedStep| -> Result<_, Error> {
            Ok(FailedRecord {
                version: failed.version,
                tolls: failed.tolls.iter().map(TollRecord::new).collect(),
                priority: failed.priority.level(),
                woken: WokenRecord::new(&failed.woken)?,
            })
        };
        let failed = kept.failed.as_ref().map(failed).transpose()?;
        Ok(Self { run: RunRecord::new(&kept.run)?, failed })
    }

    fn kept(self) -> Result<Kept, Error> {
        let failed = |failed: FailedRecord| -> Result<_, Error> {
            Ok(FailedStep {
                version: failed.version,
                tolls: failed.tolls.into_iter().map(TollRecord::toll).collect::<Result<_, _>>()?,
                priority: Priority::new(failed.priority.into()).unwrap_or_default(),
                woken: failed.woken.into(),
            })
        };
        Ok(Kept { run: self.run.run()?, failed: self.failed.map(failed).transpose()? })
    }
}

impl SignalRecord {
    pub(super) fn new(signal: &Signal) -> Result<Self, Error> {
        let name = signal.name.as_ref().to_owned();
        Ok(Self { name, payload: raw(&signal.payload)?, key: text(&signal.key) })
    }
}

impl From<SignalRecord> for Signal {
    fn from(record: SignalRecord) -> Self {
        let SignalRecord { name, payload, key } = record;
        Self { name: name.into(), payload: json(&payload), key: key.map(Into::into) }
    }
}

impl Kept {
    /// Of one that failed all is kept: it goes on as if nothing had been.
    fn of(run: &Run, failed: Option<FailedStep>) -> Self {
        let run = match &failed {
            Some(failed) => Run { version: failed.version, ..run.clone() },
            None => {
                let (stands, inbox, keys) = (Stands::Going, Vec::new(), Vec::new());
                let (machine, correlation) = (run.machine.clone(), run.correlation.clone());
                let parent = run.parent.clone();
                Run { machine, correlation, parent, stands, inbox, keys, ..*run }
            }
        };
        Self { run, failed }
    }
}

impl Ended {
    /// A run that ends so, at a step that failed or not.
    pub(super) fn of(
        run: &Run,
        ending: Ending,
        failed: Option<FailedStep>,
        ended: Timestamp,
    ) -> Self {
        let waited = match run.stands {
            Stands::Joining { children, .. } => Some((run.turn, children)),
            _ => None,
        };
        Self {
            name: run.machine.as_ref().to_owned(),
            version: run.version,
            correlation: text(&run.correlation),
            began: run.began,
            ended,
            ending,
            waited,
            progress: None,
            kept: Some(Kept::of(run, failed)),
        }
    }

    /// A run of a workflow that ends so.
    pub(super) fn of_workflow(run: &WorkflowRun, ending: Ending, ended: Timestamp) -> Self {
        Self {
            name: run.workflow.clone(),
            version: run.version,
            correlation: run.key.clone(),
            began: run.began,
            ended,
            ending,
            waited: None,
            progress: Some((run.turn, run.states.clone())),
            kept: None,
        }
    }

    pub(super) fn written(&self) -> Result<Box<[u8]>, Error> {
        let ending = match &self.ending {
            Ending::Done(value) => EndingRecord::Done(raw(value)?),
            Ending::Failed { reason, step, state } => EndingRecord::Failed {
                reason: reason.clone(),
                step: step.clone(),
                state: raw(state)?,
            },
            Ending::Cancelled => EndingRecord::Cancelled,
        };
        let record = EndedRecord {
            name: self.name.clone(),
            version: self.version,
            correlation: self.correlation.clone(),
            began: self.began,
            ended: self.ended,
            ending,
            waited: self.waited,
            progress: self.progress.clone(),
            kept: self.kept.as_ref().map(KeptRecord::new).transpose()?,
        };
        as_json(&record).map_err(|error| not_ours(&error))
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let record: EndedRecord =
            serde_json::from_slice(bytes).map_err(|error| not_ours(&error))?;
        let kept = record.kept.map(KeptRecord::kept).transpose()?;
        let EndedRecord { name, version, correlation, began, ended, waited, progress, .. } = record;
        let ending = match record.ending {
            EndingRecord::Done(value) => Ending::Done(json(&value)),
            EndingRecord::Failed { reason, step, state } => {
                Ending::Failed { reason, step, state: json(&state) }
            }
            EndingRecord::Cancelled => Ending::Cancelled,
        };
        Ok(Self { name, version, correlation, began, ended, ending, waited, progress, kept })
    }
}
