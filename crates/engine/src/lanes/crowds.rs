//! Who stands at the meters of a store of limits alone, in this process: higher priority first,
//! then first come.
//!
//! One stands at the meter that refused it. Only the first there asks the store again, and for those who
//! are next and ask for the same as well; whoever is behind is woken when it becomes the first.

use super::consume::Asked;
use crate::error::{Error, Refusal, StoreError};
use crate::pass::Pass;
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use tollgate_core::contract::{Ask, MeterName};
use tollgate_core::{Cause, LimitName, Partition, Priority, Standing, Timestamp};

/// The crowds at all meters.
pub(super) struct Crowds {
    /// Most who may wait at once.
    most: usize,
    /// How many wait: where nobody does, nobody is in the way.
    waiting: AtomicUsize,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    crowds: HashMap<MeterName, Crowd>,
    /// Who asks the store now: what is let go meanwhile, it may have been refused for.
    asking: BTreeMap<Rank, (Vec<MeterName>, Arc<Seat>)>,
    arrivals: u64,
}

/// Those who stand at one meter, in their order; at least one.
#[derive(Default)]
struct Crowd {
    standing: BTreeMap<Rank, Arc<Seat>>,
    /// What the store said last of this meter, and when that was heard here.
    told: Option<(Timestamp, Refusal)>,
}

/// The order of a crowd.
type Rank = (Reverse<Priority>, u64);

/// A pass that nobody has taken yet; dropped, it is handed back.
pub(super) type Handed = Box<dyn FnOnce() -> Pass + Send>;

/// Where one who waits is told.
pub(super) struct Seat {
    pub(super) asked: Asked,
    woken: Notify,
    /// What the store granted to who asked for it, too.
    handed: Mutex<Option<Handed>>,
}

impl Seat {
    /// Hands over a pass, and hands back what was there before.
    pub(super) fn hand(&self, handed: Handed) {
        let surplus = self.handed.lock().replace(handed);
        drop(surplus);
        self.woken.notify_one();
    }

    /// Until it is handed something, or is the first.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Crowds {
    pub(super) fn new(most: usize) -> Self {
        Self { most, waiting: AtomicUsize::new(0), book: Mutex::default() }
    }

    /// A place for an ask; it stands nowhere yet.
    pub(super) fn come(self: &Arc<Self>, asked: Asked) -> Result<Waiter, Error> {
        let (meters, priority) = (meters_of(&asked.ask), asked.ask.priority);
        let waiting = self.waiting.fetch_add(1, Ordering::AcqRel);
        let mut book = self.book.lock();
        book.arrivals += 1;
        let rank = (Reverse(priority), book.arrivals);
        drop(book);
        let (crowds, woken, handed) = (self.clone(), Notify::new(), Mutex::default());
        let seat = Arc::new(Seat { asked, woken, handed });
        let waiter = Waiter { crowds, rank, meters, stands: None, seat, failures: 0 };
        if waiting >= self.most {
            return Err(StoreError::WaitingFull { waiting: self.most }.into());
        }
        Ok(waiter)
    }

    /// Why an ask that waits for nothing is refused: others of its priority or a higher one stand at one
    /// of its meters.
    pub(super) fn refusal(&self, ask: &Ask, now: impl Fn() -> Timestamp) -> Option<Refusal> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        let (book, now) = (self.book.lock(), now());
        meters_of(ask)
            .iter()
            .find_map(|meter| book.refusal(meter, (Reverse(ask.priority), u64::MAX), now))
    }

    /// A meter may be open sooner than was told: the first who stands there asks.
    pub(super) fn wake(&self, limit: &LimitName, partition: Option<&Partition>) {
        if self.waiting.load(Ordering::Acquire) > 0 {
            let is_it = |(name, part): &MeterName| name == limit && part.as_ref() == partition;
            let book = self.book.lock();
            let crowd = book.crowds.get(&(limit.clone(), partition.cloned()));
            crowd.into_iter().for_each(Crowd::wake_first);
            book.wake_who_asks(is_it);
        }
    }

    /// The rules of a limit have changed: the first at each of its meters asks.
    pub(super) fn wake_limit(&self, limit: &LimitName) {
        if self.waiting.load(Ordering::Acquire) > 0 {
            let book = self.book.lock();
            let crowds = book.crowds.iter().filter(|((name, _), _)| name == limit);
            crowds.for_each(|(_, crowd)| crowd.wake_first());
            book.wake_who_asks(|(name, _)| name == limit);
        }
    }
}

impl Book {
    /// Why one of this rank may not go at a meter.
    fn refusal(&self, meter: &MeterName, rank: Rank, now: Timestamp) -> Option<Refusal> {
        let crowd = self.crowds.get(meter)?;
        crowd.standing.first_key_value().filter(|(first, _)| **first < rank)?;
        let told = crowd.told.as_ref();
        let retry_after = told.and_then(|(at, told)| {
            // When slots are let go is not known to anyone.
            let span = told.retry_after.filter(|_| told.cause != Cause::Slots)?;
            Some(at.plus(span).since(now))
        });
        let (limit, partition) = meter;
        Some(Refusal {
            limit: limit.as_str().into(),
            partition: partition.as_ref().map(|partition| partition.as_str().into()),
            cause: Cause::Turn,
            retry_after,
            standing: told.map_or(Standing::NOTHING, |(_, told)| told.standing),
        })
    }

    /// Whoever asks at such a meter asks once more if it is refused.
    fn wake_who_asks(&self, is_it: impl Fn(&MeterName) -> bool) {
        let asking = self.asking.values().filter(|(meters, _)| meters.iter().any(&is_it));
        asking.for_each(|(_, seat)| seat.woken.notify_one());
    }

    fn leave(&mut self, meter: &MeterName, rank: Rank) {
        let Some(crowd) = self.crowds.get_mut(meter) else { return };
        let was_first = crowd.standing.first_key_value().is_some_and(|(first, _)| *first == rank);
        crowd.standing.remove(&rank);
        if was_first {
            crowd.wake_first();
        }
        if crowd.standing.is_empty() {
            self.crowds.remove(meter);
        }
    }
}

impl Crowd {
    fn wake_first(&self) {
        if let Some((_, first)) = self.standing.first_key_value() {
            first.woken.notify_one();
        }
    }
}

/// One who waits. Dropped, it leaves, and the next one is woken.
pub(super) struct Waiter {
    crowds: Arc<Crowds>,
    rank: Rank,
    meters: Vec<MeterName>,
    /// The meter where it stands.
    stands: Option<MeterName>,
    pub(super) seat: Arc<Seat>,
    /// How often in a row the store could not be reached.
    failures: u32,
}

impl Waiter {
    /// Stands behind who goes before it at one of its meters, if anyone does, and says why it may not go;
    /// if nobody does, it asks now.
    pub(super) fn stand_behind(&mut self, now: Timestamp) -> Option<Refusal> {
        let crowds = self.crowds.clone();
        let mut book = crowds.book.lock();
        let found = self
            .meters
            .iter()
            .find_map(|meter| Some((meter.clone(), book.refusal(meter, self.rank, now)?)));
        let Some((meter, refusal)) = found else {
            book.asking.insert(self.rank, (self.meters.clone(), self.seat.clone()));
            return None;
        };
        self.stand_in(&mut book, meter);
        Some(refusal)
    }

    /// What the store granted to who asked for it, too.
    pub(super) fn handed(&self) -> Option<Handed> {
        self.seat.handed.lock().take()
    }

    /// Those who are next at its meter and ask for the same, up to so many: whoever asks may ask for
    /// them, too, and overtakes nobody.
    pub(super) fn behind(&self, most: usize) -> Vec<Arc<Seat>> {
        let Some(meter) = self.stands.as_ref().filter(|_| self.meters.len() == 1) else {
            return Vec::new();
        };
        let book = self.crowds.book.lock();
        let Some(crowd) = book.crowds.get(meter) else { return Vec::new() };
        let behind = crowd.standing.range((Bound::Excluded(self.rank), Bound::Unbounded));
        let is_alike = |seat: &&Arc<Seat>| seat.asked.ask.tolls == self.seat.asked.ask.tolls;
        behind.map(|(_, seat)| seat).take_while(is_alike).take(most).cloned().collect()
    }

    /// Stands at the meter that refused it.
    pub(super) fn stand(&mut self, meter: MeterName, now: Timestamp, told: Refusal) {
        self.answered();
        let crowds = self.crowds.clone();
        let mut book = crowds.book.lock();
        self.stand_in(&mut book, meter.clone());
        if let Some(crowd) = book.crowds.get_mut(&meter) {
            crowd.told = Some((now, told));
        }
    }

    /// The store could not be reached: it stands where it stood, or at its first meter. Says how often in
    /// a row that was.
    pub(super) fn stand_by(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        let crowds = self.crowds.clone();
        let meter = self.stands.clone().or_else(|| self.meters.first().cloned());
        if let Some(meter) = meter {
            self.stand_in(&mut crowds.book.lock(), meter);
        }
        self.failures
    }

    /// The store answered.
    pub(super) fn answered(&mut self) {
        self.failures = 0;
    }

    fn stand_in(&mut self, book: &mut Book, meter: MeterName) {
        book.asking.remove(&self.rank);
        if self.stands.as_ref() == Some(&meter) {
            return;
        }
        if let Some(before) = self.stands.replace(meter.clone()) {
            book.leave(&before, self.rank);
        }
        book.crowds.entry(meter).or_default().standing.insert(self.rank, self.seat.clone());
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut book = self.crowds.book.lock();
        book.asking.remove(&self.rank);
        if let Some(meter) = self.stands.take() {
            book.leave(&meter, self.rank);
        }
        drop(book);
        self.crowds.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The meters of an ask, each once.
fn meters_of(ask: &Ask) -> Vec<MeterName> {
    let mut meters: Vec<MeterName> = Vec::with_capacity(ask.tolls.len());
    for toll in &ask.tolls {
        let meter = (toll.limit.clone(), toll.partition.clone());
        if !meters.contains(&meter) {
            meters.push(meter);
        }
    }
    meters
}
