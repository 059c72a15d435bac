//! The manner of another API: in whose words calls with a card are sent, and what answers mean for them.

use super::answer::Answered;
use crate::envelope::Delivery;
use crate::lanes::{Job, Outcome};
use http::HeaderMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use tollgate_core::lanes::QueueSpec;
use tollgate_core::{QueueName, Timestamp};

/// Something that is made ready.
pub type Preparing<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// How calls that carry a card are sent, and what answers mean for them: the words of another API.
///
/// What is Tollgate's alone is not sent with them: which call and attempt it is, and its signature.
pub trait Manner: Send + Sync + Debug {
    /// Gets ready to send calls of a queue: learns what [`Self::dress`] needs, if it is not known yet.
    fn ready<'a>(&'a self, queue: &'a QueueName) -> Preparing<'a>;

    /// Adds the headers that go with a request, its signature among them; it may take away such as are
    /// there. An error is why there can be no request, and is judged as if it had come back.
    fn dress(&self, sent: &Sent<'_>, headers: &mut HeaderMap) -> Result<(), String>;

    /// What an answer means: how the attempt is settled, with its report and what follows. A report that
    /// is too long is left out.
    fn judge(&self, attempt: &Attempt<'_>, answered: &Answered) -> Outcome;
}

/// What is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// The call's queue.
    pub queue: &'a QueueName,
    /// The call, but for its body and its delivery.
    pub job: &'a Job,
    /// How it is delivered: its own words over those of its queue.
    pub delivery: &'a Delivery,
    /// Where to, as it was given, less credentials.
    pub destination: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// The present, on the wall clock.
    pub wall: Timestamp,
}

/// An attempt that was made.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The call's queue.
    pub queue: &'a QueueName,
    /// The call, but for its body and its delivery.
    pub job: &'a Job,
    /// How it was delivered: its own words over those of its queue.
    pub delivery: &'a Delivery,
    /// The body.
    pub body: &'a [u8],
    /// How the queue is.
    pub spec: &'a QueueSpec,
    /// The present, on the wall clock.
    pub wall: Timestamp,
}
