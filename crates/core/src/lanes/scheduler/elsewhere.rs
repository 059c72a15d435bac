//! Others who decide, each with a scheduler of its own: what they decided happens here too, and turns
//! are kept for those who ask there.

use super::Scheduler;
use super::calls::MeterSlot;
use super::meters::QueueSlot;
use crate::lanes::call::Lease;
use crate::lanes::effect::Effect;
use crate::lanes::queue_toll::QueueToll;
use crate::name::QueueName;
use crate::time::{Now, Timestamp};

impl Scheduler {
    /// Levels the meters at which nobody stands, as it was done where others decide: before each entry of what
    /// they wrote, and within it where they noted that ([`Self::take_levelled`]).
    pub fn follow_level(&mut self, now: Now) {
        self.catch_up(now);
        self.level();
    }

    /// Lets something happen that others decided just now, with the lanes up to date before it: so it is
    /// known how far each is served, as it is to those who decided. Once all of it has happened,
    /// [`Self::catch_up`] brings the lanes up to date.
    pub fn follow(&mut self, effect: &Effect, now: Now) {
        self.present = now;
        self.rehead();
        match effect {
            Effect::Settled { lease, actual, .. } => self.learn_elsewhere(*lease, actual),
            // Without it, it would be as old as the last that was accepted here.
            Effect::Accepted { id, .. } => self.acceptances.note(id.0, now.at),
            _ => {}
        }
        self.replay(effect);
    }

    /// Looks at the lanes where something happened that others decided, so that it is known who may have
    /// something to start, and when. Nothing that lasts changes.
    pub fn catch_up(&mut self, now: Now) {
        self.present = now;
        self.rehead();
    }

    /// From now on it is noted for which queues someone begins or ceases to ask, and when meters are levelled:
    /// others who decide are to know.
    pub fn share_asks(&mut self) {
        self.shares_asks = true;
    }

    /// Before which of the effects that are there meters were levelled, each once and in order: to be asked
    /// with them.
    pub fn take_levelled(&mut self) -> Vec<usize> {
        self.levelled.dedup();
        std::mem::take(&mut self.levelled)
    }

    /// The queues for which it changed since this was asked last until when someone asks for them here.
    pub fn take_asked(&mut self) -> Vec<(QueueName, Timestamp)> {
        let mut asked = std::mem::take(&mut self.asked);
        asked.sort_unstable();
        asked.dedup();
        let known = asked.into_iter().filter_map(|queue| self.lanes.known(queue));
        known.map(|queue| (queue.name.clone(), queue.asks_until)).collect()
    }

    /// Notes until when someone asks for a queue's calls where others decide, whatever was said before.
    pub fn asked_elsewhere(&mut self, queue: &QueueName, until: Timestamp) {
        let Some(queue) = self.lanes.find(queue) else { return };
        let before = std::mem::replace(&mut self.lanes.queue_mut(queue).asked_elsewhere, until);
        if until < before {
            self.stop_yielding();
        }
    }

    /// Remembers what a call cost that was settled elsewhere: what cost what was reckoned may not have been
    /// told, and tells nothing.
    fn learn_elsewhere(&mut self, lease: Lease, actual: &[u64]) {
        let Some(slot) = self.in_flight(lease) else { return };
        let queue = self.lanes.queue(self.lanes[self.calls[slot].lane].queue);
        for (line, cost) in self.calls.lines_at(slot).iter().zip(actual) {
            let (limit, partition) = self.meters.name(line.meter);
            let is_learned = |toll: &QueueToll| toll.is_learned() && toll.limit == limit;
            if *cost != 0 && *cost != line.weight && queue.spec.tolls.iter().any(is_learned) {
                self.learned.note(&queue.name, (&limit, partition.as_ref()), *cost);
            }
        }
    }

    /// Lets the heads that stand at a meter try, of queues that are asked for elsewhere alone, as they do
    /// there: those that are refused at another meter stand there, and are in nobody's way here. The queue
    /// that is claimed from now tries its own.
    pub(super) fn try_elsewhere(&mut self, meter: MeterSlot, claimed: Option<QueueSlot>, now: Now) {
        let crowds = self.meters[meter].crowds.iter().map(|crowd| crowd.queue);
        let crowds = crowds.filter(|queue| Some(*queue) != claimed);
        let asked: Vec<_> = crowds.filter(|queue| self.is_asked_elsewhere(*queue, now)).collect();
        for queue in asked {
            while let Some(lane) = self.turn_at(meter, queue) {
                if !self.is_open_at(meter, lane, now) || self.judge_head(lane, now).is_some() {
                    break;
                }
            }
        }
    }

    /// Whether someone asks for a queue elsewhere, and nobody here, who would let its heads try.
    fn is_asked_elsewhere(&self, queue: QueueSlot, now: Now) -> bool {
        let queue = self.lanes.queue(queue);
        now.at < queue.asked_elsewhere && now.at >= queue.asks_until && !queue.is_paused
    }
}

#[cfg(test)]
mod tests {
    use crate::lanes::{Act, Claim, NewCall, QueueSpec, Scheduler, Settle, Settlement};
    use crate::limit::{Definition, Limit};
    use crate::name::{LaneName, LimitName, QueueName};
    use crate::time::{Now, Span, Timestamp};
    use crate::toll::Toll;

    fn limit(name: &str) -> LimitName {
        LimitName::new(name).unwrap()
    }

    fn call(queue: &QueueName, lane: &str, limits: &[&str]) -> NewCall {
        let toll = |name: &&str| Toll {
            limit: limit(name),
            partition: None,
            weight: 1,
            hears_feedback: false,
        };
        let call = NewCall::new(queue.clone(), LaneName::new(lane).unwrap());
        NewCall { tolls: limits.iter().map(toll).collect(), ..call }
    }

    #[test]
    fn a_call_that_was_accepted_elsewhere_is_there_from_when_it_was() {
        let at = |second| Now::both(Timestamp::from_nanos(1 << 60).plus(Span::from_secs(second)));
        let queue = QueueName::new("q").unwrap();
        let enqueue = |scheduler: &mut Scheduler, now| {
            let enqueue = vec![call(&queue, "a", &[])];
            let _ = scheduler.act(Act { enqueue, ..Act::default() }, now).unwrap();
            scheduler.take_effects()
        };
        let mut there = Scheduler::new();
        there.define_queue(&queue, QueueSpec::default(), at(0)).unwrap();
        let mut here = Scheduler::recovered(&there.take_effects());
        for effect in enqueue(&mut here, at(0)) {
            there.follow(&effect, at(0));
        }
        for effect in enqueue(&mut there, at(100)) {
            here.follow(&effect, at(100));
        }
        let claim = Claim { queue: queue.clone(), most: 9, lease: None, asks: Span::ZERO };
        let first = here.claim(&claim, at(130));
        let settle = vec![Settle::new(first[0].lease, Settlement::Done)];
        let _ = here.act(Act { settle, ..Act::default() }, at(130)).unwrap();
        assert_eq!(here.claim(&claim, at(130)).len(), 1);
        let dwell = &here.totals().queues[0].counts.dwell;
        assert_eq!((dwell.count(), dwell.sum_ns), (2, (130 + 30) * 1_000_000_000));
    }

    #[test]
    fn who_claims_here_for_the_first_time_tries_the_heads_that_were_asked_for_elsewhere() {
        let (mut scheduler, now) = (Scheduler::new(), Now::both(Timestamp::from_nanos(1 << 60)));
        let queue = QueueName::new("q").unwrap();
        scheduler.share_asks();
        scheduler.define_queue(&queue, QueueSpec::default(), now).unwrap();
        for (name, most) in [("wide", 9), ("narrow", 1)] {
            let definition = Definition::new(Limit::per_minute(most)).unwrap();
            scheduler.define_limit(&limit(name), Some(definition), now);
        }
        let claim =
            |asks| Claim { queue: queue.clone(), most: 9, lease: Some(Span::from_hours(1)), asks };
        let enqueue = vec![call(&queue, "a", &["narrow"])];
        let _ = scheduler.act(Act { enqueue, ..Act::default() }, now).unwrap();
        assert_eq!(scheduler.claim(&claim(Span::ZERO), now).len(), 1);

        scheduler.asked_elsewhere(&queue, now.at.plus(Span::from_secs(9)));
        // The first is open at one limit and refused at the other: it makes way for the second.
        let enqueue = vec![call(&queue, "b", &["wide", "narrow"]), call(&queue, "c", &["wide"])];
        let _ = scheduler.act(Act { enqueue, ..Act::default() }, now).unwrap();
        let started = scheduler.claim(&claim(Span::from_secs(1)), now);
        let lanes: Vec<&str> = started.iter().map(|started| started.lane.as_str()).collect();
        assert_eq!(lanes, ["c"]);
    }
}
