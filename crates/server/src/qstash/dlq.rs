//! The dead: messages that were tried as often as they may be. They stay until somebody sends them
//! again or removes them.

mod search;

use super::again::overrule;
use super::destination::check_callbacks;
use super::draft::Draft;
use super::draft::incoming::request_headers;
use super::error::Fault;
use super::face::{ApiRequest, done, reply};
use super::filter::{Filter, Sought};
use super::letter::{Letter, Posting};
use super::names;
use super::shape::message::DeadWire;
use super::shape::reply::{DeadPage, Deleted, Published, Retried};
use axum::http::StatusCode;
use axum::response::Response;
use search::{Dead, Found, Search};
use tollgate::lanes::{Act, CallId, Key, Payload};

/// Bodies are told up to so many bytes on a page, and with those of one message beyond that.
const BODIES_BYTES_MAX: usize = 16 << 20;
/// How settings of a message begin.
const SETTING: &str = "upstash-";
/// What a message that is sent again is known by, with its id among the dead: nobody else's key has such
/// a sign in it. Who asks twice at the same time gets one message.
const SENT_AGAIN: &str = "\0again ";

impl ApiRequest<'_> {
    /// A page of the dead.
    pub(super) async fn list_dead(&self) -> Result<Response, Fault> {
        let (found, is_trimmed) = self.find_dead(&[]).await?;
        let (mut messages, mut bytes) = (Vec::new(), 0);
        for dead in found.dead {
            let is_told = !is_trimmed && bytes < BODIES_BYTES_MAX;
            let payload = if is_told { self.dead_payload(dead.call.id).await? } else { None };
            bytes += payload.as_ref().map_or(0, Payload::bytes);
            messages.push(self.dead_wire(dead, payload.as_ref()));
        }
        let cursor = found.rest.map(|rest| rest.0.to_string());
        Ok(reply(StatusCode::OK, &DeadPage { cursor, messages }))
    }

    /// One of the dead.
    pub(super) async fn read_dead(&self, id: &str) -> Result<Response, Fault> {
        let dead = self.dead(id).await?;
        let payload = self.dead_payload(dead.call.id).await?;
        Ok(reply(StatusCode::OK, &self.dead_wire(dead, payload.as_ref())))
    }

    /// Removes one of the dead.
    pub(super) async fn remove_dead(&self, id: &str) -> Result<Response, Fault> {
        let dead = self.dead(id).await?;
        match self.delete(vec![dead.call.id]).await? {
            0 => Err(missing(id)),
            _ => Ok(done()),
        }
    }

    /// Removes those that are meant.
    pub(super) async fn remove_all_dead(&self) -> Result<Response, Fault> {
        let (found, _) = self.find_dead(&self.body).await?;
        let deleted = self.delete(found.dead.iter().map(|dead| dead.call.id).collect()).await?;
        let cursor = found.rest.map(|rest| rest.0.to_string());
        Ok(reply(StatusCode::OK, &Deleted { deleted, cursor }))
    }

    /// Sends those that are meant again, as new messages.
    pub(super) async fn retry_all_dead(&self) -> Result<Response, Fault> {
        let (found, _) = self.find_dead(&self.body).await?;
        let (mut responses, mut refused) = (Vec::new(), None);
        for dead in &found.dead {
            let draft = dead.message.draft(dead.call.priority);
            match self.retry(dead, draft).await {
                Ok(published) => responses.extend(published),
                // It stays among the dead, and holds up nobody else.
                Err(fault) => {
                    tracing::warn!(id = dead.id, %fault, "a dead message is not sent again");
                    refused = refused.or(Some(fault));
                }
            }
        }
        if let Some(fault) = refused.filter(|_| responses.is_empty()) {
            return Err(fault);
        }
        let cursor = found.rest.map(|rest| rest.0.to_string());
        Ok(reply(StatusCode::CREATED, &Retried { cursor, responses }))
    }

    /// Sends one of the dead again, as a new message, with other settings where the request has some.
    pub(super) async fn retry_dead(&self, id: &str) -> Result<Response, Fault> {
        let dead = self.dead(id).await?;
        let mut draft = dead.message.draft(dead.call.priority);
        let headers = request_headers(&self.parts.headers);
        let by = Draft::read(draft.target.clone(), &headers)?;
        let names: Vec<String> =
            headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        let is_named = |setting: &str| {
            names.iter().any(|name| name.strip_prefix(SETTING).is_some_and(|it| it == setting))
        };
        overrule(&mut draft, by, is_named);
        let published = self.retry(&dead, draft).await?.ok_or_else(|| missing(id))?;
        Ok(reply(StatusCode::CREATED, &published))
    }

    /// Takes a message away from the dead and hands in a new one in the same act; `None` if it is gone.
    async fn retry(&self, dead: &Dead, draft: Draft) -> Result<Option<Published>, Fault> {
        let Some(payload) = self.payload_of(dead.call.id).await? else { return Ok(None) };
        check_callbacks(&draft, &self.shared.addresses)?;
        self.ensure_queues(&draft, dead.message.card.queue.as_deref()).await?;
        let now = self.now().await?;
        let accepted = dead.message.accepted_again(now.wall);
        let (names, place) = (&self.names, dead.message.place());
        let posting = Posting { names, now, place, accepted, source: None };
        let Letter { mut call, limits, .. } = Letter::new(&draft, payload.body(), posting)?;
        call.dedupe = Some(Key::new(&format!("{SENT_AGAIN}{}", dead.id)).map_err(Fault::invalid)?);
        let gate = &self.app.gate;
        let define = gate.coming_along(self.changer(), limits).await;
        let define = define.map_err(|error| self.fault(error))?;
        let (cancel, enqueue) = (vec![dead.call.id], vec![call]);
        let acted = gate.act(Act { define, cancel, enqueue, ..Act::default() }).await;
        let acted = acted.map_err(|error| self.fault(error))?;
        let made = acted.enqueued.first().map(|call| Published {
            message_id: names::message_id(*call),
            url: None,
            is_duplicate: false,
        });
        Ok(made)
    }

    async fn delete(&self, delete: Vec<CallId>) -> Result<u64, Fault> {
        let acted = self.app.gate.act(Act { delete, ..Act::default() }).await;
        let acted = acted.map_err(|error| self.fault(error))?;
        Ok(acted.deleted.iter().map(|was_there| u64::from(*was_there)).sum())
    }

    async fn dead(&self, id: &str) -> Result<Dead, Fault> {
        let (search, wanted) = (self.search_dead(), id.to_owned());
        let found = self.app.history.read(async move { search.one(&wanted).await }).await?;
        found.ok_or_else(|| missing(id))
    }

    /// Those that the request means, and whether it wants no bodies.
    async fn find_dead(&self, body: &[u8]) -> Result<(Found, bool), Fault> {
        let filter = Filter::read(Sought::Dead, self.query(), body)?;
        let wrong = |_| Fault::invalid("cursor should be that of the page before");
        let after = filter.cursor.as_deref().map(|text| text.parse().map(CallId).map_err(wrong));
        let (after, is_trimmed) = (after.transpose()?, filter.is_trimmed);
        let found = self.app.history.read(self.search_dead().run(filter, after)).await?;
        Ok((found, is_trimmed))
    }

    fn search_dead(&self) -> Search {
        Search { gate: self.app.gate.clone(), names: self.names.clone() }
    }

    /// What a message carries, if that is told.
    async fn dead_payload(&self, call: CallId) -> Result<Option<Payload>, Fault> {
        if self.app.redact_bodies { Ok(None) } else { self.payload_of(call).await }
    }

    pub(super) async fn payload_of(&self, call: CallId) -> Result<Option<Payload>, Fault> {
        self.app.gate.payload(call).await.map_err(|error| self.fault(error))
    }

    fn dead_wire(&self, dead: Dead, payload: Option<&Payload>) -> DeadWire {
        let Dead { call, id, message, report } = dead;
        let is_hidden = self.app.redact_bodies;
        let (message, report) = (message.hidden_if(is_hidden), report.hidden_if(is_hidden));
        let message_id = names::message_id(call.id);
        let kept = message.kept(&message_id, payload.map(Payload::body));
        DeadWire::new(&kept, &id, report.response())
    }
}

fn missing(id: &str) -> Fault {
    Fault::missing(format!("there is no dead message {id}"))
}
