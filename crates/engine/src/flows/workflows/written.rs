//! A workflow as it is written: in files, over HTTP, and in the store.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_core::Span;
use tollgate_core::flow::CRASHES_MAX_DEFAULT;
use tollgate_core::flow::workflow::{
    Comparison, KeyedRateLimit, RateLimit, Retry, RetryKind, TASK_TIMEOUT_DEFAULT, Task,
    TaskPartition, TaskToll, TaskWeight, When, WorkflowSpec,
};

/// A workflow as JSON or YAML. Spans are texts such as `250ms`, `5m` and `1h30m`, or seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    tasks: Vec<TaskText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<SpanText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runs_max: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tasks_max: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskText {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<SpanText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry: Option<RetryText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<WhenText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate_limit: Option<RateText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keyed_rate_limit: Option<KeyedText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tolls: Vec<TollText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    concurrency: Option<u64>,
}

/// A span as text, or as seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "String")]
struct SpanText(Span);

impl TryFrom<Value> for SpanText {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match &value {
            Value::String(text) => {
                text.parse().map(Self).map_err(|error: tollgate_core::SpanError| error.to_string())
            }
            Value::Number(number) if number.as_u64().is_some() => {
                Ok(Self(Span::from_secs(number.as_u64().unwrap_or_default())))
            }
            other => Err(format!("{other} is no span: write it as \"250ms\", \"5m\" or \"1h30m\"")),
        }
    }
}

impl From<SpanText> for String {
    fn from(SpanText(span): SpanText) -> Self {
        span.to_string()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryText {
    attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<SpanText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    most: Option<SpanText>,
    #[serde(default)]
    kind: RetryKindText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crashes_max: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RetryKindText {
    Fixed,
    Linear,
    #[default]
    Exponential,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenText {
    path: String,
    is: ComparisonText,
    #[serde(default)]
    value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ComparisonText {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Exists,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateText {
    limit: u64,
    per: SpanText,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyedText {
    key: String,
    limit: u64,
    per: SpanText,
    #[serde(default = "one")]
    units: u64,
}

fn one() -> u64 {
    1
}

/// A toll, of which partition and weight are each said once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TollWritten")]
struct TollText {
    limit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight_path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TollWritten {
    limit: String,
    partition: Option<String>,
    partition_path: Option<String>,
    weight: Option<u64>,
    weight_path: Option<String>,
}

impl TryFrom<TollWritten> for TollText {
    type Error = &'static str;

    fn try_from(written: TollWritten) -> Result<Self, Self::Error> {
        let TollWritten { limit, partition, partition_path, weight, weight_path } = written;
        if partition.is_some() && partition_path.is_some() {
            return Err("a toll has one partition: leave out `partition`, or `partition_path`");
        }
        if weight.is_some() && weight_path.is_some() {
            return Err("a toll has one weight: leave out `weight`, or `weight_path`");
        }
        Ok(Self { limit, partition, partition_path, weight, weight_path })
    }
}

impl WorkflowText {
    /// What it is called, if it says so.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The same, called so: for one that is named where it is kept.
    pub fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }
}

impl From<&WorkflowSpec> for WorkflowText {
    fn from(spec: &WorkflowSpec) -> Self {
        Self {
            name: Some(spec.name.clone()),
            tasks: spec.tasks.iter().map(TaskText::from).collect(),
            timeout: spec.timeout.map(SpanText),
            runs_max: spec.runs_max,
            tasks_max: spec.tasks_max,
            idempotency: spec.idempotency.clone(),
        }
    }
}

impl From<WorkflowText> for WorkflowSpec {
    fn from(text: WorkflowText) -> Self {
        Self {
            // One without a name is refused when it is built.
            name: text.name.unwrap_or_default(),
            tasks: text.tasks.into_iter().map(Task::from).collect(),
            timeout: text.timeout.map(|span| span.0),
            runs_max: text.runs_max,
            tasks_max: text.tasks_max,
            idempotency: text.idempotency,
        }
    }
}

impl From<&Task> for TaskText {
    fn from(task: &Task) -> Self {
        let rate = |rate: &RateLimit| RateText { limit: rate.limit, per: SpanText(rate.per) };
        let keyed = |keyed: &KeyedRateLimit| KeyedText {
            key: keyed.key.clone(),
            limit: keyed.limit,
            per: SpanText(keyed.per),
            units: keyed.units,
        };
        Self {
            name: task.name.clone(),
            type_name: task.type_name.clone(),
            timeout: Some(SpanText(task.timeout)),
            retry: Some(RetryText::from(task.retry)),
            after: task.needs.clone(),
            when: task.when.as_ref().map(WhenText::from),
            map: task.map.clone(),
            rate_limit: task.rate.as_ref().map(rate),
            keyed_rate_limit: task.keyed.as_ref().map(keyed),
            burst: task.burst,
            tolls: task.tolls.iter().map(TollText::from).collect(),
            concurrency: task.concurrency,
        }
    }
}

impl From<TaskText> for Task {
    fn from(text: TaskText) -> Self {
        let rate = |rate: RateText| RateLimit { limit: rate.limit, per: rate.per.0 };
        let keyed = |keyed: KeyedText| KeyedRateLimit {
            key: keyed.key,
            limit: keyed.limit,
            per: keyed.per.0,
            units: keyed.units,
        };
        Self {
            name: text.name,
            type_name: text.type_name,
            timeout: text.timeout.map_or(TASK_TIMEOUT_DEFAULT, |span| span.0),
            retry: text.retry.map(Retry::from).unwrap_or_default(),
            needs: text.after,
            when: text.when.map(When::from),
            map: text.map,
            rate: text.rate_limit.map(rate),
            keyed: text.keyed_rate_limit.map(keyed),
            burst: text.burst,
            tolls: text.tolls.into_iter().map(TaskToll::from).collect(),
            concurrency: text.concurrency,
        }
    }
}

impl From<Retry> for RetryText {
    fn from(retry: Retry) -> Self {
        let kind = match retry.kind {
            RetryKind::Fixed => RetryKindText::Fixed,
            RetryKind::Linear => RetryKindText::Linear,
            RetryKind::Exponential => RetryKindText::Exponential,
        };
        let (first, most) = (Some(SpanText(retry.first)), Some(SpanText(retry.most)));
        // As it is usually, it is not said: workflows stay as they were written before it could be.
        let crashes_max = Some(retry.crashes_max).filter(|it| *it != CRASHES_MAX_DEFAULT);
        Self { attempts: retry.attempts, first, most, kind, crashes_max }
    }
}

impl From<RetryText> for Retry {
    fn from(text: RetryText) -> Self {
        let usual = Self::default();
        let first = text.first.map_or(usual.first, |span| span.0);
        let most = text.most.map_or(usual.most.max(first), |span| span.0);
        let retry = match text.kind {
            RetryKindText::Fixed => Self::fixed(text.attempts, first),
            RetryKindText::Linear => Self::linear(text.attempts, first, most),
            RetryKindText::Exponential => Self::exponential(text.attempts, first, most),
        };
        retry.crashes_max(text.crashes_max.unwrap_or(CRASHES_MAX_DEFAULT))
    }
}

impl From<&When> for WhenText {
    fn from(when: &When) -> Self {
        let is = match when.is {
            Comparison::Eq => ComparisonText::Eq,
            Comparison::Ne => ComparisonText::Ne,
            Comparison::Lt => ComparisonText::Lt,
            Comparison::Le => ComparisonText::Le,
            Comparison::Gt => ComparisonText::Gt,
            Comparison::Ge => ComparisonText::Ge,
            Comparison::Exists => ComparisonText::Exists,
        };
        Self { path: when.path.clone(), is, value: when.value.clone() }
    }
}

impl From<WhenText> for When {
    fn from(text: WhenText) -> Self {
        let is = match text.is {
            ComparisonText::Eq => Comparison::Eq,
            ComparisonText::Ne => Comparison::Ne,
            ComparisonText::Lt => Comparison::Lt,
            ComparisonText::Le => Comparison::Le,
            ComparisonText::Gt => Comparison::Gt,
            ComparisonText::Ge => Comparison::Ge,
            ComparisonText::Exists => Comparison::Exists,
        };
        Self { path: text.path, is, value: text.value }
    }
}

impl From<&TaskToll> for TollText {
    fn from(toll: &TaskToll) -> Self {
        let (partition, partition_path) = match &toll.partition {
            TaskPartition::Global => (None, None),
            TaskPartition::Fixed(text) => (Some(text.clone()), None),
            TaskPartition::Path(path) => (None, Some(path.clone())),
        };
        let (weight, weight_path) = match &toll.weight {
            TaskWeight::Fixed(weight) => (Some(*weight), None),
            TaskWeight::Path(path) => (None, Some(path.clone())),
        };
        Self { limit: toll.limit.clone(), partition, partition_path, weight, weight_path }
    }
}

impl From<TollText> for TaskToll {
    fn from(text: TollText) -> Self {
        let partition = match (text.partition, text.partition_path) {
            (Some(text), _) => TaskPartition::Fixed(text),
            (None, Some(path)) => TaskPartition::Path(path),
            (None, None) => TaskPartition::Global,
        };
        let weight = match (text.weight, text.weight_path) {
            (Some(weight), _) => TaskWeight::Fixed(weight),
            (None, Some(path)) => TaskWeight::Path(path),
            (None, None) => TaskWeight::Fixed(1),
        };
        Self { limit: text.limit, partition, weight }
    }
}
