//! The writer: one thread that owns the scheduler and turns commands into records.
//!
//! It takes all commands that wait, does them one after the other in memory, and hands their effects
//! to the committer as one batch. While that is written and synced it goes on with the next one. An
//! answer is sent when all that it saw and did lasts.

use super::events::{Audience, Ends};
use super::inbox::{Cargo, Expected, InBatch, Inbox, News, Sent, Waiting};
use super::lingering::Lingering;
use super::no_room::NoRoom;
use super::records;
use super::upkeep::{OldBody, Upkeep, UpkeepNews};
use crate::embedded::committer::{Committer, Refused};
use crate::embedded::log::{Batch, LogError, Position, SegmentNumber};
use crate::store::TimeSource;
use crate::store::command::{Kind, Reply};
use crate::store::state::State;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::{CallId, Effect};

/// A batch of this size takes no more commands until it is handed over.
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Batches on their way to the disk: one that is synced, and one that waits for it.
const SUBMITTED_MAX: usize = 2;
/// Most batches that are kept while the disk is full.
const HELD_MAX: usize = 8;

pub(super) struct Writer {
    pub(super) state: State,
    pub(super) inbox: Arc<Inbox>,
    pub(super) committer: Committer,
    pub(super) now: TimeSource,
    audience: Audience,
    upkeep: Upkeep,
    batch: Batch,
    cargo: Cargo,
    /// Emptied, for its memory.
    effects: Vec<Effect>,
    /// How many batches are on their way, and their bytes.
    submitted: usize,
    submitted_bytes: u64,
    /// Batches that the disk had no room for, in order.
    held: VecDeque<(Batch, Cargo)>,
    /// Claims that are tried again in a moment.
    lingering: Lingering,
    /// Something was changed by who sent more with it, and no claim that lingers yet: that would tell it.
    is_unclaimed: bool,
    /// There was no room: nothing new is done until it was tried again.
    full: Option<NoRoom>,
    failed: Option<StoreError>,
}

impl Writer {
    pub(super) fn new(
        state: State,
        committer: Committer,
        now: TimeSource,
        audience: Audience,
        upkeep: Upkeep,
    ) -> Self {
        let inbox = upkeep.inbox.clone();
        let (batch, cargo, held) = (committer.batch(), Cargo::default(), VecDeque::new());
        let (effects, full, failed) = (Vec::new(), None, None);
        let lingering = Lingering::default();
        Self {
            state,
            inbox,
            committer,
            now,
            audience,
            upkeep,
            batch,
            cargo,
            effects,
            submitted: 0,
            submitted_bytes: 0,
            held,
            lingering,
            is_unclaimed: false,
            full,
            failed,
        }
    }

    pub(super) fn run(mut self) {
        let _ends = Ends(self.inbox.clone(), self.audience.clone());
        // What came due while nothing ran, what may have been consumed, and who has something to start.
        let now = (self.now)();
        self.state.scheduler.advance(now);
        self.state.scheduler.charge_allowed(now);
        self.record();
        self.wake();
        self.submit();
        loop {
            let is_waiting = !self.held.is_empty() && self.submitted == 0;
            let retry = self.full.as_ref().filter(|_| is_waiting);
            let retry = retry.map(|full| full.until.saturating_duration_since(elapsing()));
            let again = self.lingering.wait(|| (self.now)(), elapsing());
            let at_most = retry.into_iter().chain(again).min();
            let Waiting { commands, news, is_closed, .. } =
                self.inbox.wait(at_most, self.expected());
            let is_quiet = commands.is_empty() && news.is_empty();
            news.into_iter().for_each(|news| self.heed(news));
            if is_closed {
                self.lingering.close();
            }
            self.watch();
            commands.into_iter().for_each(|sent| self.perform(sent));
            self.cargo.is_urgent |= std::mem::take(&mut self.is_unclaimed);
            self.watch();
            self.wake();
            if is_closed {
                self.state.slices.take_back_all(&mut self.state.scheduler);
                self.record();
            } else {
                self.try_again();
            }
            self.submit();
            if !is_closed {
                self.keep_up();
            }
            if is_closed && is_quiet && self.is_done() {
                return;
            }
        }
    }

    /// What is expected of the committer, and whether anything here waits for it: to be woken for each
    /// commit costs as much as the commit.
    fn expected(&self) -> Expected {
        let is_written = self.batch.is_empty() && self.cargo.replies.is_empty();
        let is_well = self.full.is_none() && self.held.is_empty() && self.failed.is_none();
        let is_upkept = self.upkeep.since.saturating_add(self.submitted_bytes) < self.upkeep.every;
        match self.submitted {
            0 => Expected::Nothing,
            _ if is_written && is_well && is_upkept => Expected::Sometime,
            _ => Expected::Soon,
        }
    }

    /// Tells whoever drives the store which queues may have something to start, and when something
    /// is due if that is sooner than was told and the writer does not see to it itself.
    fn wake(&mut self) {
        let State { scheduler, due_told, .. } = &mut self.state;
        let now = (self.now)();
        let woken = scheduler.take_awaited(now);
        let next = scheduler.next_due(now);
        self.lingering.due = next;
        let due = next.filter(|next| due_told.is_none_or(|told| *next < told));
        let due = due.filter(|_| !self.lingering.is_watching());
        *due_told = due.or(*due_told);
        self.audience.listeners.woken.add(woken, due);
    }

    /// Whether everything is written that can be.
    fn is_done(&self) -> bool {
        let is_written = self.batch.is_empty() && self.cargo.replies.is_empty();
        self.submitted == 0 && (is_written || !self.held.is_empty() || self.failed.is_some())
    }

    /// Lets happen what is due while claims come a moment too early, and tries those again for which there may be
    /// something, or which waited for long enough.
    fn watch(&mut self) {
        let Some(is_over) = self.lingering.watch(elapsing()) else { return };
        let now = (self.now)();
        if self.lingering.due.is_some_and(|due| due <= now.at) {
            self.state.scheduler.advance(now);
            self.record();
        }
        // Once more for those who were tried before others made room for them.
        for is_over in [is_over, false] {
            if is_over || self.state.scheduler.has_woken() {
                self.lingering.take().into_iter().for_each(|claim| self.perform(claim));
            }
        }
    }

    fn perform(&mut self, sent: Sent) {
        let Sent { command, .. } = sent;
        if let Some(error) = &self.failed {
            return command.refuse(error.clone());
        }
        if command.kind() == Kind::Look {
            let reply = command.perform(&mut self.state, (self.now)());
            return reply(Ok(()));
        }
        let (kind, is_full) = (command.kind(), self.full.is_some());
        if let Some(full) = &self.full
            && (kind != Kind::Renew || self.held.len() > HELD_MAX)
        {
            return command.refuse(full.error.clone());
        }
        let reply = self.attempt(Sent { command, ..sent });
        self.record();
        let Some(reply) = reply else { return };
        if is_full || kind == Kind::Consume && self.state.is_covered {
            reply(Ok(()));
        } else {
            self.cargo.replies.push(reply);
            let may_follow = sent.is_one_of_several && kind == Kind::Change;
            self.is_unclaimed |= may_follow;
            self.cargo.is_urgent |= !may_follow;
        }
        if self.batch.bytes() >= BATCH_BYTES_MAX {
            self.hand_over();
        }
    }

    /// Does a command, unless it lingers.
    fn attempt(&mut self, sent: Sent) -> Option<Reply> {
        let (now, mut sent) = ((self.now)(), sent);
        while sent.command.do_some(&mut self.state, now) {
            self.record();
        }
        let command = match sent.command.attempt(&mut self.state, now) {
            Ok(reply) => return Some(reply),
            Err(command) => command,
        };
        let (is_one_of_several, claim) = (sent.is_one_of_several, Sent { command, ..sent });
        match self.lingering.keep(claim, elapsing()) {
            Ok(()) => self.is_unclaimed &= !is_one_of_several,
            Err(claim) => return Some(claim.command.perform(&mut self.state, now)),
        }
        None
    }

    /// Writes down what has changed.
    fn record(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        self.state.scheduler.swap_effects(&mut effects);
        for effect in &mut effects {
            let offset = self.batch.push_with(|buffer| records::encode(effect, buffer));
            match effect {
                Effect::Accepted { id, call, .. } => {
                    let bytes = self.batch.bytes() - offset;
                    self.cargo.bodies.push(InBatch { call: *id, offset, bytes });
                    self.state.bodies.insert(*id, std::mem::take(&mut call.payload));
                }
                Effect::Ended { id, end } => self.state.note_end(*id, *end),
                _ => {}
            }
        }
        effects.clear();
        self.effects = effects;
        self.cargo.ahead.and(self.state.slices.take_ahead());
        self.cargo.freed.extend(self.state.scheduler.take_freed());
    }

    /// Hands over what there is, if there is room; what changed nothing is answered once all that
    /// came before it lasts.
    fn submit(&mut self) {
        if self.batch.is_empty() {
            if self.submitted == 0 && self.held.is_empty() {
                // A claim that starts nothing may tell who waits, and that is in no history.
                self.audience.listeners.stream.tell(self.state.scheduler.take_events());
                let replies = std::mem::take(&mut self.cargo.replies);
                replies.into_iter().for_each(|reply| reply(Ok(())));
                self.cargo.is_urgent = false;
            }
            return;
        }
        if !self.cargo.is_urgent && !self.lingering.is_empty() {
            return;
        }
        if self.submitted < SUBMITTED_MAX && self.held.is_empty() && self.failed.is_none() {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let batch = std::mem::replace(&mut self.batch, self.committer.batch());
        self.cargo.events = self.state.scheduler.take_events();
        let cargo = std::mem::take(&mut self.cargo);
        self.send(batch, cargo);
    }

    fn send(&mut self, batch: Batch, cargo: Cargo) {
        let (inbox, audience) = (self.inbox.clone(), self.audience.clone());
        let (bytes, began) = (batch.bytes(), elapsing());
        let (time, sent) = (self.now.clone(), (self.now)().at);
        self.submitted += 1;
        self.submitted_bytes += bytes as u64;
        self.committer.submit(
            batch,
            Box::new(move |outcome| match outcome {
                Ok(place) => {
                    // History has it before the writer hears of it, whose next answer may show it,
                    // and the writer before anyone who was told or answered can ask for more.
                    let mut cargo = cargo;
                    let replies = std::mem::take(&mut cargo.replies);
                    let events = std::mem::take(&mut cargo.events);
                    let took = elapsing().duration_since(began);
                    let answered_after = time().at.since(sent);
                    let followed = audience.keep_batch(events, place, bytes);
                    inbox.news(News::Committed { place, bytes, took, answered_after, cargo });
                    audience.listeners.stream.tell(followed);
                    replies.into_iter().for_each(|reply| reply(Ok(())));
                }
                Err(refused) => inbox.news(News::Refused(refused, cargo)),
            }),
        );
    }

    /// A batch is on its way no more.
    fn arrived(&mut self) {
        self.submitted -= 1;
        if self.submitted == 0 {
            self.submitted_bytes = 0;
        }
    }

    fn heed(&mut self, news: News) {
        match news {
            News::Committed { place, bytes, took, answered_after, cargo } => {
                self.state.count_commit(bytes, took);
                self.state.answered_after = answered_after;
                let Cargo { bodies, freed, ahead, .. } = cargo;
                self.state.slices.lasts(ahead);
                self.arrived();
                self.full = None;
                self.audience.listeners.condition.is_well();
                self.upkeep.since += bytes as u64;
                for body in freed {
                    self.upkeep.segments.free(Position::from_bits(body));
                }
                self.upkeep.segments.grow(place.segment(), bytes);
                for InBatch { call, offset, bytes } in bodies {
                    self.locate(call, place.position(offset), bytes);
                }
            }
            // Once it has failed, there is no more trying.
            News::Refused(Refused { error: LogError::Full { source }, batch }, cargo)
                if self.failed.is_none() =>
            {
                self.arrived();
                let full = NoRoom::at(elapsing(), &source);
                self.audience.listeners.condition.is_in_trouble(full.error.clone());
                self.full = Some(full);
                self.held.push_back((batch, cargo));
            }
            News::Refused(Refused { error, .. }, cargo) => {
                self.arrived();
                self.fail(&error, cargo);
            }
            News::Upkeep(news) => self.heed_upkeep(news),
        }
    }

    /// Notes where a body is now, unless its call has ended.
    fn locate(&mut self, id: CallId, body: Position, bytes: usize) {
        self.state.bodies.note_logged(id);
        let Some(before) = self.state.scheduler.locate(id, body.to_bits()) else { return };
        if before != 0 {
            self.upkeep.segments.free(Position::from_bits(before));
        }
        self.upkeep.segments.add(body, bytes);
    }

    /// Begins a checkpoint if one is due.
    fn keep_up(&mut self) {
        if !self.upkeep.is_due() || self.failed.is_some() || !self.held.is_empty() {
            return;
        }
        self.upkeep.is_busy = true;
        let inbox = self.inbox.clone();
        self.committer.rotate(Box::new(move |outcome| {
            inbox.news(News::Upkeep(match outcome {
                Ok(segment) => UpkeepNews::Rotated(segment),
                Err(error @ LogError::Full { .. }) => UpkeepNews::Full(error.to_string()),
                Err(error) => UpkeepNews::Lost(error),
            }));
        }));
    }

    fn heed_upkeep(&mut self, news: UpkeepNews) {
        if self.failed.is_some() {
            return self.upkeep.give_up();
        }
        match news {
            UpkeepNews::Rotated(segment) if self.upkeep.checkpoint == Some(segment) => {
                (self.upkeep.is_busy, self.upkeep.since) = (false, 0);
            }
            UpkeepNews::Rotated(segment) => {
                let wall = (self.now)().wall;
                self.upkeep.since = 0;
                self.upkeep.make(segment, wall);
            }
            UpkeepNews::Made(segment, bytes) => {
                self.upkeep.checkpoint = Some(segment);
                self.upkeep.every = bytes.max(self.upkeep.least);
                self.drop_segments();
                match self.upkeep.segments.to_be_moved(None, segment) {
                    Some(oldest) => self.upkeep.move_bodies(oldest),
                    None => self.upkeep.is_busy = false,
                }
            }
            // A disk that is full has no room for them: they stay where they are.
            UpkeepNews::Bodies(_) if !self.held.is_empty() => {}
            UpkeepNews::Bodies(bodies) => bodies.into_iter().for_each(|old| self.move_body(old)),
            UpkeepNews::Moved if !self.held.is_empty() => self.upkeep.give_up(),
            UpkeepNews::Moved => {
                // Those that moved are still on their way: the next segment is looked at now, and
                // dropped with the next checkpoint.
                let moved = self.upkeep.moving.take();
                let checkpoint = self.upkeep.checkpoint.unwrap_or(SegmentNumber::FIRST);
                match self.upkeep.segments.to_be_moved(moved, checkpoint) {
                    Some(next) => self.upkeep.move_bodies(next),
                    None => self.upkeep.is_busy = false,
                }
            }
            UpkeepNews::Full(reason) => {
                self.upkeep.give_up();
                tracing::warn!(
                    reason,
                    "the journal's upkeep found no space and is tried again later"
                );
            }
            UpkeepNews::Failed(reason) => {
                self.upkeep.give_up();
                tracing::error!(reason, "the journal's upkeep failed and is tried again later");
            }
            UpkeepNews::Panicked => {
                self.upkeep.give_up();
                tracing::error!("the journal's upkeep panicked and is tried again later");
            }
            UpkeepNews::Lost(error) => {
                self.upkeep.give_up();
                self.fail(&error, Cargo::default());
            }
        }
    }

    /// Writes a body again, so that the segment it was in can be dropped.
    fn move_body(&mut self, OldBody { id, at, payload }: OldBody) {
        if self.state.scheduler.located(id) != Some(at.to_bits()) {
            return;
        }
        let offset = self.batch.push_with(|buffer| records::encode_moved(id, &payload, buffer));
        let bytes = self.batch.bytes() - offset;
        self.cargo.bodies.push(InBatch { call: id, offset, bytes });
        if self.batch.bytes() >= BATCH_BYTES_MAX && self.held.is_empty() && self.failed.is_none() {
            self.hand_over();
        }
    }

    fn drop_segments(&mut self) {
        if let Some(before) = self.upkeep.droppable() {
            let inbox = self.inbox.clone();
            let done = move |outcome: Result<(), LogError>| {
                if let Err(error) = outcome {
                    inbox.news(News::Upkeep(UpkeepNews::Lost(error)));
                }
            };
            self.committer.drop_before(before, Box::new(done));
        }
    }

    /// A full disk: what was done in memory is kept and tried again, and nothing new is done.
    fn try_again(&mut self) {
        let is_due = self.full.as_ref().is_none_or(|full| elapsing() >= full.until);
        if self.held.is_empty() || !is_due || self.submitted > 0 || self.failed.is_some() {
            return;
        }
        self.committer.resume();
        for (batch, cargo) in std::mem::take(&mut self.held) {
            self.send(batch, cargo);
        }
    }

    /// The log failed for good: nobody is answered as if it had not.
    fn fail(&mut self, error: &LogError, cargo: Cargo) {
        if self.failed.is_none() {
            tracing::error!(%error, "the store failed and does nothing more until it is started anew");
        }
        let error = self.failed.get_or_insert(StoreError::Failed { reason: error.to_string() });
        let held = std::mem::take(&mut self.held).into_iter().map(|(_, cargo)| cargo);
        let all = [cargo, std::mem::take(&mut self.cargo)].into_iter().chain(held);
        for reply in all.flat_map(|cargo| cargo.replies) {
            reply(Err(error.clone()));
        }
        // Whoever drives it, or follows what happens, waits for nothing more.
        self.audience.listeners.end();
    }
}

/// How long a full disk is left alone is the machine's time, not the limits'.
#[expect(clippy::disallowed_methods, reason = "no decision hangs on it")]
fn elapsing() -> Instant {
    Instant::now()
}
