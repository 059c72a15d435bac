//! A call to be handed in, built as one would say it.

use crate::ask::Toll;
use crate::envelope::{Delivery, Envelope, TraceParent};
use crate::error::{AskError, Error};
use tollgate_core::lanes::NewCall;
use tollgate_core::{
    Key, LaneName, LimitName, Now, Partition, Priority, QueueName, Span, Timestamp, Tolls,
};

/// A call that is to wait in a lane until all its limits let it start.
///
/// ```
/// use tollgate_engine::{Call, toll};
///
/// let call = Call::new("acme").pays(toll("stripe", "acme").weight(2)).body("charge 42");
/// # let _ = call;
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is enqueued until it is handed in"]
pub struct Call {
    lane: String,
    tolls: Vec<Owed>,
    priority: Priority,
    due: Due,
    expires: Option<Due>,
    dedupe: Option<String>,
    supersedes: Option<String>,
    body: Box<[u8]>,
    envelope: Envelope,
}

/// What a call is made of, for whoever hands it in elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallParts {
    /// The lane it is of.
    pub lane: String,
    /// What it owes when it starts.
    pub tolls: Vec<Owed>,
    /// Higher goes first.
    pub priority: Priority,
    /// When it joins its lane.
    pub due: Due,
    /// When it ends unstarted.
    pub expires: Option<Due>,
    /// A second call with this key is this one.
    pub dedupe: Option<String>,
    /// It takes the place of the call of this key.
    pub supersedes: Option<String>,
    /// What the worker gets.
    pub body: Box<[u8]>,
    /// What goes with that.
    pub envelope: Envelope,
}

/// What a call owes at one meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    /// The limit's name.
    pub limit: String,
    /// The partition; `None` for the global meter.
    pub partition: Option<String>,
    /// How much.
    pub weight: u64,
    /// Whether the meter closes when the upstream asks for a pause.
    pub hears_feedback: bool,
}

/// A time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// When it is accepted.
    AtOnce,
    /// So long after it is accepted.
    After(Span),
    /// At this instant of the wall clock.
    At(Timestamp),
}

impl Due {
    fn wall(self, now: Now) -> Option<Timestamp> {
        match self {
            Self::AtOnce => None,
            Self::After(span) => Some(now.wall.plus(span)),
            Self::At(wall) => Some(wall),
        }
    }
}

impl Call {
    /// A call of a lane: those of one lane go in order.
    pub fn new(lane: impl Into<String>) -> Self {
        Self {
            lane: lane.into(),
            tolls: Vec::new(),
            priority: Priority::default(),
            due: Due::AtOnce,
            expires: None,
            dedupe: None,
            supersedes: None,
            body: [].into(),
            envelope: Envelope::default(),
        }
    }

    /// It owes this when it starts: all tolls are paid or none. The first one's meter, if it has a rate, closes
    /// when the upstream asks for a pause. Its limit has to be there: `limited_to` is for passes, and says nothing here.
    pub fn pays(mut self, toll: Toll<'_>) -> Self {
        if toll.definition().is_some() {
            tracing::debug!(
                limit = toll.name(),
                "a limit comes with a toll of a call, and is left out: define it"
            );
        }
        self.tolls.push(Owed {
            limit: toll.name().to_owned(),
            partition: toll.partition().map(str::to_owned),
            weight: toll.weight,
            hears_feedback: false,
        });
        self
    }

    /// What the worker gets.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into().into();
        self
    }

    /// Of which trace it is a part: the worker is told, and whoever it is delivered to.
    pub fn trace(mut self, parent: TraceParent) -> Self {
        self.envelope.trace = Some(parent);
        self
    }

    /// How it is delivered, as far as its queue does not say: one whose calls are for workers takes none.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.envelope.delivery = delivery;
        self
    }

    /// What the face of another API keeps with it, as it is; empty: nothing. A client does not send it.
    pub fn card(mut self, card: impl Into<Box<[u8]>>) -> Self {
        self.envelope.card = card.into();
        self
    }

    /// Higher goes first in its lane and at its meters, from 0 to 9; 0 by default.
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// It joins its lane so long after it is accepted.
    pub fn delay(self, delay: impl Into<Span>) -> Self {
        Self { due: Due::After(delay.into()), ..self }
    }

    /// It joins its lane at this instant of the wall clock.
    pub fn not_before(self, wall: Timestamp) -> Self {
        Self { due: Due::At(wall), ..self }
    }

    /// It ends unstarted if it could not start within so long after it is accepted.
    pub fn expires_after(self, span: impl Into<Span>) -> Self {
        Self { expires: Some(Due::After(span.into())), ..self }
    }

    /// It ends unstarted if it could not start before this instant of the wall clock.
    pub fn expires_at(self, wall: Timestamp) -> Self {
        Self { expires: Some(Due::At(wall)), ..self }
    }

    /// A second call with this key within the queue's window is this one.
    pub fn dedupe(self, key: impl Into<String>) -> Self {
        Self { dedupe: Some(key.into()), ..self }
    }

    /// It takes the place of the call of this key that waits in the same lane.
    pub fn supersedes(self, key: impl Into<String>) -> Self {
        Self { supersedes: Some(key.into()), ..self }
    }

    /// What it is made of.
    pub fn into_parts(self) -> CallParts {
        let Self { lane, tolls, priority, due, expires, dedupe, supersedes, body, envelope } = self;
        CallParts { lane, tolls, priority, due, expires, dedupe, supersedes, body, envelope }
    }

    /// Whether it names instants of the wall clock.
    pub(super) fn has_instants(&self) -> bool {
        matches!(self.due, Due::At(_)) || matches!(self.expires, Some(Due::At(_)))
    }

    /// As the store takes it.
    pub fn into_new(self, queue: QueueName, now: Now) -> Result<NewCall, Error> {
        let key = |text: Option<String>| text.map(|text| Key::new(&text)).transpose();
        let tolls = self.tolls.into_iter().map(|owed| -> Result<_, AskError> {
            Ok(tollgate_core::Toll {
                limit: LimitName::new(&owed.limit)?,
                partition: owed.partition.map(|name| Partition::new(&name)).transpose()?,
                weight: owed.weight,
                hears_feedback: owed.hears_feedback,
            })
        });
        #[cfg_attr(not(feature = "push"), expect(unused_mut, reason = "only pushes owe more"))]
        let mut tolls = tolls.collect::<Result<Tolls, _>>()?;
        #[cfg(feature = "push")]
        if self.envelope.delivery != Delivery::default() {
            crate::push::delivery::check(&self.envelope.delivery).map_err(AskError::from)?;
        }
        #[cfg(feature = "push")]
        if let Some(destination) = &self.envelope.delivery.destination {
            tolls.push(crate::push::caps::toll(destination)?);
        }
        Ok(NewCall {
            queue,
            lane: LaneName::new(&self.lane)?,
            tolls,
            priority: self.priority,
            not_before: self.due.wall(now),
            expires: self.expires.and_then(|expires| expires.wall(now)),
            dedupe: key(self.dedupe)?,
            supersedes: key(self.supersedes)?,
            payload: self.envelope.around(&self.body)?,
        })
    }
}
