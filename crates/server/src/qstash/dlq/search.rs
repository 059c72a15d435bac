//! Looking for the dead: of all queues of a caller, in one order.

use crate::qstash::card::millis;
use crate::qstash::filter::{Facts, Filter, Order};
use crate::qstash::names::{self, Names};
use crate::qstash::remembered::{Message, Report};
use std::collections::VecDeque;
use tollgate::lanes::{CallId, CallState, CallView, PAGE_MAX, What};
use tollgate::{Error, Now, Tollgate};

/// Most of the dead that one request looks at: who asks for more goes on from there.
const EXAMINED_MAX: usize = 5_000;
/// Most that are read of all queues at once.
const CHUNK_MAX: usize = 10_000;
/// Fewest that are read of one queue at once.
const CHUNK_MIN: usize = 10;
/// How many are looked into at once: so many payloads are in memory then.
const TOGETHER: usize = 16;

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
                Order::LatestFirst => (self.last_before(&queues, after).await?, false),
            };
            for calls in calls.chunks(TOGETHER) {
                let matching = self.matching(calls, &filter, now).await?;
                for (call, dead) in calls.iter().zip(matching) {
                    if dead.is_some() && found.dead.len() == count {
                        found.rest = after;
                        return Ok(found);
                    }
                    found.dead.extend(dead);
                    after = Some(call.id);
                    examined += 1;
                    if examined == EXAMINED_MAX {
                        found.rest = after;
                        return Ok(found);
                    }
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
        let mut found = self.with_messages(&[call]).await?.pop().flatten();
        if found.as_ref().is_none_or(|dead| dead.id != id) {
            return Ok(None);
        }
        self.report(found.as_mut()).await?;
        Ok(found)
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

    /// The dead before a call, the latest first, as many as are looked at: they are listed the other way round.
    async fn last_before(
        &self,
        queues: &[String],
        before: Option<CallId>,
    ) -> Result<Vec<CallView>, Error> {
        let (mut calls, mut after) = (VecDeque::new(), None);
        loop {
            let (chunk, has_more) = self.chunk(queues, after).await?;
            let is_before = |call: &CallView| before.is_none_or(|before| call.id < before);
            after = chunk.last().map(|call| call.id);
            let is_over = chunk.last().is_none_or(|last| !is_before(last)) || !has_more;
            calls.extend(chunk.into_iter().filter(is_before));
            calls.drain(..calls.len().saturating_sub(EXAMINED_MAX));
            if is_over {
                return Ok(calls.into_iter().rev().collect());
            }
        }
    }

    /// Each of these that is a message and is meant by a filter.
    async fn matching(
        &self,
        calls: &[CallView],
        filter: &Filter,
        now: Now,
    ) -> Result<Vec<Option<Dead>>, Error> {
        let mut found = self.with_messages(calls).await?;
        let is_by_status = filter.asks_status();
        if is_by_status {
            self.report(found.iter_mut().flatten()).await?;
        }
        for dead in &mut found {
            dead.take_if(|dead| !is_meant(dead, filter, now));
        }
        if !is_by_status {
            self.report(found.iter_mut().flatten()).await?;
        }
        Ok(found)
    }

    /// Each of these that is a message, without what came of it.
    async fn with_messages(&self, calls: &[CallView]) -> Result<Vec<Option<Dead>>, Error> {
        let payloads = self.gate.payloads(calls.iter().map(|call| call.id).collect()).await?;
        let dead = calls.iter().zip(payloads).map(|(call, payload)| {
            let message = Message::of(payload?.envelope())?;
            let id = names::dead_id(message.created_ms(), call.id);
            Some(Dead { call: call.clone(), id, message, report: Report::default() })
        });
        Ok(dead.collect())
    }

    /// Looks up what came of the last attempt of each, as far as history still has it.
    async fn report(&self, dead: impl IntoIterator<Item = &mut Dead>) -> Result<(), Error> {
        let dead: Vec<_> = dead.into_iter().collect();
        let histories = self.gate.histories(dead.iter().map(|dead| dead.call.id).collect()).await?;
        for (dead, history) in dead.into_iter().zip(histories) {
            let last = history.iter().rev().find_map(|event| match &event.what {
                What::Settled { report, .. } => Some(Report::read(report)),
                _ => None,
            });
            dead.report = last.unwrap_or_default();
        }
        Ok(())
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
