//! Requests that go to the store together: one change for all of them.

use super::cells::{CellKey, Change, Decide, Found};
use super::codec;
use super::command::Command;
use super::desk::queue::UnderWay;
use super::hurry::Hurry;
use super::memory::{Memory, Remembered};
use super::open::{Opened, all_found, kept_for};
use super::quick::Quick;
use super::wants::{self, Wants};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;
use tollgate_core::contract::{Answer, Ask, MeterName, StoreError};
use tollgate_core::till::Till;
use tollgate_core::{LimitName, Now, Partition, Payment};

/// A request under way, whatever it asks.
pub(super) trait Asked: Send {
    fn wants(&self, wants: &mut Wants);
    fn perform(&mut self, opened: &mut Opened);
    fn asks(&self) -> Option<&[Ask]>;
    /// Tells whoever asked what came of it, or why nothing did.
    fn answer(self: Box<Self>, outcome: Answer<()>);
}

/// A command, and who waits for its answer.
pub(super) struct Request<C: Command> {
    command: C,
    done: Option<C::Answer>,
    reply: oneshot::Sender<Answer<C::Answer>>,
}

impl<C: Command> Request<C> {
    pub(super) fn new(command: C) -> (Self, oneshot::Receiver<Answer<C::Answer>>) {
        let (reply, answer) = oneshot::channel();
        (Self { command, done: None, reply }, answer)
    }
}

impl<C: Command> Asked for Request<C> {
    fn wants(&self, wants: &mut Wants) {
        self.command.wants(wants);
    }

    fn perform(&mut self, opened: &mut Opened) {
        self.done = Some(self.command.perform(opened));
    }

    fn asks(&self) -> Option<&[Ask]> {
        self.command.asks()
    }

    fn answer(self: Box<Self>, outcome: Answer<()>) {
        let undecided = || StoreError::Failed { reason: "the store decided nothing".to_owned() };
        let Self { done, reply, .. } = *self;
        // Who does not wait any more need not be told.
        let _ = reply.send(outcome.and_then(|()| done.ok_or_else(undecided)));
    }
}

/// Tells all of them what came of it.
pub(super) fn answer_all(
    requests: Vec<Box<dyn Asked>>,
    outcome: &Answer<()>,
    under_way: &UnderWay,
) {
    // Whoever is told may ask again at once, and is alone then.
    under_way.answered(requests.len());
    requests.into_iter().for_each(|request| request.answer(outcome.clone()));
}

/// Requests that go together.
pub(super) struct Batch {
    requests: Vec<Box<dyn Asked>>,
    memory: Arc<Mutex<Memory>>,
    under_way: Arc<UnderWay>,
    read: Arc<[CellKey]>,
    change: Arc<[CellKey]>,
    quick: Option<Quick>,
    /// What was remembered when these cells were chosen: what is found is compared with that.
    remembered: Remembered,
    /// What came of the last time that it was decided.
    came: Came,
    /// What was paid is needed to take back what was written.
    keeps_paid: bool,
}

#[derive(Default)]
struct Came {
    /// Why it was not, though the store was there.
    failed: Option<StoreError>,
    /// It has to be done again, for something was not as it was remembered.
    again: Option<Again>,
    paid: Vec<(MeterName, Payment)>,
}

/// What was not as it was remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// The store remembers since another instant, or nothing at all.
    Epoch,
    /// Partitions of limits have rules of their own.
    Own,
    /// The cells of limits lie elsewhere.
    Elsewhere,
}

impl Batch {
    pub(super) fn new(
        requests: Vec<Box<dyn Asked>>,
        memory: Arc<Mutex<Memory>>,
        under_way: Arc<UnderWay>,
    ) -> Self {
        let (read, change, came) = (Arc::default(), Arc::default(), Came::default());
        let (quick, remembered, keeps_paid) = (None, Remembered::default(), true);
        Self { requests, memory, under_way, read, change, quick, remembered, came, keeps_paid }
    }

    /// For a store that writes all cells together: nothing is ever taken back.
    pub(super) fn written_together(self) -> Self {
        Self { keeps_paid: false, ..self }
    }

    /// Finds out which cells are needed, as far as it is known.
    fn want(&mut self) {
        let has_own = self.memory.lock().has_any_own();
        let mut wants = self.wants(has_own);
        let memory = self.memory.lock();
        self.remembered = memory.remembered();
        if memory.has_any_own() != has_own {
            // It was found out meanwhile: what is read goes by what is remembered with it.
            wants = self.wants(!has_own);
        }
        let own = wants.meters.iter().filter_map(|(limit, partition)| {
            let partition: &Partition = partition.as_ref()?;
            self.remembered.with_own.contains(limit).then(|| wants::own(limit, partition))
        });
        let own: Vec<_> = own.collect();
        // Those that were put together are: if that is not so any more, it is found out and they are parted.
        if self.keeps_paid {
            memory.put_apart(&mut wants);
        }
        wants.read.extend(own);
        let Wants { read, change, .. } = wants.settled();
        (self.read, self.change) = (read.into_iter().collect(), change.into());
        self.quick = self.hurried(&memory);
    }

    fn wants(&self, has_own: bool) -> Wants {
        let mut wants = Wants::new(has_own);
        self.requests.iter().for_each(|request| request.wants(&mut wants));
        wants.read.insert(wants::epoch());
        wants
    }

    /// The change as a store may decide it by itself, if it is nothing but asks that pay now or not at
    /// all, under rules that are known.
    fn hurried(&self, memory: &Memory) -> Option<Quick> {
        let asks: Option<Vec<&[Ask]>> =
            self.requests.iter().map(|request| request.asks()).collect();
        Hurry { memory, read: &self.read, change: &self.change }.quick(asks?.into_iter().flatten())
    }

    /// The cells it needs, as far as it is known: those to be read, and those that may be written.
    pub(super) fn wanted(&mut self) -> (Arc<[CellKey]>, Arc<[CellKey]>) {
        self.want();
        (self.read.clone(), self.change.clone())
    }

    /// What came of it: done, or to be done again once that is seen to.
    pub(super) fn came(&mut self) -> Result<Option<Again>, StoreError> {
        match self.came.failed.take() {
            Some(error) => Err(error),
            None => Ok(self.came.again.take()),
        }
    }

    pub(super) fn answer(self, outcome: Answer<()>) {
        answer_all(self.requests, &outcome, &self.under_way);
    }

    pub(super) fn into_requests(self) -> Vec<Box<dyn Asked>> {
        self.requests
    }

    /// Whether cells were asked for where they do not lie: of others' changes much may be known by now
    /// that was not when this one began.
    fn is_misplaced(&self, spread: &[(LimitName, bool)]) -> bool {
        let keys = || self.read.iter().chain(self.change.iter());
        if !spread.iter().any(|(_, is_spread)| *is_spread)
            && !keys().any(|key| key.kind.is_spread())
        {
            return false;
        }
        keys().filter(|key| key.kind.may_lie_apart()).any(|key| {
            let limit = spread.iter().find(|(limit, _)| limit.as_str() == &*key.name);
            limit.is_some_and(|(_, is_spread)| *is_spread != key.kind.is_spread())
        })
    }

    /// All that was found, once everything is done that is asked; `None` if it has to be done again.
    fn performed(&mut self, now: Now, found: &Found) -> Result<Option<Opened>, StoreError> {
        let keys = self.read.iter().chain(self.change.iter());
        let mut memory = self.memory.lock();
        let till = Till::new(now);
        // What is written together is read together, and the clock with it.
        let till = if self.keeps_paid { till } else { till.of_one_clock() };
        let mut opened = Opened::new(till, keys, all_found(found), memory.definitions())?;
        if opened.epoch.is_none() || opened.epoch != self.remembered.epoch {
            self.came.again = Some(Again::Epoch);
            return Ok(None);
        }
        let is_new = opened.with_own.iter().any(|it| !self.remembered.with_own.contains(it));
        let misplaced = memory.spreads() && self.is_misplaced(&opened.spread);
        // Together, so that nobody knows of the one and not of the other.
        memory.note_own(&opened.with_own);
        memory.note_spread(&opened.spread);
        memory.learn(&self.read, &found.read);
        drop(memory);
        if is_new {
            self.came.again = Some(Again::Own);
            return Ok(None);
        }
        if misplaced {
            self.came.again = Some(Again::Elsewhere);
            return Ok(None);
        }
        self.requests.iter_mut().for_each(|request| request.perform(&mut opened));
        Ok(Some(opened))
    }

    /// Decides, as of nothing before.
    fn decided(&mut self, now: Now, found: &Found) -> Option<Opened> {
        self.came = Came::default();
        match self.performed(now, found) {
            Ok(opened) => opened,
            Err(error) => {
                self.came.failed = Some(error);
                None
            }
        }
    }
}

impl Decide for Batch {
    fn decide(&mut self, now: Now, found: &Found) -> Vec<Change> {
        let Some(opened) = self.decided(now, found) else { return Vec::new() };
        if self.keeps_paid {
            self.came.paid.clone_from(&opened.till.changes().paid);
        }
        opened.changes(&self.change)
    }

    fn witness(&mut self, now: Now, found: &Found) -> usize {
        // What is asked quickly changes meters alone.
        self.decided(now, found).map_or(0, |opened| opened.till.changed_meters().count())
    }

    fn take_back(&mut self, at: usize, now: Now, found: Option<&[u8]>) -> Option<Change> {
        let key = self.change.get(at)?;
        let paid = self.came.paid.iter();
        let is_paid = |name| {
            let meter = wants::meter(name);
            meter == *key || wants::apart(meter) == *key
        };
        let mut paid = paid.filter(|(name, _)| is_paid(name)).peekable();
        // What is not a payment can be done again on top of what others made of it.
        paid.peek()?;
        let mut kept = codec::meter_read(found?, self.memory.lock().definitions()).ok()?;
        let now = now.moved_to(now.at.max(kept.meter.latest()));
        for (_, payment) in paid {
            kept.meter.settle(&kept.definition, payment, 0, now);
        }
        let (value, life) = (codec::meter_written(&kept, now.at), kept_for(&kept, now));
        Some(Change { at, value: Some(value), life: Some(life) })
    }

    fn quick(&self) -> Option<&Quick> {
        self.quick.as_ref()
    }
}
