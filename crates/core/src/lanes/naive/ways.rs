//! Ways: what is in the way of a head at each of its meters, and whose turn it is there.

use super::{Call, Head, MeterKey, Naive, Stand};
use crate::lanes::call::CallId;
use crate::meter::{Blocker, Cause, Meter};
use crate::name::QueueName;
use crate::rule::Opening;
use crate::time::Now;
use crate::toll::Toll;
use crate::turn::{Company, Place, must_yield};

/// What a call owes at one meter, all its tolls there together.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) meter: MeterKey,
    pub(super) weight: u64,
    pub(super) hears_feedback: bool,
}

/// The claim that is being served.
#[derive(Debug, Clone, Copy)]
pub(super) struct Serving<'a> {
    pub(super) queue: &'a QueueName,
    pub(super) now: Now,
}

/// A call's lines, in the order in which its tolls first name their meters.
pub(super) fn lines(tolls: &[Toll]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for toll in tolls {
        let meter = (toll.limit.clone(), toll.partition.clone());
        match lines.iter_mut().find(|line| line.meter == meter) {
            Some(line) => {
                line.weight = line.weight.saturating_add(toll.weight);
                line.hears_feedback |= toll.hears_feedback;
            }
            None => {
                lines.push(Line { meter, weight: toll.weight, hears_feedback: toll.hears_feedback })
            }
        }
    }
    lines
}

impl Naive {
    /// The heads with their calls.
    pub(super) fn heads(&self) -> impl Iterator<Item = (&Call, &Head)> {
        self.heads.iter().filter_map(|(id, head)| Some((self.calls.get(id)?, head)))
    }

    /// What is in the way of a head at each of its lines.
    pub(super) fn ways(&self, call: &Call, serving: Serving<'_>) -> Vec<Option<Blocker>> {
        lines(&call.new.tolls).iter().map(|line| self.way(call, line, serving)).collect()
    }

    /// What is in the way of a head at one of its lines.
    pub(super) fn way(&self, call: &Call, line: &Line, serving: Serving<'_>) -> Option<Blocker> {
        let shut = self.shut(line);
        let (None, Some(definition)) = (shut, self.definition(&line.meter)) else {
            let cause = shut.unwrap_or(Cause::Missing);
            return Some(Blocker { cause, rule: 0, opening: Opening::OnRelease });
        };
        let fresh = Meter::new(definition, serving.now.at);
        let meter = self.meters.get(&line.meter).unwrap_or(&fresh);
        let own = meter.blocker(definition, line.weight, serving.now);
        let is_senior = self.heads.get(&call.id).is_some_and(|head| head.is_senior);
        let company = self.company(call, &line.meter, serving);
        if must_yield(self.place(call, &line.meter), is_senior, company) {
            let opening = own.map_or(Opening::At(serving.now.at), |own| own.opening);
            return Some(Blocker { cause: Cause::Turn, rule: 0, opening });
        }
        own
    }

    /// Why nothing of this weight passes as the limit is, however long it waits.
    pub(super) fn shut(&self, line: &Line) -> Option<Cause> {
        let Some(definition) = self.definition(&line.meter) else { return Some(Cause::Missing) };
        if self.limits.get(&line.meter.0).is_some_and(|limit| limit.is_paused) {
            return Some(Cause::Paused);
        }
        (line.weight > definition.capacity()).then_some(Cause::Impossible)
    }

    /// Whether a call's meter is shut to it.
    pub(super) fn is_shut(&self, call: &Call, meter: &MeterKey) -> bool {
        let lines = lines(&call.new.tolls);
        lines.iter().any(|line| line.meter == *meter && self.shut(line).is_some())
    }

    /// A head's tag at a meter: the one it stands there with, or the one it would get.
    pub(super) fn tag(&self, call: &Call, meter: &MeterKey) -> u64 {
        if let Some(Head { stand: Stand::At(at, tag), .. }) = self.heads.get(&call.id)
            && at == meter
        {
            return *tag;
        }
        let vtime = self.vtimes.get(meter).copied().unwrap_or(0);
        let finish = self.finishes.get(&(call.lane_key(), meter.clone())).copied().unwrap_or(0);
        crate::turn::start(finish, vtime, self.rounds.get(meter).copied().unwrap_or(0))
    }

    /// A head's place in the order at a meter.
    pub(super) fn place(&self, call: &Call, meter: &MeterKey) -> Place {
        let tag = self.tag(call, meter);
        Place::new(call.new.priority, tag, call.arrival.unwrap_or(u64::MAX))
    }

    /// The head that is senior at a meter, wherever it stands.
    pub(super) fn senior_at(&self, meter: &MeterKey) -> Option<CallId> {
        let mut seniors = self.heads().filter(|(call, head)| head.is_senior && owes(call, meter));
        seniors.next().map(|(call, _)| call.id)
    }

    /// Who else is at a meter and has workers that ask for it.
    fn company(&self, call: &Call, meter: &MeterKey, serving: Serving<'_>) -> Company {
        let others = || {
            let others = self.heads().filter(|(other, _)| other.lane_key() != call.lane_key());
            others.filter(|(other, _)| self.is_asking(&other.new.queue, serving))
        };
        let standing = others().filter(|(_, head)| stands_at(head, meter));
        let mut seniors = others().filter(|(other, head)| head.is_senior && owes(other, meter));
        Company {
            first: standing.map(|(other, _)| self.place(other, meter)).min(),
            senior: seniors.next().map(|(other, _)| self.place(other, meter)),
        }
    }

    fn is_asking(&self, queue: &QueueName, serving: Serving<'_>) -> bool {
        let asks = |queue: &super::Queue| serving.now.at < queue.asks_until && !queue.is_paused;
        queue == serving.queue || self.queues.get(queue).is_some_and(asks)
    }
}

/// Whether a head is in the order at a meter.
pub(super) fn stands_at(head: &Head, meter: &MeterKey) -> bool {
    matches!(&head.stand, Stand::At(at, _) if at == meter)
}

pub(super) fn owes(call: &Call, meter: &MeterKey) -> bool {
    lines(&call.new.tolls).iter().any(|line| line.meter == *meter)
}
