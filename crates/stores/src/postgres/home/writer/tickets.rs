//! Taking in what applications handed in by SQL: in a round, with all that commands do.

use super::following::within;
use super::{Cargo, Writer, elapsing};
use crate::postgres::home::tickets::{Kinds, Read, Ticket, behind, reason};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tollgate_core::Now;
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::{Act, ActError};

/// How often it is looked whether there are tickets, whatever was heard.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often tickets are tried again that were refused for another reason than that a queue is full.
const AGAIN_EVERY: Duration = Duration::from_secs(3);

/// What is known of tickets.
#[derive(Default)]
pub(super) struct TicketsKnown {
    /// What the next round is to try.
    wanted: Kinds,
    looked: Option<Instant>,
    /// When some were tried again that were refused, and the last of them.
    tried: Option<Instant>,
    after: i64,
}

impl TicketsKnown {
    pub(super) fn has_work(&self) -> bool {
        self.wanted.any()
    }

    /// How long to wait for something else: not at all while there is more to try.
    pub(super) fn patience(&self, quiet: Duration) -> Duration {
        if self.has_work() { Duration::ZERO } else { quiet }
    }

    fn note(&mut self, found: Kinds, now: Instant) {
        let is_time = self.tried.is_none_or(|tried| now.duration_since(tried) >= AGAIN_EVERY);
        self.wanted.new |= found.new;
        self.wanted.held |= found.held;
        self.wanted.refused |= found.refused && is_time;
    }
}

impl Writer {
    /// Says whether there are tickets to be tried: those that were heard of, and now and then those
    /// that are there. One that closes leaves them to others.
    pub(super) async fn look_for_tickets(&mut self, has_heard: bool, is_closed: bool) -> bool {
        self.tickets.wanted.new |= has_heard;
        let now = elapsing();
        let is_time = self.tickets.looked.is_none_or(|at| now.duration_since(at) >= LOOK_EVERY);
        let link = self.link.as_ref().filter(|link| is_time && !link.is_closed());
        // Without a connection the next round makes one, or says why it cannot.
        if let Some(link) = link {
            self.tickets.looked = Some(now);
            match within(self.means.patience, link.look_for_tickets()).await {
                Ok(found) => self.tickets.note(found, now),
                Err(_) => self.link = None,
            }
        }
        self.tickets.has_work() && !is_closed
    }

    /// Begins a round, with the tickets that it is to try.
    pub(super) async fn begin_with_tickets(&mut self) -> Result<(Now, Read), StoreError> {
        // If it fails, they are found again when it is looked for them.
        let kinds = std::mem::take(&mut self.tickets.wanted);
        let now = self.begin_surely().await?;
        if !kinds.any() {
            return Ok((now, Read::default()));
        }
        let read = match self.held() {
            Ok(link) => within(self.means.patience, link.tickets(kinds, self.tickets.after)).await,
            Err(trouble) => Err(trouble),
        };
        let read = read.map_err(|trouble| self.put_down(trouble))?;
        if kinds.refused {
            self.tickets.tried = Some(elapsing());
            // Behind the last one it begins again with the first.
            self.tickets.after = read.refused.last().map_or(0, |ticket| ticket.number);
        }
        Ok((now, read))
    }

    /// Makes calls of tickets. Where all went well there may be more.
    pub(super) fn take_tickets(&mut self, read: Read, cargo: &mut Cargo, now: Now) {
        let mut full = BTreeSet::new();
        let mut wanted = Kinds { new: read.may_have_more(), ..Kinds::default() };
        let Read { held, refused, new } = read;
        wanted.held = self.take_each(held, &mut full, cargo, now);
        wanted.refused = self.take_each(refused, &mut full, cargo, now);
        self.take_each(new, &mut full, cargo, now);
        self.tickets.wanted = wanted;
    }

    /// Tries each in order; says whether there were some, and all were taken. A queue that is found
    /// full takes none of those that come after.
    fn take_each(
        &mut self,
        tickets: Vec<Ticket>,
        full: &mut BTreeSet<String>,
        cargo: &mut Cargo,
        now: Now,
    ) -> bool {
        let mut is_well = !tickets.is_empty();
        for ticket in tickets {
            if ticket.is_behind || full.contains(&ticket.queue) {
                is_well = false;
                if !ticket.is_held {
                    cargo.batch.tickets.refuse(&ticket, &behind(&ticket.queue), true);
                }
                continue;
            }
            let taken = self.take_one(&ticket, now);
            // Time went on, also if it was refused.
            self.record(cargo);
            let Err((reason, is_full)) = taken else {
                cargo.batch.tickets.take(&ticket);
                continue;
            };
            is_well = false;
            cargo.batch.tickets.refuse(&ticket, &reason, is_full);
            if is_full {
                full.insert(ticket.queue);
            }
        }
        is_well
    }

    /// Makes a call of a ticket, or says why not and whether it is for want of room.
    fn take_one(&mut self, ticket: &Ticket, now: Now) -> Result<(), (String, bool)> {
        let enqueue = vec![ticket.call().map_err(|reason| (reason, false))?];
        let acted = self.state.scheduler.act(Act { enqueue, ..Act::default() }, now);
        let refused =
            |error: ActError| (reason(&error), matches!(error, ActError::QueueFull { .. }));
        acted.map(|_| ()).map_err(refused)
    }
}
