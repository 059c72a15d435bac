//! Keys: limits that came along with calls and have nothing but rules, kept in their only meter. One that gets
//! more, a partition or an operator's word, gets a book for it.

use super::calls::{MeterSlot, index, slot};
use super::limits::{Home, LimitBook, LimitSlot};
use super::meters::{MeterBook, Meters};
use crate::contract::{LimitTotals, Tally};
use crate::limit::Definition;
use crate::name::{LimitName, Partition};
use crate::time::Now;
use std::sync::Arc;

impl MeterBook {
    /// What happened at a key. An ask that is refused there gives it a book.
    pub(super) fn totals(&self) -> LimitTotals {
        let (admitted, waited_ns) = (self.admitted, self.waited_ns.into());
        LimitTotals { admitted, waited_ns, refused: Tally::default() }
    }
}

impl Meters {
    /// Defines a limit that comes along.
    pub(super) fn come(
        &mut self,
        name: &LimitName,
        definition: &Definition,
        now: Now,
    ) -> LimitSlot {
        let rules = self.shared(definition);
        let Some(limit) = self.limit(name) else { return self.make_key(name, Some(rules)) };
        match limit.home() {
            Home::Book(at) => {
                self.book_mut(limit).is_transient = true;
                self.redefine(at, Some(rules), now);
            }
            Home::Meter(meter) => {
                let book = &mut self[meter];
                if let (Some(meter), Some(last)) = (&mut book.meter, &book.rules)
                    && *last != rules
                {
                    meter.carry(last, &rules, now);
                }
                book.rules = Some(rules);
            }
        }
        limit
    }

    /// The meter of a toll; if nobody ever defined its limit, of one without rules that goes with the calls
    /// which owe there.
    pub(super) fn owed_at(
        &mut self,
        limit: &LimitName,
        partition: Option<&Partition>,
    ) -> MeterSlot {
        let limit = match (self.limit(limit), partition) {
            (Some(known), _) => known,
            (None, None) => self.make_key(limit, None),
            // A key has a meter without a partition, where nobody owes then.
            (None, Some(_)) => {
                let book = self.make_limit(limit);
                self.book_mut(book).is_transient = true;
                book
            }
        };
        self.at(limit, partition)
    }

    fn make_key(&mut self, name: &LimitName, rules: Option<Arc<Definition>>) -> LimitSlot {
        let place = slot(self.keys.len());
        let meter = self.make_meter(|meter| MeterBook {
            rules,
            ..MeterBook::new(LimitSlot::key(meter), name.text().clone(), place)
        });
        self.keys.push(meter);
        let limit = LimitSlot::key(meter);
        self.name_limit(limit);
        limit
    }

    /// Where the book of a limit is; a key gets one.
    pub(super) fn in_a_book(&mut self, limit: LimitSlot) -> usize {
        let meter = match limit.home() {
            Home::Book(at) => return at,
            Home::Meter(meter) => meter,
        };
        self.unname_limit(limit);
        self.take_key(meter);
        let key = &mut self.meters[index(meter)];
        let (name, totals) = (LimitName::of(std::mem::take(&mut key.label)), key.totals());
        let at = self.limits.insert(LimitBook::of_key(name, key.rules.take(), meter, totals));
        (key.limit, key.place, key.waited_ns) = (LimitSlot::book(at), 0, 0);
        self.name_limit(LimitSlot::book(at));
        self.label_meter(meter);
        at
    }

    /// Takes a meter from among the keys.
    pub(super) fn take_key(&mut self, meter: MeterSlot) {
        let place = self[meter].place;
        self.keys.swap_remove(index(place));
        if let Some(&moved) = self.keys.get(index(place)) {
            self[moved].place = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Ask;
    use crate::lanes::act::{Act, Door};
    use crate::lanes::call::{CallId, NewCall};
    use crate::lanes::claim::{Claim, Scope};
    use crate::lanes::queue::QueueSpec;
    use crate::lanes::scheduler::Scheduler;
    use crate::limit::Limit;
    use crate::name::{LaneName, Partition, QueueName};
    use crate::time::{Span, Timestamp};
    use crate::toll::Toll;
    use crate::tolls::Tolls;
    use crate::turn::Priority;

    fn seconds(seconds: u64) -> Now {
        Now::both(Timestamp::default().plus(Span::from_secs(1_000 + seconds)))
    }

    fn key() -> LimitName {
        LimitName::new("key").unwrap()
    }

    fn tolls(partition: Option<&str>) -> Tolls {
        let partition = partition.map(|name| Partition::new(name).unwrap());
        [Toll { limit: key(), partition, weight: 1, hears_feedback: false }].into()
    }

    /// Three calls in lanes of their own pay at a key that lets one pass a minute: one started at once, the next
    /// after its minute, and the last waits.
    fn used() -> Scheduler {
        let (mut scheduler, queue) = (Scheduler::new(), QueueName::new("q").unwrap());
        scheduler.define_queue(&queue, QueueSpec::default(), seconds(0)).unwrap();
        let call = |lane| NewCall {
            tolls: tolls(None),
            ..NewCall::new(queue.clone(), LaneName::new(lane).unwrap())
        };
        let rules = Definition::new(Limit::per_minute(1)).unwrap();
        let (define, enqueue) = (vec![(key(), rules)], ["a", "b", "c"].map(call).to_vec());
        let _ = scheduler.act(Act { define, enqueue, ..Act::default() }, seconds(0)).unwrap();
        let claim = Claim { queue, most: 9, lease: Some(Span::from_days(1)), asks: Span::ZERO };
        assert_eq!([0, 60].map(|at| scheduler.claim(&claim, seconds(at)).len()), [1, 1]);
        scheduler
    }

    #[test]
    fn a_key_that_gets_a_book_keeps_all_that_is_known_of_it() {
        let now = seconds(61);
        let told = |scheduler: &Scheduler| {
            let limit = scheduler.limits(None, 9, now).remove(0);
            (limit, scheduler.inspect(&(key(), None), now).unwrap())
        };
        let as_key = used();
        assert_eq!((as_key.meters.limits.len(), as_key.meters.keys.len()), (0, 1));
        let (limit, state) = told(&as_key);
        assert_eq!((limit.totals.admitted.count, limit.totals.waited_ns), (2, 60_000_000_000));
        let (partition, rules) = (Partition::new("p").unwrap(), Definition::new(Limit::per_day(7)));
        let rules = rules.unwrap();
        let consume = |scheduler: &mut Scheduler, partition| {
            let tolls = tolls(partition);
            let ask =
                Ask { tolls, priority: Priority::default(), delay_max: None, life: Span::ZERO };
            scheduler.consume(&ask, now).is_ok()
        };
        let gets: [&dyn Fn(&mut Scheduler); 4] = [
            &|it| it.set_override(&key(), &partition, Some(rules.clone()), now),
            &|it| it.pause(&Scope::Limit(key()), now),
            &|it| assert!(consume(it, Some("other"))),
            &|it| assert!(!consume(it, None)),
        ];
        for get in gets {
            let mut scheduler = as_key.clone();
            get(&mut scheduler);
            assert_eq!((scheduler.meters.limits.len(), scheduler.meters.keys.len()), (1, 0));
            let (one, its) = told(&scheduler);
            assert_eq!((&one.name, &one.definition), (&limit.name, &limit.definition));
            assert_eq!(one.totals.waited_ns, limit.totals.waited_ns);
            assert_eq!((its.standing, its.admitted), (state.standing, state.admitted));
            let recovered = Scheduler::recovered(&scheduler.take_effects());
            assert_eq!(recovered.lasting(now), scheduler.lasting(now));
        }
    }

    #[test]
    fn what_a_call_waits_for_at_a_limit_that_nobody_defined_goes_with_it() {
        for partition in [None, Some("p")] {
            let (mut scheduler, queue) = (Scheduler::new(), QueueName::new("q").unwrap());
            scheduler.define_queue(&queue, QueueSpec::default(), seconds(0)).unwrap();
            let call = NewCall {
                tolls: tolls(partition),
                ..NewCall::new(queue, LaneName::new("a").unwrap())
            };
            let act = Act { enqueue: vec![call], door: Door::Parks, ..Act::default() };
            let _ = scheduler.act(act, seconds(0)).unwrap();
            assert_eq!(scheduler.meters.count(), 1);
            let cancel = vec![CallId(0)];
            let _ = scheduler.act(Act { cancel, ..Act::default() }, seconds(1)).unwrap();
            (2..9).for_each(|at| scheduler.advance(seconds(at)));
            let left =
                (scheduler.kept(), scheduler.meters.limits.len(), scheduler.meters.keys.len());
            assert_eq!(left, (0, 0, 0), "{partition:?}");
        }
    }
}
