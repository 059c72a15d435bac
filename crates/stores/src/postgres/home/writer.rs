//! The writer: one thread of a node, which owns the scheduler and makes rounds.
//!
//! In a round it locks out all other nodes, lets happen what they wrote since, does all commands that
//! wait, and writes what they changed; then it answers. Between rounds it lets happen what it hears that
//! others wrote, without a lock. So every node decides on all that happened before, and what is decided
//! anywhere lasts before it is told.

mod committing;
mod following;
mod tickets;

pub(super) use self::following::{Trouble, within};

use self::committing::undone;
use self::tickets::TicketsKnown;
use super::asks::{Asks, HERE_EVERY};
use super::clock::Clock;
use super::frames::{self, Note};
use super::inbox::{Inbox, Waiting};
use super::link::{Batch, Connector, Link, Sql};
use super::load::{self, Loaded};
use super::past::Backlog;
use super::snapshot::Growth;
use super::tickets::Read;
use crate::store::command::{Command, Kind, Reply};
use crate::store::home::Listeners;
use crate::store::state::State;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::{CallId, Effect, End, Event, Watch};
use tollgate_core::{Now, Span, Timestamp};

/// A batch of this size takes no more commands until it is written.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// How long a server that is out of reach is left alone before it is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How long whoever waits for a commit whose outcome is not known waits at most.
const DOUBT_MAX: Duration = Duration::from_secs(10);
/// How long nothing is heard before the log is looked at all the same.
const QUIET: Duration = Duration::from_secs(1);

/// What a writer needs besides its state.
pub(super) struct Means {
    /// Who writes. Another name with each life of the state: an entry of the same number and name is the same.
    pub(super) node: Arc<AtomicI64>,
    pub(super) connector: Connector,
    pub(super) sql: Sql,
    pub(super) loading: load::Sql,
    pub(super) inbox: Arc<Inbox>,
    pub(super) clock: Arc<Clock>,
    pub(super) listeners: Listeners,
    /// What history has not been told yet, where that is kept.
    pub(super) past: Option<Arc<Backlog>>,
    /// Meters that open within so long of each other are looked at together.
    pub(super) gather: Span,
    pub(super) growth: Arc<Growth>,
    /// How long the server may take to answer.
    pub(super) patience: Duration,
}

pub(super) struct Writer {
    means: Means,
    /// What this node is called.
    node: i64,
    state: State,
    /// The last entry of the log that has happened here, and who wrote it.
    last: (i64, i64),
    /// Up to which entry the log is known to be safe.
    safe: i64,
    /// The latest limit time that was written.
    written: Timestamp,
    link: Option<Link>,
    /// What was done here did not last: the state is to be read again.
    is_spoiled: bool,
    /// Why the state could not be read again, and until when that is not tried anew.
    unread: Option<(StoreError, Instant)>,
    /// When this node was last up to date.
    caught_up: Option<Instant>,
    /// Commands that are not to be refused, until they can be done.
    later: VecDeque<Box<dyn Command>>,
    /// Those that only look, until what is being done beside them is over.
    looks: VecDeque<Box<dyn Command>>,
    asks: Asks,
    tickets: TicketsKnown,
    /// When this node last wrote something.
    wrote: Option<Instant>,
    /// Emptied, for their memory.
    effects: Vec<Effect>,
    events: Vec<Event>,
}

/// What was done in a round, until it lasts.
#[derive(Default)]
struct Cargo {
    batch: Batch,
    replies: Vec<Reply>,
    accepted: Vec<CallId>,
    /// What those who follow are told.
    followed: Vec<Event>,
}

impl Cargo {
    /// Meters were levelled: before the first of it that goes without saying.
    fn note_levelled(&mut self) {
        if !self.batch.effects.is_empty() {
            frames::push_note(&Note::Levelled, &mut self.batch.effects);
        }
    }
}

impl Writer {
    pub(super) fn new(means: Means, loaded: Loaded) -> Self {
        let node = means.node.load(Ordering::Relaxed);
        let mut writer = Self {
            means,
            node,
            state: State::without_slices(),
            last: (0, 0),
            safe: 0,
            written: Timestamp::default(),
            link: None,
            is_spoiled: false,
            unread: None,
            caught_up: None,
            later: VecDeque::new(),
            looks: VecDeque::new(),
            asks: Asks::default(),
            tickets: TicketsKnown::default(),
            wrote: None,
            effects: Vec::new(),
            events: Vec::new(),
        };
        writer.begin_with(loaded);
        writer
    }

    /// The state is what was read.
    fn begin_with(&mut self, loaded: Loaded) {
        let Loaded { mut scheduler, last, written, bytes: (snapshot, since) } = loaded;
        self.means.growth.begins(snapshot, since);
        scheduler.gather(self.means.gather);
        scheduler.share_asks();
        scheduler.watch(self.watch());
        self.state.begin_with(scheduler);
        (self.last, self.safe, self.written) = (last, 0, written.limit_time);
        (self.asks, self.is_spoiled) = (Asks::default(), false);
    }

    /// Which events are made of what is decided here.
    fn watch(&self) -> Watch {
        match (&self.means.past, self.means.listeners.stream.is_on()) {
            (_, true) => Watch::Everything,
            (Some(_), false) => Watch::History,
            (None, false) => Watch::Nothing,
        }
    }

    pub(super) async fn run(mut self) {
        let _ends = Ends(self.means.inbox.clone(), self.means.listeners.clone());
        self.wake();
        loop {
            let waiting = self.means.inbox.wait(self.tickets.patience(QUIET)).await;
            let Waiting { mut commands, is_closed, has_tickets, .. } = waiting;
            commands.extend(self.later.drain(..));
            let has_tickets = self.look_for_tickets(has_tickets, is_closed).await;
            if commands.is_empty() && is_closed {
                return self.leave().await;
            }
            if !commands.is_empty() || has_tickets || self.is_to_write() {
                self.round(commands).await;
                if is_closed {
                    // What could not be done now is left to the leases' end.
                    self.later.clear();
                }
            } else {
                // Whoever asks is told why it cannot be reached, and whoever only looks sees it.
                if let Err(error) = self.follow().await {
                    self.means.listeners.condition.is_in_trouble(error);
                }
                self.wake();
            }
        }
    }

    /// Tells whoever drives the store which queues may have something to start, and when something
    /// is due if that is sooner than was told.
    fn wake(&mut self) {
        let State { scheduler, due_told, .. } = &mut self.state;
        let next = scheduler.next_due(self.means.clock.now());
        let due = next.filter(|next| due_told.is_none_or(|told| *next < told));
        *due_told = due.or(*due_told);
        self.means.listeners.woken.add(scheduler.take_woken(), due);
    }

    /// Does what changes something, and then looks at what there is: others do not wait for that.
    async fn round(&mut self, commands: VecDeque<Box<dyn Command>>) {
        let (looks, changes): (VecDeque<_>, VecDeque<_>) =
            commands.into_iter().partition(|command| command.kind() == Kind::Look);
        let is_only_looks = changes.is_empty() && !looks.is_empty();
        if is_only_looks && !self.is_to_write() && !self.tickets.has_work() {
            return drop(self.do_all(looks).await);
        }
        self.looks = looks;
        let done = self.do_all(changes).await;
        let looks = std::mem::take(&mut self.looks);
        if let Err(error) = done {
            looks.into_iter().for_each(|look| self.refuse(look, &error));
        } else if !self.is_spoiled {
            self.look_at_once(looks);
        } else if !looks.is_empty() {
            drop(self.do_all(looks).await);
        }
    }

    /// Does commands, and answers each; the error says why none could be.
    async fn do_all(&mut self, mut commands: VecDeque<Box<dyn Command>>) -> Result<(), StoreError> {
        let is_silent = self.is_to_write();
        let is_free = !is_silent && !self.tickets.has_work();
        let looked = match is_free {
            true => self.look(&commands).await,
            false => None,
        };
        let is_look = looked.is_some();
        let begun = match looked {
            Some(looked) => looked.map(|now| (now, Read::default())),
            None => self.begin_with_tickets().await,
        };
        let (now, tickets) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                self.means.listeners.condition.is_in_trouble(error.clone());
                commands.into_iter().for_each(|command| self.refuse(command, &error));
                return Err(error);
            }
        };
        let mut cargo = Cargo::default();
        self.perform(&mut commands, &mut cargo, now);
        if !commands.is_empty() {
            self.means.inbox.put_back(commands);
        }
        self.take_tickets(tickets, &mut cargo, now);
        if !is_look {
            self.tell_others(&mut cargo, is_silent, now);
        }
        // Whoever claims because of it comes after this round.
        self.wake();
        match (is_look, cargo.batch.is_empty()) {
            (true, _) => self.end_look(cargo),
            (false, true) => self.end_unchanged(cargo).await,
            (false, false) => self.commit(cargo, now).await,
        }
        Ok(())
    }

    /// Does commands until there is enough to write.
    fn perform(&mut self, commands: &mut VecDeque<Box<dyn Command>>, cargo: &mut Cargo, now: Now) {
        while cargo.batch.bytes() < BATCH_BYTES_MAX
            && let Some(command) = commands.pop_front()
        {
            cargo.replies.push(command.perform(&mut self.state, now));
            self.record(cargo);
        }
    }

    /// Looks at what this round left.
    fn look_at_once(&mut self, mut looks: VecDeque<Box<dyn Command>>) {
        let mut cargo = Cargo::default();
        self.perform(&mut looks, &mut cargo, self.means.clock.now());
        self.end_look(cargo);
    }

    /// Nobody holds others off, so nothing may have changed.
    fn end_look(&mut self, cargo: Cargo) {
        let is_unchanged = cargo.batch.is_empty();
        self.is_spoiled |= !is_unchanged;
        let outcome = is_unchanged.then_some(()).ok_or_else(undone);
        Self::answer(cargo, &outcome);
    }

    /// Catches up without a lock, if commands need none: they look, or let happen what is due, and nothing is
    /// that another node has not let happen.
    async fn look(
        &mut self,
        commands: &VecDeque<Box<dyn Command>>,
    ) -> Option<Result<Now, StoreError>> {
        let mut kinds = commands.iter().map(|command| command.kind());
        if !kinds.clone().all(|kind| matches!(kind, Kind::Look | Kind::Advance)) {
            return None;
        }
        let advances = kinds.any(|kind| kind == Kind::Advance);
        let followed = self.follow().await;
        let is_due = |now: &Now| advances && self.state.scheduler.is_due(*now);
        match followed {
            Ok(now) if is_due(&now) => None,
            followed => Some(followed),
        }
    }

    /// Whether something is written though nothing is asked for: that this node is there, or to see
    /// whether the server takes writes again.
    fn is_to_write(&self) -> bool {
        let is_silent = |wrote| elapsing().duration_since(wrote) > HERE_EVERY;
        self.wrote.is_none_or(is_silent) || self.means.listeners.condition.told().is_err()
    }

    /// Refuses a command, unless it may wait.
    fn refuse(&mut self, command: Box<dyn Command>, error: &StoreError) {
        if command.may_wait() {
            self.later.push_back(command);
        } else {
            command.refuse(error.clone());
        }
    }

    /// Tells the others that nobody asks here any more, if they believe so.
    async fn leave(mut self) {
        let notes = self.asks.leave(self.means.clock.now().at);
        if notes.is_empty() {
            return;
        }
        // If it cannot be told, it is believed for some seconds.
        if let Ok(now) = self.begin_surely().await {
            let mut batch = Batch::default();
            notes.iter().for_each(|note| frames::push_note(note, &mut batch.effects));
            let _ = self.write(&batch, now).await;
        }
    }

    /// Adds what the other nodes are to know.
    fn tell_others(&mut self, cargo: &mut Cargo, is_silent: bool, now: Now) {
        let changed = self.state.scheduler.take_asked();
        let notes = self.asks.take_news(changed, now.at, elapsing());
        for note in notes.into_iter().chain(is_silent.then_some(Note::Here)) {
            frames::push_note(&note, &mut cargo.batch.effects);
        }
    }

    /// Notes what has changed.
    fn record(&mut self, cargo: &mut Cargo) {
        let mut effects = std::mem::take(&mut self.effects);
        self.state.scheduler.swap_effects(&mut effects);
        let mut levelled = self.state.scheduler.take_levelled().into_iter().peekable();
        for (at, mut effect) in effects.drain(..).enumerate() {
            if levelled.next_if_eq(&at).is_some() {
                cargo.note_levelled();
            }
            match &mut effect {
                Effect::Accepted { id, call, .. } => {
                    cargo.batch.accept(*id, call);
                    cargo.accepted.push(*id);
                    self.state.bodies.insert(*id, std::mem::take(&mut call.payload));
                }
                Effect::Ended { id, end } => {
                    self.state.note_end(*id, *end);
                    if *end != End::Dead {
                        cargo.batch.end(*id);
                    }
                }
                Effect::QueueDefined { name, .. } => cargo.batch.tickets.name_queue(name, true),
                Effect::QueueRemoved(name) => cargo.batch.tickets.name_queue(name, false),
                _ => {}
            }
            frames::push(&effect, &mut cargo.batch.effects);
        }
        if levelled.next().is_some() {
            cargo.note_levelled();
        }
        self.effects = effects;
        self.record_events(cargo);
    }

    /// Notes what history is told of it, in the same commit, and those who follow after it.
    fn record_events(&mut self, cargo: &mut Cargo) {
        let mut events = std::mem::take(&mut self.events);
        self.state.scheduler.move_events(&mut events);
        if self.means.listeners.stream.is_on() {
            cargo.followed.extend_from_slice(&events);
        }
        if let Some(past) = &self.means.past {
            events.retain(Event::is_history);
            let telling = &mut cargo.batch.telling;
            if !events.is_empty() && past.has_room_for(events.len(), telling.bytes()) {
                telling.push(&events);
            }
        }
        events.clear();
        self.events = events;
    }
}

/// Leaves nobody waiting, also if the writer panics.
struct Ends(Arc<Inbox>, Listeners);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
        self.1.end();
    }
}

/// How long a server is left alone is the machine's time, not the limits'.
#[expect(clippy::disallowed_methods, reason = "no decision hangs on it")]
fn elapsing() -> Instant {
    Instant::now()
}
