//! Schedules: calls that are handed in at the ticks of a cron expression, or once.
//!
//! A schedule is a record. Its tick is one act: the record moves on to the next tick if it is still as
//! it was read, and the call is enqueued. So a tick happens once, whoever sees to it, and ticks that
//! were missed while nothing ran happen once together, as the last of them.

mod record;

use super::door::open_queue_name;
use super::limits::checked;
use super::pulse::ended;
use super::{Call, Engine, Parts};
use crate::envelope::Envelope;
use crate::error::{AskError, Error};
use parking_lot::Mutex;
use record::ScheduleRecord;
use std::collections::{BTreeSet, HashMap};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{Notify, oneshot};
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{
    Act, ActError, Acted, CallId, NewCall, Payload, Record, Revision, Write,
};
use tollgate_core::{Cron, Key, Limit, LimitName, NameError, Now, QueueName, Span, Timestamp};

/// Where the records of schedules are.
pub(super) const PREFIX: &str = "tollgate/schedule/";
/// How many schedules are read at once.
const PAGE: usize = 1_000;
/// Ticks follow the wall clock, and nobody is told when that is set: so long it may take until it is
/// seen.
const LOOK_AGAIN: Span = Span::from_secs(10);
/// How long a tick waits that could not be done.
const AGAIN: Span = Span::from_secs(1);

/// When a schedule ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Again and again.
    Cron(Cron),
    /// At this instant of the wall clock, or at once if that is over; then the schedule is gone. Said again after
    /// that it ticks again: who says it at every start gives the call a key by which a second one is known.
    Once(Timestamp),
}

impl When {
    fn next_after(&self, wall: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.next_after(wall),
            Self::Once(_) => None,
        }
    }

    /// Of the ticks from one that is due up to now the last: what counts from it is not over before it is handed in.
    fn newest_due(&self, due: Timestamp, wall: Timestamp) -> Timestamp {
        match self {
            Self::Cron(cron) => cron.last_until(wall).map_or(due, |last| last.max(due)),
            Self::Once(_) => due,
        }
    }
}

/// A schedule as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// When it ticks.
    pub when: When,
    /// What is handed in at each tick; times in it count from the tick.
    pub call: NewCall,
    /// Limits that come along with it.
    pub limits: Vec<(String, Limit)>,
    /// Nothing is handed in until it is resumed.
    pub is_paused: bool,
    /// The next tick, on the wall clock.
    pub next: Option<Timestamp>,
    /// The last tick.
    pub last: Option<Timestamp>,
    /// Why nothing came of the last tick.
    pub problem: Option<String>,
}

/// When schedules tick, as far as is known here.
#[derive(Default)]
pub(super) struct Ticks {
    book: Mutex<Book>,
    /// Something ticks sooner.
    changed: Notify,
    /// One change at a time: the record and the book go together.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Book {
    ticks: BTreeSet<(Timestamp, String)>,
    by_name: HashMap<String, Timestamp>,
    /// What was handed in at the last ticks since this began.
    calls: HashMap<String, Vec<CallId>>,
    is_running: bool,
}

impl Ticks {
    fn set(&self, name: &str, next: Option<Timestamp>) {
        let mut book = self.book.lock();
        if let Some(before) = book.by_name.remove(name) {
            book.ticks.remove(&(before, name.to_owned()));
        }
        if let Some(next) = next {
            book.by_name.insert(name.to_owned(), next);
            book.ticks.insert((next, name.to_owned()));
        }
        drop(book);
        self.changed.notify_one();
    }

    /// These calls came of a tick; if none follows, the schedule is gone.
    fn ticked(&self, name: &str, next: Option<Timestamp>, calls: Vec<CallId>) {
        if next.is_none() {
            return self.forget(name);
        }
        self.set(name, next);
        self.book.lock().calls.insert(name.to_owned(), calls);
    }

    /// The schedule is gone.
    fn forget(&self, name: &str) {
        self.set(name, None);
        self.book.lock().calls.remove(name);
    }

    fn first(&self) -> Option<(Timestamp, String)> {
        self.book.lock().ticks.first().cloned()
    }
}

impl<S: Lanes + 'static> Engine<S> {
    /// Hands in a call at each tick. A schedule of that name is replaced.
    pub async fn schedule(
        &self,
        name: &str,
        queue: &str,
        when: When,
        call: Call,
    ) -> Result<Schedule, Error> {
        let queue = QueueName::new(queue)?;
        if call.has_instants() {
            return Err(AskError::InstantInSchedule.into());
        }
        let call = call.into_new(queue, Now::both(Timestamp::default()))?;
        self.schedule_new(name, when, call, Vec::new()).await
    }

    /// Hands in a call at each tick, whose times count from the tick: they are written as from the
    /// epoch. The limits come along with it each time. A schedule of that name is replaced.
    pub async fn schedule_new(
        &self,
        name: &str,
        when: When,
        call: NewCall,
        limits: Vec<(String, Limit)>,
    ) -> Result<Schedule, Error> {
        for (name, limit) in &limits {
            checked(&LimitName::new(name)?, limit)?;
        }
        let _ = open_queue_name(&call.queue)?;
        let once = Act { enqueue: vec![call.clone()], ..Act::default() };
        self.parts.check_pushed(&once).await?;
        let now = self.now().await?;
        let next = match &when {
            When::Cron(cron) => cron.next_after(now.wall),
            When::Once(at) => Some(*at),
        };
        let schedule = Schedule {
            name: name.to_owned(),
            when,
            call,
            limits,
            is_paused: false,
            next,
            last: None,
            problem: None,
        };
        let said = schedule.clone();
        self.parts
            .edit_schedule(name, move |before| {
                let schedule = &said;
                let Some(before) = before else { return Some(schedule.clone()) };
                // Said again as it is, a pause stays, and a tick that was missed still comes.
                let (is_paused, next, last) = (before.is_paused, before.next, before.last);
                let is_same = before.when == schedule.when;
                let goes_on = Schedule { is_paused, next, last, ..schedule.clone() };
                Some(if is_same { goes_on } else { Schedule { last, ..schedule.clone() } })
            })
            .await?;
        Ok(self.schedule_state(name).await?.unwrap_or(schedule))
    }

    /// Removes a schedule; says whether there was one. Calls that came of it stay.
    pub async fn unschedule(&self, name: &str) -> Result<bool, Error> {
        Ok(self.parts.edit_schedule(name, |_| None).await?.is_some())
    }

    /// Hands in nothing more until it is resumed; says whether there is such a schedule.
    pub async fn pause_schedule(&self, name: &str) -> Result<bool, Error> {
        let pause = |before: Option<Schedule>| {
            before.map(|before| Schedule { is_paused: true, next: None, ..before })
        };
        Ok(self.parts.edit_schedule(name, pause).await?.is_some())
    }

    /// Goes on with the next tick from now; says whether there is such a schedule.
    pub async fn resume_schedule(&self, name: &str) -> Result<bool, Error> {
        let wall = self.now().await?.wall;
        let resume = move |before: Option<Schedule>| {
            before.map(|before| {
                let next = match &before.when {
                    When::Cron(cron) => cron.next_after(wall),
                    When::Once(at) => Some(*at),
                };
                Schedule { is_paused: false, next, ..before }
            })
        };
        Ok(self.parts.edit_schedule(name, resume).await?.is_some())
    }

    /// The schedules after a name, sorted, up to so many.
    pub async fn schedules(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Schedule>, Error> {
        let after = after.map(key).transpose()?;
        let found = self.parts.store.records_of(PREFIX.to_owned(), after, most).await?;
        let readable = |(key, record): &(Key, Record)| read(key, record).ok();
        Ok(found.iter().filter_map(readable).collect())
    }

    /// The calls of a schedule's last tick, if that was since this process opened the store.
    pub fn schedule_calls(&self, name: &str) -> Vec<CallId> {
        self.parts.ticks.book.lock().calls.get(name).cloned().unwrap_or_default()
    }

    /// One schedule.
    pub async fn schedule_state(&self, name: &str) -> Result<Option<Schedule>, Error> {
        Ok(self.parts.schedule_at(name).await?.map(|(schedule, _)| schedule))
    }
}

impl<S: Lanes + 'static> Parts<S> {
    /// Learns the schedules that there are, and runs them.
    pub(super) async fn load_schedules(self: &Arc<Self>) -> Result<(), Error> {
        let mut after = None;
        loop {
            let found = self.store.records_of(PREFIX.to_owned(), after.take(), PAGE).await?;
            for (key, record) in &found {
                match read(key, record) {
                    Ok(schedule) => self.ticks.set(&schedule.name, schedule.next),
                    Err(error) => tracing::error!(%key, %error, "this schedule does not tick"),
                }
                after = Some(key.clone());
            }
            if found.len() < PAGE {
                break;
            }
        }
        if self.ticks.first().is_some() {
            self.run_schedules();
        }
        Ok(())
    }

    /// Learns when a schedule ticks that another node changed.
    pub(super) async fn learn_schedule(self: &Arc<Self>, name: &str) -> Result<(), Error> {
        let _alone = self.ticks.changing.lock().await;
        match self.schedule_at(name).await? {
            Some((schedule, _)) => self.ticks.set(name, schedule.next),
            None => self.ticks.forget(name),
        }
        self.run_schedules();
        Ok(())
    }

    fn run_schedules(self: &Arc<Self>) {
        if !std::mem::replace(&mut self.ticks.book.lock().is_running, true) {
            let parts = self.clone();
            self.pulse.go_on_with(async move { parts.tick_all().await });
        }
    }

    async fn tick_all(self: &Arc<Self>) {
        loop {
            // Both at once: time that passes from here on is part of the wait.
            let Now { at, wall } = self.pulse.clock.both();
            match self.ticks.first() {
                Some((next, name)) if next <= wall => {
                    if let Err(error) = self.tick(&name).await {
                        tracing::warn!(schedule = name, %error, "a tick is tried again");
                        // Those of others do not wait for it.
                        self.ticks.set(&name, Some(wall.plus(AGAIN)));
                    }
                }
                first => {
                    let wait = first.map_or(LOOK_AGAIN, |(next, _)| next.since(wall));
                    self.wait_for_ticks(at.plus(wait.min(LOOK_AGAIN))).await;
                }
            }
        }
    }

    async fn wait_for_ticks(&self, until: Timestamp) {
        let mut changed = pin!(self.ticks.changed.notified());
        let mut late = pin!(self.pulse.sleep_until(until));
        poll_fn(|context| match changed.as_mut().poll(context) {
            Poll::Pending => late.as_mut().poll(context),
            ready => ready,
        })
        .await;
    }

    /// Hands in what a schedule says, and moves it on to its next tick.
    async fn tick(self: &Arc<Self>, name: &str) -> Result<(), Error> {
        let _alone = self.ticks.changing.lock().await;
        let Some((schedule, revision)) = self.schedule_at(name).await? else {
            self.ticks.forget(name);
            return Ok(());
        };
        let now = self.store.now().await?;
        let Some(due) = schedule.next.filter(|next| *next <= now.wall) else {
            self.ticks.set(name, schedule.next);
            return Ok(());
        };
        let tick = schedule.when.newest_due(due, now.wall);
        let call = from_template(&schedule.call, tick);
        let next = schedule.when.next_after(now.wall);
        let mut moved = Schedule { next, last: Some(tick), problem: None, ..schedule };
        let limits = moved.limits.clone();
        let act = |moved: &Schedule, enqueue: Vec<NewCall>| -> Result<Act, Error> {
            let is_over = next.is_none() && moved.problem.is_none();
            let bytes = (!is_over).then(|| ScheduleRecord::written(moved)).transpose()?;
            let write = vec![Write { key: key(name)?, expected: revision, bytes }];
            Ok(Act { write, enqueue, ..Act::default() })
        };
        let handed_in = self.hand_in(name, act(&moved, vec![call])?, limits).await;
        match handed_in {
            Ok(acted) => {
                tracing::debug!(schedule = name, calls = ?acted.enqueued, "ticked");
                self.ticks.ticked(name, next, acted.enqueued.into());
                Ok(())
            }
            // Someone else saw to it, or changed it: looked at again.
            Err(Error::Act(ActError::RevisionDiffers { .. })) => Ok(()),
            Err(error @ (Error::Act(ActError::QueueFull { .. }) | Error::Store(_))) => Err(error),
            Err(error) => {
                tracing::error!(schedule = name, %error, "nothing comes of this tick");
                moved.problem = Some(error.to_string());
                // One that was to tick once waits to be resumed.
                moved.is_paused = next.is_none();
                let _ = self.act(act(&moved, vec![])?).await?;
                self.ticks.set(name, next);
                Ok(())
            }
        }
    }

    /// Does what a tick does. The queue and the limits may have changed since the schedule was made.
    async fn hand_in(
        self: &Arc<Self>,
        name: &str,
        mut act: Act,
        limits: Vec<(String, Limit)>,
    ) -> Result<Acted, Error> {
        self.check_pushed(&act).await?;
        act.define = self.coming_along(Some(&format!("schedule {name}")), limits).await?;
        self.act(act).await
    }

    async fn schedule_at(&self, name: &str) -> Result<Option<(Schedule, Revision)>, Error> {
        let key = key(name)?;
        let found = self.store.records(vec![key.clone()]).await?.pop().flatten();
        found.map(|record| Ok((read(&key, &record)?, record.revision))).transpose()
    }

    /// Changes a schedule, or removes it; says how it was. Once begun it is seen through.
    async fn edit_schedule(
        self: &Arc<Self>,
        name: &str,
        edit: impl Fn(Option<Schedule>) -> Option<Schedule> + Send + Sync + 'static,
    ) -> Result<Option<Schedule>, Error> {
        check(name)?;
        let (parts, name) = (self.clone(), name.to_owned());
        let (reply, answer) = oneshot::channel();
        self.pulse.see_through(async move {
            // Nobody need wait for it.
            let _ = reply.send(parts.edit_schedule_now(&name, edit).await);
        });
        answer.await.unwrap_or_else(|_| Err(ended().into()))
    }

    async fn edit_schedule_now(
        self: &Arc<Self>,
        name: &str,
        edit: impl Fn(Option<Schedule>) -> Option<Schedule>,
    ) -> Result<Option<Schedule>, Error> {
        let _alone = self.ticks.changing.lock().await;
        loop {
            let (before, expected) = self.schedule_at(name).await?.unzip();
            let after = edit(before.clone());
            if before.is_none() && after.is_none() {
                return Ok(None);
            }
            let bytes = after.as_ref().map(ScheduleRecord::written).transpose()?;
            let expected = expected.unwrap_or_default();
            let write = vec![Write { key: key(name)?, expected, bytes }];
            match self.act(Act { write, ..Act::default() }).await {
                Err(Error::Act(ActError::RevisionDiffers { .. })) => {}
                outcome => {
                    let _ = outcome?;
                    match after {
                        Some(after) => self.ticks.set(name, after.next),
                        None => self.ticks.forget(name),
                    }
                    self.run_schedules();
                    return Ok(before);
                }
            }
        }
    }
}

/// A call whose times count from the epoch, as it is handed in at a tick.
fn from_template(call: &NewCall, tick: Timestamp) -> NewCall {
    let from_tick = |at: Timestamp| tick.plus(at.since(Timestamp::default()));
    NewCall {
        not_before: call.not_before.map(from_tick),
        expires: call.expires.map(from_tick),
        payload: accepted(&call.payload, tick).unwrap_or_else(|| call.payload.clone()),
        ..call.clone()
    }
}

/// A payload with a card, as accepted at a tick: whose card it is may have written there only when the
/// schedule was made. `None` if there is no card.
fn accepted(payload: &Payload, tick: Timestamp) -> Option<Payload> {
    let envelope = Envelope::of(payload).ok().filter(|envelope| !envelope.card.is_empty())?;
    Envelope { accepted: Some(tick), ..envelope }.around(payload.body()).ok()
}

fn check(name: &str) -> Result<(), NameError> {
    tollgate_core::name::check_name("schedule name", name)
}

fn key(name: &str) -> Result<Key, AskError> {
    Ok(Key::new(&format!("{PREFIX}{name}"))?)
}

fn read(key: &Key, record: &Record) -> Result<Schedule, Error> {
    let name = key.strip_prefix(PREFIX).unwrap_or(key);
    ScheduleRecord::read(name, &record.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_tick_once_leave_nothing_behind() {
        let ticks = Ticks::default();
        for number in 0..1_000 {
            let name = number.to_string();
            ticks.set(&name, Some(Timestamp::default()));
            ticks.ticked(&name, None, vec![CallId(number)]);
        }
        let book = ticks.book.lock();
        assert_eq!((book.ticks.len(), book.by_name.len(), book.calls.len()), (0, 0, 0));
    }
}
