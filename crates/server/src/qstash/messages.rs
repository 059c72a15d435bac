//! Messages that were handed in: one as it is, and those that are to be sent no more.

use super::error::Fault;
use super::face::{ApiRequest, reply};
use super::filter::{Facts, Filter, Sought};
use super::names::{call_of, message_id};
use super::remembered::Message;
use super::shape::message::MessageWire;
use super::shape::reply::Cancelled;
use axum::http::StatusCode;
use axum::response::Response;
use std::collections::BTreeSet;
use tollgate::lanes::{
    Act, CallId, CallState, CallView, CallsQuery, PAGE_MAX, Payload, QueueState, What,
};

/// How many are looked into at once: so many payloads are in memory then.
const TOGETHER: usize = 16;

/// Which calls of a queue are cancelled.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which<'a> {
    /// All, the dead as well.
    All,
    /// Those alive that a filter means.
    Meant(&'a Filter),
}

impl ApiRequest<'_> {
    pub(super) async fn read_message(&self, id: &str) -> Result<Response, Fault> {
        let call = call_of(id).ok_or_else(|| unknown(id))?;
        let alive = match self.live(call).await? {
            Some(_) => self.payload_of(call).await?,
            None => None,
        };
        let message = match &alive {
            Some(payload) => Message::of(payload.envelope()),
            // Read after it: of one that is gone by now it is there.
            None => self.finished(call).await?,
        };
        let message = message.ok_or_else(|| unknown(id))?.hidden_if(self.app.redact_bodies);
        let body = alive.as_ref().or(message.body.as_ref()).map(Payload::body);
        let body = body.filter(|_| !self.app.redact_bodies);
        Ok(reply(StatusCode::OK, &MessageWire::new(&message.kept(id, body))))
    }

    pub(super) async fn cancel_message(&self, id: &str) -> Result<Response, Fault> {
        let call = call_of(id).ok_or_else(|| unknown(id))?;
        let live = self.live(call).await?.filter(|view| view.state != CallState::Dead);
        let cancelled = match live {
            Some(view) => self.cancel_calls(vec![view.id]).await?,
            None => 0,
        };
        if cancelled == 0 {
            return Err(unknown(id));
        }
        Ok(reply(StatusCode::OK, &Cancelled { cancelled }))
    }

    pub(super) async fn cancel_messages(&self) -> Result<Response, Fault> {
        let filter = Filter::read(Sought::Cancel, self.query(), &self.body)?;
        let cancelled = match filter.ids() {
            Some(ids) => self.cancel_named(&filter, ids).await?,
            None => self.cancel_meant(&filter).await?,
        };
        Ok(reply(StatusCode::OK, &Cancelled { cancelled }))
    }

    /// Cancels calls of a queue, up to so many; says how many there were. Those that come meanwhile are
    /// not meant, so that it ends.
    pub(super) async fn cancel_in(
        &self,
        queue: &QueueState,
        which: Which<'_>,
        most: u64,
    ) -> Result<u64, Fault> {
        let (mut cancelled, mut after) = (0, None);
        let mut unseen = queue.waiting.saturating_add(queue.in_flight).saturating_add(queue.dead);
        while unseen > 0 && cancelled < most {
            let page = usize::try_from(unseen).unwrap_or(PAGE_MAX).min(PAGE_MAX);
            let (name, lane, state) = (queue.name.clone(), None, None);
            let query = CallsQuery { queue: name, lane, state, after, most: page };
            let page = self.app.gate.calls(query).await.map_err(|error| self.fault(error))?;
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            unseen = unseen.saturating_sub(u64::try_from(page.len()).unwrap_or(u64::MAX));
            let mut meant = Vec::new();
            for views in page.chunks(TOGETHER) {
                meant.extend(self.meant(views, which).await?);
            }
            meant.truncate(usize::try_from(most - cancelled).unwrap_or(usize::MAX));
            cancelled += self.cancel_calls(meant).await?;
        }
        Ok(cancelled)
    }

    /// Cancels those of some messages that are alive.
    async fn cancel_named(&self, filter: &Filter, ids: &[String]) -> Result<u64, Fault> {
        // Each counts once, however often it is named.
        let calls: BTreeSet<CallId> = ids.iter().filter_map(|id| call_of(id)).collect();
        let most = filter.count().unwrap_or(usize::MAX);
        let mut live = Vec::new();
        for call in calls {
            live.extend(self.live(call).await?);
        }
        let mut meant = Vec::new();
        for views in live.chunks(TOGETHER) {
            meant.extend(self.meant(views, Which::Meant(filter)).await?);
        }
        meant.truncate(most);
        self.cancel_calls(meant).await
    }

    /// Cancels all messages that are alive and meant, in all queues.
    async fn cancel_meant(&self, filter: &Filter) -> Result<u64, Fault> {
        let most =
            filter.count().map_or(u64::MAX, |count| u64::try_from(count).unwrap_or(u64::MAX));
        let messages = self.app.gate.queue_state(&self.names.messages()).await;
        let messages = messages.map_err(|error| self.fault(error))?;
        let (mut page, mut after) = (Vec::from_iter(messages), None);
        let mut cancelled = 0;
        loop {
            for queue in &page {
                let left = most - cancelled;
                cancelled += self.cancel_in(queue, Which::Meant(filter), left).await?;
            }
            page = self.queue_page(after.as_deref()).await?;
            let Some(last) = page.last() else { return Ok(cancelled) };
            after = Some(last.name.to_string());
        }
    }

    /// Cancels calls in one act; says how many there were.
    async fn cancel_calls(&self, cancel: Vec<CallId>) -> Result<u64, Fault> {
        let mut cancelled = 0;
        for some in cancel.chunks(PAGE_MAX) {
            let act = Act { cancel: some.to_vec(), ..Act::default() };
            let acted = self.app.gate.act(act).await.map_err(|error| self.fault(error))?;
            cancelled += acted.cancelled.iter().map(|was_there| u64::from(*was_there)).sum::<u64>();
        }
        Ok(cancelled)
    }

    /// Those of these calls that are meant. Payloads are read only of those about which nothing else decides.
    async fn meant(&self, views: &[CallView], which: Which<'_>) -> Result<Vec<CallId>, Fault> {
        let filter = match which {
            Which::All => return Ok(views.iter().map(|view| view.id).collect()),
            Which::Meant(filter) => filter,
        };
        let may_be = views.iter().filter(|view| self.may_be_meant(view, filter));
        let may_be: Vec<CallId> = may_be.map(|view| view.id).collect();
        if filter.is_by_id() {
            return Ok(may_be);
        }
        let payloads = self.app.gate.payloads(may_be.clone()).await;
        let payloads = payloads.map_err(|error| self.fault(error))?;
        let is_meant = |(call, payload): (CallId, Option<Payload>)| {
            let message = Message::of(payload?.envelope())?;
            let id = message_id(call);
            let (url, time_ms) = (message.kept(&id, None).url(), message.created_ms());
            filter.matches(&Facts { time_ms, ..message.facts(&id, &url) }).then_some(call)
        };
        Ok(may_be.into_iter().zip(payloads).filter_map(is_meant).collect())
    }

    /// Whether a filter may mean a call, as far as can be seen from outside.
    fn may_be_meant(&self, view: &CallView, filter: &Filter) -> bool {
        let has_key = |key: &str| {
            let inner = self.names.inner(key);
            view.tolls.iter().any(|toll| *toll.limit == *inner)
        };
        let is_alive = view.state != CallState::Dead;
        let may_mean = || filter.may_mean(self.names.outer_queue(&view.queue), has_key);
        is_alive && (filter.is_by_id() || may_mean())
    }

    /// A call that is a message of the caller's and has not ended for good.
    async fn live(&self, call: CallId) -> Result<Option<CallView>, Fault> {
        let view = self.app.gate.call(call).await.map_err(|error| self.fault(error))?;
        Ok(view.filter(|view| self.names.has_messages(&view.queue)))
    }

    /// A message that has ended, as history has it.
    async fn finished(&self, call: CallId) -> Result<Option<Message>, Fault> {
        let gate = self.app.gate.clone();
        let history = self.app.history.read(async move { gate.history_of(call).await }).await?;
        Ok(history.iter().find_map(|event| match &event.what {
            What::Enqueued { payload } if self.names.has_messages(&event.queue) => {
                Message::told(payload)
            }
            _ => None,
        }))
    }
}

fn unknown(id: &str) -> Fault {
    let id: String = id.chars().take(64).collect();
    Fault::missing(format!("there is no message {id}, or it has ended"))
}
