//! Looking for the dead: of all queues of a caller, in one order.

use crate::qstash::card::millis;
use crate::qstash::filter::{Facts, Filter, Order};
use crate::qstash::names::{self, Names};
use crate::qstash::remembered::{Message, Report};
use tollgate::lanes::{CallId, CallState, CallView, PAGE_MAX, What};
use tollgate::{Error, Now, Tollgate};

/// Most of the dead that one request looks at: who asks for more goes on from there.
const EXAMINED_MAX: usize = 5_000;
/// Most that are read of all queues at once.
const CHUNK_MAX: usize = 10_000;
/// Fewest that are read of one queue at once.
const CHUNK_MIN: usize = 10;

/// A dead message.
#[derive(Debug)]
pub(super) struct Dead {
    /// Its call.
    pub(super) call: CallView,
    /// Its id among the dead.
    pub(super) id: String,
    /// The message.
    pub(super) message: Message,
    /// What came of its last attempt.
    pub(super) report: Report,
}

/// Some of the dead.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Those that are meant.
    pub(super) dead: Vec<Dead>,
    /// Behind which call to go on, if there are more.
    pub(super) rest: Option<CallId>,
}

/// A look at the dead.
#[derive(Debug, Clone)]
pub(super) struct Search {
    pub(super) gate: Tollgate,
    pub(super) names: Names,
}

impl Search {
    /// Those that a filter means, behind a call.
    pub(super) async fn run(self, filter: Filter, after: Option<CallId>) -> Result<Found, Error> {
        let now = self.gate.now().await?;
        if let Some(ids) = filter.ids() {
            return self.named(ids, &filter, now).await;
        }
        let queues = self.queues().await?;
        let count = filter.count().unwrap_or(usize::MAX);
        let (mut found, mut after, mut examined) = (Found::default(), after, 0);
        loop {
            let (calls, has_more) = match filter.order() {
                Order::EarliestFirst => self.chunk(&queues, after).await?,
                Order::LatestFirst => (self.all_before(&queues, after).await?, false),
            };
            for call in calls {
                let id = call.id;
                let dead = self.matching(call, &filter, now).await?;
                if dead.is_some() && found.dead.len() == count {
                    found.rest = after;
                    return Ok(found);
                }
                found.dead.extend(dead);
                after = Some(id);
                examined += 1;
                if examined == EXAMINED_MAX {
                    found.rest = after;
                    return Ok(found);
                }
            }
            if !has_more {
                return Ok(found);
            }
        }
    }

    /// One of the dead, by its id.
    pub(super) async fn one(&self, id: &str) -> Result<Option<Dead>, Error> {
        let Some(call) = names::dead_call_of(id) else { return Ok(None) };
        let Some(call) = self.gate.call(call).await? else { return Ok(None) };
        if call.state != CallState::Dead || !self.names.has_messages(&call.queue) {
            return Ok(None);
        }
        let Some(message) = self.message(call.id).await? else { return Ok(None) };
        let is_it = names::dead_id(message.created_ms(), call.id) == id;
        if !is_it {
            return Ok(None);
        }
        let report = self.report(call.id).await?;
        Ok(Some(Dead { call, id: id.to_owned(), message, report }))
    }

    async fn named(&self, ids: &[String], filter: &Filter, now: Now) -> Result<Found, Error> {
        let mut found = Found::default();
        for id in ids {
            let is_known = found.dead.iter().any(|dead| dead.id == *id);
            let dead = if is_known { None } else { self.one(id).await? };
            found.dead.extend(dead.filter(|dead| is_meant(dead, filter, now)));
        }
        Ok(found)
    }

    /// The queues that have dead messages.
    async fn queues(&self) -> Result<Vec<String>, Error> {
        let mut queues = Vec::new();
        let messages = self.gate.queue_state(&self.names.messages()).await?;
        queues.extend(messages.filter(|state| state.dead > 0).map(|state| state.name.to_string()));
        let prefix = self.names.queues();
        let mut after = prefix.clone();
        loop {
            let page = self.gate.queues(Some(&after), PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(queues) };
            after = last.name.to_string();
            let ours = page.iter().filter(|state| state.name.starts_with(&prefix));
            queues.extend(ours.filter(|state| state.dead > 0).map(|state| state.name.to_string()));
            if !after.starts_with(&prefix) {
                return Ok(queues);
            }
        }
    }

    /// The first of the dead behind a call, in the order in which they were accepted, with none left out
    /// between them; and whether there may be more.
    async fn chunk(
        &self,
        queues: &[String],
        after: Option<CallId>,
    ) -> Result<(Vec<CallView>, bool), Error> {
        let most = (CHUNK_MAX / queues.len().max(1)).clamp(CHUNK_MIN, PAGE_MAX);
        let (mut calls, mut until) = (Vec::new(), None::<CallId>);
        for queue in queues {
            let page = self.gate.dead(queue, None, after, most).await?;
            if let Some(last) = page.last().filter(|_| page.len() == most) {
                until = Some(until.map_or(last.id, |until| until.min(last.id)));
            }
            calls.extend(page);
        }
        calls.sort_by_key(|call| call.id);
        // Of a queue that has more, those behind are not known yet.
        calls.retain(|call| until.is_none_or(|until| call.id <= until));
        Ok((calls, until.is_some()))
    }

    /// All of the dead before a call, the latest first: they are listed the other way round.
    async fn all_before(
        &self,
        queues: &[String],
        before: Option<CallId>,
    ) -> Result<Vec<CallView>, Error> {
        let (mut calls, mut after) = (Vec::new(), None);
        loop {
            let (chunk, has_more) = self.chunk(queues, after).await?;
            let is_before = |call: &CallView| before.is_none_or(|before| call.id < before);
            after = chunk.last().map(|call| call.id);
            let is_over = chunk.last().is_none_or(|last| !is_before(last)) || !has_more;
            calls.extend(chunk.into_iter().filter(is_before));
            if is_over {
                calls.reverse();
                return Ok(calls);
            }
        }
    }

    /// A dead message, if a filter means it.
    async fn matching(
        &self,
        call: CallView,
        filter: &Filter,
        now: Now,
    ) -> Result<Option<Dead>, Error> {
        let Some(message) = self.message(call.id).await? else { return Ok(None) };
        let id = names::dead_id(message.created_ms(), call.id);
        let mut dead = Dead { call, id, message, report: Report::default() };
        if filter.asks_status() {
            dead.report = self.report(dead.call.id).await?;
        }
        if !is_meant(&dead, filter, now) {
            return Ok(None);
        }
        if !filter.asks_status() {
            dead.report = self.report(dead.call.id).await?;
        }
        Ok(Some(dead))
    }

    async fn message(&self, call: CallId) -> Result<Option<Message>, Error> {
        let payload = self.gate.payload(call).await?;
        Ok(payload.and_then(|payload| Message::of(payload.envelope())))
    }

    /// What came of the last attempt, as far as history still has it.
    async fn report(&self, call: CallId) -> Result<Report, Error> {
        let history = self.gate.history_of(call).await?;
        let last = history.iter().rev().find_map(|event| match &event.what {
            What::Settled { report, .. } => Some(Report::read(report)),
            _ => None,
        });
        Ok(last.unwrap_or_default())
    }
}

fn is_meant(dead: &Dead, filter: &Filter, now: Now) -> bool {
    let Dead { call, id, message, report } = dead;
    let message_id = names::message_id(call.id);
    let url = message.kept(&message_id, None).url();
    let ago = call.death.map(|death| now.at.since(death.at)).unwrap_or_default();
    filter.matches(&Facts {
        dlq_id: Some(id),
        status: Some(report.status),
        time_ms: millis(now.wall.minus(ago)),
        ..message.facts(&message_id, &url)
    })
}
