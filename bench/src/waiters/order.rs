//! How far the order of the grants was from the order of arrival.

/// What happened to the waiter with that ticket; tickets count arrivals from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    Arrived(usize),
    Granted(usize),
}

/// Pairs that waited at the same time, and those of them served in the wrong order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) inversions: u64,
    pub(crate) pairs: u64,
}

/// Counts each pair when the first of the two is granted: the other is still waiting then. One who
/// is never served counts as well. A random order inverts half of the pairs.
pub(crate) fn count_inversions(events: &[Event]) -> Order {
    let arrivals = events.iter().filter(|event| matches!(event, Event::Arrived(_))).count();
    let mut waiting = Waiting::new(arrivals);
    let mut order = Order { inversions: 0, pairs: 0 };
    for event in events {
        match *event {
            Event::Arrived(ticket) => waiting.add(ticket),
            Event::Granted(ticket) => {
                waiting.remove(ticket);
                order.inversions += waiting.below(ticket);
                order.pairs += waiting.below(arrivals);
            }
        }
    }
    order
}

/// The tickets that wait, as a Fenwick tree: adding, removing and counting take O(log n).
struct Waiting(Vec<u64>);

impl Waiting {
    fn new(tickets: usize) -> Self {
        Self(vec![0; tickets + 1])
    }

    fn add(&mut self, ticket: usize) {
        self.each_above(ticket, |sum| *sum += 1);
    }

    fn remove(&mut self, ticket: usize) {
        self.each_above(ticket, |sum| *sum -= 1);
    }

    fn each_above(&mut self, ticket: usize, change: impl Fn(&mut u64)) {
        let mut node = ticket + 1;
        while node < self.0.len() {
            change(&mut self.0[node]);
            node += node & node.wrapping_neg();
        }
    }

    /// How many with a lower ticket wait.
    fn below(&self, ticket: usize) -> u64 {
        let (mut node, mut sum) = (ticket, 0);
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(grants: &[usize], arrivals: usize) -> Order {
        let arrived = (0..arrivals).map(Event::Arrived);
        let granted = grants.iter().copied().map(Event::Granted);
        count_inversions(&arrived.chain(granted).collect::<Vec<_>>())
    }

    #[test]
    fn first_come_first_served_has_no_inversions() {
        assert_eq!(order_of(&[0, 1, 2, 3], 4), Order { inversions: 0, pairs: 6 });
    }

    #[test]
    fn last_come_first_served_inverts_every_pair() {
        assert_eq!(order_of(&[3, 2, 1, 0], 4), Order { inversions: 6, pairs: 6 });
    }

    #[test]
    fn one_who_is_never_served_is_passed_by_all() {
        assert_eq!(order_of(&[1, 2, 3], 4), Order { inversions: 3, pairs: 6 });
    }

    #[test]
    fn one_who_arrives_after_a_grant_makes_no_pair_with_it() {
        let events = [Event::Arrived(0), Event::Granted(0), Event::Arrived(1), Event::Granted(1)];
        assert_eq!(count_inversions(&events), Order { inversions: 0, pairs: 0 });
    }
}
