//! What calls cost in truth, remembered to estimate what the next ones will.

use crate::name::{LimitName, Partition, QueueName};
use std::collections::BTreeMap;

/// How many costs are remembered of a queue at a meter: enough for the 95th of a hundred, and soon
/// forgotten when calls become dearer.
const REMEMBERED: usize = 64;
/// How many must be known before they are an estimate.
const ENOUGH: usize = 16;
/// Most meters that are remembered: half a kilobyte each. Beyond, a queue's costs at the limit stand for
/// all its partitions.
const METERS_MAX: usize = 10_000;

/// What the calls of queues cost at limits, as far as it was settled since the store was opened.
#[derive(Debug, Clone, Default)]
pub(super) struct Learned {
    meters: BTreeMap<(QueueName, LimitName, Option<Partition>), Costs>,
    limits: BTreeMap<(QueueName, LimitName), Costs>,
}

#[derive(Debug, Clone, Default)]
struct Costs {
    latest: Vec<u64>,
    /// Which is the oldest once there are as many as are remembered.
    oldest: usize,
}

impl Learned {
    /// A call of a queue cost so much.
    pub(super) fn note(
        &mut self,
        queue: &QueueName,
        (limit, partition): (&LimitName, Option<&Partition>),
        cost: u64,
    ) {
        self.limits.entry((queue.clone(), limit.clone())).or_default().note(cost);
        let meter = (queue.clone(), limit.clone(), partition.cloned());
        if self.meters.len() < METERS_MAX || self.meters.contains_key(&meter) {
            self.meters.entry(meter).or_default().note(cost);
        }
    }

    /// What 95 of 100 calls of a queue cost no more than there, or at the limit if too few are known;
    /// `None` if these are too few as well.
    pub(super) fn estimate(
        &self,
        queue: &QueueName,
        (limit, partition): (&LimitName, Option<&Partition>),
    ) -> Option<u64> {
        let meter = (queue.clone(), limit.clone(), partition.cloned());
        let here = self.meters.get(&meter).and_then(Costs::most_of);
        here.or_else(|| self.limits.get(&(queue.clone(), limit.clone()))?.most_of())
    }

    /// Forgets a queue.
    pub(super) fn forget(&mut self, queue: &QueueName) {
        self.meters.retain(|(known, ..), _| known != queue);
        self.limits.retain(|(known, _), _| known != queue);
    }
}

impl Costs {
    fn note(&mut self, cost: u64) {
        if self.latest.len() < REMEMBERED {
            self.latest.push(cost);
            return;
        }
        if let Some(oldest) = self.latest.get_mut(self.oldest) {
            *oldest = cost;
        }
        self.oldest = (self.oldest + 1) % REMEMBERED;
    }

    fn most_of(&self) -> Option<u64> {
        if self.latest.len() < ENOUGH {
            return None;
        }
        let mut sorted = self.latest.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * 95).div_ceil(100) - 1;
        // A call weighs something.
        sorted.get(place).map(|cost| (*cost).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_what_95_of_100_cost_and_follows_what_is_settled() {
        let (queue, limit) = (QueueName::new("q").unwrap(), LimitName::new("l").unwrap());
        let [a, b] = ["a", "b"].map(|name| Partition::new(name).unwrap());
        let mut learned = Learned::default();
        for cost in 1..=15 {
            learned.note(&queue, (&limit, Some(&a)), cost);
        }
        assert_eq!(learned.estimate(&queue, (&limit, Some(&a))), None);
        learned.note(&queue, (&limit, Some(&a)), 16);
        assert_eq!(learned.estimate(&queue, (&limit, Some(&a))), Some(16));
        assert_eq!(
            learned.estimate(&queue, (&limit, Some(&b))),
            Some(16),
            "by others of the queue"
        );
        for cost in 1..=100 {
            learned.note(&queue, (&limit, Some(&b)), 1_000 * cost);
        }
        // The last 64 are 37,000 to 100,000.
        assert_eq!(learned.estimate(&queue, (&limit, Some(&b))), Some(97_000));
        assert_eq!(learned.estimate(&queue, (&limit, Some(&a))), Some(16));
        learned.forget(&queue);
        assert_eq!(learned.estimate(&queue, (&limit, Some(&a))), None);
    }

    #[test]
    fn what_costs_nothing_weighs_one() {
        let (queue, limit) = (QueueName::new("q").unwrap(), LimitName::new("l").unwrap());
        let mut learned = Learned::default();
        (0..ENOUGH).for_each(|_| learned.note(&queue, (&limit, None), 0));
        assert_eq!(learned.estimate(&queue, (&limit, None)), Some(1));
    }
}
