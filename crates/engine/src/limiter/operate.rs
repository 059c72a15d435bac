//! Looking at meters and acting on them: state, lists, closing, reopening, resetting.

use super::{Inner, Limiter};
use crate::error::{AskError, Error};
use crate::limits::Entry;
use crate::locked::{Line, Locked};
use std::sync::Arc;
use tollgate_core::contract::Tally;
use tollgate_core::{Limit, Now, Opening, Partition, RuleUse, Span, Standing, Timestamp};

/// How a meter stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterState {
    /// The limit's name.
    pub limit: Arc<str>,
    /// The partition; `None` for the global meter.
    pub partition: Option<String>,
    /// The definition in force here.
    pub definition: Limit,
    /// Its tightest rule.
    pub standing: Standing,
    /// What counts at each of its rules, in the order of the definition's; empty where only the tightest
    /// is told, as by a server.
    pub rules: Vec<RuleUse>,
    /// Units held at the concurrency rule.
    pub in_flight: u64,
    /// Weight of the calls that wait here.
    pub waiting: u64,
    /// An operator holds its limit back.
    pub is_paused: bool,
    /// When a call of weight 1 would pass, if nobody else asks; `None` if no one can know.
    pub next_admission_after: Option<Span>,
    /// For how long it is closed, and why.
    pub closed: Option<(Span, String)>,
    /// What was admitted here since the store was opened, or since the meter was last as new and
    /// forgotten; `None` in memory, where nothing is counted.
    pub admitted: Option<Tally>,
}

impl MeterState {
    /// Whether it is in someone's way: someone waits there, or it is closed or held back.
    pub fn bites(&self) -> bool {
        self.waiting > 0 || self.closed.is_some() || self.is_paused
    }
}

/// Some partitions of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionPage {
    /// Their names, sorted.
    pub partitions: Vec<String>,
    /// Where the next page starts; `None` after the last.
    pub next: Option<String>,
}

impl Limiter {
    /// How one meter stands. One that was never used, or is as good as new, stands full.
    pub fn meter(&self, limit: &str, partition: Option<&str>) -> Result<MeterState, Error> {
        let entry = self.inner.known_at(limit, partition)?;
        let lines = [Line { entry: &entry, address: entry.address(partition), weight: 1 }];
        let locked = Locked::new(&lines, || self.clock().both());
        state(&locked, partition).ok_or_else(|| unknown(limit))
    }

    /// The partitions of a limit that have a meter, sorted, `most` at a time, after `after`.
    pub fn partitions(
        &self,
        limit: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<PartitionPage, Error> {
        let entry = self.inner.known(limit)?;
        // The least that come after, kept in a heap: memory for a page, not for a million names.
        let mut least = std::collections::BinaryHeap::new();
        for shard in entry.shards() {
            for key in shard.keys().filter(|key| !key.is_empty()) {
                if after.is_none_or(|after| key > after)
                    && (least.len() <= most
                        || least.peek().is_some_and(|top: &String| key < top.as_str()))
                {
                    least.push(key.to_owned());
                    if least.len() > most + 1 {
                        least.pop();
                    }
                }
            }
        }
        let mut partitions = least.into_sorted_vec();
        let has_more = partitions.len() > most;
        partitions.truncate(most);
        let next = partitions.last().cloned().filter(|_| has_more);
        Ok(PartitionPage { partitions, next })
    }

    /// Lets nothing pass a meter for `span`, at most a day: what an upstream's `429` asks for. The
    /// meter's waiting calls wait on, keep their places, and go on when it opens.
    pub fn close(
        &self,
        limit: &str,
        partition: Option<&str>,
        span: impl Into<Span>,
        reason: &str,
    ) -> Result<(), Error> {
        let span = span.into();
        let reason: String = reason.chars().take(256).collect();
        self.inner.act(limit, partition, |meter, _, now| {
            meter.close(now.at.plus(span), &reason, now.at);
        })
    }

    /// Ends a closure before its time.
    pub fn reopen(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        self.inner.act(limit, partition, |meter, _, _| {
            meter.reopen();
        })
    }

    /// Forgets what was spent at a meter: an operator's act. Slots stay held.
    pub fn reset(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        self.inner.act(limit, partition, |meter, definition, now| meter.reset(definition, now))
    }
}

impl Inner {
    fn known_at(&self, limit: &str, partition: Option<&str>) -> Result<Arc<Entry>, AskError> {
        if let Some(partition) = partition {
            Partition::new(partition)?;
        }
        self.known(limit)
    }

    /// Changes a meter, then lets those who wait there try again.
    fn act(
        self: &Arc<Self>,
        limit: &str,
        partition: Option<&str>,
        change: impl FnOnce(&mut tollgate_core::Meter, &tollgate_core::Definition, Now),
    ) -> Result<(), Error> {
        let entry = self.known_at(limit, partition)?;
        let lines = [Line { entry: &entry, address: entry.address(partition), weight: 1 }];
        let mut locked = Locked::new(&lines, || self.settings.clock.both());
        self.make_meters(&mut locked)?;
        let now = locked.now;
        let changed =
            locked.whole(0, |whole, definition| change(&mut whole.meter, definition, now));
        drop(locked);
        self.wake_meter(&entry, entry.address(partition));
        changed.ok_or_else(|| unknown(limit))
    }
}

fn state(locked: &Locked<'_>, partition: Option<&str>) -> Option<MeterState> {
    let (definition, standing) = (locked.definition(0)?.clone(), locked.standing_at(0)?);
    let now: Timestamp = locked.now.at;
    let whole = locked.peek_whole(0);
    let next_admission_after = match locked.opens() {
        Opening::At(opens) => Some(opens.since(now)),
        Opening::OnRelease => None,
    };
    Some(MeterState {
        limit: locked.lines[0].entry.name.clone(),
        partition: partition.map(str::to_owned),
        standing,
        rules: locked.rules_at(0)?,
        in_flight: whole.map_or(0, |whole| whole.meter.in_flight(&definition, locked.now)),
        waiting: whole.map_or(0, |whole| whole.ahead),
        next_admission_after,
        closed: whole
            .and_then(|whole| whole.meter.closed(now))
            .map(|(until, reason)| (until.since(now), reason.to_owned())),
        definition: definition.limit().clone(),
        is_paused: false,
        admitted: None,
    })
}

fn unknown(limit: &str) -> Error {
    AskError::UnknownLimit { name: limit.to_owned() }.into()
}
