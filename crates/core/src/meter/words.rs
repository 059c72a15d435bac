//! A meter as numbers, and back: what a checkpoint keeps of it.

use super::ledger::Ledger;
use super::{Closed, Meter};
use crate::limit::Definition;
use crate::rule::bucket::Bucket;
use crate::rule::sliding::Sliding;
use crate::rule::slots::Slots;
use crate::rule::window::Window;
use crate::rule::{Rule, RuleState};
use crate::time::{Span, Timestamp};

/// Numbers in the order in which they were written.
#[derive(Debug)]
pub(crate) struct Words<'a>(&'a [u64]);

impl Words<'_> {
    /// The next one.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn timestamp(&mut self) -> Option<Timestamp> {
        self.take().map(Timestamp::from_nanos)
    }

    pub(crate) fn span(&mut self) -> Option<Span> {
        self.take().map(Span::from_nanos)
    }

    /// A list: its length, then as many of what `each` takes.
    pub(crate) fn list<T>(&mut self, each: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.take()?).ok().filter(|count| *count <= self.0.len())?;
        (0..count).map(|_| each(self)).collect()
    }
}

impl Meter {
    /// All that it holds, but for a closure.
    pub fn to_words(&self) -> Vec<u64> {
        let Self { ledgers, closed: _, sequence, born, paid, changed } = self;
        let mut words = vec![*sequence, born.as_nanos(), paid.as_nanos(), *changed];
        for ledger in ledgers {
            match &ledger.state {
                RuleState::Bucket(Bucket { full_at, fraction }) => {
                    words.extend([full_at.as_nanos(), *fraction]);
                }
                RuleState::Window(Window { ends, spent }) => {
                    words.extend([ends.as_nanos(), *spent]);
                }
                RuleState::Sliding(sliding) => sliding.to_words(&mut words),
                RuleState::Slots(slots) => slots.to_words(&mut words),
            }
            ledger.to_words(&mut words);
        }
        words
    }

    /// A meter of this definition that holds what was written; `None` if it was written otherwise.
    pub fn from_words(
        definition: &Definition,
        words: &[u64],
        closed: Option<(Timestamp, &str)>,
    ) -> Option<Self> {
        let mut words = Words(words);
        let (sequence, born) = (words.take()?, words.timestamp()?);
        let (paid, changed) = (words.timestamp()?, words.take()?);
        let ledgers = definition.rules().iter().map(|rule| {
            let state = match rule {
                Rule::Bucket(_) => RuleState::Bucket(Bucket {
                    full_at: words.timestamp()?,
                    fraction: words.take()?,
                }),
                Rule::Window(_) => {
                    RuleState::Window(Window { ends: words.timestamp()?, spent: words.take()? })
                }
                Rule::Sliding(_) => RuleState::Sliding(Sliding::from_words(&mut words)?),
                Rule::Slots(_) => RuleState::Slots(Slots::from_words(&mut words)?),
            };
            Ledger::from_words(state, &mut words)
        });
        let ledgers = ledgers.collect::<Option<_>>()?;
        let closed = closed.map(|(until, reason)| Closed { until, reason: reason.into() });
        let is_whole = words.0.is_empty();
        is_whole.then_some(Self { ledgers, closed, sequence, born, paid, changed })
    }
}
