//! A task as it is written: what is to be done, after what, under which limits. Checked when its
//! workflow is built.

use crate::flow::CRASHES_MAX_DEFAULT;
use crate::time::Span;
use serde_json::Value;

/// How long a task may take unless it says otherwise.
pub const TASK_TIMEOUT_DEFAULT: Span = Span::from_minutes(5);

/// One task of a workflow.
///
/// Paths lead into the task's input, in the words of the input alone: `config.provider.name`,
/// `items[0].price`, `items.length`, and `.` for all of it. With a map, those of limits lead into each
/// item.
///
/// What a limit reads there is a text of 1 to 512 bytes or a whole number. Anything else (nothing, null, a truth, a
/// fraction, a list, an object, an empty text) fails the task with what was found: no two tasks share a
/// meter for want of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name in the workflow.
    pub name: String,
    /// Its type: workers serve types, and limits are for types.
    pub type_name: String,
    /// How long an attempt may take.
    pub timeout: Span,
    /// How often it is tried, and when again.
    pub retry: Retry,
    /// The tasks that must have ended before.
    pub needs: Vec<String>,
    /// It is skipped unless its input says this.
    pub when: Option<When>,
    /// Where the list is, each item of which is done by itself.
    pub map: Option<String>,
    /// How often its type may start, whatever the input is.
    pub rate: Option<RateLimit>,
    /// How often its type may start for each value of a key.
    pub keyed: Option<KeyedRateLimit>,
    /// How many units of either may start at once; `None`: as many as may start in a period.
    pub burst: Option<u64>,
    /// What it owes besides.
    pub tolls: Vec<TaskToll>,
    /// How many of its type may run at a time, over all runs.
    pub concurrency: Option<u64>,
}

/// So many starts of a task's type in a period, over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// How many.
    pub limit: u64,
    /// The period.
    pub per: Span,
}

/// So many units of a task's type in a period for each value of a key, over all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedRateLimit {
    /// Where the key's value is.
    pub key: String,
    /// How many units.
    pub limit: u64,
    /// The period.
    pub per: Span,
    /// How many of them one start takes.
    pub units: u64,
}

/// What a task owes at a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskToll {
    /// Which limit.
    pub limit: String,
    /// At which of its meters.
    pub partition: TaskPartition,
    /// How much.
    pub weight: TaskWeight,
}

/// At which meter of a limit a task owes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TaskPartition {
    /// The global one.
    #[default]
    Global,
    /// That of one partition.
    Fixed(String),
    /// That of the partition that the input has at this path: a text of 1 to 512 bytes, or a whole number,
    /// which is its digits.
    Path(String),
}

/// How much a task owes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskWeight {
    /// So much; at least 1.
    Fixed(u64),
    /// As much as the input has at this path: a whole number from 1 on.
    Path(String),
}

/// How often a task is tried, and how long it waits in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How many attempts there are, the first one included.
    pub attempts: u32,
    /// How long it waits after the first failure.
    pub first: Span,
    /// The longest it waits.
    pub most: Span,
    /// How waits grow.
    pub kind: RetryKind,
    /// How often a worker may die at it before it has failed; such deaths are no attempts.
    pub crashes_max: u32,
}

/// How the waits after failures grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryKind {
    /// They do not.
    Fixed,
    /// By the first wait each time.
    Linear,
    /// Twice as long each time.
    Exponential,
}

/// What a task's input must say, or else the task is skipped.
///
/// What is missing, or of another type than the value, makes it false, for `Ne` too. A null counts as
/// missing: APIs send it for nothing. Numbers are compared by their exact value, `1.50` is `1.5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    /// Where it stands in the input.
    pub path: String,
    /// How it is compared.
    pub is: Comparison,
    /// With what: a text, a number or a truth; for an order a number; for `Exists` whether it is to.
    pub value: Value,
}

/// How what is found is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It is the value.
    Eq,
    /// It is another one of the same type.
    Ne,
    /// It is less.
    Lt,
    /// It is no more.
    Le,
    /// It is more.
    Gt,
    /// It is no less.
    Ge,
    /// Something is there that is not null.
    Exists,
}

impl Task {
    /// A task of a type: 5 minutes, 5 attempts, the run's input, no limits.
    pub fn new(name: &str, type_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            timeout: TASK_TIMEOUT_DEFAULT,
            retry: Retry::default(),
            needs: Vec::new(),
            when: None,
            map: None,
            rate: None,
            keyed: None,
            burst: None,
            tolls: Vec::new(),
            concurrency: None,
        }
    }

    /// How long an attempt may take.
    #[must_use]
    pub fn timeout(self, timeout: impl Into<Span>) -> Self {
        Self { timeout: timeout.into(), ..self }
    }

    /// How often it is tried, and when again.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Another task that must have ended before.
    #[must_use]
    pub fn after(mut self, task: &str) -> Self {
        self.needs.push(task.to_owned());
        self
    }

    /// Skips the task unless its input says this.
    #[must_use]
    pub fn when(self, path: &str, is: Comparison, value: impl Into<Value>) -> Self {
        Self { when: Some(When { path: path.to_owned(), is, value: value.into() }), ..self }
    }

    /// Does the task for each item of the list at this path; its output is the list of outputs.
    #[must_use]
    pub fn map(self, path: &str) -> Self {
        Self { map: Some(path.to_owned()), ..self }
    }

    /// At most `limit` starts of its type per `per`, over all runs.
    #[must_use]
    pub fn rate_limit(self, limit: u64, per: impl Into<Span>) -> Self {
        Self { rate: Some(RateLimit { limit, per: per.into() }), ..self }
    }

    /// At most `limit` units of its type per `per`, for each value that inputs have at `key`; a start takes
    /// `units`.
    #[must_use]
    pub fn keyed_rate_limit(self, key: &str, limit: u64, per: impl Into<Span>, units: u64) -> Self {
        let (key, per) = (key.to_owned(), per.into());
        Self { keyed: Some(KeyedRateLimit { key, limit, per, units }), ..self }
    }

    /// How many units of its rate may start at once.
    #[must_use]
    pub fn burst(self, units: u64) -> Self {
        Self { burst: Some(units), ..self }
    }

    /// What it owes besides; any limits, beside a short form or without.
    #[must_use]
    pub fn tolls(mut self, tolls: impl IntoIterator<Item = TaskToll>) -> Self {
        self.tolls.extend(tolls);
        self
    }

    /// At most so many of its type at a time, over all runs.
    #[must_use]
    pub fn concurrency(self, limit: u64) -> Self {
        Self { concurrency: Some(limit), ..self }
    }
}

impl TaskToll {
    /// One unit at the global meter of a limit.
    pub fn new(limit: &str) -> Self {
        let (partition, weight) = (TaskPartition::Global, TaskWeight::Fixed(1));
        Self { limit: limit.to_owned(), partition, weight }
    }

    /// At the meter of one partition.
    #[must_use]
    pub fn partition(self, partition: &str) -> Self {
        Self { partition: TaskPartition::Fixed(partition.to_owned()), ..self }
    }

    /// At the meter of the partition that the input has at a path.
    #[must_use]
    pub fn partition_at(self, path: &str) -> Self {
        Self { partition: TaskPartition::Path(path.to_owned()), ..self }
    }

    /// So many units.
    #[must_use]
    pub fn weight(self, weight: u64) -> Self {
        Self { weight: TaskWeight::Fixed(weight), ..self }
    }

    /// As many units as the input has at a path.
    #[must_use]
    pub fn weight_at(self, path: &str) -> Self {
        Self { weight: TaskWeight::Path(path.to_owned()), ..self }
    }
}

impl Default for Retry {
    /// 5 attempts; 1 s, 2 s, 4 s and 8 s in between.
    fn default() -> Self {
        Self::exponential(5, Span::from_secs(1), Span::from_minutes(5))
    }
}

impl Retry {
    /// So many attempts, with the same wait in between.
    pub fn fixed(attempts: u32, wait: impl Into<Span>) -> Self {
        let wait = wait.into();
        Self::of(attempts, (wait, wait), RetryKind::Fixed)
    }

    /// So many attempts; each wait is longer by the first one, up to the longest.
    pub fn linear(attempts: u32, first: impl Into<Span>, most: impl Into<Span>) -> Self {
        Self::of(attempts, (first.into(), most.into()), RetryKind::Linear)
    }

    /// So many attempts; each wait is twice as long, up to the longest.
    pub fn exponential(attempts: u32, first: impl Into<Span>, most: impl Into<Span>) -> Self {
        Self::of(attempts, (first.into(), most.into()), RetryKind::Exponential)
    }

    /// One attempt.
    pub fn none() -> Self {
        Self::fixed(1, Span::ZERO)
    }

    fn of(attempts: u32, (first, most): (Span, Span), kind: RetryKind) -> Self {
        Self { attempts, first, most, kind, crashes_max: CRASHES_MAX_DEFAULT }
    }

    /// How often a worker may die at it before it has failed; 3 times by default.
    #[must_use]
    pub fn crashes_max(self, crashes_max: u32) -> Self {
        Self { crashes_max, ..self }
    }

    /// How long the task waits after its failure number `failures`, counted from 1; `None`: it has failed
    /// for good.
    pub fn delay(&self, failures: u32) -> Option<Span> {
        if failures >= self.attempts {
            return None;
        }
        let before = failures.saturating_sub(1);
        let factor = match self.kind {
            RetryKind::Fixed => 1,
            RetryKind::Linear => u64::from(before) + 1,
            RetryKind::Exponential => 1_u64.checked_shl(before).unwrap_or(u64::MAX),
        };
        let wait = self.first.as_nanos().saturating_mul(factor).min(self.most.as_nanos());
        Some(Span::from_nanos(wait))
    }
}

impl Comparison {
    /// Its name in JSON, files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::Gt => "gt",
            Self::Ge => "ge",
            Self::Exists => "exists",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(retry: Retry) -> Vec<u64> {
        (1..).map_while(|failures| retry.delay(failures)).map(Span::as_secs_ceil).collect()
    }

    #[test]
    fn waits_grow_as_they_are_told_to_and_end() {
        let (one, ten) = (Span::from_secs(1), Span::from_secs(10));
        assert_eq!(waits(Retry::fixed(4, one)), [1, 1, 1]);
        assert_eq!(waits(Retry::linear(4, one, ten)), [1, 2, 3]);
        assert_eq!(waits(Retry::exponential(7, one, ten)), [1, 2, 4, 8, 10, 10]);
        assert_eq!(waits(Retry::default()), [1, 2, 4, 8]);
        assert!(waits(Retry::none()).is_empty());
    }

    #[test]
    fn a_wait_is_never_longer_than_the_longest() {
        let most = Span::from_hours(1);
        for retry in [
            Retry::linear(u32::MAX, Span::from_nanos(u64::MAX / 2), most),
            Retry::exponential(u32::MAX, Span::from_secs(1), most),
        ] {
            assert_eq!(retry.delay(u32::MAX - 1), Some(most));
        }
    }
}
