//! The till: limits and meters that were read from a store for one change, and what is asked of them.
//!
//! A store that several processes share keeps values. It hands over those that matter, in its own time;
//! everything is decided here, and what changed is written back, as one. Nobody waits at such a store, so
//! nobody is overtaken here.

mod asks;
mod meters;
mod operate;
#[cfg(test)]
mod properties;
mod timeline;

pub use timeline::{TURNS_MAX, Timeline, Turn};

use crate::contract::MeterName;
use crate::limit::Definition;
use crate::meter::{Meter, Payment};
use crate::name::{LimitName, Partition};
use crate::time::{Now, Span, Timestamp};
use meters::Meters;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A store's clock that is so much earlier than it was has been set back. Less is the difference between
/// servers that take over from each other, and waited for.
const STEP_MIN: Span = Span::from_secs(1);

/// Limits and meters that were read for one change.
#[derive(Debug, Clone)]
pub struct Till {
    now: Now,
    /// Everyone reads the same clock, within the change: it never says less unless it was set.
    has_one_clock: bool,
    limits: BTreeMap<LimitName, Timeline>,
    own: Own,
    meters: Meters,
    settled: BTreeSet<ReceiptKey>,
    spent_since: Option<Now>,
    changes: Changes,
}

/// A meter, and the rules under which it was left.
#[derive(Debug, Clone)]
pub struct KeptMeter {
    /// What it holds.
    pub meter: Meter,
    /// Its rules.
    pub definition: Arc<Definition>,
    /// The last change of its rules that it has gone along with.
    pub seen: u64,
}

/// Names a receipt: its id is one at the meter of its first line.
pub type ReceiptKey = (MeterName, u64);

/// What came of a change.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Limits whose rules changed.
    pub limits: BTreeSet<LimitName>,
    /// Partitions whose own rules changed.
    pub own: BTreeSet<(LimitName, Partition)>,
    /// Receipts that were settled, and until when that must be remembered.
    pub settled: Vec<(ReceiptKey, Timestamp)>,
    /// What was paid where.
    pub paid: Vec<(MeterName, Payment)>,
}

impl Till {
    /// An empty one, at this instant of the store's time.
    pub fn new(now: Now) -> Self {
        Self {
            now,
            has_one_clock: false,
            limits: BTreeMap::new(),
            own: BTreeMap::new(),
            meters: Meters::default(),
            settled: BTreeSet::new(),
            spent_since: None,
            changes: Changes::default(),
        }
    }

    /// At a store whose clock is read within each change. Then a meter from the future tells that the clock
    /// was set back, and goes back with it. Where each process has a reading of its own, one that is late
    /// would take that for a step, and the next would count the time between twice.
    #[must_use]
    pub fn of_one_clock(self) -> Self {
        Self { has_one_clock: true, ..self }
    }

    /// The present.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Meters that nobody knows of count as spent at this instant: the store has lost them.
    pub fn lost_at(&mut self, lost: Now) {
        self.spent_since = Some(lost);
    }

    /// A limit as it was found.
    pub fn put_limit(&mut self, name: LimitName, rules: Timeline) {
        self.limits.insert(name, rules);
    }

    /// The rules of one partition as they were found.
    pub fn put_own(&mut self, limit: LimitName, partition: Partition, rules: Timeline) {
        self.own.insert((limit, partition), rules);
    }

    /// A meter as it was found.
    pub fn put_meter(&mut self, name: MeterName, mut kept: KeptMeter) {
        let ahead = kept.meter.latest().since(self.now.at);
        if self.has_one_clock && ahead > STEP_MIN {
            kept.meter.set_back(&kept.definition, ahead);
            let place = self.meters.put(name, kept);
            // Written whatever is decided: set back again by whoever asks next, it would stand still.
            self.meters.changed(place);
        } else {
            // Clocks of servers that take over from each other differ a little: time does not go back.
            self.not_before(kept.meter.latest());
            self.meters.put(name, kept);
        }
    }

    /// A receipt that was settled before.
    pub fn put_settled(&mut self, receipt: ReceiptKey) {
        self.settled.insert(receipt);
    }

    /// A limit's rules.
    pub fn limit(&self, name: &LimitName) -> Option<&Timeline> {
        self.limits.get(name)
    }

    /// The rules of one partition.
    pub fn own(&self, key: &(LimitName, Partition)) -> Option<&Timeline> {
        self.own.get(key)
    }

    /// Meters that changed, as they were left.
    pub fn changed_meters(&self) -> impl Iterator<Item = (&MeterName, &KeptMeter)> {
        self.meters.all_changed()
    }

    /// What else changed.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    fn not_before(&mut self, at: Timestamp) {
        if at > self.now.at {
            self.now = self.now.moved_to(at);
        }
    }

    /// Whether the meters of a limit may lie apart from each other.
    fn is_spread(&self, limit: &LimitName) -> bool {
        self.limits.get(limit).is_some_and(Timeline::is_spread)
    }

    /// The rules in force at a meter; `None` if its limit is not defined.
    pub fn rules(&self, (limit, partition): &MeterName) -> Option<&Arc<Definition>> {
        self.rules_of(limit, partition.as_ref())
    }

    fn rules_of(
        &self,
        limit: &LimitName,
        partition: Option<&Partition>,
    ) -> Option<&Arc<Definition>> {
        let common = self.limits.get(limit)?.in_force()?;
        let own = own_rules(&self.own, limit, partition).and_then(Timeline::in_force);
        Some(own.unwrap_or(common))
    }

    /// The place of a meter under the rules in force, made if there is none; `None` if its limit is not
    /// defined.
    fn at(&mut self, name: MeterName) -> Option<usize> {
        let (limit, partition) = &name;
        let common = self.limits.get(limit)?;
        let in_force = common.in_force()?;
        let own = own_rules(&self.own, limit, partition.as_ref());
        let (now, latest) = (self.now, common.latest(own));
        let Some(place) = self.meters.place(&name) else {
            let definition = own.and_then(Timeline::in_force).unwrap_or(in_force).clone();
            let meter = match self.spent_since {
                Some(lost) => Meter::spent(&definition, not_after(lost, now), now),
                None => Meter::new(&definition, now.at),
            };
            let place = self.meters.put(name, KeptMeter { meter, definition, seen: latest });
            if self.spent_since.is_some_and(|lost| lost.at > now.at) {
                // The clock was set back since. Kept as it is made: made anew each time, it would stay spent.
                self.meters.changed(place);
            }
            return Some(place);
        };
        let kept = self.meters.kept_mut(place);
        if kept.seen < latest {
            kept.go_along(&common.with_own(own, kept.seen), now);
        }
        Some(place)
    }
}

/// An instant of the past, or the present if the clock was set back since.
fn not_after(then: Now, now: Now) -> Now {
    if then.at > now.at { now } else { then }
}

type Own = BTreeMap<(LimitName, Partition), Timeline>;

fn own_rules<'a>(
    own: &'a Own,
    limit: &LimitName,
    partition: Option<&Partition>,
) -> Option<&'a Timeline> {
    // Most limits have none, and need not look.
    let partition = partition.filter(|_| !own.is_empty())?;
    own.get(&(limit.clone(), partition.clone()))
}

impl KeptMeter {
    /// Goes over to the rules that came since it was left, one after the other.
    fn go_along(&mut self, turns: &[Turn], now: Now) {
        for turn in turns {
            self.seen = turn.number;
            if let Some(definition) = turn.definition.as_ref().filter(|it| **it != self.definition)
            {
                let since = not_after(turn.since, now);
                let at = since.moved_to(since.at.max(self.meter.latest()));
                self.meter.carry(&self.definition, definition, at);
                self.definition = definition.clone();
            }
        }
    }
}
