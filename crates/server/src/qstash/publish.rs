//! Messages that are handed in: one, several, or one through a queue.

use super::card::Accepted;
use super::destination::{
    Addressed, Target, TargetError, check_address, check_callbacks, check_name, shown, split_queue,
};
use super::draft::incoming::{read_batch, request_headers};
use super::draft::{Draft, Pair};
use super::error::Fault;
use super::face::{ApiRequest, reply};
use super::letter::{Letter, Posting, Through};
use super::names;
use super::queues;
use super::shape::reply::{Published, PublishedWire};
use crate::threads::at_length;
use axum::http::StatusCode;
use axum::response::Response;
use std::borrow::Cow;
use tollgate::lanes::act::{ACT_BYTES_MAX, ACT_CHANGES_MAX};
use tollgate::lanes::{Act, ActError, CallId};
use tollgate::{Error, Now};

/// A message as it is to be published.
pub(super) struct Item<'a> {
    pub(super) draft: Draft,
    pub(super) body: Cow<'a, [u8]>,
    /// The queue it goes through.
    pub(super) queue: Option<String>,
}

/// How much messages are together that are handed in with one act.
#[derive(Debug, Default)]
pub(super) struct Room {
    messages: usize,
    bytes: usize,
}

impl Room {
    /// Takes so many messages with a body of so many bytes each; refuses what no act could hold.
    pub(super) fn take(&mut self, messages: usize, bytes: usize) -> Result<(), Fault> {
        self.messages = self.messages.saturating_add(messages);
        self.bytes = self.bytes.saturating_add(messages.saturating_mul(bytes));
        if self.messages > ACT_CHANGES_MAX || self.bytes > ACT_BYTES_MAX {
            let Self { messages, bytes } = self;
            return Err(Fault::over_quota(format!(
                "these are {messages} messages with {bytes} bytes in all, and {ACT_CHANGES_MAX} with {ACT_BYTES_MAX} can be taken at once: send less at a time, or to fewer endpoints"
            )));
        }
        Ok(())
    }
}

/// A draft, and the endpoint of a group that it is for.
struct Addressee<'a> {
    draft: Cow<'a, Draft>,
    group: Option<(String, Option<String>)>,
}

impl ApiRequest<'_> {
    pub(super) async fn publish(&self, tail: &str) -> Result<Response, Fault> {
        let draft = self.draft(tail).await?;
        self.publish_one(draft, None).await
    }

    pub(super) async fn enqueue(&self, tail: &str) -> Result<Response, Fault> {
        let (queue, tail) = split_queue(tail)?;
        let draft = self.draft(tail).await?;
        self.publish_one(draft, Some(queue)).await
    }

    pub(super) async fn batch(&self) -> Result<Response, Fault> {
        let mut items = Vec::new();
        for item in at_length(self.body.len(), || read_batch(&self.body))? {
            let target = Target::read(&item.destination)?;
            item.queue.as_deref().map_or(Ok(()), |queue| check_name("queue", queue))?;
            let draft = self.draft_to(target, item.headers).await?;
            let body = Cow::Owned(item.body.into_bytes());
            items.push(Item { draft, body, queue: item.queue });
        }
        let published = self.publish_all(&items).await?;
        Ok(reply(StatusCode::OK, &published))
    }

    /// The draft that this request describes.
    pub(super) async fn draft(&self, tail: &str) -> Result<Draft, Fault> {
        let Addressed { target, headers } = Addressed::read(tail, self.parts.uri.query())?;
        let mut all = request_headers(&self.parts.headers);
        all.extend(headers);
        self.draft_to(target, all).await
    }

    /// A draft to a target: what a group says stands behind what the message says.
    async fn draft_to(&self, target: Target, mut headers: Vec<Pair>) -> Result<Draft, Fault> {
        if let Target::Group(name) = &target
            && let Some(group) = self.group_record(name).await?
        {
            headers.extend(group.headers);
        }
        Ok(Draft::read(target, &headers)?)
    }

    async fn publish_one(&self, draft: Draft, queue: Option<String>) -> Result<Response, Fault> {
        let items = [Item { draft, body: Cow::Borrowed(&self.body), queue }];
        let mut published = self.publish_all(&items).await?;
        let Some(published) = published.pop() else { return Err(Fault::invalid("no message")) };
        let is_known = matches!(&published, PublishedWire::One(one) if one.is_duplicate);
        let status = if is_known { StatusCode::ACCEPTED } else { StatusCode::CREATED };
        Ok(reply(status, &published))
    }

    /// Hands in messages, all or none.
    pub(super) async fn publish_all(
        &self,
        items: &[Item<'_>],
    ) -> Result<Vec<PublishedWire>, Fault> {
        let now = self.now().await?;
        // Before anything waits that needs it.
        self.shared.keys.get(&self.app.gate, &self.names).await?;
        let (mut letters, mut counts, mut room) = (Vec::new(), Vec::new(), Room::default());
        for item in items {
            check_callbacks(&item.draft, &self.shared.addresses)?;
            let addressees = self.addressees(&item.draft).await?;
            // Before there is a copy of the body for each of them.
            room.take(addressees.len(), item.body.len())?;
            counts.push((addressees.len(), matches!(item.draft.target, Target::Group(_))));
            for addressee in addressees {
                letters.push(self.letter(item, addressee, now)?);
            }
        }
        for item in items {
            self.ensure_queues(&item.draft, item.queue.as_deref()).await?;
        }
        let urls: Vec<String> = letters.iter().map(|letter| shown(&letter.url)).collect();
        let (ids, known) = self.hand_in(letters).await?;
        let mut all = ids.into_iter().zip(urls).enumerate().map(|(at, (id, url))| {
            let is_duplicate = known.contains(&at);
            Published { message_id: names::message_id(id), url: Some(url), is_duplicate }
        });
        let wires = counts.into_iter().map(|(count, is_group)| {
            let mut each: Vec<_> = all.by_ref().take(count).collect();
            match each.pop() {
                Some(one) if !is_group => PublishedWire::One(Published { url: None, ..one }),
                last => PublishedWire::Each(each.into_iter().chain(last).collect()),
            }
        });
        Ok(wires.collect())
    }

    /// Hands in letters in one act; says which calls they are, and which of them were known already.
    pub(super) async fn hand_in(
        &self,
        letters: Vec<Letter>,
    ) -> Result<(Vec<CallId>, Vec<usize>), Fault> {
        let (mut enqueue, mut limits) = (Vec::new(), Vec::new());
        for Letter { call, limits: coming, .. } in letters {
            enqueue.push(call);
            limits.extend(coming);
        }
        let gate = &self.app.gate;
        let define = gate.coming_along(self.changer(), limits).await;
        let define = define.map_err(|error| self.fault(error))?;
        let acted = gate.act(Act { define, enqueue, ..Act::default() }).await;
        let acted = acted.map_err(|error| match &error {
            // A key without a value, and there is no such limit: the request is wrong, not its path.
            Error::Act(ActError::Toll { .. }) => Fault::invalid(self.fault(error)),
            _ => self.fault(error),
        })?;
        Ok((acted.enqueued.into(), acted.duplicates))
    }

    /// To whom a draft goes: itself, or one for each endpoint of its group.
    async fn addressees<'a>(&self, draft: &'a Draft) -> Result<Vec<Addressee<'a>>, Fault> {
        let Target::Group(name) = &draft.target else {
            return Ok(vec![Addressee { draft: Cow::Borrowed(draft), group: None }]);
        };
        let missing = || match name.contains('.') {
            // It was meant to be an address.
            true => TargetError::Scheme.into(),
            false => Fault::missing(format!("there is no URL group {name}: add endpoints to it")),
        };
        let group = self.group_record(name).await?.ok_or_else(missing)?;
        let each = group.endpoints.into_iter().map(|endpoint| {
            let group = Some((name.clone(), endpoint.name));
            Addressee { draft: Cow::Owned(draft.to(&endpoint.url)), group }
        });
        Ok(each.collect())
    }

    fn letter(&self, item: &Item<'_>, addressee: Addressee<'_>, now: Now) -> Result<Letter, Fault> {
        let accepted = Accepted {
            at: now.wall,
            caller_ip: Some(self.peer.to_canonical().to_string()),
            queue: item.queue.clone(),
            group: addressee.group,
            ..Accepted::default()
        };
        let place = item.queue.clone().map_or(Through::Flow, Through::Queue);
        let posting = Posting { names: &self.names, now, place, accepted, source: None };
        if let Target::Url(url) = &addressee.draft.target {
            check_address(url, &self.shared.addresses)?;
        }
        Letter::new(&addressee.draft, &item.body, posting)
    }

    /// Makes the queues that a message needs, if they are not there: what is told of its attempts before the
    /// last does not go through its own.
    pub(super) async fn ensure_queues(
        &self,
        draft: &Draft,
        queue: Option<&str>,
    ) -> Result<(), Fault> {
        if queue.is_some() && draft.delivery.callback.is_some() {
            self.ensure_queue(None).await?;
        }
        self.ensure_queue(queue).await
    }

    /// Makes a queue of messages, if it is not there.
    async fn ensure_queue(&self, queue: Option<&str>) -> Result<(), Fault> {
        let name = queue.map_or_else(|| self.names.messages(), |queue| self.names.queue(queue));
        let found = self.app.gate.is_pushed(&name).await.map_err(|error| self.fault(error))?;
        match (found, queue) {
            (Some(true), _) => Ok(()),
            (Some(false), _) => Err(Fault::invalid(format!(
                "the queue {name} is for workers: remove it, so that messages can be sent"
            ))),
            (None, None) => {
                let spec = queues::messages_spec()?;
                let made = self.app.gate.queue_as(self.who(), &name, spec).await;
                made.map_err(|error| self.fault(error))
            }
            (None, Some(queue)) => {
                self.check_room_for_queue().await?;
                self.define_queue(queue, queues::PARALLELISM_DEFAULT, None).await
            }
        }
    }
}
